// Keeps the page fresh without reloading it. The page reads well without.
(() => {
  "use strict";
  const every = 4000;
  const busy = () => {
    const at = document.activeElement;
    const selected = window.getSelection();
    return document.hidden || (at && at.tagName === "INPUT") || (selected && !selected.isCollapsed);
  };
  const note = (text) => {
    for (const el of document.querySelectorAll(".offline")) el.textContent = text;
  };
  const refresh = async () => {
    if (busy()) return;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const now = document.getElementById("main");
      const next = fresh.getElementById("main");
      if (!now || !next || busy()) return;
      const scrolled = [...now.querySelectorAll(".scroll")].map((el) => el.scrollLeft);
      const held = now.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      now.replaceChildren(...next.childNodes);
      document.title = fresh.title;
      now.querySelectorAll(".scroll").forEach((el, i) => { el.scrollLeft = scrolled[i] || 0; });
      if (held) for (const a of now.querySelectorAll("a")) if (a.getAttribute("href") === held) { a.focus({ preventScroll: true }); break; }
    } catch {
      note(" · weir does not answer; this is what it said last");
    }
  };
  setInterval(refresh, every);
  document.addEventListener("visibilitychange", refresh);
})();
