/**
 * Where a client keeps its secret, what it has spent and its queue: one record, changed atomically.
 *
 * @typedef {object} Storage
 * @property {<T>(change: (state: any) => T) => Promise<T>} change Call `change`, which changes the state at once, and
 *   resolve to what it returned when the state is stored; if it throws, nothing is. Two changes never overlap, in
 *   any tab. The state is a plain object that structuredClone can clone, {} at first.
 * @property {boolean} [keepsKeys] whether the state can have a CryptoKey; else the secret is 32 bytes
 */

import { attempt } from "./errors.js";

/** @returns {Storage} that ends with the page or process, and with it the promises about several visits */
export const memoryStorage = (state = {}) => ({ change: async (change) => change(state) });

/** @param {any} request of IndexedDB, or a transaction @returns {Promise<any>} its result, once it has succeeded */
const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = request.oncomplete = () => resolve(request.result);
  request.onerror = request.onabort = (/** @type {any} */ { target }) => reject(target.error);
});

/** @param {string} name of the database @returns {Storage} in IndexedDB */
export const indexedDbStorage = (name) => {
  const open = async () => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("state");
    return done(request);
  };
  const opening = open();
  attempt(opening); // each change meets the error
  return {
    keepsKeys: true,
    change: async (change) => {
      const transaction = (await opening).transaction("state", "readwrite"), table = transaction.objectStore("state");
      // Nothing but this is awaited, so the transaction is still open; without a `put` it stores nothing.
      const state = (await done(table.get(0))) ?? {};
      const result = change(state);
      table.put(state, 0);
      await done(transaction);
      return result;
    },
  };
};
