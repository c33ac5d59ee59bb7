// SPDX-License-Identifier: GPL-2.0-or-later
// Lines, drawn with uPlot: maxima over time, and latency plots.  For a file they are drawn by the SVG pen.
"use strict";

const CAN_DRAW_LINES = typeof uPlot !== "undefined";
const utc = s => uPlot.tzDate(new Date(s * 1000), "Etc/UTC");

/** The first CPUs in the report's colours, the others grey: more cannot be told apart. */
function cpuColour(place) { return place < 8 ? colour(`colour-${place}`) : colour("unnamed"); }

function axis(label, more) {
  return {label, stroke: colour("soft"), grid: {stroke: colour("grid"), width: 1}, ticks: {stroke: colour("grid"), width: 1},
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18, ...more};
}

/** The loads that ran longest, as many as can be told apart, by name. */
function loads(bands) {
  const ran = new Map();
  for (const [begin, end, load] of bands) ran.set(load || "not recorded", (ran.get(load || "not recorded") || 0) + end - begin);
  return [...ran.keys()].sort((one, other) => ran.get(other) - ran.get(one)).slice(0, TINTS.length).sort();
}

const tint = (named, load) => TINTS[named.indexOf(load || "not recorded")] || "#00000000";
const TINTS = ["#88888830", "#0072b226", "#d55e0026", "#009e7326", "#cc79a726", "#8a6d0026", "#56b4e926", "#5d3a9b26"];

/** Where the bands begin and end in the figure, those that are seen. */
function bandsOn(u, data) {
  const {left, width} = u.bbox, at = s => Math.min(left + width, Math.max(left, u.valToPos(s, "x", true)));
  return data.bands.map(([begin, end, load]) => [at(begin), at(end), load]).filter(([from, to]) => to > from);
}

/** Behind the lines: which load ran; before them: the limit, and where the configuration changed. */
function overTime(data, named) {
  return {
    behind(u) {
      const {ctx, bbox} = u;
      for (const [left, right, load] of bandsOn(u, data)) {
        ctx.fillStyle = tint(named, load);
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
    },
    before(u) {
      const {ctx, bbox} = u, stroke = (points, width, dash, style) => {
        ctx.beginPath();
        points.forEach(([x, y], place) => place ? ctx.lineTo(x, y) : ctx.moveTo(x, y));
        ctx.lineWidth = width * devicePixelRatio;
        ctx.setLineDash(dash.map(length => length * devicePixelRatio));
        ctx.strokeStyle = style;
        ctx.stroke();
        ctx.setLineDash([]);
      };
      ctx.fillStyle = colour("soft");
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.fillText("µs", 4 * devicePixelRatio, bbox.top - 4 * devicePixelRatio);
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      for (const [left, right, load] of bandsOn(u, data)) {
        const said = load || "not recorded", beside = 4 * devicePixelRatio;
        if (right - left > ctx.measureText(said).width + 2 * beside) ctx.fillText(said, left + beside, bbox.top + 3 * beside);
      }
      if (data.limit_ns) {
        const y = u.valToPos(data.limit_ns / 1000, "y", true);
        stroke([[bbox.left, y], [bbox.left + bbox.width, y]], 1.5, [6, 4], colour("limit"));
      }
      const far = beyond(data);
      ctx.fillStyle = colour("fail");
      for (const at of far.found) {
        const x = u.valToPos(at, "x", true), size = 5 * devicePixelRatio;
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x - size, bbox.top + 2 * size);
        ctx.lineTo(x + size, bbox.top + 2 * size);
        ctx.fill();
      }
      if (far.found.length) { ctx.textAlign = "right"; ctx.fillText(`▲ above this axis: up to ${us(far.greatest)} µs`, bbox.left + bbox.width, bbox.top - 4 * devicePixelRatio); }
      for (const at of changedAt(data)) {
        const x = u.valToPos(at, "x", true);
        if (x >= bbox.left && x <= bbox.left + bbox.width) stroke([[x, bbox.top], [x, bbox.top + bbox.height]], 1.5, [], colour("link"));
      }
    },
  };
}

function changedAt(data) { return [...new Set(data.changes.filter(one => one.latency).map(one => one.at_s))]; }

function highest(data) {
  const all = Object.values(data.cpus).flat().filter(value => value !== null);
  return Math.max(reach(all.map(value => [value, 1]), data.limit_ns).high, 1000, data.limit_ns || 0) / 1000;
}

