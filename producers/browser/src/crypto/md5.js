/** MD5 (RFC 1321), which WebCrypto lacks, for Bloom filters alone: it spreads values over bits and protects nothing. */

import { Bytes, Halves } from "../short.js";
import { rotateLeft } from "./aes.js";

/** Four of a round. */
const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
/** The first 32 bits of |sin(1)|, |sin(2)|, … An engine's sine may err in its last bit, which is the 53rd. */
const SINES = Halves.from(Array(64), (_, i) => Math.abs(Math.sin(i + 1)) * 2 ** 32);

/** @param {Uint8Array} data below 2^29 bytes @returns {Uint8Array} 16 bytes */
export function md5(data) {
  const message = new Bytes((data.length + 72) & ~63), words = new Halves(message.buffer);
  message.set(data);
  message[data.length] = 128;
  words[words.length - 2] = data.length * 8;
  const state = Halves.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let start = 0; start < words.length; start += 16) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      const f = round < 2 ? (round ? (d & b) | (~d & c) : (b & c) | (~b & d)) : round < 3 ? b ^ c ^ d : c ^ (b | ~d);
      const place = round < 2 ? (round ? 5 * i + 1 : i) : round < 3 ? 3 * i + 5 : 7 * i;
      const sum = (a + f + SINES[i] + words[start + (place & 15)]) | 0;
      [a, d, c] = [d, c, b];
      b += rotateLeft(sum, SHIFTS[4 * round + (i & 3)]);
    }
    [a, b, c, d].forEach((word, i) => (state[i] += word));
  }
  return new Bytes(state.buffer);
}
