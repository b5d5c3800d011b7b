// Add new lines to the log of a run: <ol data-log="ADDRESS" data-after="POSITION"> asks each second.
// It does not ask on a hidden tab. A list that is scrolled to its end stays there.
"use strict";

(() => {
  const PAUSE_MS = 1_000;
  const MOST_MS = 30_000; // a question without an answer is asked again after that
  const MOST_LINES = 5_000;
  const list = document.querySelector("[data-log]");
  if (!list) return;
  const address = new URL(list.dataset.log, location.href);
  let after = list.dataset.after;
  let isAsking = false;

  const toEnd = () => list.scrollTo(0, list.scrollHeight);
  const isAtEnd = () => list.scrollTop + list.clientHeight >= list.scrollHeight - 8;

  async function renew() {
    address.searchParams.set("after", after);
    const answer = await fetch(address, {
      cache: "no-store",
      redirect: "manual",
      signal: AbortSignal.timeout(MOST_MS),
    });
    if (answer.status !== 200) return;
    const wasAtEnd = isAtEnd();
    list.insertAdjacentHTML("beforeend", await answer.text()); // rendered and escaped by our server
    while (list.childElementCount > MOST_LINES) list.firstElementChild.remove();
    document.querySelector("[data-empty]").hidden = list.childElementCount > 0;
    if (wasAtEnd) toEnd();
    after = answer.headers.get("X-Fairshift-After");
  }

  async function ask() {
    if (isAsking || !after || document.hidden) return;
    isAsking = true;
    await renew().catch(() => {}); // live.js says when the server does not answer
    isAsking = false;
  }

  const copy = document.querySelector("[data-copy]");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", () =>
      navigator.clipboard.writeText([...list.children].map((one) => one.innerText).join("\n")),
    );
  }
  toEnd();
  setInterval(ask, PAUSE_MS);
  document.addEventListener("visibilitychange", ask);
})();
