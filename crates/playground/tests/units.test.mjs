// node --test: what of the page needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";

import { pack, unpack } from "../page/share.js";
import { code, header, keys, numbers, open, traces } from "../page/toml.js";

test("a shared scenario comes back", async () => {
  const shared = { text: "# Ä \u{1f600}\n[run]\n", beside: "cubic" };
  assert.deepEqual(await unpack(await pack(shared)), shared);
  assert.equal(await unpack("#charts"), null);
  await assert.rejects(unpack("#s=AAAA"), /can not be read/);
  await assert.rejects(pack({ text: "x".repeat(1 << 19) }), /too long/);
});

test("comments end where quotes do not hold them", () => {
  assert.equal(code('a = "#1" # two'), 'a = "#1" ');
  assert.deepEqual(header("[links.'a b'.reverse] # back"), ["links", "a b", "reverse"]);
  assert.deepEqual(header("[[claims]]"), ["claims"]);
  assert.equal(header("path = ['a']"), null);
  assert.deepEqual(keys("a.\"b.c\".d-e"), ["a", "b.c", "d-e"]);
});

test("files are found where they are read", () => {
  assert.deepEqual(traces('rate = { trace = "a.down" } # or { trace = "FILE" }\n# { trace = "b" }'), ["a.down"]);
});

test("tables in braces are known where they are open", () => {
  assert.deepEqual(open("law = { xcp = { al"), { path: ["law", "xcp"], rest: " al", isInTable: true });
  assert.deepEqual(open('path = ["a", "').isInTable, false);
  assert.deepEqual(open("law = { xcp = {} }").path, []);
});

test("numbers are found with their names, and only those of a run", () => {
  const text = `[run]
duration = "30 s" # not "40 s"
[links."a b"]
rate = "20.5 Mbit/s"
rate2 = "20"
[flows.ftp]
start = { every = "5 s" }
law = { xcp = { alpha = 0.4 } }
[sweep]
seeds = 5
`;
  const found = numbers(text);
  assert.deepEqual(found.map(({ name, digits, unit }) => [name, digits, unit]), [
    ["run.duration", "30", "s"], ["links.a b.rate", "20.5", "Mbit/s"], ["flows.ftp.start.every", "5", "s"], ["flows.ftp.law.xcp.alpha", "0.4", ""],
  ]);
  for (const { from, to, digits } of found) assert.equal(text.slice(from, to), digits);
});
