"use strict";
// The form of a job: shows only the fields of the chosen schedule, and a preview while a person
// types. The form also works without this script; the page then shows the schedule once it is saved.
document.addEventListener("DOMContentLoaded", () => {
    const box = document.querySelector("[data-preview]");
    const kind = document.getElementById("id_schedule");
    // A person who may not change the job has no form.
    if (!box || !kind) {
        return;
    }
    const kindsOf = new Map();
    for (const {name, value} of box.attributes) {
        if (name.startsWith("data-of-")) {
            kindsOf.set(name.slice("data-of-".length), value.split(" "));
        }
    }
    fairshift.watch({
        form: kind.form,
        box,
        address: box.dataset.preview,
        showFields: () => {
            for (const [field, kinds] of kindsOf) {
                const row = document.querySelector(`.form-row.field-${field}`);
                if (row) {
                    fairshift.showRow(row, kinds.includes(kind.value));
                }
            }
        },
        isAsked: name => kindsOf.has(name.replace(/_[01]$/, "")) || name === "schedule"
            || name === "zone",
        // The page shows the stored schedule: none for a new job, an old one after an error.
        isStale: !box.dataset.preview.includes("job=")
            || document.querySelector(".errornote") !== null,
    });
});
