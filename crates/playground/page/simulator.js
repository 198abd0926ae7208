// Simulators of the page: each a worker, which asks nobody and can be ended at any moment.
import workerText from "worker:./worker.js";

/** A run that takes longer is stopped: a scenario may be a stranger's. */
export const SECONDS_MAX = 120;

// Base64 of the gzip of the module, from wasm.js: a page from a file may fetch nothing.
const unpack = async () => {
  const packed = Uint8Array.from(atob(globalThis.CONGESTLAB_WASM), letter => letter.charCodeAt(0));
  delete globalThis.CONGESTLAB_WASM;
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
};
const compiled = unpack();
const workerUrl = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));

export class Stopped extends Error {}

export class Simulator {
  #worker = null;
  #id = 0;
  #end = null;

  /**
   * Asks, and stops what was asked before. `tell` hears the share that is done. The answer has the seconds that the simulator
   * took, and those that the page waited: with all that lies between.
   */
  async ask(question, tell = () => {}) {
    this.stop();
    const id = ++this.#id;
    const module = await compiled;
    if (id !== this.#id) throw new Stopped("stopped");
    if (!this.#worker) {
      this.#worker = new Worker(workerUrl);
      this.#worker.postMessage({ module });
    }
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      const over = act => {
        clearTimeout(timer);
        this.#end = null;
        act();
      };
      const timer = setTimeout(
        () => this.stop(`stopped after ${SECONDS_MAX} s; a shorter run.duration may do`), SECONDS_MAX * 1000);
      this.#end = words => over(() => {
        worker.terminate();
        this.#worker = null;
        reject(new Stopped(words));
      });
      worker.onmessage = ({ data }) => {
        if (data.id !== id) return;
        if (data.answered) over(() => resolve({ ...data.answered, waited: (performance.now() - begin) / 1000 }));
        else tell(data.share);
      };
      // Out of memory, or a browser that refuses: the worker is gone.
      worker.onerror = event => this.stop(event.message || "the simulator has ended");
      const begin = performance.now();
      worker.postMessage({ id, question });
    });
  }

  stop(words = "stopped") {
    this.#id += 1;
    this.#end?.(words);
  }
}
