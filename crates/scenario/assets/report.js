// Draws the charts of a congestlab report with uPlot. All charts share one grid of times, one cursor
// (an index into that grid) and one zoom (a range of times); whatever changes them changes all charts.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const get = id => document.getElementById(id);

const COLOURS = 7;
// Seven colours and four dashes have no common factor: 28 styles differ.
const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3]];
const HEIGHT = 210;
// Equal on all charts, so that equal times stand below each other.
const AXIS = 62;
const TABLE_ROWS_MAX = 200;
// Of the marks of a kind in a square of this size one is drawn, CSS pixels: lines stay visible.
const MARK_CELL = 10;

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
const shownNumber = v => (v == null ? "-" : String(Number(v.toPrecision(4))));
const shownTime = t => `${Number(t.toFixed(3))} s`;

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

// Links that are drawn have the first styles.
const linkStyles = new Map([...new Set([...data.links_drawn, ...data.links.keys()])].map((link, style) => [link, style]));

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
      style: spread.group,
      parts: [spread.high, spread.middle, spread.low].map(values),
    }));
    const listed = [...state.listed[of]].sort((a, b) => a - b).filter(index => series[index]);
    const singles = listed.map(index => ({
      key: `${of} ${index}`,
      name: data[of][index],
      style: of === "links" ? linkStyles.get(index) : index + groups.length,
      parts: [values(series[index])],
    }));
    return [...groups, ...singles];
  }

  build() {
    this.plot?.destroy();
    this.entries = this.lines();
    const series = [{}];
    const bands = [];
    for (const entry of this.entries) {
      entry.first = series.length;
      const isSpread = entry.parts.length === 3;
      const stroke = colour(`--c${entry.style % COLOURS}`);
      const dash = DASHES[entry.style % DASHES.length];
      entry.parts.forEach((_, part) => {
        const isEdge = isSpread && part !== 1;
        series.push({
          label: entry.name,
          show: !state.hidden.has(entry.key),
          stroke: isEdge ? "transparent" : stroke,
          width: isSpread ? 2 : 1.5,
          dash: isSpread ? [] : dash,
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
      padding: [8, 14, 0, 0],
      scales: {
        x: { time: false, auto: false, min: state.zoom[0], max: state.zoom[1] },
        y: { range: (_, low, high) => [Math.min(low ?? 0, 0) * 1.05, Math.max(high ?? 0, 0) * 1.05 || 1] },
      },
      axes: [
        { ...axis, size: 34, values: (_, ticks) => ticks.map(t => String(Number(t.toFixed(6)))) },
        { ...axis, size: AXIS },
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
    over.addEventListener("mouseleave", () => requestAnimationFrame(() => this.placeCursor()));
    this.legend();
    this.placeCursor();
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
    const buttons = this.entries.map(entry => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!state.hidden.has(entry.key)));
      button.append(swatch(entry.style, entry.parts.length === 3), entry.name);
      entry.shown = document.createElement("span");
      entry.shown.className = "value";
      button.append(entry.shown);
      button.addEventListener("click", () => toggle(entry.key));
      return button;
    });
    this.legendPlace.replaceChildren(...buttons);
    this.say();
  }

  /** The values under the cursor, in the legend. */
  say() {
    for (const entry of this.entries) {
      entry.shown.textContent = state.cursor == null ? "" : this.at(entry, state.cursor);
    }
  }

  at(entry, index) {
    return entry.parts.map(part => shownNumber(part[index])).reverse().join(" / ");
  }

  visible() {
    return this.entries.filter(entry => !state.hidden.has(entry.key));
  }

  placeCursor() {
    const left = state.cursor == null ? -10 : this.plot.valToPos(times[state.cursor], "x");
    const isInside = left >= 0 && left <= this.plot.over.clientWidth;
    this.plot.setCursor(isInside ? { left, top: 0 } : { left: -10, top: -10 }, false);
  }

  drawMarks(plot) {
    const { ctx } = plot;
    const scale = devicePixelRatio;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.strokeStyle = colour("--event");
    ctx.setLineDash([]);
    ctx.lineWidth = 1.3 * scale;
    const taken = new Set();
    for (const entry of this.visible()) {
      for (const { kind, at } of marksOf.get(entry.key) ?? []) {
        if (!state.kinds.get(kind)) continue;
        for (let i = 0; i < at.length; i += 2) {
          if (at[i] < state.zoom[0] || at[i] > state.zoom[1]) continue;
          const x = plot.valToPos(at[i], "x", true);
          const y = plot.valToPos(entry.parts[0][firstNotBefore(at[i])] ?? 0, "y", true);
          const cell = [kind, ...[x, y].map(v => Math.floor(v / (MARK_CELL * scale)))].join();
          if (taken.has(cell)) continue;
          taken.add(cell);
          glyph(ctx, kind, x, y, 3.2 * scale);
        }
      }
    }
    ctx.restore();
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
      cell(row, "th", Number(times[i].toFixed(3)), "row");
      entries.forEach(entry => cell(row, "td", this.at(entry, i)));
    }
    this.tablePlace.replaceChildren(table);
  }
}

const glyph = (ctx, kind, x, y, r) => {
  ctx.beginPath();
  const lines = {
    drop: [[-1, -1, 1, 1], [-1, 1, 1, -1]],
    error: [[-1.2, 0, 1.2, 0], [0, -1.2, 0, 1.2]],
    mark: [[0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0, 0, -1.3]],
    timeout: [[0, -1.3, 1.3, 1, -1.3, 1, 0, -1.3]],
  }[kind];
  if (!lines) ctx.arc(x, y, r, 0, 2 * Math.PI);
  for (const line of lines ?? []) {
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

const swatch = (style, isSpread) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", `swatch c${style % COLOURS}`);
  svg.setAttribute("viewBox", "0 0 28 10");
  svg.setAttribute("aria-hidden", "true");
  if (isSpread) {
    const rect = svg.appendChild(document.createElementNS(svg.namespaceURI, "rect"));
    for (const [name, value] of Object.entries({ width: 28, height: 10, class: "spread" })) rect.setAttribute(name, value);
  }
  const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
  line.setAttribute("d", "M0 5H28");
  if (!isSpread) line.setAttribute("stroke-dasharray", DASHES[style % DASHES.length].join(" "));
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

let saying;
const announce = chart => {
  clearTimeout(saying);
  saying = setTimeout(() => {
    const lines = chart.visible().slice(0, 8).map(entry => `${entry.name} ${chart.at(entry, state.cursor)}`);
    get("said").textContent = `${shownTime(times[state.cursor])}: ${lines.join(", ")} ${chart.spec.unit}`;
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
    chart.entries.forEach((entry, place) => {
      if (entry.key !== key) return;
      chart.plot.batch(() => {
        entry.parts.forEach((_, part) => chart.plot.setSeries(entry.first + part, { show: !isHidden }));
      });
      chart.legendPlace.children[place].setAttribute("aria-pressed", String(!isHidden));
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

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = get(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      // Some browsers refuse pages from a file: select it, so that one key copies.
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
  });
}

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
