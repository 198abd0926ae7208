// Draws the charts of a congestlab report with uPlot. All charts share one grid of times, one cursor
// (an index into that grid) and one zoom (a range of times); whatever changes them changes all charts.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const get = id => document.getElementById(id);

const HEIGHT = 300;
// Equal on all charts, so that equal times stand below each other.
const AXIS = 62;
// Flows of a group that are drawn with a dash each; more are all alike, and thin.
const DASHED_MAX = 4;
// More events of a kind than this are a strip above the chart, as dark as they are dense.
const MARKS_MAX = 50;
// A strip: height, distance to the next, width of a bin; CSS pixels.
const RUG = { height: 7, step: 11, bin: 3 };
const TABLE_ROWS_MAX = 200;
// Of the marks of a kind in a square of this size one is drawn, CSS pixels: lines stay visible.
const MARK_CELL = 10;

// A press that moves further is no click, CSS pixels.
const CLICK_MAX = 3;

const GLYPHS = { drop: "×", error: "+", mark: "◇", timeout: "△", retransmit: "○" };

const decode = (text, Type) => {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Type(bytes.buffer);
};

// Numbers are decoded when they are first drawn. uPlot wants null where there is nothing.
const decoded = new Map();
const values = text => {
  if (!decoded.has(text)) {
    decoded.set(text, text ? Array.from(decode(text, Float32Array), v => (Number.isNaN(v) ? null : v)) : []);
  }
  return decoded.get(text);
};

const times = Array.from(decode(data.times, Float64Array));
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// As many decimals as tell the times apart, and the same for all.
const timeDecimals = [0, 1, 2, 3, 4, 5, 6].find(n => times.slice(0, 200).every(t => Math.abs(t - t.toFixed(n)) < 1e-7)) ?? 6;
const timeText = t => t.toFixed(timeDecimals);
const shownTime = t => `${timeText(t)} s`;

/** Decimals of marks that are `step` apart. */
const decimalsOf = step => {
  for (let n = 0; n < 8; n += 1) if (Math.abs(step - step.toFixed(n)) < step * 1e-6) return n;
  return 8;
};

/** Round values from low to high: steps of 1, 2 or 5 times a power of ten. */
const ticks = (low, high, wanted) => {
  const rough = (high - low) / wanted || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * unit).find(n => n >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) found.push(i * step);
  return { step, found };
};

const state = {
  cursor: null,
  zoom: [0, data.duration],
  // Flows and links that stand in the legends, and what is hidden there.
  listed: { flows: new Set(data.flows_drawn), links: new Set(data.links.keys()) },
  hidden: new Set(),
  kinds: new Map(),
};
for (const link of data.links.keys()) {
  if (!data.links_drawn.includes(link)) state.hidden.add(`links ${link}`);
}

// The group of each flow, and its place in it.
const flows = data.flow_counts.flatMap((count, group) => Array.from({ length: count }, (_, place) => ({ group, place, count })));

// Links that are drawn without being asked for have the first dashes.
const linkRanks = new Map([...new Set([...data.links_drawn, ...data.links.keys()])].map((link, rank) => [link, rank]));

/** How the line of a flow or link looks: a group has one hue, few flows a dash each, many are thin. */
const lookOf = (of, index) => {
  const look = (hue, rank) => ({ hue, dash: data.dashes[rank % data.dashes.length], width: 1.6, alpha: "" });
  if (of === "links") return look(data.link_hues[index], linkRanks.get(index));
  const { group, place, count } = flows[index];
  return count > DASHED_MAX ? { hue: data.hues[group], dash: [], width: 1.2, alpha: "a0" } : look(data.hues[group], place);
};

const marksOf = new Map();
for (const marks of data.marks) {
  const key = `${marks.of} ${marks.index}`;
  if (!marksOf.has(key)) marksOf.set(key, []);
  marksOf.get(key).push({ kind: marks.kind, at: decode(marks.at, Float32Array) });
  state.kinds.set(marks.kind, true);
}

