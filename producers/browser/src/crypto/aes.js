/**
 * AES-128 of single blocks, and its CBC-MAC, as `producers/randomization/prf.py` uses them.
 *
 * Not by WebCrypto: it has no mode of single blocks, so each of the 32 blocks of a permanent response would be
 * one asynchronous call, and randomizing could not happen inside a transaction of IndexedDB. The tables make
 * the time depend on data, as far as a program on the same machine can see it; such a program sees more.
 *
 * A block is four little-endian halves, like Python's two "<u8".
 */

import { Bytes, Halves, rotateLeft } from "../short.js";

const substitute = new Bytes(256);

/** @param {number} x in GF(2^8) */
const doubled = (x) => (x << 1) ^ (x & 128 ? 283 : 0);

// Powers of 3 are all of GF(2^8) but 0, and the inverse of 3^i is 3^(255 - i).
const powers = [1];
for (let i = 0; i < 255; i++) powers.push(powers[i] ^ doubled(powers[i]));
powers.forEach((power, i) => {
  const twice = powers[255 - i] * 257; // two copies, so that shifts rotate
  substitute[power] = twice ^ (twice >> 4) ^ (twice >> 5) ^ (twice >> 6) ^ (twice >> 7) ^ 99;
});
substitute[0] = 99;
/** The column (2 s, s, s, 3 s) that MixColumns makes of a byte of row 0. */
const mixed = Halves.from(substitute, (s) => (doubled(s) * 0x1000001) ^ (s * 0x1010100));

/**
 * One column of a round: row i comes from i columns further, and what becomes of it is rotated left by 8 i.
 *
 * @param {ArrayLike<number>} block @param {number} column @param {ArrayLike<number>} table one of the two
 */
const columnOf = (block, column, table) => {
  let sum = 0;
  for (let row = 0; row < 32; row += 8) sum ^= rotateLeft(table[(block[column++ & 3] >> row) & 255], row);
  return sum;
};

/** @param {Uint8Array} key the 16 bytes of its buffer @returns {Uint32Array} the key schedule, 44 words */
export const expandKey = (key) => {
  const words = new Halves(44);
  words.set(new Halves(key.buffer));
  for (let i = 4, round = 1; i < 44; i++) {
    let word = words[i - 1];
    if (!(i & 3)) {
      word = columnOf(Array(4).fill(rotateLeft(word, 24)), 0, substitute) ^ round;
      round = doubled(round);
    }
    words[i] = words[i - 4] ^ word;
  }
  return words;
};

/**
 * CBC-MAC of whole blocks; of one block, its encryption.
 *
 * @param {Uint32Array} schedule of `expandKey`
 * @param {ArrayLike<number>} message halves, four for each block
 * @returns {Uint32Array} one block
 */
export const mac = (schedule, message) => {
  let state = new Halves(4);
  for (let i = 0; i < message.length; i += 4) {
    state = state.map((word, column) => word ^ message[i + column] ^ schedule[column]);
    for (let place = 4; place < 44; place += 4) {
      state = state.map((_, column, before) => columnOf(before, column, place < 40 ? mixed : substitute) ^ schedule[place + column]);
    }
  }
  return state;
};

/**
 * CBC-MAC of a text: its length in 8 bytes, its UTF-8, zeros to the end of a block.
 *
 * @param {Uint32Array} schedule of `expandKey` @param {Uint8Array} text in UTF-8
 * @returns {Uint32Array} one block
 */
export const macText = (schedule, text) => {
  const message = new Bytes((text.length + 23) & ~15), words = new Halves(message.buffer);
  message.set(text, 8);
  words[0] = text.length;
  return mac(schedule, words);
};
