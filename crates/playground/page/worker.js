// A thread for the simulator: the module comes first, then questions with a number.
import { answer } from "./engine.js";

// Telling progress draws the page, which on one core takes its time from the run.
const EVERY_MS = 100;

let module;
onmessage = ({ data }) => {
  if (data.module) {
    module = data.module;
    return;
  }
  let next = performance.now() + EVERY_MS;
  const tell = share => {
    const now = performance.now();
    if (now < next) return;
    next = now + EVERY_MS;
    postMessage({ id: data.id, share });
  };
  const begin = performance.now();
  const answered = answer(module, data.question, tell);
  postMessage({ id: data.id, answered: { ...answered, seconds: (performance.now() - begin) / 1000 } });
};
