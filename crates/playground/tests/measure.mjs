// node tests/measure.mjs MODULE.wasm COMMAND FOLDER: what the page weighs and how fast it is, written into docs/playground.md.
// On a machine with nothing else to do, and on one core of it: taskset -c 0 node ...
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { deflateRawSync, gzipSync } from "node:zlib";

import { answer } from "../page/engine.js";
import { address, browser, ended, opened, report } from "./browser.mjs";

const top = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const document = join(top, "docs/playground.md");
const [wasm, command, folder] = process.argv.slice(2);
const ROUNDS = 5;

const LOAD = `[run]
duration = "100 s"

[links.bottleneck]
rate = "200 Mbit/s"
delay = "20 ms"
law = "xcp"

[flows.ftp]
law = "xcp"
count = 10
path = ["bottleneck"]
`;

const packed = async name => gzipSync(await readFile(join(folder, name)), { level: 9 }).length;
const kB = bytes => `${Math.round(bytes / 1000)} kB`;
const best = async (act, choose) => {
  const found = [];
  for (let round = 0; round < ROUNDS; round += 1) found.push(await act());
  return choose(...found);
};

const sizes = new Map();
for (const name of await readdir(folder)) sizes.set(name, await packed(name));
const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);

const place = await mkdtemp(join(tmpdir(), "playground-"));
const file = join(place, "load.toml");
await writeFile(file, LOAD);
const native = await best(async () => {
  const { stdout } = await promisify(execFile)(command, ["run", file, "--json", "--quiet", "--threads", "1"]);
  const { packet_hops: hops, meta } = JSON.parse(stdout);
  return hops / meta.cpu_s;
}, Math.max);
await rm(place, { recursive: true });

const module = await WebAssembly.compile(await readFile(wasm));
const node = await best(() => {
  const before = process.cpuUsage();
  const { result } = answer(module, { do: "run", name: "load.toml", text: LOAD, report: false });
  const { user, system } = process.cpuUsage(before);
  return result.packet_hops / ((user + system) / 1e6);
}, Math.max);

const chromium = await browser();
if (!chromium) throw new Error("no Chromium (CHROMIUM=PATH names one)");
const first = await best(async () => {
  const context = await chromium.newContext();
  const before = performance.now();
  const { page } = await opened(context, address(folder));
  await report(page);
  const seconds = (performance.now() - before) / 1000;
  await context.close();
  return seconds;
}, Math.min);
const context = await chromium.newContext();
const { page } = await opened(context, `${address(folder)}#s=${deflateRawSync(JSON.stringify({ text: LOAD })).toString("base64url")}`);
const inPage = await best(async () => {
  if ((await ended(page)) !== "done") throw new Error(await page.locator("#said").textContent());
  const speed = Number(await page.evaluate(() => document.body.dataset.speed));
  await page.evaluate(() => { delete document.body.dataset.state; });
  await page.locator("#run").click();
  return speed;
}, Math.max);
await chromium.close();

const millions = speed => `${(speed / 1e6).toFixed(1)} million packet-hops/s`;
const lines = [
  "| | measured | wanted |",
  "| --- | --- | --- |",
  `| the page, compressed | ${kB(all)}: the simulator ${kB(sizes.get("wasm.js"))}, the page's program with editor and examples ${kB(sizes.get("playground.js"))} | 1500 kB |`,
  `| from the address to the first chart of \`demo\`, one core | ${first.toFixed(2)} s | 2 s |`,
  `| ten XCP flows, 200 Mbit/s, 100 s: the command, one thread | ${millions(native)} | |`,
  `| the same in node | ${millions(node)}, ${(node / native).toFixed(2)} of it | 0.60 |`,
  `| the same in the page, with series, events and report | ${millions(inPage)}, ${(inPage / native).toFixed(2)} of it | 0.60 |`,
];
const text = await readFile(document, "utf8");
const table = /(<!-- measured -->\n)[^]*?(<!-- end -->)/;
if (!table.test(text)) throw new Error(`${document} has no place for what is measured`);
await writeFile(document, text.replace(table, `$1\n${lines.join("\n")}\n\n$2`));
console.log(lines.join("\n"));
const isGood = all <= 1.5e6 && first < 2 && Math.max(node, inPage) >= 0.6 * native;
process.exitCode = isGood ? 0 : 1;
