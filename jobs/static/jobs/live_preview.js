"use strict";
// A preview of a form: while a person types, the fields are sent to an address, and a box shows the
// answer. The form also works without a script.
{
    const DELAY_MS = 250;

    // Show or hide a row of the form. A hidden row is not sent; a row with an error stays visible.
    const showRow = (row, isShown) => {
        row.hidden = !isShown && !row.classList.contains("errors");
        for (const input of row.querySelectorAll("input")) {
            input.disabled = row.hidden;
        }
    };

    // Return the address with all values of the fields for whose names `isAsked` returns true.
    const questionOf = (address, form, isAsked) => {
        const question = new URL(address, location.href);
        for (const [name, value] of new FormData(form)) {
            if (isAsked(name)) {
                question.searchParams.append(name, value);
            }
        }
        return question.href;
    };

    // Update the box when the form changes. `showFields` is called before each request. With
    // `isStale` there is a request at once, because the box does not show the form's values.
    const watch = ({form, box, address, showFields, isAsked, isStale}) => {
        let timer = 0;
        let running = new AbortController();
        const show = async question => {
            running.abort();
            running = new AbortController();
            try {
                const answer = await fetch(question, {signal: running.signal});
                if (answer.ok) {
                    box.innerHTML = await answer.text();
                }
            } catch (error) {
                // Replaced by a newer request, or no connection: the box stays as it is.
            }
        };
        showFields();
        let asked = questionOf(address, form, isAsked);
        const changed = () => {
            showFields();
            const question = questionOf(address, form, isAsked);
            if (question !== asked) {
                asked = question;
                clearTimeout(timer);
                timer = setTimeout(show, DELAY_MS, question);
            }
        };
        // Also "focusin": Django's date picker fills in a date without any other event.
        for (const event of ["input", "change", "focusin"]) {
            form.addEventListener(event, changed);
        }
        if (isStale) {
            show(asked);
        }
    };

    window.fairshift = {showRow, watch};
}
