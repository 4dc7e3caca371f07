// Scenarios of a client in Node, each with an edge and a clock of its own. Argument: lists by name, as JSON. Prints, by
// scenario, null or its error. Each runs in a thread of its own, one after the other, so that it has its own globals.

import assert from "node:assert/strict";
import { isMainThread, Worker, workerData } from "node:worker_threads";

globalThis.crypto ??= (await import("node:crypto")).webcrypto;
const { DeniableError, memoryStorage, open } = await import("../../../../../producers/browser/deniable.min.js");
const { mechanisms } = await import("../../../../../producers/browser/mechanisms.min.js");
const { decodeUpload } = await import("../../../../../producers/browser/src/decode.js");

const { lists, publicKey } = JSON.parse(process.argv[2]);

// The clock starts in the middle of a window of an hour.
const START = 1_767_225_600 + 1800;
let clock = START;
Date.now = () => clock * 1000;

/** What the edge answers next, and what it was asked. */
const edge = { list: lists.present, answers: [], uploads: [], requests: [], listAnswer: null };
const answer = (status, body = null, headers = {}) => new Response(body, { status, headers });
globalThis.fetch = async (address, request) => {
  edge.requests.push([address, request]);
  for (const [name, value] of [["credentials", "omit"], ["redirect", "error"], ["referrerPolicy", "no-referrer"]]) {
    assert.equal(request[name], value);
  }
  if (address.endsWith("/v1/collections")) return edge.listAnswer?.() ?? answer(200, edge.list);
  assert.equal(address, "https://edge.example/v1/reports");
  assert.deepEqual(request.headers, { "Content-Type": "text/plain" });
  edge.uploads.push(Buffer.from(request.body).toString("hex"));
  const next = edge.answers.shift() ?? (() => answer(204));
  return next();
};
const away = () => {
  throw new TypeError("fetch failed");
};

const state = {};
const storage = memoryStorage(state);
const begin = (options = {}) =>
  open({ edge: "https://edge.example", publicKey, maxEpsilon: 10, storage, maxDelaySeconds: 0, ...options });
const fails = (promise, reason) => assert.rejects(promise, (error) => error instanceof DeniableError && error.reason === reason);

