// node --test: the playground in headless Chromium, as somebody uses it. PLAYGROUND is the folder that was built.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { address, browser, ended, opened, report } from "./browser.mjs";

const url = address(process.env.PLAYGROUND);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const chromium = await browser();
const wide = { viewport: { width: 1400, height: 900 } };
const skip = chromium ? false : "no Chromium (CHROMIUM=PATH names one)";

/** A page of its own, which must have told no fault at the end. */
const use = async (options, fragment, act) => {
  const context = await chromium.newContext({ ...wide, ...options });
  const { page, faults } = await opened(context, url + fragment);
  await act(page, context);
  assert.deepEqual(faults, []);
  await context.close();
};

const inTheAddress = shared => `#s=${deflateRawSync(JSON.stringify(shared)).toString("base64url")}`;

/** Puts a text into the editor, as a paste does. */
const write = async (page, text) => {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
};

const QUICK = `[run]
duration = "5 s"

[links.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
law = "xcp"

[flows.ftp]
law = "xcp"
count = 2
path = ["bottleneck"]
`;
const LONG = QUICK.replace("5 s", "100000 s").replace("[links", '[measure]\nevery = "100 s"\n\n[links');

after(() => chromium?.close());

test("it loads, runs the demo and draws it as a report does", { skip }, () => use({}, "", async page => {
  assert.equal(await ended(page), "done");
  const frame = await report(page);
  assert.ok((await frame.locator("figure.chart canvas").count()) >= 4);
  assert.match(await page.locator("#said").textContent(), /fingerprint [0-9a-f]{16}/);
}));

test("what is wrong is told at its place, and goes away", { skip }, () => use({}, inTheAddress({ text: QUICK }), async page => {
  assert.equal(await ended(page), "done");
  await write(page, QUICK.replace("10 Mbit/s", "10 Mbps"));
  const finding = page.locator("#findings .error button").first();
  assert.match(await finding.textContent(), /line 5, column 8: .*10 Mbps/);
  await page.locator(".cm-lintRange-error").first().waitFor();
  await page.locator("#run").click();
  assert.equal(await ended(page), "error");
  await finding.click();
  await page.keyboard.type("x");
  assert.match(await page.locator(".cm-content").textContent(), /rate = x"10 Mbps"/);
  await write(page, QUICK);
  await page.waitForFunction(() => !document.querySelector("#findings .error"));
  await page.locator("#run").click();
  assert.equal(await ended(page), "done");
}));

test("keys and values are completed from the schema", { skip }, () => use({}, inTheAddress({ text: QUICK }), async page => {
  await ended(page);
  const offered = async text => {
    await write(page, text);
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete li").first().waitFor();
    return page.locator(".cm-tooltip-autocomplete li").allTextContents();
  };
  assert.ok((await offered('[links.a]\nra')).includes("rate"));
  await page.keyboard.press("Escape");
  assert.ok((await offered('[flows.a]\nlaw = "cu')).some(text => text.includes("cubic")));
  await page.keyboard.press("Escape");
  assert.ok((await offered("[flows.a]\nstart = { ev")).includes("every"));
  await page.keyboard.press("Escape");
  assert.ok((await offered("[fl")).some(text => text.includes("[flows.")));
}));

test("a long run tells how far it is, and stops", { skip }, () => use({}, inTheAddress({ text: LONG }), async page => {
  await page.waitForFunction(() => document.querySelector("#progress progress")?.value > 0, null, { timeout: 60000 });
  const before = Date.now();
  await page.locator("#stop").click();
  assert.equal(await ended(page), "stopped");
  assert.ok(Date.now() - before < 5000);
  await write(page, QUICK);
  await page.locator("#run").click();
  assert.equal(await ended(page), "done");
}));

test("sliders change the text and run it", { skip }, () => use({}, inTheAddress({ text: QUICK }), async page => {
  await ended(page);
  const print = await page.evaluate(() => document.body.dataset.fingerprint);
  const slider = page.getByRole("slider", { name: /links.bottleneck.rate/ });
  await slider.focus();
  for (let i = 0; i < 10; i += 1) await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".cm-content").textContent(), /rate = "13 Mbit\/s"/);
  await page.waitForFunction(old => document.body.dataset.fingerprint !== old && document.body.dataset.state === "done", print);
}));

test("two laws stand side by side", { skip }, () => use({}, inTheAddress({ text: QUICK, beside: "cubic" }), async page => {
  assert.equal(await ended(page), "done");
  await report(page, 0);
  await report(page, 1);
  const table = page.locator("#numbers table");
  assert.deepEqual((await table.locator("thead th").allTextContents()).slice(1), ["as written", "cubic"]);
  const [own, other] = await table.locator("tbody tr").nth(1).locator("td").allTextContents();
  assert.notEqual(own, other);
}));

