/**
 * Where a client keeps its secret, what it has spent and its queue: one record, changed atomically.
 *
 * @typedef {object} Storage
 * @property {<T>(change: (state: any) => T) => Promise<T>} change Call `change`, which changes the state at once, and
 *   resolve to what it returned when the state is stored; if it throws, nothing is. Two changes never overlap, in
 *   any tab. The state is a plain object that structuredClone can clone, {} at first.
 * @property {boolean} [keepsKeys] whether the state can have a CryptoKey; else the secret is 32 bytes
 */

import { within } from "./errors.js";

/** @returns {Storage} that ends with the page or process, and with it the promises about several visits */
export const memoryStorage = (state = {}) => ({ change: async (change) => change(state) });

/** @param {any} request of IndexedDB, or a transaction @returns {Promise<any>} its result, once it has succeeded */
const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = request.oncomplete = () => resolve(request.result);
  request.onerror = request.onabort = (/** @type {any} */ { target, type }) => reject(target.error ?? type);
});

/**
 * Each change is one transaction, which reads the state, calls `change` and stores the state.
 *
 * Rule 1: `change` is called at most once. A failure before that, such as a connection that the browser has closed, has
 *   changed nothing: the database is opened anew for one more try. A failure after that is final, since it may be
 *   unknown whether the transaction was committed, and a second call would randomize the value again. So a report is
 *   stored and charged, or neither; one whose call failed leaves at most once, with the noise that was charged.
 * Rule 2: each wait has a limit, since a database that another page holds sends no event to this one. The time that
 *   `change` takes is no part of it, as it may depend on a value.
 * Rule 3: an application that deletes its databases is not blocked: the connection closes when it is told to.
 *
 * @param {string} name of the database @returns {Storage} in IndexedDB
 */
export const indexedDbStorage = (name) => {
  /** @type {Promise<any> | undefined} */
  let opening;
  const open = async () => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("state");
    const database = await done(request);
    database.onversionchange = () => database.close();
    return database;
  };

  /** @template T @param {Promise<T>} promise @returns {Promise<T>} */
  const soon = (promise) => within(5, promise, () => {
    throw new Error("the database does not answer");
  });

  /** Begin a transaction. @returns {Promise<[table: any, state: any]>} */
  const begin = async () => {
    const used = (opening ??= open());
    try {
      return await soon(used.then(async (database) => {
        const table = database.transaction("state", "readwrite").objectStore("state");
        return [table, (await done(table.get(0))) ?? {}];
      }));
    } catch (error) {
      // Unless another change has opened it anew.
      if (opening === used) opening = undefined;
      throw error;
    }
  };

  return {
    keepsKeys: true,
    change: async (change) => {
      const [table, state] = await begin().catch(begin);
      // Nothing but the state was awaited, so the transaction is still open; without a `put` it stores nothing.
      const result = change(state);
      table.put(state, 0);
      await soon(done(table.transaction));
      return result;
    },
  };
};
