// Puts the parts that the server sends in their places. It sends nothing.
"use strict";
const link = document.getElementById("link");
const pause = document.getElementById("pause");
let isPaused = false;
let hasEnded = false;
const waiting = {};

function say(text, isLost) {
  link.textContent = text;
  link.classList.toggle("lost", isLost);
}

function put(parts) {
  for (const [id, html] of Object.entries(parts)) {
    const place = document.getElementById(id);
    if (place === null) continue;
    place.innerHTML = html;
    const section = place.closest("section");
    // A chart's table is hidden with its chart.
    if (section !== null && !id.endsWith("-table")) section.hidden = html === "";
  }
}

function connect() {
  const source = new EventSource("events" + location.search);
  source.onopen = () => { hasEnded = false; if (!isPaused) say("renewed as it goes on", false); };
  source.onerror = () => {
    if (!hasEnded) say("not reached: these are older figures; trying again", true);
    // After a refusal, as of one viewer too many, a browser does not try again by itself.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
  };
  source.addEventListener("parts", (event) => {
    Object.assign(waiting, JSON.parse(event.data));
    if (isPaused) return;
    put(waiting);
    for (const id of Object.keys(waiting)) delete waiting[id];
  });
  source.addEventListener("end", () => {
    hasEnded = true;
    say("the page is no longer served: these are the last figures", true);
  });
}

connect();

pause.hidden = false;
pause.setAttribute("aria-pressed", "false");
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  if (isPaused) { say("paused here, not the run", false); return; }
  put(waiting);
  for (const id of Object.keys(waiting)) delete waiting[id];
  say("renewed as it goes on", false);
});