const scenarios = {
  async "report is queued, then sent"() {
    const client = await begin({ maxDelaySeconds: 3600 });
    assert.equal(await client.report("many", 3), "queued");
    assert.deepEqual(await client.status(), { optedOut: false, queued: 1, counts: {} });
    assert.equal(edge.uploads.length, 0);
    assert.equal(await client.flush(), 0);
    const [{ groups: [group] }] = edge.uploads.map((each) => decodeUpload(new Uint8Array(Buffer.from(each, "hex"))));
    assert.equal(group.reports, 1);
    assert.equal(group.windowStart, START - 1800);
    assert.deepEqual((await client.status()).counts, { sent: 1 });
  },
  async "waiting time is uniform up to its bound"() {
    // 2,000 uniform numbers have a mean within 5 standard deviations of a half but with probability 6e-7.
    const client = await begin({ maxDelaySeconds: 100, maxUploads: 5000 });
    for (let i = 0; i < 2000; i++) await client.report("many", i % 5);
    const waits = state.queue.map(({ due }) => due - clock);
    assert.ok(waits.every((each) => each >= 0 && each < 100));
    const mean = waits.reduce((sum, each) => sum + each) / waits.length;
    assert.ok(Math.abs(mean - 50) < (5 * 100) / Math.sqrt(12 * 2000), `mean ${mean}`);
    // At most half of what is left of the window and its grace; above nine tenths of it but with probability 1e-9.
    state.queue = [];
    const long = await begin({ maxDelaySeconds: 1e6 });
    for (let i = 0; i < 200; i++) await long.report("many", i % 5);
    const longest = Math.max(...state.queue.map(({ due }) => due - clock));
    assert.ok(longest < 2390 / 2 && longest > 0.45 * 2390, `${longest}`);
  },
  async "repeated upload has the same bytes, and waits longer each time"() {
    const client = await begin();
    await client.report("many", 3);
    let before = clock;
    for (let turn = 0; turn < 20; turn++) {
      edge.answers = [away, away];
      await client.flush();
      assert.equal(edge.uploads.length, turn + 1); // one attempt, then a pause
      const [failures, until] = state.pause, longest = Math.min(3600, 2 ** turn);
      assert.equal(failures, turn + 1);
      assert.ok(until - clock >= longest / 2 && until - clock <= longest, `${until - clock} of ${longest}`);
      await client.flush();
      assert.equal(edge.uploads.length, turn + 1);
      before = clock;
      clock = until + 0.001; // a clock of milliseconds may round down
      state.queue[0].expires = Infinity;
    }
    edge.answers = [];
    assert.equal(await client.flush(), 0);
    assert.equal(new Set(edge.uploads).size, 1);
    assert.equal(state.pause, undefined);
  },
  async "a request without an answer ends, and keeps no others waiting"() {
    const client = await begin(), { timeout } = AbortSignal, asked = [];
    AbortSignal.timeout = (ms) => asked.push(ms) && timeout.call(AbortSignal, 50);
    const alive = setTimeout(() => {}, 10_000); // timers of signals keep no process
    await client.report("many", 3);
    edge.answers = [() => new Promise((_, fail) => {
      const { signal } = edge.requests.at(-1)[1];
      signal.addEventListener("abort", () => fail(signal.reason));
    })];
    assert.equal(await client.flush(), 1);
    assert.ok(asked.length && asked.every((ms) => ms === 10_000));
    clock = state.pause[1] + 1;
    assert.equal(await client.flush(), 0);
    assert.equal(new Set(edge.uploads).size, 1);
    clearTimeout(alive);
  },

  async "Retry-After is honoured"() {
    for (const [header, seconds] of [["120", 120], ["5000", 3600], ["nonsense", 0.5]]) {
      edge.answers = [() => answer(503, null, { "Retry-After": header })];
      delete state.pause;
      state.queue = [];
      const client = await begin();
      await client.report("many", 1);
      await client.flush();
      const wait = state.pause[1] - clock;
      assert.ok(wait >= seconds && wait <= Math.max(seconds, 1), `${header}: ${wait}`);
      client.close();
    }
  },
  async "a clock that was ahead for a moment paces nothing, and what it costs is counted"() {
    const client = await begin(), AHEAD = 10 * 86_400, SECONDS = 10;
    const listsAsked = () => edge.requests.filter(([address]) => address.endsWith("/v1/collections")).length;
    const counts = async () => (await client.status()).counts;
    edge.answers = [() => answer(503, null, { "Retry-After": "1" }), away];
    await client.report("many", 3);
    await client.flush();
    clock += AHEAD;
    assert.equal(await client.report("once", "a"), "queued");
    assert.equal(await client.flush(), 1);
    assert.deepEqual(await counts(), { expired: 1 });
    assert.ok(state.pause[1] > clock);
    assert.equal(listsAsked(), 2);
    clock -= AHEAD - SECONDS;
    assert.equal(await client.flush(), 0); // no pause
    assert.equal(await client.report("many", 3), "queued");
    assert.equal(listsAsked(), 3);
    assert.deepEqual(await counts(), { expired: 1, clock_ahead: 2, sent: 1 }); // of the pause, and of the list
    assert.equal(await client.report("once", "a"), "too_late"); // charged in the future, and refunded by no clock
    assert.deepEqual(await counts(), { expired: 1, clock_ahead: 3, sent: 1 });
    // A pause keeps its length, and one that was as long as any of them is kept.
    edge.answers = [() => answer(503, null, { "Retry-After": "3600" })];
    assert.equal(await client.flush(), 1);
    clock += SECONDS;
    assert.equal(await client.flush(), 1);
    assert.deepEqual(await counts(), { expired: 1, clock_ahead: 3, sent: 1 });
  },
  async "late upload is dropped"() {
    const client = await begin();
    edge.answers = [away];
    await client.report("many", 3);
    await client.flush();
    clock += 1800 + 590; // the window's end and the edge's grace
    assert.equal(await client.flush(), 0);
    assert.equal(edge.uploads.length, 1);
    assert.deepEqual((await client.status()).counts, { expired: 1 });
  },
  async "an upload that expires ends no pause"() {
    const client = await begin();
    edge.answers = [() => answer(503, null, { "Retry-After": "5000" })];
    await client.report("many", 3);
    await client.flush();
    clock += 1800 + 590;
    await client.report("many", 3);
    assert.equal(await client.flush(), 1);
    assert.equal(edge.uploads.length, 1);
    assert.deepEqual((await client.status()).counts, { expired: 1 });
  },
  async "a page that is left sends nothing in a pause, and requests that fail together are one failure"() {
    const page = Object.assign(new EventTarget(), { hidden: true });
    Object.assign(globalThis, { document: page, addEventListener: () => {} });
    const leave = async () => {
      page.dispatchEvent(new Event("visibilitychange"));
      await new Promise((resolve) => setTimeout(resolve, 20));
      return edge.uploads.length;
    };
    const client = await begin({ maxDelaySeconds: 1800, sendOnLeave: true });
    for (let i = 0; i < 3; i++) await client.report("many", i);
    edge.answers = [away, away, away];
    assert.equal(await leave(), 3);
    assert.equal(state.pause[0], 1);
    edge.answers = [() => answer(503, null, { "Retry-After": "30" })];
    clock += 2;
    await client.flush();
    assert.equal(edge.uploads.length, 4);
    assert.equal(await leave(), 4);
    clock += 31;
    assert.equal(await leave(), 7);
    client.close();
  },
  async "a page that is hidden sends nothing unless the app asks for it"() {
    const page = Object.assign(new EventTarget(), { hidden: true });
    Object.assign(globalThis, { document: page, addEventListener: () => {} });
    for (const [options, sent] of [[{}, 0], [{ sendOnLeave: false }, 0], [{ sendOnLeave: true }, 3]]) {
      const client = await begin({ maxDelaySeconds: 1800, ...options });
      await client.report("many", 1);
      page.dispatchEvent(new Event("visibilitychange"));
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(edge.uploads.length, sent);
      client.close();
    }
  },
  async "at most so many uploads wait"() {
    const client = await begin();
    state.pause = [1, clock + 3600];
    for (let i = 0; i < 253; i++) await client.report("many", 1);
    assert.equal(state.queue.length, 250);
    assert.deepEqual((await client.status()).counts, { queue_full: 3 });
  },
  async "outdated collection is fetched anew, and its report never randomized again"() {
    const client = await begin();
    await client.report("many", 3);
    const balance = structuredClone(state.spent.many);
    edge.list = lists.newer;
    edge.answers = [() => answer(409, '{"error": "outdated"}')];
    assert.equal(await client.flush(), 0);
    assert.equal(edge.uploads.length, 1);
    assert.deepEqual((await client.status()).counts, { outdated: 1 });
    assert.deepEqual(state.spent.many, balance); // and not refunded
    assert.equal(state.list[1], 2);
    assert.equal(await client.report("many", 3), "queued");
    await client.flush();
    const [old, now] = edge.uploads.map((each) => decodeUpload(new Uint8Array(Buffer.from(each, "hex"))).groups[0]);
    assert.notEqual(old.fingerprint, now.fingerprint);
  },
  async "refused reports are counted and dropped"() {
    const client = await begin();
    const late = { error: "no group can be counted", rejected: [[0, "too_late"]] };
    const bodies = [[400, { error: "no upload" }], [400, late], [200, { rejected: [[0, "bad_value"]] }]];
    edge.answers = bodies.map(([status, body]) => () => answer(status, JSON.stringify(body)));
    for (const _ of bodies) await client.report("many", 3);
    assert.equal(await client.flush(), 0);
    assert.deepEqual((await client.status()).counts, { malformed: 1, too_late: 1, bad_value: 1 });
  },
  async "an answer that is not in the edge's words drops nothing"() {
    const bodies = ["<h1>Bad request</h1>", "", "null", "[]", "{}", '{"error": {"code": 400}}', '{"rejected": []}', '{"rejected": "many"}'];
    const client = await begin();
    await client.report("many", 3);
    for (const status of [200, 400, 409]) {
      for (const body of bodies) {
        edge.answers = [() => answer(status, body)];
        delete state.pause;
        assert.equal(await client.flush(), 1, `${status} ${body}`);
        assert.equal(state.pause[0], 1);
      }
    }
    delete state.pause;
    assert.equal(await client.flush(), 0);
    assert.equal(new Set(edge.uploads).size, 1);
    assert.deepEqual((await client.status()).counts, { sent: 1 });
  },
  async "limits of a window and a period"() {
    const client = await begin();
    assert.equal(await client.report("once", "a"), "queued");
    assert.equal(await client.report("once", "b"), "over_window");
    for (let window = 1; ; window++) {
      clock += 3600;
      const outcome = await client.report("once", "a");
      if (outcome === "queued") continue;
      assert.equal(outcome, "over_budget");
      assert.equal(window, 3); // three reports of epsilon 1 in a budget of 3.5
      break;
    }
  },
  async "older list is refused, the present one stays in use"() {
    edge.list = lists.newer;
    const client = await begin();
    await client.report("many", 3);
    edge.list = lists.present;
    edge.answers = [() => answer(409, '{"error": "outdated"}')];
    await client.flush();
    assert.equal(state.list[1], 2);
    assert.equal(await client.report("many", 3), "queued");
    client.close();
    // And by another start that has no list but remembers its revision.
    state.list[0] = lists.present;
    await fails((await begin()).report("many", 3), "revision");
  },
  async "list of another key is refused"() {
    const client = await begin({ publicKey: `${"A".repeat(42)}E=` });
    await fails(client.report("many", 3), "signature");
    assert.equal(edge.uploads.length, 0);
    assert.equal(state.queue, undefined);
  },
  async "without Ed25519 nothing is reported"() {
    const { subtle } = crypto, { importKey } = subtle;
    subtle.importKey = (...given) => (given[2] === "Ed25519" ? Promise.reject(new DOMException("no", "NotSupportedError")) : importKey.apply(subtle, given));
    await fails((await begin()).report("many", 3), "signature");
    assert.equal(state.queue, undefined);
    subtle.importKey = importKey;
  },
  async "a stored list of another key is fetched anew"() {
    await (await begin()).report("many", 3);
    state.list[0] = lists.foreign;
    assert.equal(await (await begin()).report("many", 3), "queued");
    assert.equal(state.list[0], lists.present);
  },
  async "a mistake in the options is named, with what is allowed"() {
    const says = async (options, reason, words) => {
      const error = await begin(options).then((client) => client.report("many", 3)).then(() => null, (thrown) => thrown);
      assert.ok(error instanceof DeniableError, String(error));
      assert.equal(error.reason, reason);
      for (const word of words) assert.ok(error.message.includes(word), error.message);
    };
    const addresses = ["", undefined, null, 5, "edge.example", "ftp://edge.example", "https://", "http://edge.example",
      "http://10.0.0.1:8330", "http://127.0.0.1.example", "http://localhost.example", "http://[::2]:8330"];
    for (const edge of addresses) await says({ edge }, "option", ["edge must be", "https", "this machine"]);
    const given = ["", "5", -1, NaN, Infinity, null, [], {}];
    for (const maxDelaySeconds of [...given, -0.001]) {
      await says({ maxDelaySeconds }, "option", ["maxDelaySeconds must be a number, at least 0", `got ${maxDelaySeconds}`]);
    }
    for (const maxUploads of [...given, 0, 2.5, 5n]) {
      await says({ maxUploads }, "option", ["maxUploads must be a whole number, at least 1", `got ${maxUploads}`]);
    }
    for (const name of ["sendOnLeave", "honorPrivacySignals"]) {
      for (const value of [...given, 0, 1, "false"]) {
        await says({ [name]: value }, "option", [`${name} must be true or false`, `got ${value}`]);
      }
    }
    for (const mechanisms of [5, "x", { mechanisms: 1 }]) await says({ mechanisms }, "option", ["mechanisms must be", "mechanisms.min.js"]);
    for (const storage of [5, "x", {}, { change: 1 }]) await says({ storage }, "option", ["storage must be", "change"]);
    (await begin({ maxDelaySeconds: 0, maxUploads: 1, sendOnLeave: false, honorPrivacySignals: false })).close();
    for (const publicKey of ["", undefined, "not base64", "AAAA", `${"A".repeat(40)}====`, `${"A".repeat(42)}_=`, ["A"]]) {
      await says({ publicKey }, "option", ["publicKey must be base64 of 32 bytes", "--show-key", `got ${publicKey}`]);
    }
    const absent = await open().catch((error) => error);
    assert.deepEqual([absent.name, absent.reason], ["DeniableError", "option"]);
    const { collections } = JSON.parse(JSON.parse(lists.present).signed), many = collections.find(({ name }) => name === "many");
    for (const maxEpsilon of [1.5, { many: 1.5 }, undefined, null, 0, -1, NaN, "much", "2", {}, { many: 0 }, { many: "2" }]) {
      const figures = `(the list says ${many.epsilon}), got ${maxEpsilon?.many ?? maxEpsilon}`;
      await says({ maxEpsilon }, "epsilon", ["maxEpsilon of many", "a number", figures]);
    }
    await says({ storage: undefined }, "storage", ["indexedDB", "memoryStorage", "directoryStorage"]);
    for (const key in state) delete state[key];
    edge.listAnswer = away;
    await says({}, "unreachable", ["https://edge.example/v1/collections", "no answer"]);
    edge.listAnswer = () => answer(404);
    await says({}, "unreachable", ["404"]);
    edge.listAnswer = () => answer(200, "<h1>Please log in</h1>");
    await says({}, "signature", ["publicKey"]);
    assert.equal(state.queue, undefined);
    edge.listAnswer = null;
    for (const maxBudget of [{}, { epsilonn: 9 }, NaN, "much"]) {
      await says({ maxBudget }, "budget", ["maxBudget of many must be a number, or { epsilon, periodSeconds }", "got NaN"]);
    }
    for (const edge of ["http://localhost:8330", "http://127.0.0.1/below", "http://[::1]:8330", "https://edge.example:8443"]) {
      (await begin({ edge })).close();
    }
    assert.equal(await (await begin({ edge: "https://edge.example/" })).report("many", 3), "queued");
  },
  async "further mechanisms report, and are refused without their module"() {
    edge.list = lists.further;
    const values = { hashed: "JFK", search: "JFK", kept: "JFK", minutes: 5.5, route: ["AA", "nobody's"], routes: ["AA", "JFK"], plan: "a", plans: new Set(["a", "x"]) };
    const widths = { hashed: [4, 7], search: [4, 7], kept: [5, 3], minutes: [6, 64], route: [7, 6], routes: [2, 8], plan: [2, 8], plans: [2, 8] };
    const plain = await begin(), full = await begin({ mechanisms }), without = await begin({ mechanisms: undefined });
    for (const [name, value] of Object.entries(values)) {
      for (const client of [plain, without]) {
        const error = await client.report(name, value).catch((thrown) => thrown);
        assert.equal(error.reason, "unsupported");
        assert.equal(error.message, `without mechanisms.min.js, collection ${name} is not supported`);
      }
      assert.equal(await full.report(name, value), "queued");
      assert.equal(await full.flush(), 0);
      const { groups: [group] } = decodeUpload(new Uint8Array(Buffer.from(edge.uploads.at(-1), "hex")));
      const [number, width] = widths[name];
      assert.equal(group.mechanism, number);
      assert.ok(group.width % width === 0 || name === "minutes", String(group.width));
    }
    for (const [name, value] of [["many", 3], ["texts", "a"], ["words", "a"]]) assert.equal(await full.report(name, value), "queued");
    await fails(full.report("absent", 1), "unknown_collection");
    for (const name in values) await fails((await begin({ mechanisms, maxEpsilon: 0.9 })).report(name, values[name]), "epsilon");
  },
  async "a value of another type is refused and not named"() {
    edge.list = lists.further;
    const client = await begin({ mechanisms });
    const one = "string, number, bigint or boolean", no = [Symbol("s"), ["a"], [5], {}, new String("a"), () => "a"];
    const arrays = ["AA", 5, { length: 2 }, null, undefined, Symbol("s")];
    const wrong = {
      route: ["array of two values", [...arrays, new Set(["AA", "JFK"])]], routes: ["array of two values", arrays],
      plans: ["array or set of values", arrays],
    };
    for (const name of ["texts", "words", "many", "tariff", "hashed", "search", "kept", "minutes", "plan"]) wrong[name] = [one, no];
    for (const [name, [takes, values]] of Object.entries(wrong)) {
      for (const value of values) {
        const error = await client.report(name, value).catch((thrown) => thrown);
        assert.ok(error instanceof DeniableError, String(error));
        assert.equal(error.reason, "type");
        assert.equal(error.message, `a value of ${name} must be ${takes}, got ${typeof value}`);
      }
    }
    assert.equal(state.queue, undefined);
  },
  async "a remembered function and its responses last as long as the secret"() {
    edge.list = lists.further;
    const functions = new Set(), client = await begin({ mechanisms });
    for (const value of ["JFK", "LGA", "EWR", "JFK"]) await client.report("kept", value);
    await client.flush();
    await (await begin({ mechanisms })).report("kept", "SFO");
    await client.flush();
    for (const upload of edge.uploads) {
      const { groups: [{ rows, width }] } = decodeUpload(new Uint8Array(Buffer.from(upload, "hex")));
      functions.add(Math.floor((rows[0] + 256 * rows[1]) / 3));
      assert.ok(width > 256 && rows.length === 2);
    }
    assert.equal(functions.size, 1);
  },
  async "epsilon above what the app allows is not reported"() {
    await fails((await begin({ maxEpsilon: 0.999 })).report("once", "a"), "epsilon");
    assert.equal(await (await begin({ maxEpsilon: 1 })).report("once", "a"), "queued");
    const named = await begin({ maxEpsilon: { many: 10 } });
    await fails(named.report("once", "a"), "epsilon");
    assert.equal(await named.report("many", 1), "queued");
    await fails(named.report("absent", 1), "unknown_collection");
  },
  async "offline at first, then with the stored list"() {
    edge.listAnswer = away;
    const client = await begin();
    await fails(client.report("many", 3), "unreachable");
    edge.listAnswer = null;
    await client.report("many", 3);
    client.close();
    edge.listAnswer = away;
    assert.equal(await (await begin()).report("many", 3), "queued");
  },
  async "pages with one report each ask once for the list, and find a newer one"() {
    const listsAsked = () => edge.requests.filter(([address]) => address.endsWith("/v1/collections")).length;
    await (await begin()).report("many", 3);
    assert.equal(listsAsked(), 1);
    edge.list = lists.newer;
    assert.equal(await (await begin()).report("many", 3), "queued");
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(listsAsked(), 2);
    assert.equal(state.list[1], 2);
  },
  async "opting out deletes everything but the choice"() {
    const client = await begin();
    await client.report("many", 3);
    const secret = state.secret[0];
    await client.optOut();
    assert.deepEqual(state, { isOut: true });
    assert.equal(await client.report("many", 3), "opted_out");
    assert.deepEqual(state, { isOut: true });
    assert.equal(await (await begin()).report("many", 3), "opted_out");
    assert.equal(edge.uploads.length, 0);
    await client.optIn();
    assert.equal(await client.report("many", 3), "queued");
    assert.notEqual(state.secret[0], secret);
  },
  async "opting out while an upload is under way leaves nothing behind"() {
    const client = await begin();
    await client.report("many", 3);
    let reject;
    edge.answers = [() => new Promise((_, no) => (reject = no))];
    const flushing = client.flush();
    while (!reject) await new Promise((resolve) => setTimeout(resolve, 1));
    await client.optOut();
    reject(new DOMException("aborted", "AbortError"));
    await flushing;
    assert.deepEqual(state, { isOut: true });
  },
  async "opting out in one client cuts off what another one holds"() {
    const one = await begin(), other = await begin({ maxDelaySeconds: 1800 });
    for (let i = 0; i < 3; i++) await other.report("many", i);
    let signal, begun;
    const hangs = new Promise((resolve) => (begun = resolve));
    edge.answers = [() => new Promise((_, reject) => {
      ({ signal } = edge.requests.at(-1)[1]);
      signal.addEventListener("abort", () => reject(signal.reason));
      begun();
    })];
    const flushing = other.flush();
    await hangs;
    await one.optOut();
    assert.equal(await flushing, 0);
    assert.ok(signal.aborted);
    assert.equal(edge.uploads.length, 1);
    assert.deepEqual(state, { isOut: true });
    await one.optIn();
    assert.equal(await other.report("many", 3), "queued");
    assert.equal(await other.flush(), 0);
    assert.equal(edge.uploads.length, 2);
  },
  async "a report that another tab was about to announce is not sent after the opt-out"() {
    const page = Object.assign(new EventTarget(), { hidden: true });
    Object.assign(globalThis, { document: page, addEventListener: () => {} });
    const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
    const slow = { change: async (work) => {
      const result = await storage.change(work);
      await pause();
      return result;
    } };
    const one = await begin(), other = await begin({ storage: slow, maxDelaySeconds: 1800, sendOnLeave: true });
    await other.report("many", 1);
    const reporting = other.report("many", 2);
    while (state.queue.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    await one.optOut();
    assert.equal(await reporting, "queued");
    page.dispatchEvent(new Event("visibilitychange"));
    await pause();
    assert.deepEqual(edge.uploads, []);
  },
  async "another tab opts out and in: the next report is under the new secret"() {
    const one = await begin(), other = await begin();
    await one.report("remembered", "JFK");
    await other.optOut();
    await other.optIn();
    await other.report("remembered", "JFK");
    const { secret: [epoch] } = state;
    assert.equal(await one.report("remembered", "JFK"), "queued");
    assert.equal(state.secret[0], epoch);
  },
  async "a browser's signal is honoured unless the person opted in"() {
    await (await begin()).report("many", 3);
    const plain = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    for (const signal of [{ globalPrivacyControl: true }, { doNotTrack: "1" }]) {
      Object.defineProperty(globalThis, "navigator", { value: signal, configurable: true });
      const client = await begin();
      assert.deepEqual(Object.keys(state), []);
      assert.equal(await client.report("many", 3), "opted_out");
      assert.equal(await (await begin({ honorPrivacySignals: false })).report("many", 3), "queued");
      await client.optIn();
      assert.equal(await client.report("many", 3), "queued");
      delete state.isOut;
    }
    if (plain) Object.defineProperty(globalThis, "navigator", plain);
  },
  async "a storage that forgets at once ends a report"() {
    let changes = 0;
    const forgetful = { change: async (change) => {
      assert.ok(++changes < 20);
      return change({});
    } };
    await fails((await begin({ storage: forgetful })).report("many", 3), "storage");
    assert.equal(changes, 10); // two rounds, and the start
    assert.deepEqual(edge.uploads, []);
  },
  async "an opt-out that cannot be stored throws, and holds for the client"() {
    let isBroken = false;
    const client = await begin({ storage: { change: async (change) => {
      if (isBroken) throw new Error("the disk is full");
      return change(state);
    } }, maxDelaySeconds: 3600 });
    await client.report("many", 3);
    isBroken = true;
    await fails(client.optOut(), "storage");
    isBroken = false;
    assert.equal(await client.report("many", 3), "opted_out");
    assert.equal(await client.flush(), 1);
    assert.deepEqual(edge.uploads, []);
    await client.optIn();
    assert.equal(await client.flush(), 0);
  },
  async "nothing that fails to be stored is reported"() {
    const broken = { change: async () => { throw new Error("the disk is full"); } };
    const client = await begin({ storage: broken });
    await fails(client.report("many", 3), "storage");
    assert.equal(edge.requests.length, 0);
  },
  async "directory keeps a client over processes"() {
    const { mkdtempSync, statSync } = await import("node:fs");
    const { directoryStorage } = await import("../../../../../producers/browser/directory.js");
    const folder = mkdtempSync(`${(await import("node:os")).tmpdir()}/deniable-`), place = `${folder}/state`;
    const first = directoryStorage(place);
    const client = await begin({ storage: first, maxDelaySeconds: 3600 });
    assert.equal(await client.report("once", "a"), "queued");
    client.close();
    first.close();
    assert.equal(statSync(place).mode & 0o777, 0o700);
    assert.equal(statSync(`${place}/state`).mode & 0o777, 0o600);
    const again = await begin({ storage: directoryStorage(place) });
    assert.equal(await again.report("once", "a"), "over_window");
    assert.equal(await again.flush(), 0);
    assert.equal(edge.uploads.length, 1);
  },
  async "what is sent, and when, does not depend on the value"() {
    const values = ["a", "", "not listed", "\ud800", "x".repeat(1e6), "b"];
    const client = await begin({ maxUploads: 1000 });
    const lengths = new Set();
    for (const value of values) assert.equal(await client.report("texts", value), "queued");
    for (const value of values) assert.equal(await client.report("words", value), "queued");
    for (const value of [0, -1, 2 ** 40, 2n ** 70n, -(2n ** 70n)]) assert.equal(await client.report("many", value), "queued");
    await client.flush();
    for (const upload of edge.uploads) lengths.add(upload.length);
    assert.equal(edge.uploads.length, 17);
    assert.equal(lengths.size, 2); // 1 byte of k-RR, 16 of RAPPOR
    for (const name of ["texts", "words", "many"]) {
      for (const value of [null, undefined, true, "0", "1,5", 0.5, NaN]) assert.equal(await client.report(name, value), "queued");
      for (const value of [{}, [], Symbol("s")]) await fails(client.report(name, value), "type");
    }
    await client.flush();
    assert.equal((await client.status()).queued, 0);
  },
};

/** The error of a scenario, null for none. */
const run = (scenario) => new Promise((resolve) => {
  const thread = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2), workerData: scenario });
  thread.on("error", (error) => resolve(error.stack));
  thread.on("exit", (code) => resolve(code === 0 ? null : `exit status ${code}`));
});

if (isMainThread) {
  const ends = {};
  for (const scenario of Object.keys(scenarios)) ends[scenario] = await run(scenario);
  console.log(JSON.stringify(ends));
} else {
  await scenarios[workerData]();
  process.exit(0);
}