/** One chart: its place on the page, its lines, its uPlot. */
class Chart {
  constructor(figure) {
    this.spec = data.charts[Number(figure.dataset.chart)];
    this.name = `${data.name}-${this.spec.of}-${this.spec.metric}`;
    figure.querySelector("figcaption").after(saveButtons(this.spec.title, this.name, () => this.svg(), () => this.rows()));
    this.plotPlace = figure.querySelector(".plot");
    this.legendPlace = figure.querySelector(".legend");
    this.details = figure.querySelector("details");
    this.tablePlace = this.details.querySelector(".scroll");
    this.plotPlace.tabIndex = 0;
    this.plotPlace.setAttribute("role", "application");
    this.plotPlace.setAttribute("aria-roledescription", "chart");
    this.plotPlace.setAttribute("aria-label", `${this.spec.title}, ${this.spec.unit}`);
    this.plotPlace.setAttribute("aria-describedby", "keys");
    this.plotPlace.addEventListener("keydown", event => onKey(event, this));
    this.details.addEventListener("toggle", () => this.table());
    new ResizeObserver(() => this.resize()).observe(this.plotPlace);
    this.build();
  }

  /** Lines of the legend: spreads of groups first, then the listed flows or links that have values. */
  lines() {
    const { of, series, spreads } = this.spec;
    const groups = spreads.map(spread => ({
      key: `spread ${spread.group}`,
      name: `${data.groups[spread.group]}: median, 5 % to 95 %`,
      look: { hue: data.hues[spread.group], dash: [], width: 2, alpha: "" },
      group: spread.group,
      parts: [spread.high, spread.middle, spread.low].map(values),
    }));
    const listed = [...state.listed[of]].sort((a, b) => a - b).filter(index => series[index]);
    const singles = listed.map(index => ({
      key: `${of} ${index}`,
      name: data[of][index],
      look: lookOf(of, index),
      group: of === "flows" ? flows[index].group : null,
      index,
      parts: [values(series[index])],
    }));
    return [...groups, ...singles];
  }

  build() {
    this.plot?.destroy();
    this.entries = this.lines();
    this.decimals = this.digits();
    // Strips stay when a zoom leaves few events: the chart does not jump.
    this.rugKinds = [...this.events(0, data.duration)].filter(([, found]) => found.count > MARKS_MAX).map(([kind]) => kind);
    const series = [{}];
    const bands = [];
    for (const entry of this.entries) {
      entry.first = series.length;
      const isSpread = entry.parts.length === 3;
      const { look } = entry;
      const stroke = colour(`--c${look.hue}`);
      entry.parts.forEach((_, part) => {
        const isEdge = isSpread && part !== 1;
        series.push({
          label: entry.name,
          show: !state.hidden.has(entry.key),
          stroke: isEdge ? "transparent" : stroke + look.alpha,
          width: look.width,
          dash: look.dash,
          points: { show: false },
        });
      });
      if (isSpread) bands.push({ series: [entry.first, entry.first + 2], fill: `${stroke}40` });
    }
    const axis = { stroke: () => colour("--ink"), grid: { stroke: () => colour("--faint"), width: 1 },
      ticks: { stroke: () => colour("--faint"), width: 1 }, font: "12px system-ui, sans-serif" };
    const options = {
      width: this.width(),
      height: HEIGHT,
      legend: { show: false },
      padding: [8 + RUG.step * this.rugKinds.length, 14, 0, 0],
      focus: { alpha: 0.15 },
      scales: {
        x: { time: false, auto: false, min: state.zoom[0], max: state.zoom[1] },
        y: { range: (_, low, high) => this.range(low ?? 0, high ?? 0) },
      },
      axes: [
        { ...axis, size: 32, label: "time (s)", labelSize: 18, labelGap: 0, labelFont: axis.font,
          values: (_, at, axisNumber, space, step) => at.map(t => t.toFixed(decimalsOf(step))) },
        { ...axis, size: AXIS,
          values: (_, at, axisNumber, space, step) => at.map(v => v.toFixed(decimalsOf(step))) },
      ],
      series,
      bands,
      cursor: { y: false, drag: { x: true, y: false }, bind: { dblclick: () => () => zoom(0, data.duration) } },
      hooks: {
        setScale: [(plot, scale) => {
          const { min, max } = plot.scales.x;
          if (scale === "x" && (min !== state.zoom[0] || max !== state.zoom[1])) zoom(min, max);
        }],
        draw: [plot => this.drawMarks(plot)],
      },
    };
    this.plot = new uPlot(options, [times, ...this.entries.flatMap(entry => entry.parts)], this.plotPlace);
    const over = this.plot.over;
    const follow = event => {
      const { clientX } = event.touches?.[0] ?? event;
      const index = this.plot.posToIdx(clientX - over.getBoundingClientRect().left);
      moveCursor(index, this);
    };
    over.addEventListener("mousemove", follow);
    over.addEventListener("touchstart", follow, { passive: true });
    over.addEventListener("touchmove", follow, { passive: true });
    over.addEventListener("mousedown", event => { this.pressedAt = event.clientX; });
    over.addEventListener("click", event => {
      // Who drags wants to zoom.
      if (Math.abs(event.clientX - this.pressedAt) <= CLICK_MAX) choose(this, event.clientY - over.getBoundingClientRect().top);
    });
    over.addEventListener("mouseleave", () => requestAnimationFrame(() => this.placeCursor()));
    this.legend();
    this.placeCursor();
  }

