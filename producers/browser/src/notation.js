/** Which number or text a value means, however it is written: the rule of Python's `protocol/notation.py`. */

import { float, textOf } from "./short.js";

/** The number that a value is or writes, NaN for any other: the two differ about empty text, `0x2`, `2 m`, true and null, but not about `0x0`, `0b0` and `0o0`. @param {any} value */
export const numberOf = (value) => (/[bxo]/i.test(value) || parseFloat(value) !== float(value) ? NaN : float(value));

/** Equal for texts of the same number or truth. @param {string} text */
const compared = (text) => {
  const number = /** @type {any} */ ({ true: 1, false: 0 })[text.toLowerCase()] ?? numberOf(text);
  // From 2^53 on, floats are not all different integers.
  return number ** 2 < 2 ** 106 ? number : text;
};

/** Of the listed text that a value means: itself, or else the only one that is compared as equal; -1 if none is. @param {string[]} values @param {any} value */
export const indexIn = (values, value) => {
  const text = textOf(value), [same, another] = values.filter((each) => compared(each) === compared(text));
  return values.indexOf(another ? text : same);
};
