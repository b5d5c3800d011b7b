// Name the browser's time zone to the server, which shows times in it from the next page on.
"use strict";

(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `fairshift_browser_zone=${zone}`;
  if (!zone || document.cookie.split("; ").includes(cookie)) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${cookie}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
})();
