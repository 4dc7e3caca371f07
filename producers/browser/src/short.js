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
export const { isInteger } = Number;
