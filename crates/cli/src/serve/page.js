// The list of `congestlab serve`: however many lines there are, only those that can be seen are in the document.
"use strict";

const HEIGHT = 28;
const BEYOND = 8;
const EVERY_MS = 1000;
const at = (id) => document.getElementById(id);
const lines = new Map();
let version = 0, shownLines = [], active = null, sorted = { key: "date", up: false }, isWaiting = false;
const marked = new Set();

const number = (value, digits) => (value === null || value === undefined ? "-" : value.toFixed(digits));
const rate = (value) => (value === null || value === undefined ? "-" : `${(value / 1e6).toFixed(2)} Mbit/s`);
const state = (line) => {
  if (line.error) return "damaged";
  if (line.kind === "run") return line.complete ? (line.live ? "live, done" : "done") : "interrupted";
  return line.all ? `${line.done} of ${line.all}` : line.complete ? "done" : `${line.done ?? 0} runs`;
};
// Title, key, text, and whether it is a number.
const COLUMNS = [
  ["", "marked", () => "", false],
  ["scenario", "scenario", (line) => (line.kind === "sweep" ? `${line.scenario} (sweep)` : line.scenario), false],
  ["seed", "seed", (line) => line.seed ?? "-", true],
  ["laws", "laws", (line) => (line.laws || []).join(", "), false],
  ["state", "state", state, false],
  ["used", "utilization", (line) => (line.utilization === null || line.utilization === undefined ? "-" : `${(line.utilization * 100).toFixed(1)} %`), true],
  ["goodput", "goodput_bps", (line) => rate(line.goodput_bps), true],
  ["queue", "queue", (line) => number(line.queue, 1), true],
  ["drops", "drops", (line) => number(line.drops, 0), true],
  ["fairness", "jain", (line) => number(line.jain, 3), true],
  ["date", "date", (line) => (line.date ? line.date.replace("T", " ").replace("Z", "") : "-"), false],
];

// All texts of runs are set as texts: a name may hold anything.
function made(name, text, attributes = {}) {
  const element = document.createElement(name);
  if (text !== "") element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function value(line) {
  if (sorted.key === "state") return state(line);
  const of = line[sorted.key];
  return Array.isArray(of) ? of.join() : of;
}

function arrange() {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  shownLines = [...lines.values()].filter((line) => words.every((word) => line.words.includes(word)));
  const way = sorted.up ? 1 : -1;
  shownLines.sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === b || (a ?? null) === (b ?? null)) return one.id < other.id ? -1 : 1;
    // What has no value is last, whichever way.
    if (a === null || a === undefined) return one.kind === "sweep" && sorted.key === "date" ? -1 : 1;
    if (b === null || b === undefined) return other.kind === "sweep" && sorted.key === "date" ? 1 : -1;
    return (a < b ? -1 : 1) * way;
  });
  at("rows").style.height = `${shownLines.length * HEIGHT}px`;
  at("table").setAttribute("aria-rowcount", String(shownLines.length + 1));
  draw();
}

function draw() {
  const body = at("body");
  const first = Math.max(0, Math.floor(body.scrollTop / HEIGHT) - BEYOND);
  const last = Math.min(shownLines.length, Math.ceil((body.scrollTop + body.clientHeight) / HEIGHT) + BEYOND);
  const rows = [];
  for (let place = first; place < last; place += 1) rows.push(row(shownLines[place], place));
  at("rows").replaceChildren(...rows);
  if (rows.some((each) => each.id === "active")) at("table").setAttribute("aria-activedescendant", "active");
  else at("table").removeAttribute("aria-activedescendant");
  at("compare").disabled = marked.size !== 2;
}

function row(line, place) {
  const row = made("div", "", { role: "row", "aria-rowindex": String(place + 2), "aria-selected": String(marked.has(line.id)) });
  row.style.top = `${place * HEIGHT}px`;
  if (line.id === active) {
    row.id = "active";
    row.classList.add("active");
  }
  for (const [title, key, text, isNumber] of COLUMNS) {
    const cell = made("div", String(text(line)), { role: "gridcell" });
    if (isNumber) cell.classList.add("number");
    if (key === "marked" && line.kind === "run") {
      const box = made("input", "", { type: "checkbox", tabindex: "-1", "aria-label": `Compare ${line.id}` });
      box.checked = marked.has(line.id);
      cell.append(box);
    }
    if (key === "state" && line.kind === "sweep" && line.all && line.done < line.all) {
      cell.prepend(made("progress", "", { value: String(line.done), max: String(line.all), "aria-label": "Progress" }), " ");
    }
    if (key === "scenario") cell.title = line.id;
    if (key === "state" && line.error) cell.title = line.error;
    row.append(cell);
  }
  row.addEventListener("click", (event) => {
    active = line.id;
    if (event.target.matches("input")) mark(line);
    else show(line);
    draw();
  });
  return row;
}

function mark(line) {
  if (line.kind !== "run") return;
  if (!marked.delete(line.id)) marked.add(line.id);
  // The last two.
  while (marked.size > 2) marked.delete(marked.values().next().value);
}

function open(title, ...content) {
  at("title").textContent = title;
  at("content").replaceChildren(...content);
  at("shown").hidden = false;
  at("shown").scrollIntoView({ block: "start" });
}

