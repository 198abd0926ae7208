// Completion from the schema of the scenario language (scenarios/schema.json).
import schema from "../../../scenarios/schema.json";

import { code, header, keys, open } from "./toml.js";

/** Every alternative of a schema, without references. */
const leaves = one => {
  if (!one) return [];
  if (one.$ref) return leaves(schema.definitions[one.$ref.split("/").pop()]);
  const parts = one.anyOf ?? one.oneOf ?? one.allOf;
  return parts ? parts.flatMap(leaves) : [one];
};

const step = (nodes, key) => nodes.flatMap(node => {
  const of = node.properties?.[key] ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : null) ?? node.items;
  return Array.isArray(of) ? of.flatMap(leaves) : leaves(of);
});

/** The alternatives at a path. */
export const at = path => path.reduce(step, leaves(schema));

const described = (nodes, key) => {
  for (const node of nodes) {
    const found = node.properties?.[key];
    const text = found?.description ?? leaves(found).find(leaf => leaf.description)?.description;
    if (text) return text;
  }
  return undefined;
};

/** Names of a path's tables or keys, with what they are. */
const names = nodes => [...new Set(nodes.flatMap(node => Object.keys(node.properties ?? {})))];

const isTable = leaf => leaf.type === "object" || leaf.properties;

/** Values that could stand at a path, as TOML. */
const values = nodes => {
  const found = nodes.flatMap(leaf => [
    ...(leaf.enum ?? []), ...("const" in leaf ? [leaf.const] : []),
    ...(leaf.type === "boolean" ? [true, false] : []), ...(leaf.examples ?? []),
  ]);
  const written = [...new Set(found)].filter(value => typeof value !== "object").map(value => ({ label: JSON.stringify(value), type: "constant" }));
  const tables = nodes.filter(leaf => leaf.type === "object").flatMap(leaf => Object.keys(leaf.properties ?? {}).map(key => ({
    label: `{ ${key} = `, type: "class", info: described([leaf], key),
  })));
  return [...written, ...tables];
};

const headers = (document, line) => {
  const used = name => [...document.matchAll(new RegExp(`^\\s*\\[${name}\\.([^\\]]+)\\]`, "gm"))].map(match => match[1]);
  const fixed = [];
  for (const key of names(at([]))) {
    const nodes = at([key]);
    const info = described(at([]), key);
    if (nodes.some(node => node.type === "array")) fixed.push({ label: `[[${key}]]`, type: "class", info });
    else if (nodes.some(node => typeof node.additionalProperties === "object" && !node.properties)) {
      fixed.push({ label: `[${key}.`, type: "class", info, detail: "name]" });
      for (const name of used(key)) {
        for (const inner of names(at([key, name])).filter(inner => at([key, name, inner]).some(isTable))) {
          fixed.push({ label: `[${key}.${name}.${inner}]`, type: "class", info: described(at([key, name]), inner) });
        }
      }
    } else fixed.push({ label: `[${key}]`, type: "class", info });
  }
  return fixed.filter(({ label }) => label.startsWith(line.trimStart()));
};

/** For CodeMirror: what could stand at the cursor. */
export const complete = context => {
  const { state, pos } = context;
  const line = state.doc.lineAt(pos);
  const before = line.text.slice(0, pos - line.from);
  if (code(before) !== before) return null;
  if (/^\s*\[[^\]]*$/.test(before)) {
    return { from: line.from + before.length - before.trimStart().length, options: headers(state.sliceDoc(), before), filter: false };
  }
  let table = [];
  for (let number = line.number - 1; number > 0; number -= 1) {
    const found = header(state.doc.line(number).text);
    if (found) {
      table = found;
      break;
    }
  }
  const { path: inner, rest, isInTable } = open(before);
  const path = [...table, ...inner];
  const value = /^\s*([\w."'-]+)\s*=\s*("?[^"]*)$/.exec(rest);
  if (value || !isInTable) {
    const typed = value ? value[2] : rest.trimStart();
    const options = values(value ? at([...path, ...keys(value[1])]) : at(path));
    return options.length ? { from: pos - typed.length, options, validFor: /^"?[^"]*"?$/ } : null;
  }
  const word = /^\s*([\w-]*)$/.exec(rest);
  if (!word || (!word[1] && !context.explicit)) return null;
  const nodes = at(path);
  const options = names(nodes).map(key => ({ label: key, type: "property", apply: `${key} = `, info: described(nodes, key) }));
  return { from: pos - word[1].length, options, validFor: /^[\w-]*$/ };
};

/** Laws that flows can have, by name. */
export const laws = at(["flows", "any", "law"]).flatMap(leaf => leaf.enum ?? []).filter(law => !["cbr", "onoff", "mpcp"].includes(law));
