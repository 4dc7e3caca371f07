// Devices, each under one signed list after another. Argument: the module. On stdin, as JSON: `publicKey` and `devices`, each
// with `options` and `phases`, each of these with a list's `body`, the collection's `name`, its `values` in turn, how many
// `reports`, by how many `seconds` the clock advances after each, and further `options`. Prints, for each device, `queued`,
// how many uploads wait, and `found`: for each phase, how often each outcome or reason of an error came.

import { readFileSync } from "node:fs";

globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const { memoryStorage, open } = await import(process.argv[2]);
const { mechanisms } = await import("../../../../../producers/browser/src/mechanisms.js");
const { publicKey, devices } = JSON.parse(readFileSync(0, "utf8"));

let clock, list;
Date.now = () => clock * 1000;
globalThis.fetch = async (address) => {
  if (address.endsWith("/v1/collections")) return new Response(list);

  return new Response(null, { status: 204 });
};

async function use({ options, phases }) {
  clock = 1_767_225_600 + 60;
  const state = {}, storage = memoryStorage(state), found = [];
  for (const { body, name, values, reports, seconds = 0, options: more } of phases) {
    const counts = {};
    list = body;
    // As after a visit at which the list was asked for again.
    if (state.list) state.list[0] = body;
    const client = await open({ edge: "https://edge.example", publicKey, storage, mechanisms, maxUploads: 5000, ...options, ...more });
    for (let number = 0; number < reports; number++, clock += seconds) {
      const outcome = await client.report(name, values[number % values.length]).catch(({ reason, message }) => `${reason}: ${message}`);
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    }
    client.close();
    found.push(counts);
  }
  return { found, queued: state.queue?.length ?? 0 };
}

const answers = [];
for (const device of devices) answers.push(await use(device));
console.log(JSON.stringify(answers));
process.exit(0);
