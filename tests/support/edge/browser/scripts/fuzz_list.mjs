// Reads mutations of signed lists: any error but DeniableError ends the script, and so does a list whose limits are
// none. Arguments: the body of an answer, how many.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";

globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const SOURCES = "../../../../../producers/browser/src/";
const [{ readCollection, readList }, { DeniableError }, { charge }, { memoryOf }, { freshWords }, { mechanisms }] = await Promise.all(
  ["collections", "errors", "limits", "randomization/memory", "randomization/words", "mechanisms"].map((name) => import(`${SOURCES}${name}.js`)),
);

const [given, turns] = process.argv.slice(2);
const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const key = publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
const original = JSON.parse(JSON.parse(given).signed);
const counts = { read: 0, signature: 0, unsupported: 0, budget: 0, collections: 0 };
const NOW = 1_767_225_600;
const ODD = [null, true, false, "", "x", "5", -1, 0, 1, 1.5, 2 ** 31, 2 ** 40, 1e300, [], ["x"], {}, [null], "18446744073709551616"];

// A repeatable generator (xorshift): a failure can be seen again.
let state = 2463534242;
const random = (below) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
};

/** Change or delete a field, somewhere below; fields of collections are the likeliest. */
function change(value) {
  if (typeof value !== "object") return;
  const names = Object.keys(value ?? {}), name = names[random(names.length)];
  if (name === undefined) return;
  const below = value[name];
  if (below && typeof below === "object" && random(4)) change(below);
  else if (random(4)) value[name] = structuredClone(ODD[random(ODD.length)]);
  else delete value[name];
}

function mutated() {
  const list = structuredClone(original);
  const { collections } = list;
  for (let left = 1 + random(3); left > 0; left--) change(random(20) ? collections[random(collections.length)] : list);
  let signed = JSON.stringify(list);
  if (random(10) === 0) signed = signed.slice(0, random(signed.length));
  const signature = sign(null, `deniable-collections-1\n${signed}`, privateKey).toString("base64");
  const body = JSON.stringify({ signed, signature });
  return random(10) ? body : body.slice(0, random(body.length)) + ODD[random(ODD.length)];
}

/** What may be reported has limits, and can be reported. */
function use(entry) {
  const collection = readCollection(entry, mechanisms), { _window, _grace, _most, _budget: [epsilon, period, reports], _perReport: perReport } = collection;
  const [, width, parameters, responder, [isAtMost], , isRight = (value) => !Array.isArray(value)] = collection._mechanism;
  for (const each of [_window, _grace, _most]) assert.ok(Number.isInteger(each) && each > 0, String(each));
  assert.ok(epsilon > 0 && period > 0 && reports > 0);
  assert.equal(epsilon === Infinity, entry.budget === null);
  if (entry.budget && reports === Infinity) assert.ok(collection._lifetime <= epsilon * (1 + 1e-8) || entry.budget.values === "unchanged");
  assert.ok(perReport > 0 && perReport < Infinity);
  isAtMost(1);
  let balance, taken = 0;
  while (taken < 5 && Array.isArray((balance = charge(collection, collection._budget, balance, NOW, NOW)))) taken++;
  assert.equal(taken, Math.min(5, _most, reports));
  const randomize = responder(memoryOf(new Uint8Array(32), "device", entry.name, parameters));
  const values = ["a", 1, ["a", "b"]].filter(isRight), rowBytes = [1, 2, 4, width / 8];
  assert.ok(values.length);
  for (const each of values) assert.ok(rowBytes.includes(randomize(each)(freshWords)[0].length));
  counts.collections++;
}

for (let turn = 0; turn < Number(turns); turn++) {
  const body = mutated();
  try {
    const { collections } = await readList(body, key);
    counts.read++;
    for (const entry of collections) {
      try {
        if (entry) use(entry);
      } catch (error) {
        if (!(error instanceof DeniableError)) throw error;
        counts[error.reason]++;
      }
    }
  } catch (error) {
    if (!(error instanceof DeniableError)) {
      console.error(body);
      throw error;
    }
    counts[error.reason]++;
  }
}
console.log(JSON.stringify(counts));
