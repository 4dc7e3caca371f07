/**
 * A storage in a directory, for programs of Node: see docs/browser.md. One process at a time may use it.
 *
 * The secret stands there as 32 bytes, as Python's does in its folder, so the directory is the person's own.
 *
 * A process shows that it has the directory by a file named after its id, which it writes first; then it looks for those
 * of others that run. So of two that begin at once both may step back, and neither goes on beside the other. What a
 * process that was killed has left belongs to nobody, and may be deleted by whoever sees it.
 */

import {
  closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { deserialize, serialize } from "node:v8";

const LOCK = /^lock-(\d+)$/;
const ATTEMPTS = 10;
/** How often this process has each directory open. @type {Map<string, number>} */
const opened = new Map();

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

/** @param {string} directory @returns {number | undefined} another process that has it */
function ownerOf(directory) {
  for (const name of readdirSync(directory)) {
    const id = Number(LOCK.exec(name)?.[1] ?? process.pid);
    if (id === process.pid) continue;
    if (isRunning(id)) return id;
    rmSync(join(directory, name), { force: true });
  }
  return undefined;
}

/** @param {string} directory @param {string} lock @throws {Error} if another process has it open */
function acquire(directory, lock) {
  for (let attempt = 1; ; attempt++) {
    writeFileSync(lock, "", { mode: 0o600 });
    const owner = ownerOf(directory);
    if (owner === undefined) return;
    rmSync(lock, { force: true });
    if (attempt === ATTEMPTS) {
      const reason = `${directory} is in use by process ${owner}; if that is another program, delete lock-${owner} there`;
      throw Object.assign(new Error(reason), { reason: "storage" });
    }
    // Both may have stepped back.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random() * 20);
  }
}

/** @param {string} name of a file or directory whose content must survive a loss of power */
function flush(name) {
  const handle = openSync(name, "r");
  fsyncSync(handle);
  closeSync(handle);
}

/**
 * Open a directory, which is created if it is missing.
 *
 * @param {string} directory on this machine, and not shared with containers, whose process ids are others
 * @returns {import("./deniable.js").Storage & {close(): void}} `close` lets another process open it
 * @throws {Error} if another process has it open
 */
export function directoryStorage(directory) {
  const place = resolve(directory), file = join(place, "state"), lock = join(place, `lock-${process.pid}`);
  mkdirSync(place, { recursive: true, mode: 0o700 });
  if (!opened.get(place)) acquire(place, lock);
  opened.set(place, (opened.get(place) ?? 0) + 1);
  return {
    async change(work) {
      const stored = read(file), state = stored ? deserialize(stored) : {};
      const result = work(state), made = serialize(state), next = `${file}.new`;
      if (stored?.equals(made)) return result;
      writeFileSync(next, made, { mode: 0o600 });
      flush(next);
      renameSync(next, file);
      if (process.platform !== "win32") flush(place);
      return result;
    },
    close() {
      opened.set(place, (opened.get(place) ?? 1) - 1);
      if (!opened.get(place)) rmSync(lock, { force: true });
    },
  };
}
