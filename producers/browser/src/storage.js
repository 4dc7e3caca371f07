/**
 * Where a client keeps its secret, what it has spent and its queue: one record, changed atomically.
 *
 * @typedef {object} Storage
 * @property {<T>(change: (state: any) => T) => Promise<T>} change Call `change`, which changes the state at once, and
 *   resolve to what it returned when the state is stored; if it throws, nothing is. Two changes never overlap, in
 *   any tab. The state is a plain object that structuredClone can clone, {} at first.
 * @property {boolean} [keepsKeys] whether the state can have a CryptoKey; else the secret is 32 bytes
 */

/** @returns {Storage} that ends with the page or process, and with it the promises about several visits */
export const memoryStorage = (state = {}) => ({ change: async (change) => change(state) });

/** @param {string} name of the database @returns {Storage} in IndexedDB */
export function indexedDbStorage(name) {
  /** @type {Promise<IDBDatabase>} */
  const opening = new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("state");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  opening.catch(() => {}); // each change meets the error
  return {
    keepsKeys: true,
    change: async (change) => {
      const database = await opening;
      return new Promise((resolve, reject) => {
        const transaction = database.transaction("state", "readwrite"), table = transaction.objectStore("state");
        /** @type {any} */
        let result;
        const found = table.get(0);
        found.onsuccess = () => {
          const state = found.result ?? {};
          try {
            result = change(state);
            table.put(state, 0);
          } catch (error) {
            reject(error);
            transaction.abort();
          }
        };
        transaction.oncomplete = () => resolve(result);
        transaction.onabort = () => reject(transaction.error);
      });
    },
  };
}