function show(line) {
  if (line.error || (line.kind === "sweep" && !line.complete)) {
    open(line.id, made("p", line.error || "There is no report yet: a sweep gets one when all of its points are complete."));
    return;
  }
  const frame = made("iframe", "", { sandbox: "allow-scripts allow-downloads", title: `Report of ${line.id}` });
  frame.src = `report?of=${encodeURIComponent(line.id)}`;
  open(line.id, frame);
}

async function compare() {
  const [one, other] = [...marked];
  open(`${one} and ${other}`, made("p", "Comparing ..."));
  try {
    const answer = await fetch(`compare?one=${encodeURIComponent(one)}&other=${encodeURIComponent(other)}`);
    if (!answer.ok) {
      open(`${one} and ${other}`, made("p", await answer.text(), { role: "alert" }));
      return;
    }
    const found = await answer.json();
    const table = made("table", "");
    const head = made("tr", "");
    head.append(...["", "one", "other", "difference", "allowed", "agree"].map((title) => made("th", title, { scope: "col" })));
    table.append(head);
    for (const each of found.rows) {
      const line = made("tr", "");
      const cells = [each.metric, each.one, each.other, each.difference, each.allowed];
      line.append(...cells.map((cell) => made("td", cell === null ? "-" : typeof cell === "number" ? String(Number(cell.toPrecision(6))) : cell)));
      line.append(made("td", each.holds === null ? "-" : each.holds ? "yes" : "NO"));
      table.append(line);
    }
    const picture = made("img", "", { alt: "Throughput, window and queue of both runs", src: `data:image/svg+xml,${encodeURIComponent(found.svg)}` });
    const scroll = made("div", "", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" });
    scroll.append(table);
    const verdict = found.holds ? "The runs agree." : "The runs do not agree.";
    open(`${one} and ${other}`, made("p", [verdict, ...found.warnings].join(" ")), picture, scroll);
  } catch {
    open(`${one} and ${other}`, made("p", "The server does not answer.", { role: "alert" }));
  }
}

async function ask() {
  if (isWaiting) return;
  isWaiting = true;
  try {
    const answer = await fetch(`list?since=${version}`);
    if (!answer.ok) throw new Error(await answer.text());
    const told = await answer.json();
    if (told.all && version !== 0) lines.clear();
    for (const id of told.gone) {
      lines.delete(id);
      marked.delete(id);
    }
    for (const line of told.lines) {
      line.words = [line.id, line.kind, line.scenario, state(line), ...(line.laws || [])].join(" ").toLowerCase();
      lines.set(line.id, line);
    }
    const isNew = told.version !== version || told.all;
    version = told.version;
    if (isNew) arrange();
    at("said").textContent = `${shownLines.length} of ${lines.size}${told.is_cut ? ", and more that are not listed" : ""}`;
  } catch {
    at("said").textContent = "The server does not answer: it has ended.";
  }
  isWaiting = false;
}

// Titles sort. One of them is reached by Tab, the others from it by arrows.
const sorters = [];
for (const [title, key, , isNumber] of COLUMNS) {
  const cell = made("div", "", { role: "columnheader" });
  if (isNumber) cell.classList.add("number");
  if (title !== "") {
    const button = made("button", title, { type: "button", tabindex: sorters.length === 0 ? "0" : "-1" });
    button.addEventListener("click", () => {
      sorted = { key, up: sorted.key === key ? !sorted.up : true };
      for (const each of sorters) each.parentElement.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      arrange();
    });
    sorters.push(button);
    cell.append(button);
  } else {
    cell.setAttribute("aria-label", "compare");
  }
  at("head").append(cell);
}
at("head").addEventListener("keydown", (event) => {
  // Arrows and Enter on a title are not for the lines below it.
  event.stopPropagation();
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const place = sorters.indexOf(event.target);
  if (step === undefined || place < 0) return;
  const next = sorters[(place + step + sorters.length) % sorters.length];
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  event.preventDefault();
});
at("table").addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(at("body").clientHeight / HEIGHT) - 1);
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
  const place = shownLines.findIndex((line) => line.id === active);
  if (step !== undefined && shownLines.length > 0) {
    const next = Math.min(shownLines.length - 1, Math.max(0, place + step));
    active = shownLines[next].id;
    const body = at("body");
    if (next * HEIGHT < body.scrollTop) body.scrollTop = next * HEIGHT;
    if ((next + 1) * HEIGHT > body.scrollTop + body.clientHeight) body.scrollTop = (next + 1) * HEIGHT - body.clientHeight;
  } else if (event.key === "Enter" && place >= 0) {
    show(shownLines[place]);
  } else if (event.key === " " && place >= 0) {
    mark(shownLines[place]);
  } else {
    return;
  }
  event.preventDefault();
  draw();
});
let isDrawing = false;
at("body").addEventListener("scroll", () => {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    draw();
  });
});
at("filter").addEventListener("input", () => {
  at("body").scrollTop = 0;
  arrange();
  at("said").textContent = `${shownLines.length} of ${lines.size}`;
});
at("search").addEventListener("submit", (event) => event.preventDefault());
at("compare").addEventListener("click", compare);
at("close").addEventListener("click", () => {
  at("shown").hidden = true;
  at("content").replaceChildren();
  at("table").focus();
});
addEventListener("resize", draw);
ask();
setInterval(ask, EVERY_MS);
