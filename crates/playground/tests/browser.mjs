// Chromium for the tests, without a head. CHROMIUM names it; a page from a folder has no server and no network.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"];

/** The browser, or null where there is none. */
export const browser = async () => {
  const executablePath = PLACES.find(path => path && existsSync(path));
  return executablePath ? chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] }) : null;
};

/** The address of the playground in a folder. */
export const address = folder => pathToFileURL(resolve(folder, "index.html")).href;

/** A page and the faults that it tells: errors, and whatever it wanted of others. */
export const opened = async (context, url) => {
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", error => faults.push(String(error)));
  page.on("console", message => { if (message.type() === "error") faults.push(message.text()); });
  page.on("request", request => { if (!/^(file|blob|data|about):/.test(request.url())) faults.push(`asks for ${request.url()}`); });
  await page.goto(url);
  return { page, faults };
};

/** Waits until the runs of a page have ended; returns how: done, error or stopped. */
export const ended = async page => {
  await page.waitForFunction(() => !["running", undefined].includes(document.body.dataset.state), null, { timeout: 120000 });
  return page.evaluate(() => document.body.dataset.state);
};

/** The frame of the nth report, its charts drawn. */
export const report = async (page, nth = 0) => {
  const frame = page.frameLocator("#frames iframe").nth(nth);
  await frame.locator(".u-wrap canvas").first().waitFor({ timeout: 60000 });
  return frame;
};
