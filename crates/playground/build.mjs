// node build.mjs MODULE.wasm FOLDER: the page around a module, in a folder that works from a disk and from any server.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { answer } from "./page/engine.js";
import { traces } from "./page/toml.js";

const here = dirname(fileURLToPath(import.meta.url));
const scenarios = join(here, "../../scenarios");
const page = join(here, "page");
const [wasm, out] = process.argv.slice(2);

/** The comment that a scenario begins with, but for what it tells editors. */
const described = text => {
  const lines = text.split("\n").filter(line => !line.startsWith("#:"));
  const end = lines.findIndex(line => !line.startsWith("#"));
  return lines.slice(0, end).map(line => line.slice(1).trim()).join(" ").trim();
};

/** All scenarios of the repository, with the traces that they read. */
const examples = async () => {
  const names = (await readdir(scenarios, { recursive: true })).filter(name => name.endsWith(".toml")).sort();
  return Promise.all(names.map(async path => {
    const text = await readFile(join(scenarios, path), "utf8");
    const files = {};
    for (const name of traces(text)) {
      files[name] = await readFile(join(scenarios, dirname(path), name), "utf8");
    }
    return { name: path.replace(/\.toml$/, ""), about: described(text), text, files };
  }));
};

const options = { bundle: true, minify: true, target: "es2022", write: false, legalComments: "none" };
const worker = async path => (await build({ ...options, entryPoints: [path], format: "iife" })).outputFiles[0].text;
const sources = {
  name: "sources",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^worker:/ }, ({ path }) => ({ path: join(page, path.slice("worker:".length)), namespace: "worker" }));
    onLoad({ filter: /.*/, namespace: "worker" }, async ({ path }) => ({ contents: await worker(path), loader: "text" }));
    onResolve({ filter: /^examples:$/ }, () => ({ path: "examples", namespace: "examples" }));
    onLoad({ filter: /.*/, namespace: "examples" }, async () => ({ contents: JSON.stringify(await examples()), loader: "json" }));
  },
};

const module = await readFile(wasm);
const bundle = await build({ ...options, entryPoints: [join(page, "main.js")], format: "iife", plugins: [sources], metafile: true });

// The scripts of a report are the same whatever is in it: the page allows them by their hashes, and takes the style.
const first = await readFile(join(scenarios, "first.toml"), "utf8");
const { report } = answer(await WebAssembly.compile(module), { do: "run", name: "first.toml", text: first });
const scripts = [...report.matchAll(/<script>([^]*?)<\/script>/g)].map(([, script]) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`);
const [, style] = /<style>([^]*?)<\/style>/.exec(report);
if (scripts.length !== 2) throw new Error(`a report has ${scripts.length} scripts, not uPlot and its own`);

// The licences of what is in the bundle.
const packages = Object.keys(bundle.metafile.inputs).map(path => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
const licences = await Promise.all([...new Set(packages.filter(Boolean))].sort().map(async folder => {
  const { name, version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  return `${name} ${version}\n\n${await readFile(join(folder, "LICENSE"), "utf8")}`;
}));
const uplot = await readFile(join(here, "../scenario/assets/uplot-1.6.32/LICENSE"), "utf8");

const written = {
  "index.html": (await readFile(join(page, "index.html"), "utf8")).replace("{{scripts}}", scripts.join(" ")),
  "playground.css": style + (await readFile(join(page, "page.css"), "utf8")),
  "playground.js": bundle.outputFiles[0].text,
  // A page from a file may fetch nothing: the module is a text in a script.
  "wasm.js": `globalThis.CONGESTLAB_WASM = "${gzipSync(module, { level: 9 }).toString("base64")}";\n`,
  "licences.txt": [...licences, `uPlot 1.6.32\n\n${uplot}`].join("\n----\n\n"),
};
await mkdir(out, { recursive: true });
let size = 0;
for (const [name, text] of Object.entries(written)) {
  await writeFile(join(out, name), text);
  const packed = gzipSync(text, { level: 9 }).length;
  size += packed;
  console.log(`${(packed / 1000).toFixed(0).padStart(5)} kB  ${relative(process.cwd(), join(out, name))}`);
}
console.log(`${(size / 1000).toFixed(0).padStart(5)} kB  compressed in all`);
