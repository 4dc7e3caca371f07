/**
 * SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for the hash functions of local hashing: they spread values and protect
 * nothing. Not by WebCrypto, whose answers come later, while a value is randomized within one transaction.
 */

import { Bytes, Halves, big, float, rotateLeft } from "../short.js";
import { INITIAL } from "./blake2b.js";

const primes = [2];
for (let number = 3; primes.length < 64; number++) if (primes.every((prime) => number % prime)) primes.push(number);

/** The fractions of the cube roots of the first 64 primes, by Newton's method, in whole numbers. */
const ROUNDS = Halves.from(primes, (prime) => {
  const cube = big(prime) << 96n;
  let root = 1n << 36n;
  for (let step = 0; step < 20; step++) root = (2n * root + cube / (root * root)) / 3n;
  return float(root & 0xffffffffn);
});

/** Three rotations to the right, xored; the last one is a shift if `isShift`. @param {number} word @param {number[]} bits */
const mixed = (word, [one, two, three], isShift = false) =>
  rotateLeft(word, 32 - one) ^ rotateLeft(word, 32 - two) ^ (isShift ? word >>> three : rotateLeft(word, 32 - three));

/** @param {ArrayLike<number>} data bytes, below 2^29 of them @returns {Uint8Array} 32 bytes, of a buffer of their own */
export const sha256 = (data) => {
  const message = new Bytes((data.length + 72) & ~63), view = new DataView(message.buffer), words = new Halves(64);
  message.set(data);
  message[data.length] = 128;
  view.setUint32(message.length - 4, data.length * 8);
  // Its first words are the high halves of those of BLAKE2b.
  const state = Halves.from(INITIAL, (word) => float(word >> 32n));
  for (let start = 0; start < message.length; start += 64) {
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      words[i] = i < 16 ? view.getUint32(start + 4 * i)
        : words[i - 16] + mixed(words[i - 15], [7, 18, 3], true) + words[i - 7] + mixed(words[i - 2], [17, 19, 10], true);
      const sum = h + mixed(e, [6, 11, 25]) + ((e & f) ^ (~e & g)) + ROUNDS[i] + words[i];
      const other = mixed(a, [2, 13, 22]) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + sum) | 0, c, b, a, (sum + other) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] += word));
  }
  state.forEach((word, i) => view.setUint32(4 * i, word));
  return message.slice(0, 32);
};

/** @param {Uint8Array} key at most 64 bytes @param {Uint8Array} data @returns {Uint8Array} 32 bytes */
export const hmac = (key, data) => {
  /** @param {number} pad @param {Uint8Array} rest */
  const keyed = (pad, rest) => {
    const whole = new Bytes(rest.length + 64);
    whole.set(key);
    whole.set(whole.subarray(0, 64).map((byte) => byte ^ pad));
    whole.set(rest, 64);
    return sha256(whole);
  };
  return keyed(92, keyed(54, data));
};
