/** Mechanisms beside those of deniable.js, for its option `mechanisms`: docs/browser.md. */

import { hot } from "./mechanisms/hot.js";
import { localHash } from "./mechanisms/local_hash.js";
import { number } from "./mechanisms/number.js";
import { hotPair, pair } from "./mechanisms/pair.js";

/** @type {import("./collections.js").Read} */
export const mechanisms = (entry) => localHash(entry) ?? number(entry) ?? pair(entry) ?? hotPair(entry) ?? hot(entry);
