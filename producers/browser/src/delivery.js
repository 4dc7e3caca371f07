/**
 * Delivery: uploads wait in the storage, and leave after a random delay, until the edge has them.
 *
 * Rule 1: an upload is stored before it is sent, with its id, and never changed: repeated, it has the same bytes.
 * Rule 2: what is randomized is never randomized again. If it cannot be counted, it is dropped.
 * Rule 3: sent twice is counted once, so two tabs, a page that closes and a lost answer need no care.
 * Rule 4: what leaves together leaves in a uniformly random order: that of events, or of `due`, would show. The queue
 *   is in such an order, and so is what a page holds of it.
 *
 * @typedef {{id: string, body: Uint8Array, due: number, expires: number}} StoredUpload times in unix seconds
 */

import { attempt } from "./errors.js";
import { insert, uniform } from "./randomization/words.js";
import { isAhead, isText, max, min, now, world } from "./short.js";

/**
 * Nothing identifies the person: no cookies, no referrer; an answer that leads elsewhere is an error.
 *
 * A request without an answer ends, too: others wait for it. Node 18 and Safari 17.3 cannot do that.
 *
 * @param {AbortSignal} [signal] @returns {RequestInit}
 */
export const anonymous = (signal) => ({
  credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
  signal: AbortSignal.any?.([signal ?? [], AbortSignal.timeout(10_000)].flat()) ?? signal,
});

/**
 * @param {string} edge @param {string} name of the lock
 * @param {import("./storage.js").Storage["change"]} change
 * @param {(state: any) => boolean} isOut whether the person takes no part
 * @param {() => Promise<unknown>} refresh fetches the list of collections anew
 * @param {(what: string) => void} count
 */
export const deliveryOf = (edge, name, change, isOut, refresh, count) => {
  /** Seconds; timers of browsers end at 2^31 milliseconds. */
  const LONGEST_PAUSE = 3600;
  /** Uploads, random ones as the first are; browsers let all requests of a closing page carry 64 KiB, and an upload has at most 566 bytes. */
  const LEAVING = 99;
  const { navigator } = world;
  /** What waits, as last read. @type {StoredUpload[]} */
  let last = [];
  /** When the pause ends, as last read. */
  let paused = 0;
  let stopping = new AbortController();
  /** The last turn of this page, where there are no locks. @type {Promise<unknown> | undefined} */
  let sending;
  /** @type {any} */
  let timer;
  let next = Infinity;

  /** When the pause ends, 0 if there is none. @param {any} state */
  const pauseOf = ({ pause }) => {
    if (isAhead(pause?.[1], LONGEST_PAUSE, count)) pause[1] = 0;
    return pause?.[1] ?? 0;
  };

  /** Delete what can no longer count, and read the rest; nothing after an opt-out that could not be stored. @param {any} state */
  const read = (state) => {
    state.queue &&= state.queue.filter((/** @type {StoredUpload} */ { expires }) => expires > now() || count("expired"));
    last = isOut(state) ? [] : [...(state.queue ?? [])];
    paused = pauseOf(state);
  };

  /** @param {StoredUpload} upload @param {AbortSignal} signal @param {boolean} [keepalive] @returns {Promise<boolean>} whether others must wait */
  const post = async ({ id, body }, signal, keepalive) => {
    // text/plain needs no preflight. Not sendBeacon, which cannot leave out cookies.
    const response = await attempt(fetch(`${edge}/v1/reports`, {
      ...anonymous(signal), method: "POST", headers: { "Content-Type": "text/plain" }, body, keepalive,
    }));
    const status = response?.status;
    // A proxy answers anything with any status: only the edge's own words end an upload.
    const { error, rejected } = (response && (await attempt(response.json()))) ?? {}, reason = rejected?.[0]?.[1];
    const words = isText(reason ?? error) && { 200: reason, 400: reason ?? "malformed", 409: "outdated" };
    const what = status === 204 ? "sent" : words[status];
    // After `forget` nothing may be left behind.
    if (signal.aborted) return true;
    await change((state) => {
      if (what) {
        state.queue &&= state.queue.filter((/** @type {StoredUpload} */ each) => each.id !== id || count(what));
        delete state.pause;
      } else if (pauseOf(state) <= now()) { // requests that fail together are one failure
        const [failures] = state.pause ?? [0], wait = min(2 ** failures, LONGEST_PAUSE) * (0.5 + uniform() / 2);
        const asked = min(+(/** @type {any} */ (response?.headers.get("Retry-After"))) || 0, LONGEST_PAUSE);
        state.pause = [failures + 1, now() + max(wait, asked)];
      }
      read(state);
    });
    if (status === 409) await attempt(refresh());
    if (!what) wake(paused);
    return !what;
  };

  /** Send what is due, or everything; one tab at a time. @param {boolean} [everything] @returns {Promise<unknown>} */
  const send = (everything) => {
    const work = async () => {
      const { signal } = stopping;
      if (navigator?.onLine === false) return;
      await change(read);
      // `post` reads anew, since another tab may have opted out.
      /** @type {StoredUpload | undefined} */
      let upload;
      while (paused <= now() && (upload = last.find(({ due }) => everything || due <= now())) && !(await post(upload, signal)));
      wake(max(paused, min(...last.map(({ due }) => due))));
    };
    return navigator?.locks ? navigator.locks.request(name, work) : (sending = sending ? sending.then(work, work) : work());
  };

  /** Send what is due at this time. @param {number} at unix seconds */
  const wake = (at) => {
    if (at >= next) return;
    clearTimeout(timer);
    next = at;
    timer = setTimeout(() => {
      next = Infinity;
      send().catch(() => wake(now() + 60));
    }, min(at - now(), LONGEST_PAUSE) * 1000);
    timer.unref?.(); // a process of Node may end meanwhile
  };

  return {
    _send: send,
    _wake: wake,
    /** Begin to store an upload; call what this returns once it is stored. After `_forget` it does nothing. */
    _taking: ({ signal } = stopping) => (/** @type {StoredUpload} */ upload) => {
      if (signal.aborted) return;
      insert(last, upload);
      wake(upload.due);
    },
    /** Send what waits, unless the edge asked for a pause; the page may end before there is an answer. */
    _leave: () => {
      if (paused <= now()) for (const each of last.splice(0, LEAVING)) attempt(post(each, stopping.signal, true));
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
};
