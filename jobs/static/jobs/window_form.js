"use strict";
// The form of a window: shows the fields of the chosen recurrence only, and what it means while it
// is typed. Without this script the form works as well, and "Preview" says what it means.
{
    const DELAY_MS = 250;
    const ASKED = /^(effect|starts_[01]|duration|zone|repeat|weekdays|rule|excluded|added|valid_(from|until)_[01]|reason)$/;

    const watch = (box, repeat) => {
        const form = repeat.form;
        const showFields = () => {
            for (const field of ["weekdays", "rule"]) {
                const row = form.querySelector(`.form-row.field-${field}`);
                const isOf = box.getAttribute(`data-of-${field}`) === repeat.value;
                row.hidden = !isOf && !row.classList.contains("errors");
                // What is not shown is not sent.
                for (const input of row.querySelectorAll("input")) {
                    input.disabled = row.hidden;
                }
            }
        };
        const question = () => {
            const address = new URL(box.dataset.windowPreview, location.href);
            for (const [name, value] of new FormData(form)) {
                if (ASKED.test(name)) {
                    address.searchParams.append(name, value);
                }
            }
            return address.href;
        };

        let timer = 0;
        let running = new AbortController();
        let asked = "";
        const show = async address => {
            running.abort();
            running = new AbortController();
            try {
                const answer = await fetch(address, {signal: running.signal});
                if (answer.ok) {
                    box.innerHTML = await answer.text();
                }
            } catch (error) {
                // Asked anew meanwhile, or no connection: what stands there stays.
            }
        };
        const changed = () => {
            showFields();
            const address = question();
            if (address !== asked) {
                asked = address;
                clearTimeout(timer);
                timer = setTimeout(show, DELAY_MS, address);
            }
        };
        // Also "focusin": the calendar beside a date fills it in without any other event.
        for (const event of ["input", "change", "focusin"]) {
            form.addEventListener(event, changed);
        }
        showFields();
        // What stands there is what is stored, or what was just looked at.
        asked = question();
    };

    document.addEventListener("DOMContentLoaded", () => {
        const box = document.querySelector("[data-window-preview]");
        const repeat = document.getElementById("id_repeat");
        // Who may only look has no fields to type in.
        if (box && repeat) {
            watch(box, repeat);
        }
    });
}
