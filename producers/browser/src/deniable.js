/** Reports of one device, randomized before they leave it: docs/browser.md. The types are in deniable.d.ts. */

export { open } from "./client.js";
export { DeniableError } from "./errors.js";
export { memoryStorage } from "./storage.js";
