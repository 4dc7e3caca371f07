// In which order uploads leave, on each path, with an edge and a clock of its own. Arguments: the module, lists as JSON.
// Prints, for each path, the numbers of the events whose uploads left, as they left.

globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const [module, given] = process.argv.slice(2);
const { memoryStorage, open } = await import(module);
const { lists, publicKey } = JSON.parse(given);

const START = 1_767_225_600 + 60, NAMES = ["many", "texts", "words"], VALUES = [1, "a", "JFK"], REPORTS = 60;
let clock, left, answers;
Date.now = () => clock * 1000;
const hex = (body) => Buffer.from(body).toString("hex");
globalThis.fetch = async (address, { body }) => {
  if (address.endsWith("/v1/collections")) return new Response(lists.present);
  const status = answers.shift() ?? 204;
  if (status === 204) left.push(hex(body));
  return new Response(null, { status });
};
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const page = Object.assign(new EventTarget(), { hidden: true }), windows = new EventTarget();
Object.assign(globalThis, { document: page, addEventListener: windows.addEventListener.bind(windows) });
const hide = () => page.dispatchEvent(new Event("visibilitychange"));

/** Begin with clients of one storage, which report in turns, 10 s apart, while nothing may leave. */
async function waiting(reports = REPORTS, tabs = 1, options = {}) {
  [clock, left, answers] = [START, [], []];
  const state = {}, storage = memoryStorage(state), events = [];
  const begin = () => open({
    edge: "https://edge.example", publicKey, maxEpsilon: 10, storage, maxDelaySeconds: 300, sendOnLeave: true, ...options,
  });
  const clients = [];
  while (clients.length < tabs) clients.push(await begin());
  state.pause = [1, START + 10 * reports + 100];
  const known = new Set();
  for (let event = 0; event < reports; event++, clock += 10) {
    await clients[event % tabs].report(NAMES[event % 3], VALUES[event % 3]);
    const body = state.queue.map((each) => hex(each.body)).find((each) => !known.has(each));
    known.add(body);
    events.push(body);
  }
  // All are due by now, and the pause is over.
  clock += 300;
  const sent = async (least = 0) => {
    for (const begun = performance.now(); state.queue.length > least && performance.now() - begun < 10_000;) await pause(5);
    for (const each of clients) each.close();
    return left.map((body) => events.indexOf(body));
  };
  return { begin, clients, client: clients[0], sent };
}

const paths = {
  async timer() {
    const { client, sent } = await waiting();
    await client.status();
    windows.dispatchEvent(new Event("online"));
    return sent();
  },
  async flush() {
    const { client, sent } = await waiting();
    await client.flush();
    return sent();
  },
  async "a hidden page"() {
    const { sent } = await waiting();
    hide();
    return sent();
  },
  async "a hidden page with more than may leave"() {
    const { sent } = await waiting(150);
    hide();
    return sent(51);
  },
  async retry() {
    const { client, sent } = await waiting();
    answers = [503];
    await client.flush();
    clock += 60;
    answers = [204, 204, 204, 503];
    await client.flush();
    clock += 60;
    await client.flush();
    return sent();
  },
  async "a reload"() {
    const { begin, client, sent } = await waiting();
    client.close();
    const again = await begin(), order = await sent();
    again.close();
    return order;
  },
  async "two tabs"() {
    const { clients: [, other], sent } = await waiting(REPORTS, 2);
    await other.flush();
    return sent();
  },
  async "a queue that was full"() {
    const { client, sent } = await waiting(160, 1, { maxUploads: REPORTS });
    await client.flush();
    return sent();
  },
};

const found = {};
for (const [path, run] of Object.entries(paths)) found[path] = await run();
console.log(JSON.stringify(found));
process.exit(0);
