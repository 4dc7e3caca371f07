/** A storage in a directory, for programs of Node. */

import type { Storage } from "./deniable.js";

/**
 * Open a directory on this machine, which is created if it is missing; `close` lets another process open it.
 *
 * Throws an Error if another process has it open.
 */
export function directoryStorage(directory: string): Storage & { close(): void };
