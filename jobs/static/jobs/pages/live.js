// Renew the live part of a page: <div data-live="5"> asks its page every 5 seconds.
// It does not ask on a hidden tab, and does not replace a part that has the focus or a selection.
// One question at a time: an older answer that comes after a newer one would stay, with the ETag of
// the newer one.
// What the reader has opened or scrolled in it stays so. A page that gets no answer says it.
"use strict";

(() => {
  const MOST_MS = 30_000; // a question without an answer is asked again after that
  const part = document.querySelector("[data-live]");
  if (!part) return;
  const stale = document.querySelector("[data-stale]");
  let etag = "";
  let misses = 0;
  let renewedAt = new Date();
  let isAsking = false;

  const isUsed = () => {
    const selection = document.getSelection();
    return (
      part.contains(document.activeElement) ||
      (!selection.isCollapsed && part.contains(selection.anchorNode))
    );
  };

  // Each <details> with its text without numbers, and its place among equal ones.
  function details() {
    const counts = {};
    return [...part.querySelectorAll("details")].map((one) => {
      const text = one.querySelector("summary").textContent.replace(/\d+/g, "");
      counts[text] = (counts[text] || 0) + 1;
      return [`${text} ${counts[text]}`, one];
    });
  }

  function replace(html) {
    const opened = details().filter(([, one]) => one.open).map(([key]) => key);
    const places = [...part.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    part.innerHTML = html; // rendered and escaped by our server
    for (const [key, one] of details()) one.open = opened.includes(key);
    part.querySelectorAll(".scroll").forEach((one, number) => one.scrollTo(...(places[number] || [0, 0])));
  }

  async function renew() {
    if (document.hidden || isUsed()) return;
    const headers = { "X-Fairshift-Part": "1" };
    if (etag) headers["If-None-Match"] = etag;
    const answer = await fetch(location.href, {
      headers,
      cache: "no-store",
      redirect: "manual",
      signal: AbortSignal.timeout(MOST_MS),
    });
    const newer = answer.headers.get("ETag") || "";
    // The same part; only with its newest ETag the server knows that without reading.
    if (answer.status === 304) etag = newer;
    else if (answer.status !== 200) throw new Error("no part"); // such as logged out
    const text = answer.status === 200 ? await answer.text() : "";
    misses = 0;
    renewedAt = new Date();
    stale.hidden = true;
    // A part in use since it was asked: the next answer will have this change, too.
    if (!text || isUsed()) return;
    replace(text);
    etag = newer;
  }

  function miss() {
    misses += 1;
    if (misses < 2) return; // one miss may be a restart of the server
    stale.querySelector("time").textContent = renewedAt.toLocaleTimeString();
    stale.hidden = false;
  }

  async function ask() {
    if (isAsking) return;
    isAsking = true;
    await renew().catch(miss);
    isAsking = false;
  }

  setInterval(ask, 1000 * Number(part.dataset.live));
  document.addEventListener("visibilitychange", ask);
})();