/** The steps whose maximum lies beyond the axis, and the greatest of all. */
function beyond(data) {
  const most = highest(data) * 1000, lines = Object.values(data.cpus);
  const found = data.times_s.filter((_, place) => lines.some(line => line[place] !== null && line[place] > most));
  return {found, greatest: lines.flat().reduce((a, b) => Math.max(a, b || 0), 0)};
}

/** What has nothing on either side would be no line: it is drawn as a point. */
function alone(u, series) {
  const values = u.data[series], gap = at => values[at] === null || values[at] === undefined;
  return values.flatMap((value, at) => value !== null && gap(at - 1) && gap(at + 1) ? [at] : []);
}

/** The axis of maxima in µs: logarithmic where a few are so great that the others would be a line on its edge. */
function axisOfMaxima(data) {
  const all = Object.values(data.cpus).flat().filter(value => value !== null).sort((a, b) => a - b), high = highest(data);
  const log = all.length > 0 && high * 1000 > 20 * all[all.length >> 1];
  return {log, low: log ? Math.max(all[0], 100) / 1300 : 0, high: high * (log ? 1.4 : 1.08)};
}

function sized(place, most) { return {width: Math.max(280, Math.floor(place.clientWidth)), height: most}; }

/** Show a range as selected. */
function mark(u, shown) {
  const wide = u.over.clientWidth, at = s => Math.max(0, Math.min(wide, u.valToPos(s, "x")));
  const left = at(shown.begin), width = at(shown.end) - left;
  if (width > 0) u.setSelect({left, width: Math.max(2, width), top: 0, height: u.over.clientHeight}, false);
}