  /** The value axis: from 0, or below, to a little above the highest value. Nothing is used more than wholly. */
  range(low, high) {
    if (this.spec.unit === "%" && low >= 0 && high <= 100.5) return [0, 100.5];
    return [Math.min(low, 0) * 1.05, Math.max(high, 0) * 1.05 || 1];
  }

  /** Decimals that give the greatest value four digits; none if all are whole. */
  digits() {
    let [high, isWhole] = [0, true];
    for (const part of this.entries.flatMap(entry => entry.parts)) {
      for (const value of part) {
        if (value == null) continue;
        high = Math.max(high, Math.abs(value));
        isWhole &&= Number.isInteger(value);
      }
    }
    if (isWhole || !high) return 0;
    return Math.min(Math.max(3 - Math.floor(Math.log10(high)), 0), 8);
  }

  shown(value) {
    return value == null ? "-" : value.toFixed(this.decimals);
  }

  width() {
    return Math.max(this.plotPlace.clientWidth, 120);
  }

  resize() {
    if (this.plot.width !== this.width()) {
      this.plot.setSize({ width: this.width(), height: HEIGHT });
      this.placeCursor();
    }
  }

  legend() {
    const parts = [];
    const many = new Map();
    for (const entry of this.entries) {
      const isOneOfMany = entry.index != null && entry.group != null && flows[entry.index].count > DASHED_MAX &&
        this.entries.filter(other => other.group === entry.group && other.index != null).length > DASHED_MAX;
      const button = this.button(entry);
      if (!isOneOfMany) {
        parts.push(button);
        continue;
      }
      if (!many.has(entry.group)) {
        many.set(entry.group, this.fold(entry));
        parts.push(many.get(entry.group).details);
      }
      many.get(entry.group).add(entry, button);
    }
    this.folds = [...many.values()];
    this.legendPlace.replaceChildren(...parts);
    this.say();
  }

