"use strict";
// The form of a window: shows only the fields of the chosen recurrence, and a preview while a person
// types. The form also works without this script, with the button "Preview".
document.addEventListener("DOMContentLoaded", () => {
    const ASKED = /^(effect|starts_[01]|duration|zone|repeat|weekdays|rule|excluded|added|valid_(from|until)_[01]|reason)$/;

    const box = document.querySelector("[data-window-preview]");
    const repeat = document.getElementById("id_repeat");
    // A person who may not change the window has no form.
    if (!box || !repeat) {
        return;
    }
    const form = repeat.form;
    fairshift.watch({
        form,
        box,
        address: box.dataset.windowPreview,
        showFields: () => {
            for (const field of ["weekdays", "rule"]) {
                const row = form.querySelector(`.form-row.field-${field}`);
                fairshift.showRow(row, box.getAttribute(`data-of-${field}`) === repeat.value);
            }
        },
        isAsked: name => ASKED.test(name),
        // The page shows the stored window, or the preview of the form.
        isStale: false,
    });
});
