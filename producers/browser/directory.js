/**
 * A storage in a directory, for programs of Node: see docs/browser.md. One process at a time may use it.
 *
 * The secret stands there as 32 bytes, as Python's does in its folder, so the directory is the person's own.
 */

import { mkdirSync, openSync, closeSync, fsyncSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";

/** @param {string} name of a file @returns {Buffer | undefined} its content */
function read(name) {
  try {
    return readFileSync(name);
  } catch (error) {
    if (/** @type {any} */ (error).code === "ENOENT") return undefined;
    throw error;
  }
}

/** @param {number} id @returns {boolean} whether this process runs */
function isRunning(id) {
  try {
    return process.kill(id, 0);
  } catch (error) {
    return /** @type {any} */ (error).code === "EPERM";
  }
}

/**
 * Open a directory, which is created if it is missing.
 *
 * @param {string} directory
 * @returns {import("./deniable.js").Storage & {close(): void}} `close` lets another process open it
 * @throws {Error} if another process has it open
 */
export function directoryStorage(directory) {
  const file = join(directory, "state"), lock = join(directory, "lock");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const owner = Number(read(lock) ?? 0);
  if (owner && owner !== process.pid && isRunning(owner)) throw new Error(`${directory} is in use by process ${owner}`);
  rmSync(lock, { force: true });
  writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
  return {
    async change(work) {
      const stored = read(file), state = stored ? deserialize(stored) : {};
      const result = work(state), made = serialize(state), next = `${file}.new`;
      if (stored?.equals(made)) return result;
      writeFileSync(next, made, { mode: 0o600 });
      const handle = openSync(next, "r");
      fsyncSync(handle);
      closeSync(handle);
      renameSync(next, file);
      return result;
    },
    close: () => rmSync(lock, { force: true }),
  };
}
