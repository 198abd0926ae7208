// The page: a scenario, its runs, and what is asked of them. Texts of others only ever become text.
import examples from "examples:";

import { Editor } from "./editor.js";
import { laws } from "./schema.js";
import { FRAGMENT_MAX, pack, unpack } from "./share.js";
import { Simulator, Stopped } from "./simulator.js";
import { Values } from "./values.js";

const get = id => document.getElementById(id);
const made = (kind, text, attributes = {}) => {
  const element = document.createElement(kind);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

const FIRST = "demo";
const CHECK_AFTER_MS = 250;
const RUN_AFTER_MS = 200;
const TRACE_MAX = 16 << 20;
const FLOWS_LISTED_MAX = 200;

const say = words => { get("said").textContent = words; };

const checker = new Simulator();
const explainer = new Simulator();
const runners = [new Simulator(), new Simulator()];

let files = {};
/** The runs that are shown: the law in the place of the scenario's own, the text, and the frame of the report. */
let shown = [];

const question = (act, more) => ({ do: act, name: "scenario.toml", text: editor.text, files, ...more });

const later = (act, milliseconds) => {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
};

const showFindings = findings => {
  editor.show(findings);
  get("findings").replaceChildren(...findings.map(({ severity, message, help, line, column, file }) => {
    const where = file === "scenario.toml" ? `line ${line}, column ${column}: ` : "";
    const button = made("button", `${severity}: ${where}${message}${help ? `. ${help}` : ""}`, { type: "button" });
    button.addEventListener("click", () => editor.go(line ?? 1, column ?? 1));
    const item = made("li", "", { class: severity });
    item.append(button);
    return item;
  }));
};

const check = async () => {
  try {
    const { errors = [], warnings = [], groups = [] } = await checker.ask(question("check"));
    showFindings([...errors, ...warnings]);
    const flows = groups.flatMap(([group, count]) => Array.from({ length: Math.min(count, FLOWS_LISTED_MAX) }, (_, i) => `${group}[${i}]`));
    get("flows").replaceChildren(...flows.slice(0, FLOWS_LISTED_MAX).map(value => made("option", value, { value })));
    if (!flows.includes(get("flow").value)) get("flow").value = flows[0] ?? "";
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  }
};
const checkSoon = later(check, CHECK_AFTER_MS);

/** The law of a run, as its heading says it. */
const called = law => law || "as written";

/** One run, into its place. */
const runOne = async (place, law) => {
  const label = made("label", called(law));
  const bar = label.appendChild(document.createElement("progress"));
  Object.assign(bar, { max: 1, value: 0 });
  get("progress").append(label);
  try {
    const answered = await runners[place].ask(question("run", law ? { law } : {}), share => { bar.value = share; });
    return { law, text: editor.text, ...answered };
  } finally {
    label.remove();
  }
};

let running = 0;
const run = async () => {
  const mine = ++running;
  runners[1].stop();
  get("progress").replaceChildren();
  get("stop").disabled = false;
  document.body.dataset.state = "running";
  say("running");
  const law = get("beside").value;
  try {
    // The second begins when the first is asked: they run at once.
    const runs = await Promise.all([runOne(0, ""), ...(law ? [runOne(1, law)] : [])]);
    if (mine === running) show(runs);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    if (mine !== running) return;
    runners.forEach(runner => runner.stop());
    say(error.message);
    document.body.dataset.state = "stopped";
  } finally {
    if (mine === running) get("stop").disabled = true;
  }
};
const runSoon = later(() => run(), RUN_AFTER_MS);

const show = runs => {
  const errors = runs.flatMap(({ errors = [] }) => errors);
  if (errors.length) {
    showFindings(errors);
    say(`${errors.length === 1 ? "an error" : `${errors.length} errors`}: ${errors[0].message}`);
    document.body.dataset.state = "error";
    return;
  }
  frames(runs);
  const told = runs.map(({ law, result, seconds }) => {
    const speed = (result.packet_hops / seconds / 1e6).toFixed(1);
    return `${called(law)}: fingerprint ${result.fingerprint}, ${result.packet_hops} packet-hops in ${seconds.toFixed(2)} s (${speed} M/s)`;
  });
  say(told.join("; "));
  const [{ result, waited }] = runs;
  Object.assign(document.body.dataset, { state: "done", fingerprint: result.fingerprint, speed: result.packet_hops / waited });
};

/** The reports, each in a frame that may run its charts and nothing else, and has no origin. */
const frames = runs => {
  const isAsBefore = shown.length === runs.length && runs.every(({ law }, i) => shown[i].law === law);
  if (!isAsBefore) {
    shown = runs.map(({ law }) => {
      const frame = made("iframe", "", { sandbox: "allow-scripts allow-downloads", title: `Report: ${called(law)}` });
      const part = document.createElement("div");
      part.append(...(runs.length > 1 ? [made("h3", called(law))] : []), frame);
      return { law, frame, part };
    });
    get("frames").replaceChildren(...shown.map(({ part }) => part));
    get("of").replaceChildren(...runs.map(({ law }) => made("option", called(law), { value: law })));
  }
  runs.forEach(({ report, text }, i) => {
    shown[i].frame.srcdoc = report;
    shown[i].text = text;
  });
  compare(runs);
};

/** What a run comes to, as rows of a name and a text. */
const rows = ({ links, flows, jain, duration_s: end, warmup_s: begin }) => {
  const number = (value, digits, unit) => (value == null ? "-" : `${value.toFixed(digits)} ${unit}`.trim());
  const sum = values => values.reduce((all, value) => all + value, 0);
  const ofLinks = Object.entries(links).filter(([name]) => !name.endsWith(".reverse")).slice(0, 4).flatMap(([name, link]) => [
    [`${name}: utilisation`, number(link.utilization * 100, 1, "%")],
    [`${name}: mean queue`, number(link.queue_mean_packets, 1, "packets")],
    [`${name}: drops`, number(link.drops, 0, "")],
  ]);
  const ofFlows = Object.entries(flows).filter(([, group]) => Array.isArray(group)).slice(0, 6).flatMap(([name, group]) => [
    [`${name}: goodput, sum`, number(sum(group.map(({ arrived_bytes: bytes }) => bytes)) * 8e-6 / (end - begin), 2, "Mbit/s")],
    [`${name}: Jain's index`, number(jain?.[name], 3, "")],
    [`${name}: retransmits`, number(sum(group.map(({ retransmits }) => retransmits ?? 0)), 0, "")],
  ]);
  return [...ofLinks, ...ofFlows];
};

const compare = runs => {
  get("numbers").hidden = runs.length < 2;
  if (runs.length < 2) return;
  const table = document.createElement("table");
  table.append(made("caption", "Both runs"));
  const head = table.createTHead().insertRow();
  head.append(made("th", "", { scope: "col", "aria-label": "quantity" }), ...runs.map(({ law }) => made("th", called(law), { scope: "col" })));
  const body = table.createTBody();
  const columns = runs.map(({ result }) => new Map(rows(result)));
  for (const name of columns[0].keys()) {
    body.insertRow().append(made("th", name, { scope: "row" }), ...columns.map(column => made("td", column.get(name) ?? "-")));
  }
  get("numbers").replaceChildren(table);
};

const explain = async (flow, at, { law, text }, link) => {
  get("told").hidden = false;
  get("told").textContent = `${flow} at ${at}: watching the run, packet by packet ...`;
  try {
    const { told, errors } = await explainer.ask({ ...question("explain", law ? { law } : {}), text, flow, at, link });
    get("told").textContent = told ?? errors.map(({ message, help }) => `${message}\n${help}`).join("\n");
    document.body.dataset.explained = told ? flow : "";
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    get("told").textContent = error.message;
  }
};

// A report tells which point somebody chose. Its words are a stranger's as much as the scenario is.
addEventListener("message", ({ source, data }) => {
  const of = shown.find(({ frame }) => frame.contentWindow === source);
  if (!of || !Number.isFinite(data?.at) || data.at < 0 || typeof data.name !== "string") return;
  const isFlow = data.of === "flows";
  if (isFlow) get("flow").value = data.name;
  get("at").value = `${Number(data.at.toFixed(9))} s`;
  get("of").value = of.law;
  get("why").scrollIntoView({ block: "nearest" });
  explain(get("flow").value, get("at").value, of, isFlow ? null : data.name);
});

const load = ({ name, text, files: own }, beside = "") => {
  files = { ...own };
  get("files").textContent = Object.keys(files).join(", ");
  get("name").textContent = name;
  get("beside").value = laws.includes(beside) ? beside : "";
  editor.text = text;
  run();
};

/** Loads what the address holds. True if it holds something. */
const fromAddress = async () => {
  try {
    const shared = await unpack(location.hash);
    if (!shared) return false;
    const own = examples.find(({ text }) => text === shared.text);
    // Traces travel in no address; those of the examples are here.
    const all = Object.assign({}, ...examples.map(example => example.files));
    load(own ?? { name: "from a link", text: shared.text, files: all }, shared.beside);
  } catch (error) {
    say(error.message);
    document.body.dataset.state = "error";
  }
  return true;
};

const share = async () => {
  try {
    const fragment = await pack({ text: editor.text, beside: get("beside").value });
    history.replaceState(null, "", fragment);
    const size = `${fragment.length} of ${FRAGMENT_MAX} letters`;
    try {
      await navigator.clipboard.writeText(location.href);
      say(`the address is copied; the scenario is in it (${size})`);
    } catch {
      say(`the address of this page now holds the scenario (${size})`);
    }
  } catch (error) {
    say(error.message);
  }
};

const list = () => {
  const wanted = get("wanted").value.toLowerCase();
  const found = examples.filter(({ name, about }) => `${name} ${about}`.toLowerCase().includes(wanted));
  get("list").replaceChildren(...found.map(example => {
    const button = made("button", "", { type: "button", "data-example": example.name });
    button.append(made("span", example.name, { class: "path" }), made("span", example.about, { class: "what" }));
    button.addEventListener("click", () => {
      get("examples").close();
      history.replaceState(null, "", "#");
      load(example);
    });
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
};

const editor = new Editor(get("editor"), {
  onChange: (text, isBySlider) => {
    values.show(text);
    checkSoon();
    if (isBySlider) runSoon();
  },
  onRun: () => run(),
});
const values = new Values(get("values"), (from, to, text) => editor.replace(from, to, text));

get("beside").append(...laws.map(law => made("option", law, { value: law })));
get("beside").addEventListener("change", () => run());
get("run").addEventListener("click", () => run());
get("stop").addEventListener("click", () => runners.forEach(runner => runner.stop()));
get("share").addEventListener("click", share);
get("gallery").addEventListener("click", () => {
  list();
  get("examples").showModal();
});
get("wanted").addEventListener("input", list);
get("ask").addEventListener("submit", event => {
  event.preventDefault();
  const of = shown.find(({ law }) => law === get("of").value);
  if (of) explain(get("flow").value, get("at").value, of);
});
get("trace").addEventListener("change", async () => {
  const [file] = get("trace").files;
  if (!file) return;
  if (file.size > TRACE_MAX) {
    say(`${file.name} is larger than ${TRACE_MAX >> 20} MiB`);
    return;
  }
  files[file.name] = await file.text();
  get("files").textContent = Object.keys(files).join(", ");
  checkSoon();
});
addEventListener("hashchange", fromAddress);
fromAddress().then(isFound => isFound || load(examples.find(({ name }) => name === FIRST)));
