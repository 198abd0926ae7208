// Sliders for the numbers of a scenario. The text is what counts: a slider changes it in its place.
import { numbers } from "./toml.js";

// A slider goes from a tenth to ten times the number that it was made for, in equal ratios.
const STEPS = 100;
const SPAN = 10;
const SHOWN_MAX = 24;

/** As many digits as somebody would write. */
const written = (value, of) => {
  if (!of.digits.includes(".") && !of.unit) return String(Math.max(Math.round(value), 1));
  const number = Number(value.toPrecision(value >= 100 ? 3 : 2));
  return String(!of.unit && Number(of.digits) <= 1 ? Math.min(number, 1) : number);
};

export class Values {
  #of = [];

  /** `replace` puts a text in the place of a part of the scenario. */
  constructor(parent, replace) {
    this.parent = parent;
    this.replace = replace;
  }

  /** Sliders for the numbers of a text; those that there are stay if only their numbers have changed. */
  show(text) {
    const found = numbers(text).filter(({ digits }) => Number(digits) > 0).slice(0, SHOWN_MAX);
    const isSame = found.length === this.#of.length && found.every(({ name }, i) => name === this.#of[i].name);
    this.#of = isSame ? found.map((one, i) => ({ ...this.#of[i], ...one })) : found.map(one => this.#slider(one));
    for (const { output, digits, unit } of this.#of) output.textContent = `${digits} ${unit}`.trim();
    if (!isSame) this.parent.replaceChildren(...this.#of.map(({ row }) => row));
    if (!found.length) this.parent.textContent = "no numbers that could be moved";
  }

  #slider(one) {
    const index = () => this.#of.findIndex(({ row: other }) => other === row);
    const [row, name, output, input] = ["label", "span", "output", "input"].map(kind => document.createElement(kind));
    const begin = Number(one.digits);
    Object.assign(input, { type: "range", min: -STEPS, max: STEPS, value: 0, step: 1 });
    name.textContent = one.name;
    row.append(name, input, output);
    input.addEventListener("input", () => {
      const now = this.#of[index()];
      const text = Number(input.value) === 0 ? one.digits : written(begin * SPAN ** (input.value / STEPS), one);
      input.setAttribute("aria-valuetext", `${text} ${one.unit}`.trim());
      if (text !== now.digits) this.replace(now.from, now.to, text);
    });
    input.setAttribute("aria-valuetext", `${one.digits} ${one.unit}`.trim());
    return { ...one, row, output };
  }
}
