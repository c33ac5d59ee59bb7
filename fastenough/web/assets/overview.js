// SPDX-License-Identifier: GPL-2.0-or-later
// All boards: search and filters, which stand in the address behind '#', and the heat map of all of them.
"use strict";

const form = document.querySelector("form.filters"), rows = [...document.querySelectorAll("#boards tbody tr")];
let drawnFor = null;

function filter() {
  const said = new URLSearchParams(location.hash.slice(1));
  const text = (said.get("text") || "").toLowerCase();
  let matching = 0;
  for (const row of rows) {
    const {board, kernel, arch, rack, words} = row.dataset;
    const wanted = ["kernel", "arch", "rack"].every(name => !said.get(name) || row.dataset[name] === said.get(name));
    row.hidden = !wanted || !`${board} ${kernel} ${arch} ${rack} ${words} ${row.querySelector(".state").textContent}`.toLowerCase().includes(text);
    if (!row.hidden) matching++;
  }
  document.getElementById("matching").textContent = matching === rows.length ? "" : `${matching} of ${rows.length} boards`;
  for (const field of form.querySelectorAll("[data-filter]")) if (field !== document.activeElement) field.value = said.get(field.dataset.filter) || "";
}

function say(name, value) {
  const said = new URLSearchParams(location.hash.slice(1));
  if (value) said.set(name, value); else said.delete(name);
  history.replaceState(null, "", said.size ? `#${said}` : location.pathname + location.search);
}

const BARS = 30, HIGH = 16;

/** Of each board some bars, each the greatest of its part of the span. */
function drawBars(data, span) {
  document.getElementById("over").textContent = `Maxima over ${span}`;
  for (const row of rows) {
    const values = data.boards[row.dataset.board] || [], svg = row.querySelector("svg.spark");
    if (!svg) continue;
    const count = Math.min(BARS, values.length), most = values.reduce((a, b) => Math.max(a, b), 0), high = Math.max(most, +svg.dataset.limit, 1);
    const bars = Array.from({length: count}, (_, bar) => values.slice(Math.floor(bar * values.length / count), Math.floor((bar + 1) * values.length / count))
      .reduce((a, b) => b === null ? a : Math.max(a, b), -1));
    const x = bar => +(3 * BARS * (bar + 0.5) / count).toFixed(1);
    svg.querySelector("path").setAttribute("d", bars.map((value, bar) => value < 0 ? "" : `M${x(bar)} ${HIGH}V${HIGH - Math.max(1, Math.round(HIGH * value / high))}`).join(""));
    svg.setAttribute("aria-label", `maxima over ${span}, the greatest ${us(most || null)} µs`);
  }
}

async function drawHeat() {
  const said = new URLSearchParams(location.hash.slice(1)).get("span"), place = document.getElementById("heat");
  const span = document.querySelector(`[data-span="${CSS.escape(said || "")}"]`) ? said : "30d";
  document.querySelectorAll("[data-span]").forEach(button => button.setAttribute("aria-pressed", String(button.dataset.span === span)));
  document.querySelector("[data-files] , a[data-files]").href = `heat-${span}.json`;
  try {
    drawnFor = await figures(`heat-${span}.json`);
    if (drawnFor === null) throw new Error("no such span");
    show("heat", place, boardsFigure(drawnFor));
    drawBars(drawnFor, span);
  } catch (error) { cannot(place, error); }
  drawn();
}

if (form) {
  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", event => { say(event.target.dataset.filter, event.target.value); filter(); });
  document.querySelectorAll("[data-span]").forEach(button => button.addEventListener("click", () => { say("span", button.dataset.span); drawHeat(); }));
  addEventListener("hashchange", () => { filter(); drawHeat(); });
  addEventListener("recolour", drawHeat);
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawHeat, 200); });
  filter();
  drawHeat();
  listen((name, row) => {
    const place = rows.find(one => one.dataset.board === name);
    if (place) fill(place, row);
  }, name => rows.filter(one => one.dataset.board === name).forEach(one => one.remove()));
} else {
  drawn();
}
