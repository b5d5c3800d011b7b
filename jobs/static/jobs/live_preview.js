"use strict";
// What a form means while it is typed: a box beside it shows the answer to an address that is made
// of the form's fields. Without a script the form works as well.
{
    const DELAY_MS = 250;

    // Show a row of the form, or not: what is not shown is not sent, and what is wrong is shown.
    const showRow = (row, isShown) => {
        row.hidden = !isShown && !row.classList.contains("errors");
        for (const input of row.querySelectorAll("input")) {
            input.disabled = row.hidden;
        }
    };

    // The address with the fields that `isAsked` tells by their names, all values of each.
    const questionOf = (address, form, isAsked) => {
        const question = new URL(address, location.href);
        for (const [name, value] of new FormData(form)) {
            if (isAsked(name)) {
                question.searchParams.append(name, value);
            }
        }
        return question.href;
    };

    // Keep the box in step with the form. `showFields` is called before each question, `isAsked` as
    // above; the box begins with what stands there, or with an answer where that `isStale`.
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
                // Asked anew meanwhile, or no connection: what stands there stays.
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
        // Also "focusin": the calendar beside a date fills it in without any other event.
        for (const event of ["input", "change", "focusin"]) {
            form.addEventListener(event, changed);
        }
        if (isStale) {
            show(asked);
        }
    };

    window.fairshift = {showRow, watch};
}
