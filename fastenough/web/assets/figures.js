// SPDX-License-Identifier: GPL-2.0-or-later
// Heat maps and ridges.  Each is drawn by a pen: on a canvas to be seen, or into an SVG to be kept.
"use strict";

const LEFT = 84, RIGHT = 20;   // the margins of every figure over time, so that their axes stand above each other

class CanvasPen {
  constructor(place, width, height) {
    const canvas = document.createElement("canvas"), ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    place.replaceChildren(canvas);
    this.ratio = ratio;
    this.pen = canvas.getContext("2d");
    this.pen.scale(ratio, ratio);
    this.pen.imageSmoothingEnabled = false;   // a maximum is not blurred into its neighbours
    this.pen.font = "12px system-ui, sans-serif";
  }
  rect(x, y, width, height, fill) {
    const at = value => Math.round(value * this.ratio) / this.ratio;
    this.pen.fillStyle = fill;
    this.pen.fillRect(at(x), at(y), Math.max(at(x + width) - at(x), 1 / this.ratio), Math.max(at(y + height) - at(y), 1 / this.ratio));
  }
  line(points, stroke, width = 1, dash = []) {
    this.pen.beginPath();
    points.forEach(([x, y], place) => place ? this.pen.lineTo(x, y) : this.pen.moveTo(x, y));
    this.pen.strokeStyle = stroke;
    this.pen.lineWidth = width;
    this.pen.setLineDash(dash);
    this.pen.stroke();
    this.pen.setLineDash([]);
  }
  shape(points, fill, stroke) {
    this.pen.beginPath();
    points.forEach(([x, y], place) => place ? this.pen.lineTo(x, y) : this.pen.moveTo(x, y));
    this.pen.fillStyle = fill;
    this.pen.fill();
    this.pen.strokeStyle = stroke;
    this.pen.lineWidth = 0.7;
    this.pen.stroke();
  }
  text(x, y, said, fill, anchor = "start") {
    this.pen.fillStyle = fill;
    this.pen.textAlign = anchor === "middle" ? "center" : anchor;
    this.pen.fillText(said, x, y);
  }
}

