/**
 * Delivery: uploads wait in the storage, and leave after a random delay, until the edge has them.
 *
 * Rule 1: an upload is stored before it is sent, with its id, and never changed: repeated, it has the same bytes.
 * Rule 2: what is randomized is never randomized again. If it cannot be counted, it is dropped.
 * Rule 3: sent twice is counted once, so two tabs, a page that closes and a lost answer need no care.
 *
 * @typedef {{id: string, body: Uint8Array, due: number, expires: number}} StoredUpload times in unix seconds
 */

import { uniform } from "./randomization/words.js";
import { max, min, now } from "./short.js";

/** Nothing identifies the person: no cookies, no referrer; an answer that leads elsewhere is an error. */
export const ANONYMOUS = /** @type {const} */ ({ credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" });

const LONGEST_BACKOFF = 3600;
/** Seconds; timers of browsers end at 2^31 milliseconds. */
const LONGEST_TIMER = 2e6;
/** Uploads; browsers let all requests of a closing page carry 64 KiB, and an upload has at most 566 bytes. */
const LEAVING = 99;
/** No answer of the edge, so it ends no pause. */
const EXPIRED = "expired";
/** What ends an upload, by status. @type {Record<number, string>} */
const ANSWERS = { 204: "sent", 400: "malformed", 409: "outdated" };

/**
 * @param {string} edge @param {import("./storage.js").Storage["change"]} change
 * @param {() => Promise<unknown>} refresh fetches the list of collections anew
 * @param {(what: string) => void} count
 */
export function deliveryOf(edge, change, refresh, count) {
  const { navigator } = globalThis;
  /** Uploads that are sent now, or were answered: what was read before may name them still. @type {Set<string>} */
  const underWay = new Set();
  /** The queue as last read, in the random order of `due`: that of events would show. @type {StoredUpload[]} */
  let last = [];
  let stopping = new AbortController();
  /** When the pause ends, as last read. */
  let paused = 0;
  /** @type {any} */
  let timer;
  let next = Infinity;

  /** @returns {Promise<number>} when the pause ends */
  const read = () => change((state) => {
    last = [...(state.queue ?? [])].sort((one, other) => one.due - other.due);
    return (paused = state.pause?.[1] ?? 0);
  });

  /** Delete an upload, and count why. @param {string} id @param {string} what */
  const settle = async (id, what) => {
    await change((state) => {
      state.queue = state.queue?.filter((/** @type {StoredUpload} */ each) => each.id !== id);
      if (what !== EXPIRED) delete state.pause;
    });
    count(what);
  };

  /** @param {StoredUpload} upload @param {boolean} [keepalive] @returns {Promise<unknown>} true if others must wait */
  const post = async ({ id, body }, keepalive) => {
    const { signal } = stopping;
    if (underWay.has(id)) return;
    underWay.add(id);
    try {
      // text/plain needs no preflight. Not sendBeacon, which cannot leave out cookies.
      const request = { ...ANONYMOUS, method: "POST", headers: { "Content-Type": "text/plain" }, body, keepalive, signal };
      const response = await fetch(`${edge}/v1/reports`, request), { status } = response;
      const what = ANSWERS[status] ?? (status === 200 && (await response.json()).rejected[0][1]);
      if (!what) throw response.headers.get("Retry-After");
      await settle(id, what);
      if (status === 409) await refresh();
    } catch (after) {
      underWay.delete(id);
      // After `forget` nothing may be left behind.
      if (!signal.aborted) {
        await change((state) => {
          const [failures, until] = state.pause ?? [0, 0];
          if (until > now()) return; // requests that fail together are one failure
          const wait = min(2 ** failures, LONGEST_BACKOFF) * (0.5 + uniform() / 2);
          state.pause = [failures + 1, now() + max(wait, Number(after) || 0)];
        });
      }
      return true;
    }
  };

  /** @param {boolean} everything */
  const sendDue = async (everything) => {
    if (navigator?.onLine === false) return;
    const until = await read();
    for (const upload of last) {
      if (upload.expires <= now()) await settle(upload.id, EXPIRED);
      else if (max(everything ? 0 : upload.due, until) <= now() && (await post(upload))) break;
    }
    const pause = await read();
    wake(max(pause, min(...last.map(({ due }) => due))));
  };

  /** Send what is due, or everything; one tab at a time. @param {boolean} [everything] */
  const send = async (everything = false) => {
    const work = () => sendDue(everything);
    return navigator?.locks ? navigator.locks.request(`deniable ${edge}`, work) : work();
  };

  /** Send what is due at this time. @param {number} at unix seconds */
  const wake = (at) => {
    if (at >= next) return;
    clearTimeout(timer);
    next = at;
    timer = setTimeout(() => {
      next = Infinity;
      send().catch(() => wake(now() + 60));
    }, min(at - now(), LONGEST_TIMER) * 1000);
    timer.unref?.(); // a process of Node may end meanwhile
  };

  return {
    _send: send,
    _wake: wake,
    /** @param {StoredUpload} upload that was stored */
    _took: (upload) => {
      last.push(upload);
      wake(upload.due);
    },
    /** Send what waits, unless the edge asked for a pause; the page may end before there is an answer. */
    _leave: () => {
      if (paused <= now()) for (const upload of last.slice(0, LEAVING)) post(upload, true);
    },
    /** Cut off everything under way, and forget it. */
    _forget: () => {
      stopping.abort();
      stopping = new AbortController();
      last = [];
      clearTimeout(timer);
      next = Infinity;
    },
  };
}
