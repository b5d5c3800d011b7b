// Renew the live part of a page: <div data-live="5"> asks its page every 5 seconds.
// It does not ask on a hidden tab, and does not replace a part that has the focus or a selection.
"use strict";

(() => {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  let etag = "";

  const isUsed = () => {
    const selection = document.getSelection();
    return (
      part.contains(document.activeElement) ||
      (!selection.isCollapsed && part.contains(selection.anchorNode))
    );
  };

  async function renew() {
    if (document.hidden || isUsed()) return;
    const headers = { "X-Fairshift-Part": "1" };
    if (etag) headers["If-None-Match"] = etag;
    const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "manual" });
    const newer = answer.headers.get("ETag") || "";
    // The same part; only with its newest ETag the server knows that without reading.
    if (answer.status === 304) etag = newer;
    if (answer.status !== 200) return; // or logged out, and the next click asks for a login
    const text = await answer.text();
    if (isUsed()) return; // since it was asked; the next answer will have this change, too
    part.innerHTML = text; // rendered and escaped by our server
    etag = newer;
  }

  setInterval(() => renew().catch(() => {}), 1000 * Number(part.dataset.live));
})();
