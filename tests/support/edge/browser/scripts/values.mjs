// Devices that differ in values alone: what happens and what leaves must be the same but for the random parts. Arguments:
// the module, that of mechanisms, lists as JSON, how many pairs of each collection. Prints how many values were compared.

import assert from "node:assert/strict";

globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const [module, further, given, pairs] = process.argv.slice(2);
const { memoryStorage, open } = await import(module), { mechanisms } = await import(further);
const { lists, publicKey } = JSON.parse(given), REPORTS = 3;

let clock, uploads;
Date.now = () => clock * 1000;
globalThis.fetch = async (address, { body }) => {
  if (address.endsWith("/v1/collections")) return new Response(lists.further);
  uploads.push(body);
  return new Response(null, { status: 204 });
};

// A repeatable generator (xorshift): a failure can be seen again.
let seed = 2463534242;
const random = (below) => {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) % below;
};
const of = (list) => list[random(list.length)];

const TEXTS = [
  "a", "b", "c", "d", "AA", "JFK", "other", "", " a", "a,b", "\ud800", "\udc00\ud800", "\u0000", "\r", "日本", "\ufeffa", "1", "NaN", "__proto__",
  "constructor", "x".repeat(70_000), "\ud800".repeat(5000),
];
const text = () => (random(4) ? of(TEXTS) : String.fromCharCode(...Array.from({ length: random(40) }, () => random(65536))));
const NUMBERS = [
  0, -0, 1, 4, 5, 2.5, 0.1, -1, NaN, Infinity, -Infinity, 1e308, -1e308, 5e-324, 2 ** 31, 2 ** 32, 2 ** 53, 1 / 3, 0n, 3n, 5n, -1n, 2n ** 63n, -(2n ** 64n), 2n ** 3000n,
];
const number = () => (random(3) ? of(NUMBERS) : (random(2 ** 32) - 2 ** 31) / of([1, 7, 1e6]));
const many = () => {
  const members = Array.from({ length: random(12) }, () => of([text, text, text, number, () => null, () => undefined, () => [["a"]]])());
  return of([() => members, () => new Set(members), () => [, "a", , "b"], () => Array(5), () => ["a", "a", "a"], () => [], () => ["a", "b", "c", "x", "y"]])();
};
const pair = () => {
  const members = many();
  return Array.isArray(members) ? members : [text(), text()];
};
const one = () => of([text, number, text, number, () => of([true, false, null, undefined, "2.0", "True", "2,0"])])();
const VALUES = {
  many: one, texts: one, tariff: one, words: one, remembered: one, hashed: one, search: one, kept: one, minutes: one,
  route: pair, routes: pair, plan: one, plans: many,
};

/** What a device with these values shows: outcomes, messages, waits, and all of its uploads but id, report and checksum. */
async function shown(name, values, secret) {
  [clock, uploads] = [1_767_225_600 + 60, []];
  const state = { secret: structuredClone(secret) }, storage = memoryStorage(state);
  const client = await open({ edge: "https://edge.example", publicKey, maxEpsilon: 10, mechanisms, storage, maxDelaySeconds: 100 });
  const outcomes = [];
  for (const value of values) {
    outcomes.push(await client.report(name, value).catch(({ name: kind, reason, message }) => [kind, reason, message]));
    clock += 700;
  }
  const stored = state.queue?.map(({ expires }) => expires);
  const waits = await client.flush(), { counts } = await client.status();
  client.close();
  const heads = uploads.map((body) => [body.length, [...body.slice(0, 7)], [...body.slice(23, 50)]]);
  return { outcomes, stored, waits, counts, heads, spent: state.spent?.[name] };
}

let compared = 0;
for (const [name, draw] of Object.entries(VALUES)) {
  // Two devices with one secret: the same cohorts and functions.
  const secret = [crypto.getRandomValues(new Uint8Array(16)).join(), crypto.getRandomValues(new Uint8Array(32))];
  const drawn = () => Array.from({ length: REPORTS }, draw);
  const expected = await shown(name, drawn(), secret);
  assert.deepEqual(expected.outcomes, Array(REPORTS).fill("queued"), name);
  assert.equal(expected.heads.length, REPORTS);
  for (let turn = 0; turn < Number(pairs); turn++) {
    const values = drawn(), found = await shown(name, values, secret);
    assert.deepEqual(found, expected, `${name}: ${values.map((each) => String(each).slice(0, 50))}`);
    compared += REPORTS;
  }
}
console.log(compared);
process.exit(0);
