// SPDX-License-Identifier: GPL-2.0-or-later
// A board's figures.  What is shown stands in the address behind '#': span, and the selected range (begin, end).
"use strict";

const at = id => document.getElementById(id);
const RELOAD_S = 30, MOST_SHOWN = 30, LAST_S = 253402300799;   // no instant after the year 9999 can be said
let maxima = null, heat = null, ridge = null, told = null, lines = null, requested = 0, complete = 0;

function view() {
  const said = new URLSearchParams(location.hash.slice(1));
  const buttons = [...document.querySelectorAll("[data-span]")];
  const usual = buttons.find(button => button.getAttribute("aria-pressed") === "true").dataset.span;
  const span = buttons.some(button => button.dataset.span === said.get("span")) ? said.get("span") : usual;
  const begin = +said.get("begin"), end = +said.get("end"), chosen = begin > 0 && end > begin && end <= LAST_S ? {begin, end} : null;
  return {span, chosen, zoomed: chosen !== null && said.has("zoom")};
}

function go(span, chosen, zoomed) {
  const said = new URLSearchParams({span, ...(chosen ? {begin: Math.round(chosen.begin), end: Math.round(chosen.end)} : {}), ...(zoomed ? {zoom: 1} : {})});
  history.replaceState(null, "", `#${said}`);
  return showAll();
}

function links(span) {
  for (const link of document.querySelectorAll("[data-files] a")) {
    const base = link.closest("[data-files]").dataset.files;
    if (base !== "ridge") link.href = `${base}-${span}.${link.dataset.form}`;
  }
}

function range() {
  const {chosen, zoomed} = view();
  return zoomed ? chosen : {begin: maxima.begin_s, end: maxima.end_s};
}

function drawMaxima(chosen) {
  if (!CAN_DRAW_LINES) return;
  if (lines) lines.destroy();
  const span = view().span;
  lines = maximaLines(at("maxima"), maxima, range(), view().zoomed ? null : chosen, (begin, end) => go(span, {begin, end}));
  keyOfLoads(at("bands"), maxima);
}

/** The times whose five-minute values are in an archive that this page does not read, and how to read them there. */
function showMissing(place, parts) {
  place.replaceChildren(...(parts || []).flatMap(({begin_s, end_s, query}) => {
    const times = `Incomplete from ${instant(begin_s)} to ${instant(end_s)} UTC: the five-minute values of this time are `;
    if (!query) return [made("p", `${times}in the store of the farm that measured the board. Its website shows them.`, "note")];
    const source = made("pre", query);
    source.tabIndex = 0;
    source.setAttribute("role", "group");
    source.setAttribute("aria-label", "SQL");
    return [made("p", `${times}in the archive of takers only. This query reads them there with DuckDB; ARCHIVE is the --archive of fastenough farm take without what follows a "?":`, "note"), source];
  }));
}

function drawPlot(data, said) {
  at("plot-range").textContent = said;
  showMissing(at("plot-missing"), data.missing);
  if (CAN_DRAW_LINES) distributionLines(at("distribution"), data);
}

function drawHeat() {
  show("heat", at("heat"), heatFigure(heat, range(), maxima.limit_ns));
  showMissing(at("heat-missing"), heat.missing);
}

function drawRidge() {
  show("ridge", at("ridge"), ridgeFigure(ridge));
  const rows = ridge.rows.length;
  at("ridge-range").textContent = rows ? `${rows} ${rows === 1 ? "plot" : "plots"} since ${instant(ridge.rows[0].begin_s)}, each of ${ridge.cycles === 1 ? "one cycle" : `${ridge.cycles} cycles`} of ${ridge.cycle_s / 3600} h, all CPUs.` : "";
}