  button(entry) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(!state.hidden.has(entry.key)));
    button.append(swatch(entry.look, entry.parts.length === 3), entry.name);
    entry.shown = document.createElement("span");
    entry.shown.className = "value";
    button.append(entry.shown);
    button.addEventListener("click", () => toggle(entry.key));
    // The line that somebody points at stands out.
    const point = isOn => this.plot.setSeries(isOn ? entry.first + (entry.parts.length === 3 ? 1 : 0) : null, { focus: isOn });
    button.addEventListener("mouseenter", () => point(true));
    button.addEventListener("mouseleave", () => point(false));
    button.addEventListener("focus", () => point(true));
    button.addEventListener("blur", () => point(false));
    entry.button = button;
    return button;
  }

  /** Many equal flows are one entry, which opens. */
  fold(first) {
    const details = document.createElement("details");
    details.className = "many";
    const summary = details.appendChild(document.createElement("summary"));
    const name = document.createElement("span");
    const shown = document.createElement("span");
    shown.className = "value";
    summary.append(swatch(first.look, false), name, shown);
    const members = [];
    return {
      details,
      add: (entry, button) => {
        members.push(entry);
        details.append(button);
        name.textContent = `${data.groups[first.group]}: ${members.length} flows`;
      },
      say: index => {
        const found = index == null ? [] : members.map(entry => entry.parts[0][index]).filter(v => v != null);
        const ends = [Math.min(...found), Math.max(...found)].map(v => this.shown(v)).join(" to ");
        shown.textContent = found.length ? `${ends} ${this.spec.unit}`.trim() : "";
      },
    };
  }

  /** The values under the cursor, in the legend, with their unit. */
  say() {
    const index = state.cursor;
    for (const entry of this.entries) {
      entry.shown.textContent = index == null ? "" : `${this.at(entry, index)} ${this.spec.unit}`.trim();
    }
    this.folds.forEach(fold => fold.say(index));
  }

  at(entry, index) {
    return entry.parts.map(part => this.shown(part[index])).reverse().join(" / ");
  }

  visible() {
    return this.entries.filter(entry => !state.hidden.has(entry.key));
  }

  placeCursor() {
    const left = state.cursor == null ? -10 : this.plot.valToPos(times[state.cursor], "x");
    const isInside = left >= 0 && left <= this.plot.over.clientWidth;
    this.plot.setCursor(isInside ? { left, top: 0 } : { left: -10, top: -10 }, false);
  }

  /** Events from a time to another by their kind: their number, and on whose line they are. A spread has those of its group. */
  events(from, to) {
    const places = new Map();
    for (const entry of this.visible()) {
      if (entry.index != null) places.set(entry.key, entry);
      else flows.forEach((flow, index) => {
        if (flow.group === entry.group && !places.has(`flows ${index}`)) places.set(`flows ${index}`, null);
      });
    }
    const kinds = new Map();
    for (const [key, entry] of places) {
      for (const { kind, at } of marksOf.get(key) ?? []) {
        if (!state.kinds.get(kind)) continue;
        if (!kinds.has(kind)) kinds.set(kind, { count: 0, marks: [] });
        const found = kinds.get(kind);
        for (let i = 0; i < at.length; i += 2) {
          if (at[i] < from || at[i] > to) continue;
          found.count += at[i + 1];
          found.marks.push({ at: at[i], count: at[i + 1], entry });
        }
      }
    }
    return kinds;
  }

  /**
   * Draws the events that are in sight: few as marks on their lines, many as a strip above the chart. `mark` draws one
   * of a kind, `strip` a row of bins with a share of the densest each.
   */
  drawEvents({ left, top, width, scale, x, y }, mark, strip) {
    const taken = new Set();
    for (const [kind, { count, marks }] of this.events(...state.zoom)) {
      const row = this.rugKinds.indexOf(kind);
      if (row >= 0) {
        const bins = new Float64Array(Math.ceil(width / (RUG.bin * scale)));
        for (const { at, count: events } of marks) {
          bins[Math.min(Math.max(Math.floor((x(at) - left) / (RUG.bin * scale)), 0), bins.length - 1)] += events;
        }
        const most = bins.reduce((a, b) => Math.max(a, b), 0);
        const height = RUG.height * scale;
        strip(kind, top - 4 * scale - height - row * RUG.step * scale, height, bins.map(n => (n ? 0.25 + 0.75 * Math.sqrt(n / most) : 0)));
      }
      if (count > MARKS_MAX) continue;
      for (const { at, entry } of marks) {
        if (!entry) continue;
        const place = [x(at), y(entry.parts[0][firstNotBefore(at)] ?? 0)];
        const cell = [kind, ...place.map(v => Math.floor(v / (MARK_CELL * scale)))].join();
        if (taken.has(cell)) continue;
        taken.add(cell);
        mark(kind, ...place, 3.2 * scale);
      }
    }
  }

  drawMarks(plot) {
    const { ctx } = plot;
    const scale = devicePixelRatio;
    const box = plot.bbox;
    ctx.save();
    ctx.strokeStyle = colour("--event");
    ctx.fillStyle = colour("--event");
    ctx.setLineDash([]);
    ctx.lineWidth = 1.3 * scale;
    const place = { ...box, scale, x: at => plot.valToPos(at, "x", true), y: value => plot.valToPos(value, "y", true) };
    const isInside = (x, y) => x >= box.left && x <= box.left + box.width && y >= box.top - 1 && y <= box.top + box.height + 1;
    this.drawEvents(place, (kind, x, y, r) => {
      if (isInside(x, y)) glyph(ctx, kind, x, y, r);
    }, (kind, y, height, bins) => {
      glyph(ctx, kind, box.left - 9 * scale, y + height / 2, 3 * scale);
      bins.forEach((share, bin) => {
        ctx.globalAlpha = share;
        if (share) ctx.fillRect(box.left + bin * RUG.bin * scale, y, Math.min(RUG.bin * scale, box.width - bin * RUG.bin * scale), height);
      });
      ctx.globalAlpha = 1;
    });
    ctx.restore();
  }

  /** What is drawn, as rows of a table, with all digits. */
  rows() {
    const names = this.visible().flatMap(({ name, parts }) =>
      (parts.length === 1 ? [name] : ["95 %", "median", "5 %"].map(part => `${name.split(":")[0]}: ${part}`)));
    const unit = this.spec.unit && ` (${this.spec.unit})`;
    const rows = [["time (s)", ...names.map(name => name + unit)]];
    const parts = this.visible().flatMap(entry => entry.parts);
    for (let i = 0; i < times.length; i += 1) {
      if (times[i] < state.zoom[0] || times[i] > state.zoom[1]) continue;
      rows.push([Number(times[i].toFixed(9)), ...parts.map(part => (part[i] == null ? "" : Number(part[i].toPrecision(7))))]);
    }
    return rows;
  }

  /** What is drawn, as an SVG picture on white, for elsewhere. */
  svg() {
    const { light } = data;
    const [width, left, plotWidth, plotHeight] = [760, 74, 666, 300];
    const top = 44 + RUG.step * this.rugKinds.length;
    const entries = this.visible();
    const legend = [];
    let [legendX, legendY] = [left, top + plotHeight + 58];
    for (const entry of entries) {
      const size = 34 + entry.name.length * 7 + 18;
      if (legendX > left && legendX + size > width) [legendX, legendY] = [left, legendY + 20];
      legend.push([entry, legendX, legendY]);
      legendX += size;
    }
    const root = document.createElementNS(SVG, "svg");
    const add = (to, name, attributes, text) => {
      const made = to.appendChild(document.createElementNS(SVG, name));
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      // XML knows no controls.
      if (text != null) made.textContent = String(text).replace(/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, "\ufffd");
      return made;
    };
    const height = legendY + 16;
    for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, "font-size": 13,
      "font-family": "Ubuntu, 'Helvetica Neue', Arial, sans-serif", fill: light.ink })) root.setAttribute(key, value);
    add(root, "title", {}, `${this.spec.title}, ${data.name}`);
    add(root, "rect", { width: "100%", height: "100%", fill: light.paper });
    const unit = this.spec.unit && ` (${this.spec.unit})`;
    add(root, "text", { x: left, y: 22, "font-weight": 600 }, this.spec.title + unit);
    const [from, to] = state.zoom;
    const { min, max } = this.plot.scales.y;
    const x = at => left + (plotWidth * (at - from)) / (to - from);
    const y = value => top + plotHeight * (1 - (value - min) / (max - min));
    const across = ticks(from, to, 8);
    for (const at of across.found) {
      add(root, "path", { d: `M${x(at).toFixed(1)} ${top}v${plotHeight}`, stroke: light.faint });
      add(root, "text", { x: x(at).toFixed(1), y: top + plotHeight + 18, "text-anchor": "middle" }, at.toFixed(decimalsOf(across.step)));
    }
    const up = ticks(min, max, 5);
    for (const value of up.found) {
      add(root, "path", { d: `M${left} ${y(value).toFixed(1)}h${plotWidth}`, stroke: light.faint });
      add(root, "text", { x: left - 8, y: (y(value) + 4.5).toFixed(1), "text-anchor": "end" }, value.toFixed(decimalsOf(up.step)));
    }
    add(root, "text", { x: left + plotWidth / 2, y: top + plotHeight + 38, "text-anchor": "middle" }, "time (s)");
    // A picture within the picture cuts what leaves it.
    const inside = add(root, "svg", { x: left, y: top, width: plotWidth, height: plotHeight,
      viewBox: `${left} ${top} ${plotWidth} ${plotHeight}`, fill: "none", "stroke-linejoin": "round" });
    const shown = [...times.keys()].slice(Math.max(firstNotBefore(from) - 1, 0), firstNotBefore(to) + 1);
    const point = (part, i) => `${x(times[i]).toFixed(1)} ${y(part[i]).toFixed(1)}`;
    for (const { parts, look, name } of entries) {
      const stroke = light.hues[look.hue];
      if (parts.length === 3) {
        const there = shown.filter(i => parts[0][i] != null);
        const edge = [...there.map(i => point(parts[0], i)), ...there.reverse().map(i => point(parts[2], i))];
        if (edge.length) add(inside, "path", { d: `M${edge.join("L")}Z`, fill: stroke, "fill-opacity": 0.22 });
      }
      const line = parts[parts.length === 3 ? 1 : 0];
      let [d, isGap] = ["", true];
      for (const i of shown) {
        if (line[i] != null) d += `${isGap ? "M" : "L"}${point(line, i)}`;
        isGap = line[i] == null;
      }
      const path = add(inside, "path", { d, stroke, "stroke-width": look.width, "stroke-dasharray": look.dash.join(" "),
        "stroke-opacity": look.alpha ? 0.63 : 1 });
      add(path, "title", {}, name);
    }
    const marks = add(root, "g", { stroke: light.event, fill: "none", "stroke-width": 1.2 });
    const mark = (kind, atX, atY, r) => {
      const d = glyphLines(kind).map(line => line.reduce((path, value, i) =>
        path + (i % 2 ? ` ${(atY + r * value).toFixed(1)}` : `${i ? "L" : "M"}${(atX + r * value).toFixed(1)}`), "")).join("");
      if (d) add(marks, "path", { d });
      else add(marks, "circle", { cx: atX.toFixed(1), cy: atY.toFixed(1), r });
    };
    this.drawEvents({ left, top, width: plotWidth, scale: 1, x, y }, mark, (kind, atY, high, bins) => {
      mark(kind, left - 9, atY + high / 2, 3);
      bins.forEach((share, bin) => {
        if (share) add(marks, "rect", { x: left + bin * RUG.bin, y: atY, width: RUG.bin, height: high, fill: light.event, stroke: "none", opacity: share.toFixed(2) });
      });
    });
    add(root, "rect", { x: left, y: top, width: plotWidth, height: plotHeight, fill: "none", stroke: light.dim });
    for (const [{ look, parts, name }, atX, atY] of legend) {
      const stroke = light.hues[look.hue];
      if (parts.length === 3) add(root, "rect", { x: atX, y: atY - 9, width: 28, height: 10, fill: stroke, opacity: 0.22 });
      add(root, "path", { d: `M${atX} ${atY - 4}h28`, stroke, "stroke-width": look.width, "stroke-dasharray": look.dash.join(" ") });
      add(root, "text", { x: atX + 34, y: atY }, name);
    }
    return new XMLSerializer().serializeToString(root);
  }

  /** What is drawn, as a table, in at most TABLE_ROWS_MAX rows. */
  table() {
    if (!this.details.open) return;
    const [from, to] = [firstNotBefore(state.zoom[0]), firstNotBefore(state.zoom[1])];
    const step = Math.max(1, Math.ceil((to - from + 1) / TABLE_ROWS_MAX));
    const table = document.createElement("table");
    const entries = this.visible();
    const cell = (row, name, text, scope) => {
      const made = row.appendChild(document.createElement(name));
      made.textContent = text;
      if (scope) made.scope = scope;
    };
    const every = step > 1 ? `, every ${step}th point` : "";
    table.createCaption().textContent =
      `${this.spec.title}${this.spec.unit && ` (${this.spec.unit})`}, ` +
      `${shownTime(state.zoom[0])} to ${shownTime(state.zoom[1])}${every}`;
    const head = table.createTHead().insertRow();
    cell(head, "th", "time (s)", "col");
    entries.forEach(entry => cell(head, "th", entry.name, "col"));
    const body = table.createTBody();
    for (let i = from; i <= to && i < times.length; i += step) {
      const row = body.insertRow();
      cell(row, "th", timeText(times[i]), "row");
      entries.forEach(entry => cell(row, "td", this.at(entry, i)));
    }
    this.tablePlace.replaceChildren(table);
  }
}

