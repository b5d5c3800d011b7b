"use strict";
// The form of a window: shows the fields of the chosen recurrence only, and what it means while it
// is typed. Without this script the form works as well, and "Preview" says what it means.
document.addEventListener("DOMContentLoaded", () => {
    const ASKED = /^(effect|starts_[01]|duration|zone|repeat|weekdays|rule|excluded|added|valid_(from|until)_[01]|reason)$/;

    const box = document.querySelector("[data-window-preview]");
    const repeat = document.getElementById("id_repeat");
    // Who may only look has no fields to type in.
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
        // What stands there is what is stored, or what was just looked at.
        isStale: false,
    });
});