/** Five-minute maxima, with a range shown as selected; chosen(begin, end) is called when one was dragged. */
function maximaLines(place, data, range, shown, chosen) {
  const named = loads(data.bands), drawing = overTime(data, named), cpus = Object.keys(data.cpus), over = axisOfMaxima(data);
  const options = {
    ...sized(place, 306), tzDate: utc, padding: [16, RIGHT, 0, 0],
    cursor: {drag: {x: true, y: false, setScale: false}, points: {size: 6}},
    scales: {x: {time: true, range: [range.begin, range.end]}, y: {distr: over.log ? 3 : 1, range: [over.low, over.high]}},
    axes: [axis(undefined, {values: [[31536000, "{YYYY}", null, null, null, null, null, null, 1], [2419200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
      [86400, "{MM}-{DD}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", "\n{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1]]}), axis(undefined, {size: LEFT, splits: () => latencyTicks(over), filter: (_, ticks) => ticks, values: (_, ticks) => ticks.map(tick => tick.toLocaleString("en"))})],
    series: [{value: (_, s) => s === null ? "–" : instant(s)}, ...cpus.map((cpu, at) => ({label: `CPU ${cpu}`, stroke: cpuColour(at), width: 1.4,
      paths: uPlot.paths.stepped({align: 1}), points: {show: true, size: 4, filter: alone}, spanGaps: false, value: (_, value) => value === null ? "–" : us(value * 1000)}))],
    hooks: {drawClear: [drawing.behind], draw: [drawing.before], ready: [u => { if (shown) mark(u, shown); }],
      setSelect: [u => { if (u.select.width > 3) chosen(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); }]},
  };
  const columns = [data.times_s, ...cpus.map(cpu => data.cpus[cpu].map(value => value === null ? null : value / 1000))];
  place.replaceChildren();
  const drawnAs = new uPlot(options, columns, place);
  FIGURES.maxima = maximaFigure(data, range);
  return drawnAs;
}

/** What the bands behind the lines mean, in words. */
function keyOfLoads(place, data) {
  const named = loads(data.bands), others = new Set(data.bands.map(band => band[2] || "not recorded")).size - named.length;
  place.replaceChildren(...named.map(load => {
    const one = made("span"), swatch = made("span", "", "swatch");
    swatch.style.background = tint(named, load);
    one.append(swatch, `load ${load}`);
    return one;
  }));
  if (others) place.append(made("span", `${others} more load${others > 1 ? "s" : ""}, not coloured`));
}

/** Round latencies in µs along an axis. */
function latencyTicks({log, low, high}) {
  return log ? decades(low * 1000, high * 1000).map(ns => ns / 1000) : linearTicks(high);
}

function linearTicks(high) {
  const rough = high / 5, size = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(one => one * size).find(one => one >= rough);
  return Array.from({length: Math.floor(high / step) + 1}, (_, place) => place * step);
}

/** The same for a file. */
function maximaFigure(data, range) {
  return {
    height: () => 330,
    draw(pen, width) {
      const right = width - RIGHT, top = 24, bottom = 270, {log, low, high} = axisOfMaxima(data), named = loads(data.bands);
      const at = timeAxis(pen, range.begin, range.end, LEFT, right, bottom);
      const y = value => bottom - (bottom - top) * (log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : value / high);
      const inside = x => Math.min(right, Math.max(LEFT, x));
      for (const [begin, end, load] of data.bands) {
        const left = inside(at(begin)), w = inside(at(end)) - left;
        if (w > 0 && named.includes(load || "not recorded")) pen.rect(left, top, w, bottom - top, mixed(colour("paper"), tint(named, load).slice(0, 7), 0.14));
        const said = load || "not recorded";
        if (w > 7 * said.length + 8) pen.text(left + 4, top + 12, said, colour("soft"));
      }
      for (const tick of log ? decades(low * 1000, high * 1000).map(ns => ns / 1000) : linearTicks(high)) {
        pen.line([[LEFT, y(tick)], [right, y(tick)]], colour("grid"));
        pen.text(LEFT - 7, y(tick) + 4, tick.toLocaleString("en"), colour("soft"), "end");
      }
      pen.text(4, 12, "µs", colour("soft"));
      const far = beyond(data);
      for (const one of far.found) if (one >= range.begin && one <= range.end) pen.shape([[at(one), top], [at(one) - 5, top + 10], [at(one) + 5, top + 10]], colour("fail"), colour("fail"));
      if (far.found.length) pen.text(right, 14, `▲ above this axis: up to ${us(far.greatest)} µs`, colour("fail"), "end");
      Object.keys(data.cpus).forEach((cpu, place) => {
        let points = [];
        const end = () => { if (points.length) pen.line(points, cpuColour(place), 1.2); points = []; };
        data.cpus[cpu].forEach((value, step) => {
          const begin = data.times_s[step];
          if (value === null || begin < range.begin || begin >= range.end) { end(); return; }
          points.push([inside(at(begin)), y(value / 1000)], [inside(at(begin + data.step_s)), y(value / 1000)]);
        });
        end();
        if (place < 16) pen.text(LEFT + 70 * place, bottom + 44, `CPU ${cpu}`, cpuColour(place));
      });
      if (data.limit_ns) pen.line([[LEFT, y(data.limit_ns / 1000)], [right, y(data.limit_ns / 1000)]], colour("limit"), 1.4, [6, 4]);
      for (const one of changedAt(data)) if (one >= range.begin && one <= range.end) pen.line([[at(one), top], [at(one), bottom]], colour("link"), 1.4);
    },
  };
}

const NO_SAMPLE = 0.5;   // the floor of a logarithmic axis of counts: below a single sample

/** Counts of every CPU over the same edges of buckets, as steps: [lower edges in µs, counts of each CPU]. */
function overEdges(data) {
  const edges = new Map();
  for (const one of Object.values(data.cpus)) one.lower_ns.forEach((lower, place) => { edges.set(lower, edges.get(lower) || 0); edges.set(one.upper_ns[place] + 1, 0); });
  const sorted = [...edges.keys()].sort((a, b) => a - b), at = new Map(sorted.map((edge, place) => [edge, place]));
  return [sorted.map(edge => Math.max(edge, 1) / 1000), ...Object.values(data.cpus).map(one => {
    const line = sorted.map(() => NO_SAMPLE);   // a step that stands alone is seen too
    one.lower_ns.forEach((lower, place) => { for (let i = at.get(lower); i < at.get(one.upper_ns[place] + 1); i++) line[i] = one.count[place]; });
    return line;
  })];
}

/** A logarithmic axis where the tail is so long that the body would be a line on its edge. */
function wantsLog(columns) {
  const xs = columns[0];
  let all = 0, half = 0;
  const sums = xs.map((_, place) => columns.slice(1).reduce((sum, line) => sum + Math.floor(line[place]), 0));
  sums.forEach(sum => { all += sum; });
  const median = xs[sums.findIndex(sum => (half += sum) >= all / 2)] || 1;
  return xs[xs.length - 1] > 20 * median;
}

/** Labels of ticks; on a narrow plot every second one, counted from the greatest, so that none covers another. */
function apart(u, ticks) {
  const every = u.width < 600 && ticks.length > 4 ? 2 : 1;
  return ticks.map((tick, place) => (ticks.length - 1 - place) % every ? "" : tick.toLocaleString("en"));
}

function distributionLines(place, data) {
  const columns = overEdges(data), cpus = Object.keys(data.cpus);
  if (columns[0].length < 2) {
    place.replaceChildren(made("p", "No data in this range.", "nofigure"));
    return;
  }
  const log = wantsLog(columns), most = columns.slice(1).flat().reduce((a, b) => Math.max(a, b || 0), 1);
  const end = Math.max(columns[0][columns[0].length - 1], (data.limit_ns || 0) / 1000) * 1.05;
  const options = {
    ...sized(place, 320), padding: [10, 2 * RIGHT, 0, 0], cursor: {drag: {setScale: false}},  // a label may end there
    scales: {x: {time: false, distr: log ? 3 : 1, range: [log ? columns[0][0] / 1.2 : 0, end]}, y: {distr: 3, range: [NO_SAMPLE, most * 3]}},
    axes: [axis("latency, µs", {splits: () => latencyTicks({log, low: columns[0][0] / 1.2, high: end}), filter: (_, ticks) => ticks, values: apart}), axis("samples", {size: LEFT, values: (_, ticks) => ticks.map(tick => tick === null || tick < 1 ? "" : tick >= 1e6 ? `${tick / 1e6} M` : tick >= 1e3 ? `${tick / 1e3} k` : tick)})],
    series: [{label: "from µs"}, ...cpus.map((cpu, at) => ({label: cpu === "all" ? "all CPUs" : `CPU ${cpu}`, value: (_, count) => count === null ? "–" : count < 1 ? "0" : count.toLocaleString("en"), stroke: cpuColour(at), width: 1.4, paths: uPlot.paths.stepped({align: 1}), points: {show: false}}))],
    hooks: {draw: [u => {
      if (!data.limit_ns) return;
      const x = u.valToPos(data.limit_ns / 1000, "x", true);
      u.ctx.beginPath();
      u.ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      u.ctx.moveTo(x, u.bbox.top);
      u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
      u.ctx.lineWidth = 1.5 * devicePixelRatio;
      u.ctx.strokeStyle = colour("limit");
      u.ctx.stroke();
      u.ctx.setLineDash([]);
    }]},
  };
  place.replaceChildren();
  new uPlot(options, columns, place);
  FIGURES.distribution = distributionFigure(data, columns, {log, most, end});
}

function distributionFigure(data, columns, scale) {
  return {
    height: () => 330,
    draw(pen, width) {
      const right = width - RIGHT, top = 12, bottom = 270, low = scale.log ? columns[0][0] / 1.2 : 0;
      const x = value => LEFT + (right - LEFT) * (scale.log ? Math.log(value / low) / Math.log(scale.end / low) : value / scale.end);
      const y = count => bottom - (bottom - top) * Math.log(count / 0.5) / Math.log(scale.most * 6);
      for (let decade = 1; decade <= scale.most * 3; decade *= 10) {
        pen.line([[LEFT, y(decade)], [right, y(decade)]], colour("grid"));
        pen.text(LEFT - 7, y(decade) + 4, decade.toLocaleString("en"), colour("soft"), "end");
      }
      for (const tick of scale.log ? decades(low * 1000, scale.end * 1000).map(ns => ns / 1000) : linearTicks(scale.end)) {
        pen.line([[x(tick), bottom], [x(tick), bottom + 4]], colour("soft"));
        pen.text(x(tick), bottom + 17, tick.toLocaleString("en"), colour("soft"), "middle");
      }
      pen.text(right, bottom + 34, "latency, µs", colour("soft"), "end");
      columns.slice(1).forEach((line, cpu) => {
        const points = [];
        line.forEach((count, place) => {
          if (place + 1 >= columns[0].length) return;
          const up = y(count || NO_SAMPLE);
          points.push([x(columns[0][place]), up], [x(columns[0][place + 1]), up]);
        });
        pen.line(points, cpuColour(cpu), 1.2);
        if (cpu < 16) pen.text(LEFT + 70 * cpu, bottom + 52, `CPU ${Object.keys(data.cpus)[cpu]}`, cpuColour(cpu));
      });
      if (data.limit_ns) pen.line([[x(data.limit_ns / 1000), top], [x(data.limit_ns / 1000), bottom]], colour("limit"), 1.4, [6, 4]);
    },
  };
}