/** Lines of a mark around its middle, 1 long; a circle has none. */
const glyphLines = kind => ({
  drop: [[-1, -1, 1, 1], [-1, 1, 1, -1]],
  error: [[-1.2, 0, 1.2, 0], [0, -1.2, 0, 1.2]],
  mark: [[0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0, 0, -1.3]],
  timeout: [[0, -1.3, 1.3, 1, -1.3, 1, 0, -1.3]],
}[kind] ?? []);

const glyph = (ctx, kind, x, y, r) => {
  ctx.beginPath();
  const lines = glyphLines(kind);
  if (!lines.length) ctx.arc(x, y, r, 0, 2 * Math.PI);
  for (const line of lines) {
    for (let i = 0; i < line.length; i += 2) ctx[i ? "lineTo" : "moveTo"](x + r * line[i], y + r * line[i + 1]);
  }
  ctx.stroke();
};

/** The index of the first time that is not before t; the last if there is none. */
const firstNotBefore = t => {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < t) low = middle + 1;
    else high = middle;
  }
  return low;
};

const swatch = (look, isSpread) => {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `swatch c${look.hue}`);
  svg.setAttribute("viewBox", "0 0 28 10");
  svg.setAttribute("aria-hidden", "true");
  if (isSpread) {
    const rect = svg.appendChild(document.createElementNS(svg.namespaceURI, "rect"));
    for (const [name, value] of Object.entries({ width: 28, height: 10, class: "spread" })) rect.setAttribute(name, value);
  }
  const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
  line.setAttribute("d", "M0 5H28");
  if (!isSpread) line.setAttribute("stroke-dasharray", look.dash.join(" "));
  return svg;
};

