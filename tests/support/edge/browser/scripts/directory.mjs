// What processes do with one directory. Arguments: task, directory, rounds.

import { closeSync, openSync, rmSync } from "node:fs";

const { directoryStorage } = await import("../../../../../producers/browser/directory.js");
const [task, directory, rounds] = process.argv.slice(2);
const sleep = (milliseconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

const tasks = {
  /** Count up for ever, and print each number once it is stored. */
  async count() {
    const storage = directoryStorage(directory);
    for (;;) console.log(await storage.change((state) => (state.count = (state.count ?? 0) + 1)));
  },
  /** Print the number, and let others in. */
  async read() {
    const storage = directoryStorage(directory);
    console.log(await storage.change((state) => state.count ?? 0));
    storage.close();
  },
  /** Have the directory many times, each time alone: a file that may not exist twice is the witness. */
  async enter() {
    const witness = `${directory}.inside`;
    for (let entered = 0; entered < Number(rounds);) {
      let storage;
      try {
        storage = directoryStorage(directory);
      } catch {
        continue;
      }
      closeSync(openSync(witness, "wx"));
      sleep(1);
      rmSync(witness);
      storage.close();
      entered++;
      sleep(2 * Math.random());
    }
  },
};
await tasks[task]();
