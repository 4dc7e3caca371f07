/**
 * Permanent responses, derived from a secret as in `producers/randomization/permanent_responses.py`: nothing is
 * stored and nothing is forgotten. The same secret, client and value give the same response as in Python.
 */

import { expandKey, mac, macText } from "../crypto/aes.js";
import { blake2b } from "../crypto/blake2b.js";
import { Bytes, Halves, utf8 } from "../short.js";
import { below } from "./words.js";

/** @typedef {import("./words.js").Words} Words */

/**
 * Words that depend on a seed: block j is AES(key, seed XOR j). An odd count leaves its last block half unused.
 *
 * @param {Uint8Array} key 16 bytes @param {Uint32Array} seed one block
 * @returns {Words}
 */
const repeatedWords = (key, seed) => {
  const schedule = expandKey(key);
  let number = 0;
  return (count) => {
    const words = new Halves((2 * count + 2) & ~3);
    for (let place = 0; place < words.length; place += 4) {
      const block = seed.slice();
      block[0] ^= number++;
      words.set(mac(schedule, block), place);
    }
    return words;
  };
};

/**
 * The permanent choices of one client in one collection.
 *
 * @typedef {[
 *   cohortOf: (cohorts: number) => number, digestOf: (text: string) => Uint32Array, wordsOf: (value: Iterable<number>) => Words,
 * ]} Memory the client's cohort, whatever its value; the block that stands for a text; and the words of a
 *   value's permanent response, by the block that identifies the value
 *
 * @param {Uint8Array} secret 32 to 64 bytes
 * @param {string} client any text but the empty one
 * @param {string} name of the collection
 * @param {(string | number | bigint)[]} parameters all that a permanent response depends on beside the value
 * @returns {Memory}
 */
export const memoryOf = (secret, client, name, parameters) => {
  const key = new Bytes(128);
  key.set(secret);
  /** A pseudo-random function of purpose and context under the secret. @param {string} purpose @param {any[]} context */
  const derive = (purpose, ...context) => blake2b(16, secret.length, utf8(`deniable-${purpose}`), [
    ...key, ...context.map(utf8).flatMap((each) => [...new Bytes(Halves.of(each.length, 0).buffer), ...each]),
  ]);
  const textKey = expandKey(derive("text"));
  const seedKey = expandKey(derive("seed", name, ...parameters));
  const wordKey = derive("word", name, ...parameters);
  const owner = macText(textKey, utf8(client));
  return [
    (cohorts) => below(mac(expandKey(derive("cohort", name)), owner), cohorts),
    (text) => macText(textKey, utf8(text)),
    (value) => repeatedWords(wordKey, mac(seedKey, [...owner, ...value])),
  ];
};