test("a click on a point explains it, and so does Enter", { skip }, () => use({}, inTheAddress({ text: QUICK }), async page => {
  await ended(page);
  const frame = await report(page);
  const chart = frame.locator('figure[data-of="flows"] .u-over').first();
  await chart.scrollIntoViewIfNeeded();
  await chart.click({ position: { x: 150, y: 100 } });
  await page.waitForFunction(() => document.body.dataset.explained?.startsWith("ftp["));
  assert.match(await page.locator("#told").textContent(), /THE SENDER[^]*LINK bottleneck, runs XCP/);
  await page.evaluate(() => { document.body.dataset.explained = ""; });
  await frame.locator('figure[data-of="flows"] .plot').first().focus();
  for (const key of ["End", "ArrowLeft", "ArrowLeft", "Enter"]) await page.keyboard.press(key);
  await page.waitForFunction(() => document.body.dataset.explained === "ftp[0]");
}));

test("a scenario travels in the address", { skip }, () => use({}, inTheAddress({ text: QUICK }), async (page, context) => {
  await ended(page);
  await write(page, QUICK.replace("count = 2", "count = 3"));
  await page.locator("#share").click();
  await page.waitForFunction(old => location.hash.length > 3 && location.hash !== old, inTheAddress({ text: QUICK }));
  const other = await context.newPage();
  await other.goto(page.url());
  assert.equal(await ended(other), "done");
  assert.match(await other.locator(".cm-content").textContent(), /count = 3/);
}));

test("an address of a stranger runs nothing of his and has limits", { skip }, async () => {
  const markup = "<img src=x onerror=parent.hit=window.hit=1></script><script>top.hit=window.hit=1</script>";
  const text = `# ${markup}\n${QUICK.replaceAll("ftp", `'${markup}'`).replaceAll("bottleneck", markup).replace(/\[links\.(.*)\]/, "[links.'$1']")}`;
  await use({}, inTheAddress({ text, beside: markup }), async page => {
    assert.equal(await ended(page), "done");
    assert.match(await (await report(page)).locator("header").textContent(), /<img src=x onerror/);
    await page.waitForTimeout(300);
    assert.deepEqual(await Promise.all(page.frames().map(frame => frame.evaluate(() => window.hit ?? null))), page.frames().map(() => null));
    assert.equal(await page.locator("img").count(), 0);
  });
  const large = inTheAddress({ text: " ".repeat(1 << 24) });
  await use({}, large, async page => {
    assert.equal(await ended(page), "error");
    assert.match(await page.locator("#said").textContent(), /too long/);
  });
  await use({}, "#s=%%%", async page => {
    assert.equal(await ended(page), "error");
    assert.match(await page.locator("#said").textContent(), /can not be read/);
  });
  const huge = QUICK.replace("count = 2", "count = 100000000");
  await use({}, inTheAddress({ text: huge }), async page => {
    assert.equal(await ended(page), "error");
    assert.match(await page.locator("#said").textContent(), /memory/);
  });
});

test("examples are found and opened, traces too", { skip }, () => use({}, inTheAddress({ text: QUICK }), async page => {
  await ended(page);
  await page.locator("#gallery").click();
  assert.ok((await page.locator("#list button").count()) > 50);
  await page.locator("#wanted").fill("recorded");
  await page.locator('[data-example="lte"]').click();
  await page.waitForFunction(() => document.getElementById("name").textContent === "lte");
  assert.equal(await ended(page), "done");
}));

test("everything works by keys alone", { skip }, () => use({}, inTheAddress({ text: QUICK }), async page => {
  await ended(page);
  const wanted = new Set(["run", "gallery", "share", "beside", "cm-content", "flow", "at", "of"]);
  // Through the report, too, which has more stops than the page.
  for (let i = 0; i < 300 && wanted.size; i += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => [document.activeElement.id, ...document.activeElement.classList]);
    at.forEach(name => wanted.delete(name));
  }
  assert.deepEqual([...wanted], [], "what Tab does not reach");
  await page.locator("#gallery").focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#examples").evaluate(dialog => dialog.open));
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("#examples").evaluate(dialog => dialog.open)));
  await page.locator(".cm-content").focus();
  await page.evaluate(() => { delete document.body.dataset.state; });
  await page.keyboard.press("Control+Enter");
  assert.equal(await ended(page), "done");
}));

/** Serious findings of axe in the page and in the report; axe may not load the style again, for the page asks for nothing. */
const findings = async page => {
  const found = await Promise.all(page.frames().map(async frame => {
    await frame.evaluate(axe);
    const { violations } = await frame.evaluate(() => globalThis.axe.run(document, { iframes: false, preload: false }));
    return violations;
  }));
  return found.flat().filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" ")}`);
};

for (const [name, options] of Object.entries({
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  "as wide as a phone": { viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true },
})) {
  test(`nothing serious for axe: ${name}`, { skip }, () => use(options, inTheAddress({ text: QUICK, beside: "reno" }), async page => {
    assert.equal(await ended(page), "done");
    await report(page, 0);
    await report(page, 1);
    assert.deepEqual(await findings(page), []);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= room, `${wide} px in ${room}`);
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const isDark = Math.max(...paper.match(/\d+/g).slice(0, 3).map(Number)) < 80;
    assert.equal(isDark, options.colorScheme === "dark");
  }));
}
