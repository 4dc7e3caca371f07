/** The client: one person's device in all collections of one edge. Its types are in deniable.d.ts. */

import { readCollection } from "./collections.js";
import { deliveryOf } from "./delivery.js";
import { DeniableError } from "./errors.js";
import { charge } from "./limits.js";
import { listOf } from "./list.js";
import { responderOf } from "./randomization/responders.js";
import { freshWords, randomBytes, uniform } from "./randomization/words.js";
import { secretOf } from "./secret.js";
import { floor, min, now } from "./short.js";
import { indexedDbStorage } from "./storage.js";
import { encodeUpload } from "./upload.js";

/** The only client of this device, where Python tells many apart. */
const CLIENT = "device";

/** @param {any} options */
export async function open({
  edge, publicKey, maxEpsilon, maxDelaySeconds = 3600, maxUploads = 250, sendOnLeave = true, honorPrivacySignals = true,
  storage = indexedDbStorage(`deniable ${edge}`),
}) {
  const { document, navigator } = /** @type {any} */ (globalThis);
  const isSignalled = honorPrivacySignals && (navigator?.globalPrivacyControl || navigator?.doNotTrack === "1");
  /** @type {Record<string, number>} */
  const counts = {};
  /** @param {string} what */
  const count = (what) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };

  /** @type {import("./storage.js").Storage["change"]} */
  const change = (work) => storage.change(work).catch((error) => {
    throw error instanceof DeniableError ? error : new DeniableError("storage", `cannot store: ${error}`);
  });
  /** By name, for the list and the secret of the moment. @type {Map<string, any[]>} */
  const known = new Map();
  const list = listOf(edge, publicKey, change, () => known.clear());
  const delivery = deliveryOf(edge, change, () => list._refresh("no-cache"), count);

  /** By choice, or by the browser's signal and no choice. @param {any} state */
  const isOut = (state) => state.isOut ?? isSignalled;

  /** @param {any} state */
  const empty = (state) => {
    for (const key in state) delete state[key];
  };

  /** @param {string} name @returns {Promise<any[]>} the collection, its responder, and the epoch of the secret */
  const prepared = async (name) => {
    const entry = (await list._load()).find((each) => each.name === name);
    if (!entry) throw new DeniableError("unknown_collection", `no collection ${name}`);
    if (!known.has(name)) {
      const collection = readCollection(entry), most = maxEpsilon[name] ?? maxEpsilon;
      if (!(most > 0 && collection._isAtMost(most))) {
        throw new DeniableError("epsilon", `epsilon of ${name} is above maxEpsilon`);
      }
      const [epoch, secret] = await secretOf(storage, change, isOut);
      known.set(name, [collection, ...responderOf(collection, secret, CLIENT), epoch]);
    }
    return /** @type {any[]} */ (known.get(name));
  };

  /** @param {string} name @param {unknown} value @returns {Promise<string>} */
  const report = async (name, value) => {
    // Otherwise the transaction below finds out.
    if (!known.has(name) && (await change(isOut))) return "opted_out";
    const [collection, responder, cohort, epoch] = await prepared(name);
    const respond = responder(value);
    const result = await change((state) => {
      if (isOut(state)) return "opted_out";
      // Another tab opted out and in again.
      if (state.secret?.[0] !== epoch) return undefined;
      const { fingerprint, window_seconds, grace_seconds, _kind, k, bits } = collection;
      const at = now(), start = floor(at / window_seconds) * window_seconds, expires = start + window_seconds + grace_seconds;
      const balance = charge(collection, state.spent?.[name], start, at);
      if (typeof balance === "string") return balance;
      state.spent = { ...state.spent, [name]: balance };
      const id = randomBytes(16);
      const body = encodeUpload(id, fingerprint, _kind, cohort, start, k || bits, respond(freshWords)[0]);
      const due = at + uniform() * min(maxDelaySeconds, window_seconds, (expires - at) / 2);
      const upload = { id: id.join(), body, due, expires };
      if ((state.queue ??= []).push(upload) > maxUploads) {
        state.queue.shift();
        count("queue_full");
      }
      return upload;
    });
    if (!result) {
      known.clear();
      return report(name, value);
    }
    if (typeof result !== "string") {
      delivery._took(result);
      return "queued";
    }
    count(result);
    return result;
  };

  const closing = new AbortController(), { signal } = closing;
  if (document) {
    addEventListener("online", () => delivery._wake(0), { signal });
    // A page is hidden before it is left, and may not live to be told of anything else.
    document.addEventListener("visibilitychange", () => sendOnLeave && document.hidden && delivery._leave(), { signal });
  }

  /** @param {any} state */
  const queued = (state) => state.queue?.length ?? 0;

  // A storage that fails is named by `report`.
  await change((state) => isSignalled && isOut(state) && empty(state)).catch(() => {});
  delivery._wake(0);

  return {
    report,
    flush: async () => {
      await delivery._send(true);
      return change(queued);
    },
    optOut: () => {
      delivery._forget();
      list._forget();
      known.clear();
      return change((state) => {
        empty(state);
        state.isOut = true;
      });
    },
    optIn: () => change((state) => void (state.isOut = false)),
    status: () => change((state) => ({ optedOut: isOut(state), queued: queued(state), counts })),
    close: () => {
      delivery._forget();
      closing.abort();
    },
  };
}
