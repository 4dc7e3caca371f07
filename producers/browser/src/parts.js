/** What the page /try shows the steps of, bundled for it: the same modules as in the client. */

export { readCollection, readList } from "./collections.js";
export { mechanisms } from "./mechanisms.js";
export { memoryOf } from "./randomization/memory.js";
export { freshWords, randomBytes } from "./randomization/words.js";
export { encodeUpload } from "./upload.js";