const charts = [];

const zoom = (from, to) => {
  const end = data.duration;
  const span = Math.min(Math.max(to - from, (4 * end) / Math.max(times.length, 8)), end);
  const start = Math.min(Math.max(from, 0), end - span);
  state.zoom = [start, start + span];
  for (const chart of charts) {
    chart.plot.setScale("x", { min: state.zoom[0], max: state.zoom[1] });
    chart.table();
  }
  requestAnimationFrame(() => charts.forEach(chart => chart.placeCursor()));
  where();
};

/** Zooms by a factor around the cursor if it is in sight, else around the middle. */
const zoomBy = factor => {
  const [from, to] = state.zoom;
  const at = state.cursor == null ? NaN : times[state.cursor];
  const middle = at >= from && at <= to ? at : (from + to) / 2;
  zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
};

const shift = share => {
  const by = (state.zoom[1] - state.zoom[0]) * share;
  zoom(state.zoom[0] + by, state.zoom[1] + by);
};

/** `by`: the chart that has moved its own cursor already. */
const moveCursor = (index, by) => {
  state.cursor = Math.min(Math.max(index, 0), times.length - 1);
  for (const chart of charts) {
    if (chart !== by) chart.placeCursor();
    chart.say();
  }
  where();
};

const where = () => {
  const [from, to] = state.zoom.map(shownTime);
  const cursor = state.cursor == null ? "" : `cursor at ${shownTime(times[state.cursor])}, `;
  get("where").textContent = `${cursor}shown ${from} to ${to}`;
};

