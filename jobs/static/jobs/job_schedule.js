"use strict";
// The form of a job: shows the fields of the chosen schedule only, and what it means while it is
// typed. Without this script the form works as well, and says what a schedule means once saved.
{
    const DELAY_MS = 250;

    const watch = (box, kind) => {
        const form = kind.form;
        const kindsOf = new Map();
        for (const {name, value} of box.attributes) {
            if (name.startsWith("data-of-")) {
                kindsOf.set(name.slice("data-of-".length), value.split(" "));
            }
        }
        const rows = [...kindsOf].map(([field, kinds]) => [
            document.querySelector(`.form-row.field-${field}`), kinds,
        ]).filter(([row]) => row);

        const showFields = () => {
            for (const [row, kinds] of rows) {
                const isOf = kinds.includes(kind.value);
                row.hidden = !isOf && !row.classList.contains("errors");
                // What is not shown is not sent.
                for (const input of row.querySelectorAll("input")) {
                    input.disabled = row.hidden;
                }
            }
        };

        const isAsked = name => kindsOf.has(name.replace(/_[01]$/, "")) || name === "schedule"
            || name === "zone";
        const question = () => {
            const address = new URL(box.dataset.preview, location.href);
            for (const [name, value] of new FormData(form)) {
                if (isAsked(name)) {
                    address.searchParams.set(name, value);
                }
            }
            return address.href;
        };

        let timer = 0;
        let running = new AbortController();
        let asked = question();
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
        asked = question();
        // What stands there is what is stored: nothing yet, or not what was just refused.
        if (!box.dataset.preview.includes("job=") || document.querySelector(".errornote")) {
            show(asked);
        }
    };

    document.addEventListener("DOMContentLoaded", () => {
        const box = document.querySelector("[data-preview]");
        const kind = document.getElementById("id_schedule");
        // Who may only look has no fields to type in.
        if (box && kind) {
            watch(box, kind);
        }
    });
}
