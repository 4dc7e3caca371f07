// The page /try: a visitor picks a value and sees what would leave the device, randomized by the client's own code.

import { bar, element, showBytes, showRow } from "./draw.js";
import { kindOf } from "./kinds.js";
import { beliefs, bitsOf, bucketOf, logProbability, ofBits } from "./observer.js";
import { encodeUpload, freshWords, mechanisms, memoryOf, randomBytes, readCollection, readList } from "./parts.js";

const SHOWN_VALUES = 12;
/** What an answer means, by reason of the edge or by status. */
const REFUSALS = {
  too_late: "The window of this report has passed, so it can no longer count. It was not taken: make a fresh one.",
  too_early: "The clock of this device is ahead of the edge's. The report was not taken.",
  unknown_collection: "The collections have changed. The report was not taken: reload this page.",
  429: "This network has sent many reports. Wait a minute, then send it again: sent twice, it counts once.",
  503: "Kafka takes no reports right now. Wait some seconds, then send it again: sent twice, it counts once.",
};
const byId = (id) => document.getElementById(id);
const secret = randomBytes(32);
const percent = (share) => (share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

/** A probability from its logarithm, in percent or as a power of ten. */
function probability(log) {
  if (log > -7) return percent(Math.exp(log));
  const power = Math.floor(log / Math.LN10), digits = [...String(-power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `${Math.exp(log - power * Math.LN10).toFixed(1)} · 10⁻${digits}`;
}

/** A ratio that is never shown as 1 unless it is 1. */
const factor = (ratio) => (ratio < 1.1 ? ratio.toFixed(2) : ratio < 100 ? ratio.toFixed(1) : Math.round(ratio).toLocaleString("en"));

/** A length of time in its largest whole unit. */
function duration(seconds) {
  const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([each]) => seconds % each === 0);
  const number = seconds / size;
  return `${number.toLocaleString("en")} ${unit}${number === 1 ? "" : "s"}`;
}

let entries = [], examples = {}, present;

const say = (text, state) => {
  byId("status").textContent = text;
  byId("status").dataset.state = state;
};

async function begin() {
  if (!globalThis.crypto?.subtle) return say("This page needs https, or an address of this machine", "unreachable");
  let answer;
  try {
    answer = await (await fetch("/v1/collections", { credentials: "omit" })).text();
  } catch {
    return say("This edge does not answer", "unreachable");
  }
  examples = await fetch("/try/examples.json", { credentials: "omit" }).then((each) => each.json()).catch(() => ({}));
  let list;
  try {
    list = await readList(answer, JSON.parse(answer).public_key);
  } catch (error) {
    return say(`The list of collections cannot be used: ${error.message}`, "unreachable");
  }
  entries = list.collections.flatMap((entry) => {
    try {
      return [{ ...entry, read: readCollection(entry, mechanisms) }];
    } catch {
      return []; // of a kind that the client does not know
    }
  });
  if (!entries.length) return say("This edge has no collection that a browser can report to", "unreachable");
  byId("collection").replaceChildren(...entries.map(({ name }) => element("option", name)));
  document.querySelector("main").hidden = false;
  say(`Revision ${list.revision}, signed by this edge`, "ready");
  choose();
}

/** Show the fields of another collection. */
function choose() {
  const entry = entries[byId("collection").selectedIndex], kind = kindOf(entry, examples[entry.name]);
  const [, , parameters, responder] = entry.read._mechanism;
  present = { entry, kind, randomize: responder(memoryOf(secret, "device", entry.name, parameters)) };
  byId("listed").hidden = !kind.choices;
  byId("typed").hidden = Boolean(kind.choices);
  byId("compared").hidden = Boolean(kind.compared || kind.choices);
  byId("choice").multiple = Boolean(kind.isSet);
  byId("choice").replaceChildren(...(kind.choices ?? []).map((label) => element("option", label)));
  if (kind.choices) byId("choice").selectedIndex = 0;
  const [example, ...others] = kind.examples ?? [""];
  byId("text").value = example;
  byId("text").inputMode = kind.inputMode ?? "text";
  byId("others").value = others.join(", ");
  const times = Math.exp(entry.epsilon);
  byId("promise").replaceChildren("ε = ", element("strong", entry.epsilon.toFixed(2)),
    `: no report is more than ${factor(times)} times as likely under one value as under another.`);
  restart();
}

/** The value as the visitor gave it, as the client takes it. */
function ownValue() {
  const { kind } = present, { selectedOptions } = byId("choice");
  return kind.valueOf(kind.choices ? [...selectedOptions].map((each) => each.index) : byId("text").value);
}

/** The true row of a value. A hash function drawn for each report is that of the present one. */
function rowOf(value) {
  const { kind, randomize, rows: [report] } = present;
  if (!kind.functionOf) return randomize(value)(freshWords)[2];
  // The smallest word that chooses the function; those drawn after it do not matter.
  const functions = BigInt(present.entry.mechanism.hash_functions), number = BigInt(kind.functionOf(bucketOf(report)));
  let word = (number * 2n ** 64n + functions - 1n) / functions;
  return randomize(value)((count) => {
    const words = word === null ? freshWords(count) : Uint32Array.of(Number(word & 0xffffffffn), Number(word >> 32n));
    word = null;
    return words;
  })[2];
}

/** Values to compare: label, and true row. */
function compared() {
  const { kind, rows: [report, , truth] } = present;
  if (kind.compared) {
    const own = bucketOf(truth), bytes = truth.length;
    return kind.compared(own, bucketOf(report)).map((number) => ({
      label: kind.labelOf(number), isOwn: number === own, truth: Uint8Array.from({ length: bytes }, (_, i) => Math.floor(number / 256 ** i)),
    }));
  }
  if (!kind.choices) {
    const words = [byId("text").value, ...byId("others").value.split(",").map((word) => word.trim()).filter(Boolean)];
    return [...new Set(words)].slice(0, SHOWN_VALUES).map((word, i) => ({ label: word || "(empty)", truth: rowOf(word), isOwn: !i }));
  }
  const chosen = [...byId("choice").selectedOptions].map((each) => each.index);
  const labels = chosen.map((place) => kind.choices[place]).join(", ") || "(none)";
  const others = [...kind.choices.keys()].filter((place) => chosen.length !== 1 || place !== chosen[0]).slice(0, SHOWN_VALUES - 1);
  return [{ label: labels, truth, isOwn: true }, ...others.map((place) => ({ label: kind.choices[place], truth: rowOf(kind.valueOf([place])), isOwn: false }))];
}

function restart() {
  present.reports = [];
  again();
}

function again() {
  const { randomize } = present;
  present.rows = randomize(ownValue())(freshWords);
  present.reports.push(present.rows[0]);
  show();
  byId("send").disabled = false;
  byId("fresh").hidden = true;
  byId("answer").textContent = "";
}

const FIRST_NOTES = {
  true: "Remembered: this device always gives this response for this value, so even all its reports together cannot be averaged to the truth.",
  false: "Noise of the first step, drawn anew for each report.",
};

function show() {
  const { entry, kind, rows: [report, permanent, truth, cohort = 0] } = present;
  byId("permanent-step").hidden = Boolean(kind.isFresh ?? (kind.rows && entry.mechanism.permanent_threshold === undefined));
  showRow(byId("truth"), kind, truth);
  showRow(byId("permanent"), kind, permanent, truth);
  showRow(byId("report"), kind, report, permanent);
  byId("truth-note").textContent = kind.noteOf(truth, byId("text").value, cohort);
  byId("permanent-note").textContent = FIRST_NOTES[entry.memoized];
  byId("report-note").textContent = !kind.rows ? "Every bit was drawn again. Bits with a frame differ from the step before."
    : `By chance, ${bucketOf(report) === bucketOf(truth) ? "" : "not "}the truth. Nobody but you can tell.`;
  showBeliefs();
  showUpload();
  showMany();
}

function showBeliefs() {
  const { entry, kind, rows: [report] } = present;
  const values = compared(), logs = values.map(({ truth }) => logProbability(entry, truth, report));
  const isWhole = kind.rows && kind.rows <= values.length, after = beliefs(logs);
  byId("beliefs").replaceChildren(...values.map(({ label, isOwn }, i) => {
    const row = element("tr", "", isOwn ? { "data-own": "" } : {}), belief = element("td"), cell = element("div", "", { class: "belief" });
    cell.append(bar(after[i]), percent(after[i]));
    belief.append(cell);
    row.append(element("th", label, { scope: "row" }), element("td", probability(logs[i])), belief);
    return row;
  }));
  const ratio = Math.exp(Math.max(...logs) - Math.min(...logs));
  byId("learns").textContent = values.length < 2 ? "Name other values to compare yours with."
    : `Each of these values could have given this very report. ${ratio < 1.005 ? "All of them would give it equally often."
      : `The likeliest would give it ${factor(ratio)} times as often as the least likely.`}`;
  byId("prior").textContent = `“Believe” is for an observer who thought ${isWhole ? "all values" : `these ${values.length} values`} equally likely before.`;
}

function showUpload() {
  const { entry, kind, rows: [report, , , cohort = 0] } = present, [number, width] = entry.read._mechanism;
  const start = Math.floor(Date.now() / 1000 / entry.window_seconds) * entry.window_seconds;
  present.upload = encodeUpload(randomBytes(16), entry.read._fingerprint, number, cohort, start, width, report);
  showBytes(byId("bytes"), byId("legend"), present.upload, {
    format: ["format", "DNBU, version 1, one group"],
    id: ["upload id", "random, so that a repeated upload counts once"],
    collection: ["collection", `${entry.name}, by the hash of its parameters`],
    cohort: ["kind, cohort", kind.levels ? `of the mechanism; level ${cohort + 1} of ${kind.levels}` : kind.rows || kind.choices ? "of the mechanism, which has one cohort" : `of the mechanism; cohort ${cohort} of ${entry.mechanism.cohorts}`],
    window: ["window", `of ${duration(entry.window_seconds)}, began ${new Date(start * 1000).toISOString().slice(0, start % 60 ? 19 : 16).replace("T", " ")} UTC; no other time is sent`],
    shape: ["shape", `1 report, ${kind.shape}`],
    report: ["report", kind.rows ? kind.labelOf(bucketOf(report)) : `${kind.shape}, as above`],
    checksum: ["checksum", "CRC-32C"],
  });
}

function showMany() {
  const { entry, kind, reports } = present, count = reports.length;
  byId("made").textContent = `${count.toLocaleString("en")} ${count === 1 ? "report" : "reports"} so far, none sent by itself`;
  if (!kind.rows) {
    const sums = reports.map(bitsOf).reduce((sum, bits) => sum.map((each, i) => each + bits[i]), Array(8 * reports[0].length).fill(0));
    const least = Math.min(...sums), most = Math.max(...sums);
    const grid = element("div", "", { class: `bits${sums.length > 256 ? " wide" : ""}`, role: "img", "aria-label": "How often each bit was 1" });
    grid.append(...sums.map((each) => {
      const cell = element("i", "", { class: "one" });
      cell.style.opacity = 0.08 + (0.92 * (each - least)) / (most - least || 1);
      return cell;
    }));
    byId("tally").replaceChildren(grid);
    const [zero, one] = ofBits(entry).map(percent);
    byId("many-note").textContent = entry.memoized
      ? "Darker bits were 1 more often. They approach the permanent response, which is noisy itself, and never your value."
      : `Darker bits were 1 more often. A bit that your value sets is 1 in ${one} of reports, another in ${zero}. Many reports would show your value: that is what the limits of a window and the budget of a period are for.`;
    return;
  }
  const tally = new Map();
  for (const report of reports) tally.set(bucketOf(report), (tally.get(bucketOf(report)) ?? 0) + 1);
  const top = [...tally].sort((a, b) => b[1] - a[1]).slice(0, SHOWN_VALUES), rows = element("div", "", { class: "rows" });
  if (kind.isOrdered) top.sort((a, b) => a[0] - b[0]);
  for (const [bucket, times] of top) rows.append(element("span", kind.labelOf(bucket)), bar(times / count), element("span", percent(times / count)));
  byId("tally").replaceChildren(rows);
  byId("many-note").textContent = entry.memoized
    ? "They approach the permanent response, which may be another than your value: nobody can tell."
    : "Many reports of one device would show its value: that is what the limits of a window and the budget of a period are for.";
}

/** Why an answer is no 204, as a sentence. */
async function refusalOf(response) {
  if (!response) return "No answer from this edge. Send it again: sent twice, it counts once.";
  const { error, rejected } = await response.json().catch(() => ({}));
  const reason = rejected?.[0]?.[1];
  if (reason === "too_late") byId("fresh").hidden = false;
  return REFUSALS[reason] ?? REFUSALS[response.status] ?? `${response.status}: ${error ?? reason ?? "not taken"}`;
}

async function send() {
  const answer = byId("answer"), { upload } = present;
  byId("send").disabled = true;
  const request = { method: "POST", body: upload, headers: { "Content-Type": "text/plain" }, credentials: "omit" };
  const response = await fetch("/v1/reports", request).catch(() => null);
  const isTaken = response?.status === 204, said = isTaken ? "204: taken, and durable in Kafka" : await refusalOf(response);
  if (present.upload !== upload) return; // another report is shown by now
  answer.dataset.state = isTaken ? "taken" : "refused";
  answer.textContent = said;
  byId("send").disabled = isTaken || !byId("fresh").hidden;
}

byId("collection").addEventListener("change", choose);
for (const id of ["choice", "text"]) byId(id).addEventListener("input", restart);
byId("others").addEventListener("input", showBeliefs);
byId("question").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["again", "fresh"]) byId(id).addEventListener("click", again);
byId("send").addEventListener("click", send);
byId("hundred").addEventListener("click", () => {
  for (let turn = 1; turn < 100; turn++) present.reports.push(present.randomize(ownValue())(freshWords)[0]);
  again();
});
begin();
