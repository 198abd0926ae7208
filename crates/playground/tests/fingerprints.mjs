// node tests/fingerprints.mjs MODULE.wasm COMMAND [FILE...]: runs scenarios as WebAssembly and by the command, and compares
// what they come to. Without files: all scenarios of the repository, those of papers too.
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { answer } from "../page/engine.js";
import { traces } from "../page/toml.js";

const top = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const [wasm, command, ...named] = process.argv.slice(2);

const found = async folder => (await readdir(join(top, folder), { recursive: true })).map(name => join(top, folder, name));
const all = async () => {
  const files = [...(await found("scenarios")), ...(await found("papers"))].filter(name => name.endsWith(".toml")).sort();
  const texts = await Promise.all(files.map(file => readFile(file, "utf8")));
  // The others tell what came of the scenarios of a paper.
  return files.filter((_, i) => /^\[run\]/m.test(texts[i]));
};

const module = await WebAssembly.compile(await readFile(wasm));
const files = named.length ? named : await all();
const ran = { same: 0, others: [] };
for (const file of files) {
  const name = relative(top, file);
  const text = await readFile(file, "utf8");
  const given = {};
  for (const trace of traces(text)) given[trace] = await readFile(join(dirname(file), trace), "utf8");
  const { stdout } = await promisify(execFile)(command, ["run", file, "--json", "--quiet", "--threads", "1"], { maxBuffer: 1 << 28 });
  const native = JSON.parse(stdout);
  const { result, errors } = answer(module, { do: "run", name, text, files: given, report: false });
  // When and where it ran is all that may differ.
  const whole = of => JSON.stringify({ ...of, meta: null });
  if (result && whole(result) === whole(native)) ran.same += 1;
  else {
    ran.others.push(name);
    const why = errors?.map(({ message }) => message).join("; ") ?? `${result.fingerprint} and ${native.fingerprint}`;
    console.log(`${name}: ${why}`);
  }
}
console.log(`${ran.same} of ${files.length} scenarios come to the same, every number of the results`);
process.exitCode = ran.others.length || !files.length ? 1 : 0;