/** A table of what was told; one line where there is nothing. */
function table(place, caption, heads, rows, none) {
  if (!rows.length) { place.replaceChildren(made("p", none)); return; }
  const made_ = made("table"), head = made("tr"), body = made("tbody");
  made_.append(made("caption", caption), made("thead"), body);
  heads.forEach(title => { const cell = made("th", title, "words"); cell.scope = "col"; head.append(cell); });
  made_.querySelector("thead").append(head);
  for (const row of rows) {
    const line = made("tr");
    row.forEach((value, column) => {
      const cell = made(column ? "td" : "th", undefined, typeof value === "string" && value.length > 20 ? value.length > 40 ? "words long" : "words" : "words short");
      if (!column) cell.scope = "row";
      cell.append(value);
      line.append(cell);
    });
    body.append(line);
  }
  place.replaceChildren(made_);
}

function runLink(run) {
  if (!run) return "–";
  const link = made("a", run);
  link.href = `${ROOT}run/${encodeURIComponent(run)}/`;
  return link;
}

function tailWords(change) {
  const trend = change.until_s === null ? "" : `, trend until ${instant(change.until_s)}`;
  return `latency tail${trend} (${change.withdrawn_s === null ? `noted ${instant(change.noted_s)}` : `withdrawn ${instant(change.withdrawn_s)}`})`;
}

function showSelection(found, chosen) {
  const within = [...found.events].sort((a, b) => b.value_ns - a.value_ns).slice(0, MOST_SHOWN);
  at("selected").textContent = `${instant(chosen.begin)} to ${instant(chosen.end)} UTC`;
  table(at("selected-events"), within.length === 1 ? "Greatest value and its cause" : `${within.length} greatest values and their causes`, ["time", "µs", "CPU", "cause", "run"], within.map(one =>
    [instant(one.at_s), (one.new_maximum ? "▲ " : "") + us(one.value_ns), one.cpu === null ? "–" : String(one.cpu), one.culprit || "unknown", runLink(one.run)]),
  "No events in this range.");
  table(at("selected-changes"), "Changes", ["time", "change", "before", "after"], found.changes.map(one =>
    [instant(one.at_s), one.noted_s !== null ? tailWords(one) : one.key + (one.latency ? " (affects latency)" : ""), one.was || "–", one.now || "–"]),
  "No changes in this range.");
  at("selection").hidden = false;
}

/** Events of a range with its maximum, which the figure knows where no event tells of it. */
function withMaximum(events, chosen) {
  let most = {value_ns: Math.max(-1, ...events.map(one => one.value_ns))};
  for (const [cpu, values] of Object.entries(maxima.cpus || {})) values.forEach((value, place) => {
    const at_s = maxima.times_s[place];
    if (value !== null && value > most.value_ns && at_s < chosen.end && at_s + maxima.step_s > chosen.begin)
      most = {at_s, value_ns: value, cpu: +cpu < 0 ? null : +cpu, culprit: "", run: "", new_maximum: false};
  });
  return most.at_s === undefined ? events : [most, ...events];
}

/** Without a server behind the site: what its files know of a range; of latencies, the cycles that lie in it. */
async function fromFiles(chosen) {
  told = told || await figures("events.json");
  ridge = ridge || await figures("ridge.json");
  const inside = one => one.at_s >= chosen.begin && one.at_s < chosen.end, counts = new Map();
  const length = ridge.cycle_s * ridge.cycles, rows = ridge.rows.filter(row => row.begin_s < chosen.end && row.begin_s + length > chosen.begin);
  for (const row of rows) row.lower_ns.forEach((lower, place) => counts.set(lower, [row.upper_ns[place], (counts.get(lower) || [0, 0])[1] + row.count[place]]));
  const sorted = [...counts].sort((a, b) => a[0] - b[0]);
  const all = {lower_ns: sorted.map(one => one[0]), upper_ns: sorted.map(one => one[1][0]), count: sorted.map(one => one[1][1])};
  return {events: withMaximum(told.events.filter(inside), chosen), changes: told.changes.filter(inside), distribution: {limit_ns: ridge.limit_ns, cpus: {all}},
    said: rows.length ? `Whole cycles, all CPUs (the finest resolution of a published site): ${instant(rows[0].begin_s)} to ${instant(rows[rows.length - 1].begin_s + length)}.` : "No cycle in this range."};
}

