/**
 * BLAKE2b (RFC 7693) with a key and a personalization, which WebCrypto lacks: keys of permanent responses are
 * derived as Python derives them.
 */

import { Bytes, Wholes, big, bytesOf, min } from "../short.js";

/** The fractions of the square roots of the first eight primes, by Newton's method. */
export const INITIAL = Wholes.from([2n, 3n, 5n, 7n, 11n, 13n, 17n, 19n], (prime) => {
  let root = 1n << 67n;
  for (let step = 0; step < 9; step++) root = (root + (prime << 128n) / root) >> 1n;
  return root;
});

/**
 * Hash bytes.
 *
 * @param {number} size of the hash, 1 to 64 bytes
 * @param {number} keySize 0 to 64 bytes; a key stands before the data, filled up to 128 bytes with zeros
 * @param {ArrayLike<number>} person up to 16 bytes @param {ArrayLike<number>} data bytes, at least one
 * @returns {Uint8Array} of a buffer of its own
 */
export const blake2b = (size, keySize, person, data) => {
  /** Which words of the message each of ten rounds takes, four bits each; rounds 10 and 11 repeat 0 and 1. */
  const ORDER = bytesOf("ASNFZ4mrze/qSJ/WHAK3U7jAUv2uNnGUeTHcviZaQPiQVySv4bxoPSxqC4NNdf4ZxR/tSgdjkovbfsE5UPSGKm/pswjC1xSlooR2FfuePNA=");
  const parameters = new Bytes(64), { length } = data, message = new Bytes((length + 127) & ~127);
  parameters.set([size, keySize, 1, 1]);
  parameters.set(person, 48);
  message.set(data);
  const state = new Wholes(parameters.buffer).map((word, i) => word ^ INITIAL[i]);
  const words = new Wholes(message.buffer), v = new Wholes(16);
  /** v[x] = (v[x] ^ v[y]) rotated right. @param {number} x @param {number} y @param {bigint} bits */
  const mix = (x, y, bits) => {
    const word = v[x] ^ v[y];
    v[x] = (word >> bits) | (word << (64n - bits));
  };
  for (let start = 0; start < words.length; start += 16) {
    const end = 8 * start + 128;
    v.set(state);
    v.set(INITIAL, 8);
    v[12] ^= big(min(end, length));
    if (end >= length) v[14] = ~v[14];
    for (let step = 0; step < 192; step++) {
      // Four columns, then four diagonals, each in two halves.
      const a = (step >> 1) & 3, turn = (step >> 3) & 1;
      const b = 4 + ((a + turn) & 3), c = 8 + ((a + 2 * turn) & 3), d = 12 + ((a + 3 * turn) & 3);
      v[a] += v[b] + words[start + ((ORDER[(step % 160) >> 1] >> (~step & 1) * 4) & 15)];
      mix(d, a, step & 1 ? 16n : 32n);
      v[c] += v[d];
      mix(b, c, step & 1 ? 63n : 24n);
    }
    v.forEach((word, i) => (state[i & 7] ^= word));
  }
  return new Bytes(state.buffer).slice(0, size);
};