/**
 * Tells the page that holds the report in a frame which point somebody has chosen, for it may know more: the time under the
 * cursor, and the flow or link whose line is nearest to `y`, or the first.
 */
const choose = (chart, y) => {
  if (parent === window || state.cursor == null) return;
  const away = ({ parts }) => {
    const value = parts[parts.length >> 1][state.cursor];
    if (value == null) return Infinity;
    return y == null ? 0 : Math.abs(chart.plot.valToPos(value, "y") - y);
  };
  const lines = chart.visible().filter(entry => away(entry) < Infinity);
  const line = lines.reduce((nearest, entry) => (nearest && away(nearest) <= away(entry) ? nearest : entry), null);
  if (!line) return;
  const index = line.index ?? flows.findIndex(flow => flow.group === line.group);
  const { of } = chart.spec;
  parent.postMessage({ at: times[state.cursor], of, name: data[of][index] }, "*");
};

let saying;
const announce = chart => {
  clearTimeout(saying);
  saying = setTimeout(() => {
    const { unit } = chart.spec;
    const lines = chart.visible().slice(0, 8).map(entry => `${entry.name} ${chart.at(entry, state.cursor)} ${unit}`.trim());
    get("said").textContent = `${shownTime(times[state.cursor])}: ${lines.join(", ")}`;
  }, 250);
};

