/** What a client throws: `reason` is a word for programs, such as `epsilon`; its message never contains a value. */
export class DeniableError extends Error {}

/** @param {unknown} isRight @param {string} reason @param {string} message @throws {DeniableError} unless it is right */
export const check = (isRight, reason, message) => {
  if (!isRight) throw Object.assign(new DeniableError(message), { name: "DeniableError", reason });
};

/** @template T @param {Promise<T>} promise @returns {Promise<T | void>} nothing if it fails */
export const attempt = (promise) => promise.catch(() => {});

/**
 * @template T, L @param {number} seconds @param {Promise<T>} promise @param {() => L} [late] called if the promise takes longer
 * @returns {Promise<T | L>} settles within so many seconds
 */
export const within = (seconds, promise, late) => {
  /** @type {any} */
  let timer;
  const over = new Promise((resolve) => (timer = setTimeout(resolve, seconds * 1000)));
  return Promise.race([promise, over.then(late)]).finally(() => clearTimeout(timer));
};
