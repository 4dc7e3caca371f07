/** The client: one person's device in all collections of one edge. Its types are in deniable.d.ts. */

import { readCollection } from "./collections.js";
import { deliveryOf } from "./delivery.js";
import { DeniableError, attempt, check, within } from "./errors.js";
import { allowedOf, charge } from "./limits.js";
import { listOf } from "./list.js";
import { memoryOf } from "./randomization/memory.js";
import { freshWords, insert, randomBytes, uniform } from "./randomization/words.js";
import { secretOf } from "./secret.js";
import { float, floor, isPositive, isText, min, now, world } from "./short.js";
import { indexedDbStorage } from "./storage.js";
import { encodeUpload } from "./upload.js";

const CHOICE = "true or false";

/** @param {any} [options] */
export const open = async ({
  edge: address, publicKey, maxEpsilon, maxBudget, maxDelaySeconds = 3600, maxUploads = 250, sendOnLeave = false,
  honorPrivacySignals = true, mechanisms, storage,
} = {}) => {
  // Without the slash at its end, so that it names one storage.
  const edge = `${address}`.replace(/\/$/, ""), own = `deniable ${edge}`;
  /** Of `maxEpsilon` and `maxBudget` the collection decides. @type {[string, unknown, unknown, string][]} */
  const options = [
    ["edge", edge, /^http(s:\/\/.|:\/\/(localhost|127\.[\d.]+|\[::1])([:/]|$))/.test(edge), "https, or on this machine"],
    ["publicKey", publicKey, /^[A-Za-z\d+/]{43}=$/.test(publicKey), "base64 of 32 bytes: deniable edge --show-key"],
    ["maxDelaySeconds", maxDelaySeconds, float.isFinite(maxDelaySeconds) && maxDelaySeconds >= 0, "a number, at least 0"],
    ["maxUploads", maxUploads, isPositive(maxUploads), "a whole number, at least 1"],
    ["sendOnLeave", sendOnLeave, sendOnLeave === !!sendOnLeave, CHOICE],
    ["honorPrivacySignals", honorPrivacySignals, honorPrivacySignals === !!honorPrivacySignals, CHOICE],
    ["mechanisms", mechanisms, !mechanisms || mechanisms.call, "that of mechanisms.min.js"],
    ["storage", storage, !storage || storage.change?.call, "an object with change"],
  ];
  for (const [name, value, isRight, range] of options) check(isRight, "option", `${name} must be ${range}, got ${value}`);
  const { document, navigator } = world;
  const isSignalled = honorPrivacySignals && (navigator?.globalPrivacyControl || navigator?.doNotTrack > 0);
  /** @type {Record<string, number>} */
  const counts = {};
  /** @param {string} what */
  const count = (what) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };

  storage ??= indexedDbStorage(own);
  /** @type {import("./storage.js").Storage["change"]} */
  const change = (work) => storage.change(work).catch((/** @type {unknown} */ error) => {
    check(error instanceof DeniableError, "storage", `cannot store: ${error}; in Node: memoryStorage() or directoryStorage()`);
    throw error;
  });
  /** Whether the person opts out, which is not stored yet, or could not be. */
  let isLeaving = false;
  /** By choice, or by the browser's signal and no choice. @param {any} state */
  const isOut = (state) => isLeaving || (state.isOut ?? isSignalled);

  const list = listOf(edge, publicKey, change, isOut, count);
  const delivery = deliveryOf(edge, own, change, isOut, () => list._refresh("no-cache"), count);

  /** Cut off and forget what this page holds in memory. */
  const forget = () => {
    delivery._forget();
    list._forget();
  };

  /** @param {any} state */
  const empty = (state) => {
    for (const key in state) delete state[key];
  };

  /** @param {string} name @param {unknown} value @param {boolean} [isAgain] @returns {Promise<string>} */
  const report = async (name, value, isAgain) => {
    const entries = await list._load();
    if (!entries) return "opted_out";
    const entry = entries.find((each) => each?.name === name);
    check(entry, "unknown_collection", `no collection ${name}`);
    if (!entry._prepared) {
      const collection = readCollection(entry, mechanisms), most = maxEpsilon?.[name] ?? maxEpsilon;
      const [, , parameters, responder, [isAtMost]] = collection._mechanism;
      check(most === +most && most > 0 && isAtMost(most), "epsilon", `maxEpsilon of ${name} must be a number, at least its epsilon (the list says ${entry.epsilon}), got ${most}`);
      const allowed = maxBudget == null ? null : allowedOf(name, collection, maxBudget?.[name] ?? maxBudget);
      const [epoch, secret] = await secretOf(storage, change, isOut);
      entry._prepared = [collection, allowed, responder(memoryOf(secret, "device", name, parameters)), epoch];
    }
    const [collection, allowed, responder, epoch] = entry._prepared, [number, width, , , , takes = "string, number, bigint or boolean", isRight] = collection._mechanism;
    check(isRight ? isRight(value) : takes.includes(typeof (value ?? takes)), "type", `a value of ${name} must be ${takes}, got ${typeof value}`);
    const took = delivery._taking();
    /** @type {any} */
    let upload;
    const outcome = await change((state) => {
      if (isOut(state)) return "opted_out";
      // Another tab opted out and in again, or the storage was cleared.
      if (state.secret?.[0] !== epoch) return "";
      const { _budget, _window, _grace } = collection, at = now(), start = floor(at / _window) * _window, expires = start + _window + _grace;
      const stored = state.spent?.[name], balance = charge(collection, _budget, stored, start, at);
      // What was reported before the application set a bound counts, too.
      const own = allowed && charge(collection, allowed, state.own?.[name] ?? stored, start, at);
      const refusal = [balance, own].find(isText);
      if (refusal) {
        // The present window is closed only by a report of a clock that was ahead, or by a longer window's.
        if (refusal === "too_late") count("clock_ahead");
        return refusal;
      }
      state.spent = { ...state.spent, [name]: balance };
      state.own = { ...state.own, [name]: own };
      const id = randomBytes(16);
      // After the time was taken, since a long text takes time.
      const [row, , , cohort] = responder(value)(freshWords);
      const body = encodeUpload(id, collection._fingerprint, number, cohort, start, width, row);
      const due = at + uniform() * min(maxDelaySeconds, _window, (expires - at) / 2);
      upload = { id: id.join(), body, due, expires };
      insert((state.queue ??= []), upload);
      // Any of them, as the first one is.
      if (state.queue.length > maxUploads) {
        state.queue.shift();
        count("queue_full");
      }
      return "queued";
    });
    if (upload) took(upload);
    else if (!outcome) {
      check(!isAgain, "storage", "cannot store: it is gone at once");
      list._forget();
      return report(name, value, true);
    }
    return outcome;
  };

  const closing = new AbortController(), { signal } = closing;
  /** @param {any} target @param {string} event @param {(event: any) => unknown} work */
  const on = (target, event, work) => target?.addEventListener?.(event, work, { signal });
  const wake = () => delivery._wake(0);
  /** Tells other tabs that what they hold in memory may be gone. */
  const channel = new BroadcastChannel(own);
  /** @type {any} */ (channel).unref?.(); // a process of Node may end meanwhile
  const renew = () => {
    forget();
    wake();
  };
  on(channel, "message", renew);
  // A page that comes back from the browser's cache was not told of anything meanwhile.
  on(world, "pageshow", ({ persisted }) => persisted && renew());
  on(world, "online", wake);
  // A page is hidden before it is left, and may not live to be told of anything else.
  on(document, "visibilitychange", () => sendOnLeave && document.hidden && delivery._leave());

  /** @param {any} state */
  const queued = (state) => state.queue?.length ?? 0;

  // A storage that fails is named by `report`.
  await attempt(change((state) => isSignalled && isOut(state) && empty(state)));
  wake();

  return {
    report: (/** @type {string} */ name, /** @type {unknown} */ value) => report(name, value),
    flush: async () => {
      // Another tab may be sending; what is under way goes on.
      await within(30, delivery._send(true));
      return change(queued);
    },
    optOut: async () => {
      const stop = () => {
        forget();
        channel.postMessage(0);
      };
      // Repeated, it changes nothing; and whether a try that failed was stored may be unknown.
      const store = () => change((state) => {
        empty(state);
        state.isOut = true;
      });
      // Before, so that nothing leaves from here on, even if it cannot be stored; and after, for what was read meanwhile.
      isLeaving = true;
      stop();
      await store().catch(store);
      isLeaving = false;
      stop();
    },
    optIn: () => change((state) => {
      isLeaving = state.isOut = false;
    }),
    status: () => change((state) => ({ optedOut: isOut(state), queued: queued(state), counts })),
    close: () => {
      delivery._forget();
      closing.abort();
    },
  };
};