class SvgPen {
  constructor(width, height) {
    this.size = [width, height];
    this.parts = [`<rect width="${width}" height="${height}" fill="${colour("paper")}"/>`];
  }
  static number(value) { return +value.toFixed(2); }
  static points(points) { return points.map(([x, y]) => `${SvgPen.number(x)},${SvgPen.number(y)}`).join(" "); }
  rect(x, y, width, height, fill) {
    const [a, b, c, d] = [x, y, Math.max(width, 0.3), Math.max(height, 0.3)].map(SvgPen.number);
    this.parts.push(`<rect x="${a}" y="${b}" width="${c}" height="${d}" fill="${fill}"/>`);
  }
  line(points, stroke, width = 1, dash = []) {
    this.parts.push(`<polyline points="${SvgPen.points(points)}" fill="none" stroke="${stroke}" stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
  }
  shape(points, fill, stroke) {
    this.parts.push(`<polygon points="${SvgPen.points(points)}" fill="${fill}" stroke="${stroke}" stroke-width="0.7"/>`);
  }
  text(x, y, said, fill, anchor = "start") {
    const plain = said.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
    this.parts.push(`<text x="${SvgPen.number(x)}" y="${SvgPen.number(y)}" fill="${fill}" text-anchor="${anchor}">${plain}</text>`);
  }
  toString() {
    const [width, height] = this.size;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12" shape-rendering="crispEdges">${this.parts.join("\n")}</svg>\n`;
  }
}

/** What a figure is drawn by, by its name: draw(pen, width) and height(width). */
const FIGURES = {};

function show(name, place, figure) {
  FIGURES[name] = figure;
  const width = Math.max(280, Math.floor(place.clientWidth));
  figure.draw(new CanvasPen(place, width, figure.height(width)), width);
}

function keep(name) {
  const figure = FIGURES[name];
  if (!figure) return;
  const width = 1100, pen = new SvgPen(width, figure.height(width));
  figure.draw(pen, width);
  const link = made("a");
  link.href = URL.createObjectURL(new Blob([pen.toString()], {type: "image/svg+xml"}));
  link.download = `${document.querySelector("h1").textContent.trim().split(/\s+/)[0]}-${name}.svg`;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("click", event => {
  const button = event.target.closest("[data-svg]");
  if (button) keep(button.dataset.svg);
});

function mixed(low, high, share) {
  const part = (hex, place) => parseInt(hex.slice(1 + 2 * place, 3 + 2 * place), 16);
  return "#" + [0, 1, 2].map(place => Math.round(part(low, place) + (part(high, place) - part(low, place)) * share)
    .toString(16).padStart(2, "0")).join("");
}

function shades(count) {
  const low = colour("heat-low"), high = colour("heat-high");
  return Array.from({length: count}, (_, place) => mixed(low, high, place / (count - 1)));
}

/** Where ticks of a logarithmic axis of ns stand: 1, 2 and 5 of each decade, or 1 alone. */
function decades(low, high) {
  const found = [], parts = high / low > 300 ? [1] : [1, 2, 5];
  for (let decade = 1; decade <= high; decade *= 10) {
    for (const part of parts) if (part * decade >= low && part * decade <= high) found.push(part * decade);
  }
  return found;
}

function plainUs(ns) { return (ns / 1000).toLocaleString("en", {maximumFractionDigits: 3}); }

/** The first days of months, no more than so many. */
function monthTicks(begin, end, most) {
  const months = [1, 2, 3, 6, 12, 24, 60, 120].find(one => (end - begin) / (one * 2629800) <= most) || 240, first = new Date(begin * 1000), found = [];
  for (let month = 0; ; month += months) {
    const at = Date.UTC(first.getUTCFullYear(), Math.ceil(first.getUTCMonth() / months) * months + month) / 1000;
    if (at > end) return found;
    if (at >= begin) found.push([at, instant(at).slice(0, 7)]);
  }
}

function timeTicks(begin, end, most) {
  const steps = [300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];
  const step = steps.find(one => (end - begin) / one <= most);
  if (!step) return monthTicks(begin, end, most);
  const found = [];
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) found.push(at);
  const said = at => step < 86400 ? (at % 86400 ? instant(at).slice(11) : instant(at).slice(5, 10)) : instant(at).slice(5, 10);
  return found.map(at => [at, said(at)]);
}

function timeAxis(pen, begin, end, left, right, bottom) {
  const at = s => left + (right - left) * (s - begin) / (end - begin);
  for (const [tick, said] of timeTicks(begin, end, (right - left) / 90)) {
    pen.line([[at(tick), bottom], [at(tick), bottom + 4]], colour("soft"));
    pen.text(at(tick), bottom + 17, said, colour("soft"), "middle");
  }
  return at;
}

/** The value that a share of these counts does not exceed: pairs of [value, count]. */
function quantileOf(pairs, share) {
  const sorted = [...pairs].sort((a, b) => a[0] - b[0]), all = sorted.reduce((sum, one) => sum + one[1], 0);
  let below = 0;
  for (const [value, count] of sorted) if ((below += count) >= share * all) return value;
  return 0;
}

const FAR = 100;   // beyond so many times the limit, or a high quantile, a value is marked at the edge of a figure

/** Up to where an axis of latencies reaches; nothing is cut off that is not absurdly far from all others. */
function reach(pairs, limit) {
  const most = pairs.reduce((a, one) => Math.max(a, one[0]), 0), usual = Math.max(quantileOf(pairs, 0.99), limit || 0);
  return {high: Math.min(most, Math.max(FAR * usual, 1000)), most};
}

/** How often which latency was seen when.  data: columns of [bucket, count, …]; view: the range of time. */
function heatFigure(data, view, limit) {
  return {
    height: () => 254,
    draw(pen, width) {
      const right = width - RIGHT, bottom = 226, top = 22;
      const used = data.columns.flatMap(column => column.filter((_, place) => place % 2 === 0));
      const counts = data.columns.flatMap(column => column.filter((_, place) => place % 2));
      const at = timeAxis(pen, view.begin, view.end, LEFT, right, bottom);
      if (!used.length) { pen.text(LEFT, 60, "no data", colour("soft")); return; }
      const first = used.reduce((a, b) => Math.min(a, b)), last = used.reduce((a, b) => Math.max(a, b));
      const seen = reach(data.columns.flatMap(column => column.flatMap((bucket, place) => place % 2 ? [] : [[data.upper_ns[bucket], column[place + 1]]])), limit);
      const low = Math.max(100, data.lower_ns[first]) / 1.2, high = Math.max(seen.high, limit || 0) * 1.2;
      const y = ns => Math.max(top, bottom - (bottom - top) * Math.log(Math.max(ns, low) / low) / Math.log(high / low));
      if (data.upper_ns[last] > high) pen.text(right, 12, `▲ above this axis: up to ${us(data.upper_ns[last])} µs`, colour("fail"), "end");
      const tints = shades(64), most = Math.log(1 + counts.reduce((a, b) => Math.max(a, b)));
      data.columns.forEach((column, place) => {
        const begin = data.times_s[place];
        if (begin + data.step_s <= view.begin || begin >= view.end) return;
        const x = Math.max(LEFT, at(begin)), w = Math.min(right, at(begin + data.step_s)) - x;
        for (let i = 0; i < column.length; i += 2) {
          if (data.lower_ns[column[i]] > high) { pen.rect(x, top, Math.max(w, 4), 5, colour("fail")); continue; }
          const upper = y(data.upper_ns[column[i]] + 1), lower = y(data.lower_ns[column[i]]);
          pen.rect(x, upper, Math.max(w, 2), Math.max(lower - upper, 3), tints[Math.floor(63 * Math.log(1 + column[i + 1]) / most)]);
        }
      });
      pen.line([[LEFT, top], [LEFT, bottom], [right, bottom]], colour("soft"));
      for (const tick of decades(low, high)) {
        pen.line([[LEFT - 4, y(tick)], [LEFT, y(tick)]], colour("soft"));
        pen.text(LEFT - 7, y(tick) + 4, plainUs(tick), colour("soft"), "end");
      }
      pen.text(4, 12, "µs", colour("soft"));
      if (limit) pen.line([[LEFT, y(limit)], [right, y(limit)]], colour("limit"), 1.3, [6, 4]);
    },
  };
}

/** Every board's maxima over time. */
function boardsFigure(data) {
  const names = Object.keys(data.boards), columns = Math.max(1, ...Object.values(data.boards).map(row => row.length));
  const tall = names.length > 60 ? 6 : 15;
  return {
    height: () => names.length * tall + 58,
    draw(pen, width) {
      const left = Math.min(110, width * 0.2), right = width - 2 * RIGHT, bottom = names.length * tall + 4;
      const end = data.begin_s + columns * data.step_s, tints = shades(64);
      const at = timeAxis(pen, data.begin_s, end, left, right, bottom);
      const all = Object.values(data.boards).flat().filter(value => value !== null);
      const limits = data.limits_ns || {}, usual = quantileOf(all.map(value => [value, 1]), 0.99);
      const share = (name, value) => { const top = limits[name] || usual || 1, low = top / 100; return Math.log(Math.max(value, low) / low) / Math.log(top / low); };
      if (all.length) {
        const y = bottom + 38, each = width < 600 ? 1 : 2, after = left + each * tints.length + 6;
        pen.text(left - 6, y, "1 %", colour("soft"), "end");
        tints.forEach((tint, place) => pen.rect(left + each * place, y - 10, each, 12, tint));
        const scale = Object.values(limits).some(Boolean) ? "of the limit (log)" : `of ${us(usual)} µs (log)`;
        const red = after + 7 * scale.length;  // no character is wider on average
        pen.text(after, y, scale, colour("soft"));
        pen.rect(red, y - 10, 12, 12, colour("fail"));
        pen.text(red + 16, y, "above", colour("soft"));
      }
      names.forEach((name, row) => {
        const y = row * tall + 2;
        if (tall > 10 || row % 3 === 0) pen.text(left - 6, y + Math.min(tall, 12) - 1, name.slice(0, Math.floor(left / 8)), colour("soft"), "end");
        data.boards[name].forEach((value, column) => {
          const x = at(data.begin_s + column * data.step_s), w = (right - left) / columns;
          if (value === null) pen.line([[x, y + tall - 2], [x + w, y]], colour("line"));
          else pen.rect(x, y, w, tall - 1, share(name, value) > 1 ? colour("fail") : tints[Math.min(63, Math.floor(63 * share(name, value)))]);
        });
      });
    },
  };
}

/** Latency plots one behind the other, the newest in front. */
function ridgeFigure(data) {
  return {
    height: width => Math.max(260, Math.min(480, width * 0.45)),
    draw(pen, width) {
      const rows = data.rows, height = this.height(width);
      if (!rows.length) { pen.text(8, 40, "no cycles measured", colour("soft")); return; }
      const edges = rows.flatMap(row => [row.lower_ns[0], row.upper_ns[row.upper_ns.length - 1]]);
      const low = Math.max(100, edges.reduce((a, b) => Math.min(a, b))) / 1.1;
      const high = Math.max(edges.reduce((a, b) => Math.max(a, b)), data.limit_ns || 0) * 1.1;
      const shift = width * 0.1, span = width - shift - RIGHT - 72, rise = height * 0.3, base = height - 26, depth = base - rise - 10;
      const most = Math.log(1 + rows.reduce((a, row) => row.count.reduce((b, c) => Math.max(b, c), a), 1));
      const x = ns => span * Math.log(Math.max(ns, low) / low) / Math.log(high / low);
      const some = rows[rows.length - 1].begin_s - rows[0].begin_s < 75 * 86400 ? [5, 10] : [0, 7];   // days, or months
      let before = "";
      rows.forEach((row, place) => {
        const back = rows.length > 1 ? 1 - place / (rows.length - 1) : 0, y = base - depth * back, left = 8 + shift * back;
        const points = [[left, y]];
        row.count.forEach((count, at) => {
          const up = y - rise * Math.log(1 + count) / most, a = left + x(row.lower_ns[at]), b = left + x(row.upper_ns[at] + 1);
          if (at && row.lower_ns[at] > row.upper_ns[at - 1] + 1) points.push([left + x(row.upper_ns[at - 1] + 1), y], [a, y]);
          points.push([a, at ? points[points.length - 1][1] : y], [a, up], [b, up]);
        });
        points.push([points[points.length - 1][0], y], [left + span, y], [left, y]);
        pen.shape(points, mixed(colour("paper"), colour("colour-0"), 0.15 + 0.5 * (1 - back)), colour("ink"));
        const said = instant(row.begin_s).slice(...some);
        if (said !== before && place % Math.ceil(rows.length / 14) === 0) { pen.text(left + span + 6, y + 4, said, colour("soft")); before = said; }
      });
      for (const tick of decades(low, high)) {
        pen.line([[8 + x(tick), base], [8 + x(tick), base + 4]], colour("soft"));
        pen.text(8 + x(tick), base + 18, plainUs(tick), colour("soft"), "middle");
      }
      pen.text(8 + span + 14, base + 18, "µs", colour("soft"));
      if (data.limit_ns) pen.line([[8 + x(data.limit_ns), base], [8 + shift + x(data.limit_ns), base - depth]], colour("limit"), 1.3, [6, 4]);
    },
  };
}
