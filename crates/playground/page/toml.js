// Where things are in the text of a scenario. The simulator reads it for real; this is for the comfort of who writes.

/** A key, or a path of keys, as its parts. */
export const keys = text => [...text.matchAll(/"([^"]*)"|'([^']*)'|([\w-]+)/g)].map(([, a, b, c]) => a ?? b ?? c);

/** The text of a line without its comment. */
export const code = line => {
  let quote = "";
  for (let i = 0; i < line.length; i += 1) {
    const letter = line[i];
    if (quote) {
      if (letter === quote) quote = "";
      else if (letter === "\\" && quote === '"') i += 1;
    } else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === "#") return line.slice(0, i);
  }
  return line;
};

/** Names of the files that a scenario reads. */
export const traces = text => text.split("\n").flatMap(line => [...code(line).matchAll(/\btrace\s*=\s*"([^"]+)"/g)].map(match => match[1]));

const HEADER = /^\s*\[\[?([^\]]*)\]\]?\s*$/;

/** The table that a line opens; null if it opens none. */
export const header = line => {
  const found = HEADER.exec(code(line));
  return found && keys(found[1]);
};

/** Keys of the tables in braces that are open at the end of `text`, and what stands after the last brace or comma. */
export const open = text => {
  const [path, isTable] = [[], []];
  let [quote, start] = ["", 0];
  for (let i = 0; i < text.length; i += 1) {
    const letter = text[i];
    if (quote) {
      if (letter === quote) quote = "";
    } else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === "{" || letter === "[") {
      const key = /([\w."'-]+)\s*=\s*$/.exec(text.slice(start, i));
      path.push(key ? keys(key[1]) : []);
      isTable.push(letter === "{");
      start = i + 1;
    } else if (letter === "}" || letter === "]") {
      path.pop();
      isTable.pop();
      start = i + 1;
    } else if (letter === ",") start = i + 1;
  }
  return { path: path.flat(), rest: text.slice(start), isInTable: isTable.at(-1) ?? true };
};

// Tables of which a run knows nothing.
const PLANS = ["sweep", "claims", "figure"];
const NUMBER = /([\w."'-]+)\s*=\s*("?)(\d+(?:\.\d+)?)(?:\s*([A-Za-zµμ][\w/µμ]*))?\2(?=\s*(?:[,}]|$))/dg;

/** Numbers of a scenario that somebody may want to move: where each stands, its name, number and unit. */
export const numbers = text => {
  const found = [];
  let [at, table] = [0, []];
  for (const line of text.split("\n")) {
    table = header(line) ?? table;
    const written = code(line);
    if (!header(line) && !PLANS.includes(table[0])) {
      for (const match of written.matchAll(NUMBER)) {
        const [, key, quote, number, unit] = match;
        // A number with a unit is in quotes; one without is bare.
        if (Boolean(unit) !== Boolean(quote)) continue;
        const [start, end] = match.indices[3].map(place => at + place);
        const inner = open(written.slice(0, match.index)).path;
        const name = [...table, ...inner, ...keys(key)].join(".");
        found.push({ name, digits: number, unit: unit ?? "", from: start, to: end });
      }
    }
    at += line.length + 1;
  }
  return found;
};
