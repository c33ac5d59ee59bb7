// SPDX-License-Identifier: GPL-2.0-or-later
// All boards: search, filters and order, which stand in the address behind '#', and the heat map of all of them.
"use strict";

const form = document.querySelector("form.filters");
const PAGED = form !== null && "paged" in form.dataset;   // the server searches, sorts and pages
const FORMER_STATES = {lent: "reserved"};   // in addresses of earlier versions
let requested = 0, rows = rowsShown(), bars = null;

function rowsShown() { return [...document.querySelectorAll("#boards tbody tr")]; }

function filter() {
  const said = new URLSearchParams(location.hash.slice(1));
  const text = (said.get("text") || "").toLowerCase();
  let matching = 0;
  for (const row of rows) {
    const {board, kernel, arch, rack, words} = row.dataset;
    const wanted = ["kernel", "arch", "rack", "state", "verdict"].every(name => !said.get(name) || row.dataset[name] === said.get(name))
      && (!said.get("within") || (row.dataset.max !== "" && +row.dataset.max <= 1000 * said.get("within")));
    row.hidden = !wanted || !`${board} ${kernel} ${arch} ${rack} ${words} ${row.querySelector(".state").textContent}`.toLowerCase().includes(text);
    if (!row.hidden) matching++;
  }
  document.getElementById("matching").textContent = matching === rows.length ? "" : `${matching} of ${rows.length} boards`;
  for (const field of form.querySelectorAll("[data-filter]")) if (field !== document.activeElement) field.value = said.get(field.dataset.filter) || "";
}

/** What a row is ordered by in a column: numbers as such, nothing last. */
function keyOf(row, column) {
  const said = row.cells[column].textContent.trim();
  if (column === 0) return +row.dataset.rank;
  if (row.cells[column].querySelector("svg")) return +row.dataset.max || 0;
  const number = +said.replaceAll(",", "");
  return said === "–" || said === "never" ? null : Number.isNaN(number) ? said : number;
}

function order() {
  const said = new URLSearchParams(location.hash.slice(1)), body = document.querySelector("#boards tbody");
  const column = said.get("sort") === null ? -1 : +said.get("sort"), down = said.has("down");
  document.querySelectorAll("#boards thead th").forEach((head, place) => {
    if (place === column) head.setAttribute("aria-sort", down ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
  });
  if (column < 0) return;
  const keyed = rows.map((row, place) => ({row, place, key: keyOf(row, column)}));
  const sign = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  keyed.sort((a, b) => (a.key === null) - (b.key === null) || (down ? -1 : 1) * sign(a.key, b.key) || a.place - b.place);
  body.append(...keyed.map(one => one.row));
}

function makeSortable() {
  document.querySelectorAll("#boards thead th").forEach((head, place) => {
    const button = made("button", head.textContent, "sorter");
    button.type = "button";
    if (head.id) { button.id = head.id; head.removeAttribute("id"); }
    button.addEventListener("click", () => {
      const said = new URLSearchParams(location.hash.slice(1)), again = said.get("sort") === String(place) && !said.has("down");
      say("down", again ? "1" : "");
      say("sort", String(place));
      order();
    });
    head.replaceChildren(button);
  });
}

function say(name, value) {
  const said = new URLSearchParams(location.hash.slice(1));
  if (value) said.set(name, value); else said.delete(name);
  history.replaceState(null, "", said.size ? `#${said}` : location.pathname + location.search);
}

const BARS = 30, HIGH = 16;

/** Of each board some bars, each the greatest of its part of the span. */
function drawBars({data, span}) {
  document.getElementById("over").textContent = `Maxima over ${span}`;
  for (const row of rows) {
    const values = data.boards[row.dataset.board] || [], svg = row.querySelector("svg.spark");
    if (!svg) continue;
    const count = Math.min(BARS, values.length), most = values.reduce((a, b) => Math.max(a, b), 0), high = Math.max(most, +svg.dataset.limit, 1);
    const bars = Array.from({length: count}, (_, bar) => values.slice(Math.floor(bar * values.length / count), Math.floor((bar + 1) * values.length / count))
      .reduce((a, b) => b === null ? a : Math.max(a, b), -1));
    const x = bar => +(3 * BARS * (bar + 0.5) / count).toFixed(1);
    svg.querySelector("path").setAttribute("d", bars.map((value, bar) => value < 0 ? "" : `M${x(bar)} ${HIGH}V${HIGH - Math.max(1, Math.round(HIGH * value / high))}`).join(""));
    svg.setAttribute("aria-label", `maxima over ${span}, up to ${us(most || null)} µs`);
  }
}

async function drawHeat() {
  const said = new URLSearchParams(location.hash.slice(1)).get("span"), place = document.getElementById("heat"), request = ++requested;
  const span = document.querySelector(`[data-span="${CSS.escape(said || "")}"]`) ? said : "30d";
  document.querySelectorAll("[data-span]").forEach(button => button.setAttribute("aria-pressed", String(button.dataset.span === span)));
  const file = `heat-${span}.json${location.search}`;
  document.querySelector("[data-files] , a[data-files]").href = file;
  try {
    const found = await figures(file);
    if (request !== requested) return;   // another span has been selected since
    if (found === null) throw new Error("unknown span");
    show("heat", place, boardsFigure(found));
    bars = {data: found, span};
    drawBars(bars);
  } catch (error) { if (request === requested) cannot(place, error); }
  drawn();
}

/** Replace the former name of a state in the address. */
function renewAddress() {
  const state = new URLSearchParams(location.hash.slice(1)).get("state");
  if (Object.hasOwn(FORMER_STATES, state)) say("state", FORMER_STATES[state]);
}

function filterHere() {
  form.hidden = false;
  renewAddress();
  makeSortable();
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", event => { say(event.target.dataset.filter, event.target.value); filter(); });
  addEventListener("hashchange", () => { renewAddress(); filter(); order(); });
  filter();
  order();
}

/** After the server's rows, in its order, have replaced those of this page. */
function arrange() {
  rows = rowsShown();
  if (bars) drawBars(bars);
  if (PAGED) return;
  filter();
  order();
}

if (form) {
  if (!PAGED) filterHere();
  document.querySelectorAll("[data-span]").forEach(button => button.addEventListener("click", () => { say("span", button.dataset.span); drawHeat(); }));
  addEventListener("hashchange", drawHeat);
  addEventListener("redraw", drawHeat);
  drawHeat();
  listen(location.search, (name, row) => {
    const place = rows.find(one => one.dataset.board === name);
    if (!place || place.dataset.state !== row.state || place.dataset.verdict !== (row.verdict || "none")) renewSoon(arrange);
    if (!place) return;
    place.dataset.max = row.max_30d_ns === null ? "" : row.max_30d_ns;
    fill(place, row);
  }, () => renewSoon(arrange));
} else {
  drawn();
}
