// SPDX-License-Identifier: GPL-2.0-or-later
// What every page has: how old its data is, and how numbers and instants are said.
"use strict";

const ROOT = document.body.dataset.root;
const SERVED = document.querySelector(".served") !== null;   // a published site has no server behind it
const STALE_S = 900;

/** A latency in µs as the pages say it: never rounded down. */
function us(ns) {
  if (ns === null || ns === undefined) return "–";
  const decimals = ns < 1e4 ? 2 : ns < 1e6 ? 1 : 0;
  const steps = Math.ceil(ns / 10 ** (3 - decimals) - 1e-6);
  return (steps / 10 ** decimals).toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
}

/** An instant, to the minute. */
function instant(s) {
  return s === null || s === undefined ? "never" : new Date(s * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function since(seconds) {
  for (const [unit, size, least] of [["days", 86400, 2], ["h", 3600, 2], ["min", 60, 1]]) {
    if (seconds >= least * size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return `${Math.max(0, Math.floor(seconds))} s ago`;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888888";
}

function made(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

/** A file of figures; null where this site has none of that name. */
async function figures(address) {
  const answer = await fetch(address);
  if (answer.status === 404 || answer.status === 405) return null;
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

function cannot(element, error) {
  const why = location.protocol === "file:"
    ? "Browsers do not load figure data from file: addresses. Serve this folder with a web server. The tables contain the numbers."
    : `This figure cannot be drawn (${error.message}). The tables contain the numbers.`;
  element.replaceChildren(made("p", why, "nofigure"));
  document.body.dataset.failed = why;
}

/** Of the data of the whole page: how old it is, in words, and whether that is too old. */
function showAge() {
  const fresh = document.getElementById("fresh"), newest = +document.body.dataset.newest;
  if (!fresh || !newest) return;
  const age = Date.now() / 1000 - newest, late = "scheduled" in document.body.dataset && age > STALE_S;   // else nothing is due
  const doubt = late ? "STALE: " : age < -STALE_S ? "CLOCK AHEAD: " : "";
  document.getElementById("age").textContent = age < -STALE_S ? "" : `, updated ${since(age)}`;
  fresh.classList.toggle("stale", doubt !== "");
  const said = fresh.firstChild.nodeType === Node.TEXT_NODE ? fresh.firstChild : fresh.insertBefore(document.createTextNode(""), fresh.firstChild);
  said.textContent = `${doubt}data until `;
}

function newer(seen) {
  if (!(seen > +document.body.dataset.newest) || seen > Date.now() / 1000 + STALE_S) return;   // one clock ahead is not news of all
  document.body.dataset.newest = seen;
  const time = document.querySelector("#fresh time");
  if (time) time.textContent = `${instant(seen)} UTC`;
  showAge();
}

/** What a row, or a page, shows of a board.  Its verdict has the word of "data-unjudged" where there is none. */
function fill(place, row) {
  for (const cell of place.querySelectorAll("[data-value]")) {
    const name = cell.dataset.value, isTime = name.endsWith("seen_s");
    cell.textContent = isTime ? instant(row[name]) : us(row[name]);
    if (!isTime) cell.classList.toggle("above", place.dataset.limit > 0 && row[name] > +place.dataset.limit);
  }
  for (const word of place.querySelectorAll("[data-unjudged]")) word.textContent = row.verdict || word.dataset.unjudged;
  const state = place.querySelector(".state");
  if (!state) return;
  const shape = made("span", row.shape);
  shape.setAttribute("aria-hidden", "true");
  state.replaceChildren(shape, ` ${row.state}`);
  state.className = `state state-${row.style}`;
}

const RENEW_S = 6;   // longer than the server serves a cached page
let renewal = 0;

/** The subject of a page whose parts are renewed, a board or "total"; null for any other page. */
function subject(page) {
  const heading = page.querySelector("h1[data-board], h1[data-renew=total]");
  return heading && (heading.dataset.board ?? heading.dataset.renew);
}

/** Replace the parts of this page with "data-renew" by those of the same name that the server now renders; then after().
    An answer that is not this page, such as the sign-in page of a proxy, changes nothing. */
async function renew(after) {
  renewal = 0;
  const answer = await fetch(location.pathname + location.search, {cache: "no-cache"}).catch(() => null);
  if (!answer || answer.status >= 500) return renewSoon(after);
  if (!answer.ok) return;
  const present = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (subject(present) !== subject(document)) return;
  for (const part of document.querySelectorAll("[data-renew]")) {
    const other = present.querySelector(`[data-renew="${part.dataset.renew}"]`);
    if (!other) part.replaceChildren();   // such as the table when no board is left
    else if (!other.isEqualNode(part)) part.replaceWith(other);
  }
  after();
}

/** Fetch the parts that only the server can render, such as the reason of a verdict. */
function renewSoon(after = () => {}) { renewal = renewal || setTimeout(renew, RENEW_S * 1000, after); }

/** Every change of the boards of a query while the page is open: take(name, row). */
function listen(query, take, gone) {
  if (!SERVED) return;
  const source = new EventSource(`${ROOT}events${query}`);
  source.addEventListener("now", event => {
    const told = JSON.parse(event.data);
    for (const [name, row] of Object.entries(told.boards)) {
      newer(row.seen_s);
      take(name, row);
    }
    told.gone.forEach(gone || (() => {}));
    document.body.dataset.updates = +(document.body.dataset.updates || 0) + 1;
  });
}

function drawn() {
  requestAnimationFrame(() => {
    performance.mark("drawn");
    document.body.dataset.drawn = Math.round(performance.now());
  });
}

/** Figures are drawn in the colours and the width of the page: each page listens to "redraw". */
function redraw() { dispatchEvent(new Event("redraw")); }
let resized = 0;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redraw, 200); });
showAge();
setInterval(showAge, 10000);
