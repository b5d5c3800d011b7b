"use strict";
// The form of a job: shows the fields of the chosen schedule only, and what it means while it is
// typed. Without this script the form works as well, and says what a schedule means once saved.
document.addEventListener("DOMContentLoaded", () => {
    const box = document.querySelector("[data-preview]");
    const kind = document.getElementById("id_schedule");
    // Who may only look has no fields to type in.
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
        // What stands there is what is stored: nothing yet, or not what was just refused.
        isStale: !box.dataset.preview.includes("job=")
            || document.querySelector(".errornote") !== null,
    });
});
