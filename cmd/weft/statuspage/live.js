// Reads the page again every two seconds while it is seen, and replaces the part that changes.
"use strict";
setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("live").replaceWith(page.getElementById("live"));
    document.body.classList.remove("stale");
  } catch {
    document.body.classList.add("stale");
  }
}, 2000);
