/** What a client throws: `reason` is a word for programs, such as `epsilon`; its message never contains a value. */
export class DeniableError extends Error {}

/** @param {unknown} isRight @param {string} reason @param {string} message @throws {DeniableError} unless it is right */
export const check = (isRight, reason, message) => {
  if (!isRight) throw Object.assign(new DeniableError(message), { reason });
};

/** @template T @param {Promise<T>} promise @returns {Promise<T | void>} nothing if it fails */
export const attempt = (promise) => promise.catch(() => {});
