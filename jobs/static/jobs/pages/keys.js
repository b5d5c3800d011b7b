// Keys: "/" searches, "?" lists keys, "g" and a letter open a page, "j" and "k" walk the rows.
"use strict";

(() => {
  let afterG = 0;

  const isTyping = (target) =>
    target.isContentEditable || /^(input|select|textarea)$/i.test(target.tagName);

  function walk(step) {
    const links = [...document.querySelectorAll("main tbody tr")]
      .map((row) => row.querySelector("a, button"))
      .filter(Boolean);
    if (!links.length) return;
    const row = document.activeElement.closest("main tbody tr");
    const at = row ? links.findIndex((link) => row.contains(link)) : step > 0 ? -1 : links.length;
    links[Math.min(links.length - 1, Math.max(0, at + step))].focus();
  }

  function act(event) {
    if (Date.now() - afterG < 1500) {
      afterG = 0;
      const link = [...document.querySelectorAll("nav [data-key]")].find(
        (one) => one.dataset.key === event.key,
      );
      if (link) link.click();
      return Boolean(link);
    }
    const search = document.querySelector("[data-search]");
    const keys = document.querySelector("[data-keys]");
    if (event.key === "g") afterG = Date.now();
    else if (event.key === "/" && search) search.focus();
    else if (event.key === "?" && keys) {
      keys.open = !keys.open;
      keys.querySelector("summary").focus();
    } else if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else return false;
    return true;
  }

  // On a narrow screen the entries are wider than the bar.
  const current = document.querySelector("nav [data-key][aria-current]");
  if (current) current.scrollIntoView({ block: "nearest", inline: "center" });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (act(event)) event.preventDefault();
  });
})();
