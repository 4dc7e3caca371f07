// Answers questions about the client's sources: lines of JSON in, lines of JSON out.

import { createInterface } from "node:readline";

globalThis.crypto ??= (await import("node:crypto")).webcrypto;

const SOURCES = new URL("../../../../../producers/browser/src/", import.meta.url);
const [
  { decodeUpload, encodeGroups }, { readCollection, readList }, { allowedOf, charge }, { memoryOf }, { encodeUpload }, { mechanisms },
  { indexIn, numberOf }, { textOf },
  { md5 }, { blake2b }, { hmac, sha256 },
] = await Promise.all(
  ["decode", "collections", "limits", "randomization/memory", "upload", "mechanisms", "notation", "short", "crypto/md5", "crypto/blake2b", "crypto/sha256"].map(
    (name) => import(new URL(`${name}.js`, SOURCES)),
  ),
);

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));

/** Words in hexadecimal, 16 digits each, in the order given; one that is missing is an error. */
function scripted(words) {
  let used = 0;
  const take = (count) => {
    if (used + count > words.length) throw new Error("the script has too few words");
    return Uint32Array.from({ length: 2 * count }, (_, i) => {
      const word = BigInt(`0x${words[used + (i >> 1)]}`);
      if (i === 2 * count - 1) used += count;
      return Number(i & 1 ? word >> 32n : word & 0xffffffffn);
    });
  };
  return [take, () => used];
}

/** What JSON cannot hold: large integers, numbers that are none, sets. */
const value = (given) =>
  given?.integer ? BigInt(given.integer) : given?.number ? Number(given.number) : given?.set ? new Set(given.set) : given;

const answers = {
  md5: ({ data }) => hex(md5(unhex(data))),
  blake2b: ({ data, key, person, size }) => {
    const block = key && new Uint8Array(128);
    if (block) block.set(unhex(key));
    return hex(blake2b(size, key.length / 2, new TextEncoder().encode(person), [...block, ...unhex(data)]));
  },
  sha256: ({ data }) => hex(sha256(unhex(data))),
  hmac: ({ data, key }) => hex(hmac(unhex(key), unhex(data))),
  decode: ({ upload }) => {
    const { id, groups } = decodeUpload(unhex(upload));
    const again = hex(encodeGroups(id, groups));
    return { id: hex(id), again, groups: groups.map((group) => ({
      ...group, fingerprint: group.fingerprint.toString(16).padStart(16, "0"), rows: hex(group.rows),
    })) };
  },
  encode: ({ id, groups }) => hex(encodeGroups(unhex(id), groups.map((group) => ({
    ...group, fingerprint: BigInt(`0x${group.fingerprint}`), rows: unhex(group.rows),
  })))),
  one: ({ id, fingerprint, kind, cohort, windowStart, width, row }) =>
    hex(encodeUpload(unhex(id), BigInt(`0x${fingerprint}`), kind, cohort, windowStart, width, unhex(row))),
  respond: ({ entry, secret, client, reports }) => {
    const [, , parameters, responder, , takes, isRight = () => true] = readCollection(entry, mechanisms)._mechanism;
    const randomize = responder(memoryOf(unhex(secret), client, entry.name, parameters));
    return reports.map(({ truth, words }) => {
      const [fresh, used] = scripted(words), given = value(truth);
      if (!isRight(given)) return { takes };
      const [...rows] = randomize(given)(fresh), cohort = rows[3] ?? 0;
      return { cohort, rows: rows.slice(0, 3).map(hex), used: used() };
    });
  },
  notation: ({ values, given }) => {
    const number = numberOf(given);
    return { index: values && indexIn(values, given), number: Number.isNaN(number) ? null : number, text: textOf(given) };
  },
  list: async ({ body, publicKey }) => (await readList(body, publicKey)).collections.map(({ name }) => name),
  epsilon: ({ entry, limits }) => {
    const { _mechanism: [, , , , [isAtMost, [, perReport], [, inf]]], _lifetime: lifetime } = readCollection(entry, mechanisms);
    return { within: limits.map((each) => isAtMost(each)), perReport, inf, lifetime };
  },
  limit: ({ entry, maxBudget }) => {
    const collection = readCollection(entry, mechanisms);
    return (maxBudget ? allowedOf("c", collection, maxBudget) : collection._budget)[2];
  },
  charges: ({ charges, maxBudget }) => {
    let balance;
    return charges.map(({ entry, windowStart, now }) => {
      const collection = readCollection(entry, mechanisms), budget = maxBudget ? allowedOf("c", collection, maxBudget) : collection._budget;
      const result = charge(collection, budget, structuredClone(balance), windowStart, now);
      if (typeof result === "string") return result;
      balance = result;
      return "accepted";
    });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { question, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = { answer: await answers[question](given) };
  } catch (error) {
    answer = { error: error.constructor.name, reason: error.reason ?? null, message: error.message };
  }
  console.log(JSON.stringify(answer, (_, each) => (each === Infinity ? "inf" : each)));
}
