/** Constructors and functions of the language that this module names often: a build shortens names of its own only. */

/** A page, a worker or Node: some of its names are missing in each. */
export const world = /** @type {any} */ (globalThis);
export const Bytes = Uint8Array;
/** 32 bits each. */
export const Halves = Uint32Array;
/** 64 bits each. */
export const Wholes = BigUint64Array;
export const big = BigInt;
/** Unix seconds. */
export const now = () => Date.now() / 1000;
/**
 * Whether a time lies further ahead than it can: the clock was ahead when it was set. Then it is void, if it only paces,
 * which is counted.
 *
 * @param {number} time unix seconds @param {number} longest seconds from when it is set @param {(what: string) => void} count
 */
export const isAhead = (time, longest, count) => time > now() + longest && !count("clock_ahead");
export const { min, max, floor } = Math;
/** Of a whole number of 64 bits, too. */
export const float = Number;
export const { isInteger } = float;

/** @param {unknown} value */
export const isPositive = (value) => isInteger(value) && /** @type {number} */ (value) > 0;
/** @param {unknown} value */
export const isText = (value) => typeof value === "string";
/** A bucket in wire format. @param {number} bucket @param {number} width number of buckets */
export const bucketRow = (bucket, width) => new Bytes(Halves.of(bucket).buffer, 0, width <= 256 ? 1 : width <= 65536 ? 2 : 4);
/** @param {number} word @param {number} bits */
export const rotateLeft = (word, bits) => (word << bits) | (word >>> (32 - bits));
/** @param {string} text base64 */
export const bytesOf = (text) => Bytes.from(atob(text), (each) => each.charCodeAt(0));
/** The text of a value; U+FFFD of what is missing, infinite or no value. @param {any} value */
export const textOf = (value) => (/^(st|b)/.test(typeof value) || float.isFinite(value) ? `${value}` : "\ufffd");
/**
 * UTF-8; lone surrogates have none, and become `?`: refusing such a text would depend on the value and reveal it.
 *
 * @param {any} text as `textOf` @returns {Uint8Array}
 */
export const utf8 = (text) => new TextEncoder().encode(textOf(text).replace(/\p{Cs}/gu, "?"));
