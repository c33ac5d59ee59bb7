// SPDX-License-Identifier: GPL-2.0-or-later
// Live: what each board measured last, and a strip of its newest five-minute maxima.
"use strict";

const MOST = 90, STEP_S = 300, PAGED = document.querySelector(".pages") !== null;
const LATEST = Math.floor(+document.getElementById("boards").dataset.latestS / STEP_S);
const strips = new Map([...document.querySelectorAll("#boards tbody tr")].map(row => [row.dataset.board, {row, values: before(row), last: LATEST}]));

/** The five-minute maxima that were known when the page was made; nothing where nothing was measured. */
function before(row) {
  return (row.dataset.latest || "").split(",").map(value => value === "" ? 0 : +value);
}

/** The maximum of five minutes in the bar of these; bars move for later ones than the last. */
function put(strip, step, value) {
  const later = Math.min(MOST, Math.max(0, step - strip.last));
  strip.last = Math.max(strip.last, step);
  strip.values = [...strip.values, ...Array(later).fill(0)].slice(-MOST);
  const place = strip.values.length - 1 - (strip.last - step);
  if (place >= 0) strip.values[place] = value;
}

function drawStrip({row, values}) {
  const canvas = row.querySelector("canvas"), pen = canvas.getContext("2d"), limit = +row.dataset.limit;
  const high = Math.max(...values, limit || 1) * 1.1, w = canvas.width / MOST;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = colour("colour-0");
  values.forEach((value, place) => {
    if (!value) return;
    const h = Math.max(1, canvas.height * value / high);
    pen.fillRect(canvas.width - (values.length - place) * w, canvas.height - h, Math.max(1, w - 1), h);
  });
  if (!limit) return;
  const y = canvas.height * (1 - limit / high);
  pen.strokeStyle = colour("limit");
  pen.setLineDash([6, 4]);
  pen.beginPath();
  pen.moveTo(0, y);
  pen.lineTo(canvas.width, y);
  pen.stroke();
}

listen(location.search, (name, row) => {
  const strip = strips.get(name);
  if (!strip) { if (!PAGED) location.reload(); return; }   // a board that was not there before
  fill(strip.row, row);
  if (row.max_5min_ns === null) return;
  put(strip, Math.floor(row.max_5min_s / STEP_S), row.max_5min_ns);
  drawStrip(strip);
  document.getElementById("listening").textContent = "Newest values of each board, updated live.";
}, name => { if (!PAGED && strips.has(name)) strips.get(name).row.remove(); });
strips.forEach(drawStrip);
addEventListener("redraw", () => strips.forEach(drawStrip));
drawn();
