// Puts pictures and tables of a page into files. Nothing leaves the browser; it works from file://, too.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const PNG_SCALE = 3;

const save = (name, parts, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([parts], { type }));
  link.download = name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(-120);
  document.body.append(link);
  link.click();
  link.remove();
  // Later: a browser may read it when the click is over.
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
};

const svgUrl = svg => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;

/** The text of an SVG picture as a PNG. */
const png = async svg => {
  const image = new Image();
  image.src = svgUrl(svg);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight].map(size => Math.ceil(size * PNG_SCALE));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise(done => canvas.toBlob(done, "image/png"));
};

/** Rows as CSV (RFC 4180). A spreadsheet would run text that begins with a sign: it gets an apostrophe. */
const csv = rows => rows.map(row => row.map(value => {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join()).join("\r\n") + "\r\n";

/** Buttons that save a picture: `svg()` gives its text, `rows()` its data. */
const saveButtons = (label, name, svg, rows) => {
  const bar = document.createElement("div");
  bar.className = "save";
  const kinds = {
    SVG: () => save(`${name}.svg`, svg(), "image/svg+xml"),
    PNG: async () => save(`${name}.png`, await png(svg()), "image/png"),
    CSV: () => save(`${name}.csv`, csv(rows()), "text/csv;charset=utf-8"),
  };
  for (const [kind, action] of Object.entries(kinds)) {
    if (kind === "CSV" ? !rows : !svg) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.save = kind;
    button.textContent = kind;
    button.title = `Save ${label} as ${kind}`;
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", action);
    bar.append(button);
  }
  return bar;
};

/** The rows of a table of the page: what it says of itself, or the texts of its cells. */
const tableRows = table => [...table.rows].map(row => [...row.cells].map(cell => cell.dataset.value ?? cell.textContent.trim()));

/** The text of a picture on the page; without what makes it dark, because paper is white. */
const pictureText = image =>
  new TextDecoder().decode(Uint8Array.from(atob(image.src.split(",")[1]), letter => letter.charCodeAt(0)))
    .replace(/@media \(prefers-color-scheme: dark\) \{\n[^@]*?\n\}\n/, "");

// Pictures and tables that are made already.
for (const figure of document.querySelectorAll("figure[data-name]")) {
  const [image, table] = [figure.querySelector("img"), figure.querySelector("table")];
  const rows = table && (() => tableRows(table));
  figure.prepend(saveButtons(figure.dataset.name, figure.dataset.name, image && (() => pictureText(image)), rows));
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
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

const date = document.getElementById("date");
if (date && !Number.isNaN(Date.parse(document.lastModified))) {
  const at = new Date(document.lastModified);
  const two = number => String(number).padStart(2, "0");
  date.textContent = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  date.parentElement.hidden = false;
}
