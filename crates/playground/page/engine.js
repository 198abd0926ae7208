// The simulator's module, wrapped. The worker of the page and the tests in node use the same.

/** A worker's part of what `answer` returns when a scenario makes the module stop: its words, if it left any. */
const trapped = (error, words) => ({
  status: 1,
  errors: [{ severity: "error", message: words || String(error), help: "please report it, with the scenario" }],
});

/**
 * Asks the module: see src/lib.rs. An instance for every question, a millisecond each: a trap leaves nothing broken, and
 * memory, which can only grow, goes back. `tell` hears which share of a run is done.
 */
export const answer = (module, question, tell = () => {}) => {
  const { exports } = new WebAssembly.Instance(module, { page: { progress: tell } });
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  // Every call may move the memory: its buffer is looked at after it, never before. Places are signed in JavaScript.
  const place = exports.input(bytes.length) >>> 0;
  new Uint8Array(exports.memory.buffer, place, bytes.length).set(bytes);
  const words = () => {
    const [first, length] = [exports.output() >>> 0, exports.output_length() >>> 0];
    return new TextDecoder().decode(new Uint8Array(exports.memory.buffer, first, length));
  };
  try {
    const status = exports.answer() >>> 0;
    return { status, ...JSON.parse(words()) };
  } catch (error) {
    return trapped(error, words());
  }
};
