/** The present list of collections: fetched, checked, stored, and fetched again when it is old. */

import { readList } from "./collections.js";
import { ANONYMOUS } from "./delivery.js";
import { DeniableError } from "./errors.js";
import { now } from "./short.js";

const TIMEOUT_MS = 10_000;
/** Seconds until a list is asked for again; a browser's cache answers for as long as the edge says. */
const MAX_AGE = 300;

/**
 * @param {string} edge @param {string} publicKey base64
 * @param {import("./storage.js").Storage["change"]} change
 * @param {() => void} onNew called when the list is another one
 */
export function listOf(edge, publicKey, change, onNew) {
  /** @type {any[] | undefined} */
  let collections;
  let old = 0;

  /** @param {string} body */
  const accept = async (body) => {
    const list = await readList(body, publicKey);
    await change((state) => {
      if (state.list?.[1] > list.revision) throw new DeniableError("revision", "an older list than seen");
      if (!state.isOut) state.list = [body, list.revision];
    });
    collections = list.collections;
    onNew();
  };

  /** Fetch the list. A browser keeps it with its ETag; "no-cache" asks the edge anyway. @param {RequestCache} [cache] */
  const refresh = async (cache) => {
    const request = { ...ANONYMOUS, cache, signal: AbortSignal.timeout(TIMEOUT_MS) };
    const response = await fetch(`${edge}/v1/collections`, request).catch(() => {});
    if (!response?.ok) throw new DeniableError("unreachable", `${edge} gave no list`);
    await accept(await response.text());
  };

  return {
    _refresh: refresh,
    /** The list: the stored one if there is one, and if that is old, fetched again meanwhile. @returns {Promise<any[]>} */
    _load: async () => {
      if (!collections) {
        const stored = await change((state) => state.list);
        await (stored ? accept(stored[0]) : refresh());
      } else if (now() >= old) {
        old = now() + MAX_AGE;
        refresh().catch(() => {});
      }
      return /** @type {any[]} */ (collections);
    },
    _forget: () => {
      collections = undefined;
    },
  };
}
