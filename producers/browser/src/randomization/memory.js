/**
 * Permanent responses, derived from a secret as in `producers/randomization/permanent_responses.py`: nothing is
 * stored and nothing is forgotten. The same secret, client and value give the same response as in Python.
 */

import { expandKey, mac, macText } from "../crypto/aes.js";
import { blake2b } from "../crypto/blake2b.js";
import { Bytes, Halves } from "../short.js";
import { below, repeatedWords } from "./words.js";

/** @param {string | number | bigint} text @returns {Uint8Array} UTF-8 */
export const utf8 = (text) => new TextEncoder().encode(/** @type {any} */ (text));

/**
 * The permanent choices of one client in one collection.
 *
 * @param {Uint8Array} secret 32 to 64 bytes
 * @param {string} client any text but the empty one
 * @param {string} name of the collection
 * @param {(string | number | bigint)[]} parameters all that a permanent response depends on beside the value
 */
export const memoryOf = (secret, client, name, parameters) => {
  /** A pseudo-random function of purpose and context under the secret. @param {string} purpose @param {any[]} context */
  const derive = (purpose, ...context) => blake2b(
    Bytes.from(context.map(utf8).flatMap((each) => [...new Bytes(Halves.of(each.length, 0).buffer), ...each])),
    secret, utf8(`deniable-${purpose}`),
  );
  const textKey = expandKey(derive("text"));
  const seedKey = expandKey(derive("seed", name, ...parameters));
  const wordKey = derive("word", name, ...parameters);
  const owner = macText(textKey, utf8(client));
  return {
    /** The client's cohort, whatever its value. @param {number} cohorts of the mechanism */
    _cohort: (cohorts) => below(mac(expandKey(derive("cohort", name)), owner), cohorts),
    /** The block that stands for a text. @param {string} text well-formed */
    _digest: (text) => macText(textKey, utf8(text)),
    /** The words of a value's permanent response. @param {Iterable<number>} value the block that identifies it */
    _words: (value) => repeatedWords(wordKey, mac(seedKey, [...owner, ...value])),
  };
};