/** All that is known of a range, to five minutes; null where no server is asked. */
function answered(chosen) {
  return SERVED ? figures(`selection.json?begin=${Math.round(chosen.begin)}&end=${Math.round(chosen.end)}`) : null;
}

async function fetchMaxima(span, chosen) {
  return (chosen && await answered(chosen)) || figures(`maxima-${span}.json`);
}

async function ridgeDrawing() {
  ridge = ridge || await figures("ridge.json");
  return drawRidge;
}

/** A function that draws a selected range. */
async function selectionDrawing(chosen) {
  const found = await answered(chosen) || await fromFiles(chosen);
  return () => {
    showSelection(found, chosen);
    drawPlot(found.distribution, found.said || `${instant(chosen.begin)} to ${instant(chosen.end)} UTC.`);
  };
}

async function spanDrawing(span) {
  at("selection").hidden = true;
  const found = await figures(`distribution-${span}.json`);
  return () => drawPlot(found, `${instant(found.begin_s)} to ${instant(found.end_s)} UTC.`);
}

/** Answers that arrive after the reader has asked for something else are dropped. */
async function showAll() {
  const {span, chosen, zoomed} = view(), request = ++requested;
  const attempt = async (place, drawing) => {
    try {
      const draw = await drawing;
      if (request === requested) draw();
    } catch (error) { if (request === requested) cannot(place, error); }
  };
  document.querySelectorAll("[data-span]").forEach(button => button.setAttribute("aria-pressed", String(button.dataset.span === span)));
  links(span);
  for (const [name, value] of Object.entries(chosen || {begin: null, end: null})) at("range").elements[name].value = value ? instant(value) : "";
  await attempt(at("maxima"), fetchMaxima(span, zoomed && chosen).then(found => () => { maxima = found; drawMaxima(chosen); }));
  if (request !== requested) return;
  await Promise.all([
    attempt(at("heat"), figures(`heat-${span}.json`).then(found => () => { heat = found; if (maxima) drawHeat(); })),
    attempt(at("distribution"), chosen ? selectionDrawing(chosen) : spanDrawing(span)),
    attempt(at("ridge"), ridgeDrawing()),
  ]);
  if (request !== requested) return;
  complete = request;
  drawn();
}

document.querySelectorAll("[data-span]").forEach(button => button.addEventListener("click", () => go(button.dataset.span, null)));
at("range").hidden = false;
at("range").addEventListener("submit", event => {
  event.preventDefault();
  const [begin, end] = ["begin", "end"].map(name => Date.parse(`${at("range").elements[name].value.trim().replace(" ", "T")}Z`) / 1000);
  if (begin && end > begin) go(view().span, {begin, end});
});
at("unselect").addEventListener("click", () => go(view().span, null));
at("zoom").addEventListener("click", () => go(view().span, view().chosen, true));
addEventListener("hashchange", showAll);
addEventListener("redraw", showAll);

/** What the headline states, as the server rendered it. */
function outdated(row) {
  const {state, max, ever} = at("verdict").dataset;
  return state !== row.state || at("verdict").className !== `verdict ${row.verdict}` || max !== String(row.max_30d_ns ?? "") || ever !== String(row.max_ever_ns ?? "");
}

let reloaded = Date.now();
listen(`?board=${encodeURIComponent(document.querySelector("[data-board]").dataset.board)}`, (name, row) => {
  if (outdated(row)) renewSoon();
  fill(document.querySelector("main"), row);
  if (Date.now() - reloaded < RELOAD_S * 1000 || complete !== requested || view().chosen) return;
  reloaded = Date.now();
  renewSoon();
  showAll();
});
showAll();
