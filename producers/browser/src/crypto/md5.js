/** MD5 (RFC 1321), which WebCrypto lacks, for Bloom filters alone: it spreads values over bits and protects nothing. */

import { Bytes, Halves, floor, rotateLeft } from "../short.js";

/** @param {Uint8Array} data below 2^29 bytes @returns {Uint8Array} 16 bytes */
export const md5 = (data) => {
  const message = new Bytes((data.length + 72) & ~63), words = new Halves(message.buffer);
  message.set(data);
  message[data.length] = 128;
  words[words.length - 2] = data.length * 8;
  const state = Halves.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let start = 0; start < words.length; start += 16) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      const f = [(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)][round];
      const place = [i, 5 * i + 1, 3 * i + 5, 7 * i][round] & 15;
      // An engine's sine may err in its last bit, which is the 53rd.
      const sine = floor(Math.abs(Math.sin(i + 1)) * 2 ** 32);
      const sum = (a + f + sine + words[start + place]) | 0;
      [a, d, c] = [d, c, b];
      // Four distances of each round, in base 36.
      b += rotateLeft(sum, parseInt("7chm59ek4bgn6afl"[4 * round + (i & 3)], 36));
    }
    [a, b, c, d].forEach((word, i) => (state[i] += word));
  }
  return new Bytes(state.buffer);
};
