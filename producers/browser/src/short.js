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
/**
 * UTF-8; lone surrogates have none, and become `?`: refusing such a text would depend on the value and reveal it.
 *
 * @param {string | number | bigint} text @returns {Uint8Array}
 */
export const utf8 = (text) => new TextEncoder().encode(`${text}`.replace(/\p{Cs}/gu, "?"));
