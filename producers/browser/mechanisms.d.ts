/** Further mechanisms of the browser client: local hashing, numbers, pairs of fields, one-hot and k-hot RAPPOR. */

import type { Mechanisms } from "./deniable.js";

/** For the option `mechanisms` of `open`. */
export const mechanisms: Mechanisms;
