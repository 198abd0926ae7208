// A scenario in the fragment of an address, which browsers send to nobody. What comes from there is a stranger's.

/** Letters of a fragment, and bytes of what it unpacks to: no scenario that a person wrote has more. */
export const FRAGMENT_MAX = 1 << 16;
export const TEXT_MAX = 1 << 18;

const KEY = "#s=";

const through = (bytes, stream) => new Blob([bytes]).stream().pipeThrough(stream);

export const pack = async shared => {
  const bytes = new TextEncoder().encode(JSON.stringify(shared));
  const packed = new Uint8Array(await new Response(through(bytes, new CompressionStream("deflate-raw"))).arrayBuffer());
  const letters = btoa(Array.from(packed, byte => String.fromCharCode(byte)).join(""));
  const fragment = KEY + letters.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  if (bytes.length > TEXT_MAX || fragment.length > FRAGMENT_MAX) throw new Error("the scenario is too long for an address");
  return fragment;
};

/** What `pack` was given; null where the fragment holds none. */
export const unpack = async fragment => {
  if (!fragment.startsWith(KEY)) return null;
  if (fragment.length > FRAGMENT_MAX) throw new Error("the scenario in the address is too long");
  try {
    const letters = atob(fragment.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, letter => letter.charCodeAt(0));
    const reader = through(packed, new DecompressionStream("deflate-raw")).getReader();
    const [parts, decoder] = [[], new TextDecoder("utf-8", { fatal: true })];
    let length = 0;
    // Read piece by piece: a few bytes can unpack to very many.
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > TEXT_MAX) {
        await reader.cancel();
        throw new RangeError();
      }
      parts.push(decoder.decode(value, { stream: true }));
    }
    const { text, beside } = JSON.parse(parts.join("") + decoder.decode());
    if (typeof text !== "string") throw new TypeError();
    return { text, beside: typeof beside === "string" ? beside : "" };
  } catch (error) {
    const why = error instanceof RangeError ? "is too long" : "can not be read: it was cut or changed";
    throw new Error(`the scenario in the address ${why}`);
  }
};