const onKey = (event, chart) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const [from, to] = state.zoom.map(firstNotBefore);
  const step = event.shiftKey ? 10 : 1;
  const walk = by => (state.cursor == null ? from : state.cursor + by);
  const keys = {
    ArrowLeft: () => moveCursor(walk(-step)),
    ArrowRight: () => moveCursor(walk(step)),
    Home: () => moveCursor(from),
    End: () => moveCursor(to),
    "+": () => zoomBy(0.5),
    "=": () => zoomBy(0.5),
    "-": () => zoomBy(2),
    0: () => zoom(0, data.duration),
    Escape: () => zoom(0, data.duration),
    Enter: () => choose(chart),
  };
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
  // A cursor that walks out of sight takes the charts along.
  if (state.cursor != null && event.key.startsWith("Arrow")) {
    const at = times[state.cursor];
    if (at < state.zoom[0] || at > state.zoom[1]) {
      const half = (state.zoom[1] - state.zoom[0]) / 2;
      zoom(at - half, at + half);
    }
  }
  if (state.cursor != null) announce(chart);
};

/** Hides or shows a flow, link or spread on every chart. */
const toggle = key => {
  const isHidden = !state.hidden.delete(key);
  if (isHidden) state.hidden.add(key);
  for (const chart of charts) {
    chart.entries.forEach(entry => {
      if (entry.key !== key) return;
      chart.plot.batch(() => {
        entry.parts.forEach((_, part) => chart.plot.setSeries(entry.first + part, { show: !isHidden }));
      });
      entry.button.setAttribute("aria-pressed", String(!isHidden));
      chart.table();
    });
  }
};

const redrawFlows = () => {
  charts.filter(chart => chart.spec.of === "flows").forEach(chart => {
    chart.build();
    chart.table();
  });
};

const kindButtons = () => {
  const total = kind => {
    const sums = ["links", "flows"].map(of => data.marks.filter(marks => marks.kind === kind && marks.of === of)
      .reduce((sum, marks) => decode(marks.at, Float32Array).reduce((n, v, i) => (i % 2 ? n + v : n), sum), 0));
    return Math.max(...sums);
  };
  for (const kind of state.kinds.keys()) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.kind = kind;
    button.setAttribute("aria-pressed", "true");
    button.textContent = `${GLYPHS[kind] ?? "○"} ${kind} (${total(kind)})`;
    button.addEventListener("click", () => {
      state.kinds.set(kind, !state.kinds.get(kind));
      button.setAttribute("aria-pressed", String(state.kinds.get(kind)));
      charts.forEach(chart => chart.plot.redraw(false));
    });
    get("kinds").append(button);
  }
  if (!state.kinds.size) get("kinds").textContent = "no drops, timeouts or marks on record";
};

/** Which flows are drawn one by one, if there are too many to draw all. */
const picker = () => {
  if (data.flows.length === data.flows_drawn.length) return;
  get("picker").hidden = false;
  const boxes = data.flows.map((name, index) => {
    const label = document.createElement("label");
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    box.checked = state.listed.flows.has(index);
    label.append(` ${name}`);
    box.addEventListener("change", () => {
      if (box.checked) state.listed.flows.add(index);
      else state.listed.flows.delete(index);
      state.hidden.delete(`flows ${index}`);
      redrawFlows();
    });
    return label;
  });
  get("choices").append(...boxes);
  get("filter").addEventListener("input", () => {
    boxes.forEach((label, index) => { label.hidden = !data.flows[index].includes(get("filter").value); });
  });
  get("none").addEventListener("click", () => {
    state.listed.flows.clear();
    boxes.forEach(label => { label.firstChild.checked = false; });
    redrawFlows();
  });
};

if (get("keys")) {
  const actions = {
    in: () => zoomBy(0.5),
    out: () => zoomBy(2),
    left: () => shift(-0.5),
    right: () => shift(0.5),
    reset: () => zoom(0, data.duration),
  };
  for (const button of document.querySelectorAll("[data-do]")) {
    button.addEventListener("click", actions[button.dataset.do]);
  }
  for (const figure of document.querySelectorAll("figure.chart")) charts.push(new Chart(figure));
  kindButtons();
  picker();
  where();
  // Canvases take their colours when they are drawn.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(chart => chart.build()));
}
// For whoever wants to look closer in the browser's console.
window.report = { data, state, charts, times };
