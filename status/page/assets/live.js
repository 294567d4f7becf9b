// Keeps an open page up to date without reloading it. The page also works without this script.
(() => {
  "use strict";
  const rest = 1500; // the minimum time between two requests, in milliseconds
  const poll = 15000; // the time between requests while no event stream is open
  const about = document.body.dataset.about;
  const line = document.getElementById("link");
  let stream = null, timer = 0, last = 0, due = false, running = false;

  const say = (text) => { if (line.textContent !== text) line.textContent = text; };

  // While somebody selects text, the page stays as it is.
  const busy = () => {
    const marked = window.getSelection();
    return document.hidden || Boolean(marked && !marked.isCollapsed);
  };

  const key = (el) => el && (el.id || el.getAttribute("href") || (el.tagName === "SUMMARY" && el.closest("li") && el.closest("li").innerText.slice(0, 80)));

  // An approval is for the plan that the user has read. If the plan has changed, the button says so.
  const digest = (el) => { const input = el.querySelector("input[name=digest]"); return input ? input.value : ""; };
  const outdated = (now, next) => {
    const button = now.querySelector("#approve");
    if (!button || !digest(next) || digest(now) === digest(next)) return false;
    button.disabled = true;
    button.textContent = "The plan has changed. Reload this page";
    return true;
  };

  // Parts of the page are replaced by their name, so that forms keep their input.
  const put = (fresh) => {
    document.title = fresh.title;
    for (const now of document.querySelectorAll("[data-live]")) {
      const next = fresh.querySelector(`[data-live="${now.dataset.live}"]`);
      if (!next || next.innerHTML === now.innerHTML && next.className === now.className || outdated(now, next)) continue;
      const held = now.contains(document.activeElement) ? key(document.activeElement) : null;
      const open = new Set([...now.querySelectorAll("details[open] > summary")].map(key));
      const scrolled = [...now.querySelectorAll(".scroll")].map((el) => el.scrollLeft);
      now.className = next.className;
      now.replaceChildren(...next.childNodes);
      now.querySelectorAll(".scroll").forEach((el, i) => { el.scrollLeft = scrolled[i] || 0; });
      for (const s of now.querySelectorAll("summary")) if (open.has(key(s))) s.parentElement.open = true;
      if (held) for (const el of now.querySelectorAll("a, summary, [id]")) if (key(el) === held) { el.focus({ preventScroll: true }); break; }
    }
    tick();
  };

  const look = async () => {
    due = false;
    if (running) { due = true; return; }
    if (busy()) { later(poll / 5); return; }
    running = true;
    last = Date.now();
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; } // the login has ended
      if (answer.redirected) { location.reload(); return; } // a search for an instance leads to its pool
      if (answer.status >= 500) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!busy()) put(fresh);
      say("");
    } catch {
      say("weir does not answer. This page shows its last answer.");
    }
    running = false;
    if (due) later(rest);
  };

  const later = (wait) => {
    if (timer) return;
    timer = setTimeout(() => { timer = 0; look(); }, Math.max(wait, rest - (Date.now() - last)));
  };

  const listen = () => {
    if (document.hidden || stream) return;
    stream = new EventSource("/live");
    // The stream does not report changes from before it was opened.
    stream.addEventListener("hello", () => { document.body.dataset.linked = "true"; later(0); });
    stream.addEventListener("change", (event) => {
      document.body.dataset.told = Number(document.body.dataset.told || 0) + 1;
      const what = JSON.parse(event.data);
      if (what.all || !about || what.targets.includes(about)) later(0);
    });
    stream.onerror = () => { if (stream && stream.readyState === EventSource.CLOSED) hush(); };
  };

  const hush = () => { if (stream) stream.close(); stream = null; delete document.body.dataset.linked; };

  // Relative times advance even if nothing else changes.
  const words = (s) => {
    const a = Math.abs(s);
    const text = a < 60 ? `${Math.floor(a)} s` : a < 3600 ? `${Math.floor(a / 60)} min` : a < 172800 ? `${Math.floor(a / 3600)} h` : `${Math.floor(a / 86400)} days`;
    return a < 1 ? "now" : s < 0 ? `in ${text}` : `${text} ago`;
  };
  const skew = () => {
    const asof = document.querySelector('[data-live="asof"] time');
    return asof ? Date.parse(asof.dateTime) : Date.now();
  };
  let shown = Date.now(), base = skew();
  const tick = () => {
    const at = skew();
    if (at !== base) { base = at; shown = Date.now(); }
    const now = base + (Date.now() - shown);
    if (now - base < 2000) return;
    for (const el of document.querySelectorAll("time[data-ago]")) {
      const text = words((now - Date.parse(el.dateTime)) / 1000);
      if (el.textContent !== text) el.textContent = text;
    }
  };

  // A search shows its results while the user types, and the page's address contains the query.
  for (const form of document.querySelectorAll("form.find")) {
    let pause = 0;
    const go = () => {
      const query = new URLSearchParams();
      for (const [name, value] of new FormData(form)) if (value) query.append(name, value);
      const text = query.toString();
      history.replaceState(null, "", form.getAttribute("action") + (text ? "?" + text : ""));
      last = 0;
      if (timer) { clearTimeout(timer); timer = 0; }
      look();
    };
    form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
    form.addEventListener("change", go);
    form.addEventListener("input", (event) => {
      if (event.target.type !== "search") return;
      clearTimeout(pause);
      pause = setTimeout(go, 250);
    });
  }
  document.addEventListener("keydown", (event) => {
    const search = document.getElementById("q");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !search || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
    search.select();
  });

  listen();
  setInterval(() => { if (!stream) { listen(); later(0); } }, poll);
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { hush(); return; }
    listen();
    later(0);
  });
  window.addEventListener("pagehide", hush);
})();
