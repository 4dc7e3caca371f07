/** The present list of collections: fetched, checked, stored, and fetched again when it is old. */

import { readList } from "./collections.js";
import { anonymous } from "./delivery.js";
import { attempt, check } from "./errors.js";
import { isAhead, now } from "./short.js";

/**
 * @param {string} edge @param {string} publicKey base64
 * @param {import("./storage.js").Storage["change"]} change
 * @param {(state: any) => boolean} isOut whether the person takes no part
 * @param {(what: string) => void} count
 */
export const listOf = (edge, publicKey, change, isOut, count) => {
  /** Seconds until a list is asked for again; a browser's cache answers for as long as the edge says. */
  const MAX_AGE = 300;
  const address = `${edge}/v1/collections`;
  /** @type {any[] | undefined} */
  let collections;
  let old = 0;

  /** @param {string} body */
  const accept = async (body) => {
    const list = await readList(body, publicKey);
    await change((state) => {
      check(!(state.list?.[1] > list.revision), "revision", "an older list");
      if (!state.isOut) state.list = [body, list.revision];
    });
    collections = list.collections;
  };

  /** Fetch the list. A browser keeps it with its ETag; "no-cache" asks the edge anyway. @param {RequestCache} [cache] */
  const refresh = async (cache) => {
    old = now() + MAX_AGE;
    const options = anonymous(), response = await attempt(fetch(address, { ...options, cache }));
    // A browser hides the answer to an origin that is not listed, but not that there is one.
    check(response || !(await attempt(fetch(address, { ...options, mode: "no-cors", redirect: "follow" }))), "origin", `allow_origins of ${edge} lacks this origin`);
    check(response?.ok, "unreachable", `${address}: ${response?.status ?? "no answer"}`);
    await accept(await /** @type {Response} */ (response).text());
  };

  return {
    _refresh: refresh,
    /** The stored list, else fetched; if it is old, fetched again meanwhile. @returns {Promise<any[] | undefined>} nothing if opted out */
    _load: async () => {
      if (!collections) {
        const stored = await change((state) => !isOut(state) && [state.list?.[0]]);
        if (!stored) return;
        // The app may pin another key since it was stored.
        await accept(stored[0]).catch(() => refresh());
      }
      if (now() >= old || isAhead(old, MAX_AGE, count)) attempt(refresh());
      return collections;
    },
    /** Load it again: its entries hold what was prepared of the secret. */
    _forget: () => {
      collections = undefined;
    },
  };
};
