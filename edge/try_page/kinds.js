// What a mechanism shows of itself: how a value is given, and what values and reports are called.

import { bitsOf } from "./observer.js";

const SHOWN_VALUES = 12;
/** For texts of a collection without candidates. */
const WORDS = ["example.org", "example.net", "example.com", "localhost"];
const UNLISTED = "\u0000 not listed", ANOTHER = "another value";
const count = (number) => number.toLocaleString("en");
const upTo = (number) => [...Array(number).keys()];

/** Number as people write it, to about four digits of the range. */
const rounded = (number, step) => Number(number.toPrecision(15)).toFixed(Math.max(0, Math.ceil(-Math.log10(step)) + 1)).replace(/\.0+$/, "");

/**
 * How the page shows an entry of the list.
 *
 * `choices`: labels to choose from, else the value is typed, at first `examples[0]`; `isSet`: several may be chosen;
 * `valueOf` makes a value for the client of the chosen places, or of a text; `rows`: how many buckets the report has,
 * or nothing if it is bits; `labelOf` a bucket; `compared`: buckets to compare a value with, else texts are typed;
 * `noteOf` a true row; `shape` of a report; `isOrdered`: its buckets have an order;
 * `isFresh`: there is no permanent step; `levels`: how many lengths of prefixes the devices are divided into.
 */
export function kindOf(entry, examples = WORDS) {
  const { mechanism } = entry, { kind } = mechanism;
  return (KINDS[kind] ?? KINDS["k-rr"])(entry, mechanism, examples);
}

const listed = ({ values, other }) => ({
  choices: values.length ? [...values, ...(other ? [ANOTHER] : [])] : null,
  valueOf: (places) => values[places[0]] ?? UNLISTED,
});

const ofPairs = ({ values, fields }, { second_k }) => ({
  choices: values,
  valueOf: ([place]) => [Math.floor(place / second_k), place % second_k].map((bucket, i) => fields[i].values[bucket] ?? UNLISTED),
});

const KINDS = {
  "k-rr": (entry, { k }) => ({
    ...(entry.values.length ? listed(entry) : { choices: null, valueOf: String }),
    examples: ["0"], inputMode: "numeric", rows: k,
    labelOf: (bucket) => entry.values.length ? entry.values[bucket] ?? ANOTHER : entry.other && bucket === k - 1 ? ANOTHER : String(bucket),
    compared: (own, seen) => (k <= SHOWN_VALUES ? upTo(k) : [...new Set([own, seen, ...upTo(SHOWN_VALUES)])].slice(0, SHOWN_VALUES)),
    noteOf: () => `One of ${count(k)} values.`, shape: `${count(k)} values`,
  }),
  "k-rr-pair": (entry, mechanism) => ({
    ...ofPairs(entry, mechanism), rows: entry.values.length, labelOf: (bucket) => entry.values[bucket],
    compared: (own, seen) => [...new Set([own, seen, ...upTo(entry.values.length)])].slice(0, SHOWN_VALUES),
    noteOf: () => `One of ${count(entry.values.length)} pairs. Each part is randomized by itself.`,
    shape: `${count(entry.values.length)} pairs`,
  }),
  "one-hot-pair": (entry, mechanism) => ({
    ...ofPairs(entry, mechanism), isFresh: true,
    noteOf: (truth) => `${onesOf(truth)} of ${count(entry.values.length)} bits, one for each pair.`,
    shape: `${8 * Math.ceil(entry.values.length / 8)} bits`,
  }),
  number: (_, { minimum, maximum, steps, half_width }) => {
    const low = Number(minimum), step = (Number(maximum) - low) / steps, rows = steps + 2 * half_width;
    const edge = (cell) => rounded(low + (cell - half_width) * step, step);
    const labelOf = (cell) => `${edge(cell)} to ${edge(cell + 1)}`;
    const near = 2 * half_width + 1;
    return {
      choices: null, valueOf: String, examples: [edge(half_width + steps / 2)], inputMode: "decimal", rows, labelOf, isOrdered: true,
      compared: (own, seen) => {
        const spread = upTo(SHOWN_VALUES - 2).map((i) => half_width + Math.floor(((i + 0.5) * steps) / (SHOWN_VALUES - 2)));
        const inside = Math.min(Math.max(seen, half_width), half_width + steps - 1);
        return [...new Set([own, inside, ...spread])].sort((a, b) => a - b);
      },
      noteOf: () => `One of ${count(steps)} steps between ${low} and ${Number(maximum)}. The ${count(near)} steps around it are the likelier reports.`,
      shape: `${count(rows)} steps, those beyond both ends included`,
    };
  },
  "local-hash": (_, { hash_functions, hash_buckets }, examples) => ({
    choices: null, valueOf: String, examples, inputMode: "text", rows: hash_functions * hash_buckets,
    labelOf: (row) => `bucket ${row % hash_buckets} of function ${count(Math.floor(row / hash_buckets))}`,
    functionOf: (row) => Math.floor(row / hash_buckets),
    noteOf: (_, value) => `Of ${count(hash_functions)} public functions, this one puts “${value}” into the bucket, as it does one in ${hash_buckets} texts.`,
    shape: `${count(hash_functions)} functions of ${hash_buckets} buckets`,
  }),
  rappor: (_, { bits }, examples) => ({
    choices: null, valueOf: String, examples, inputMode: "text",
    noteOf: (truth, value, cohort) => `“${value}” sets ${onesOf(truth)} of ${bits} bits, for the cohort ${cohort} of this device.`,
    shape: `${bits} bits`,
  }),
  "rappor-hot": (entry, { buckets, hot }) => ({
    ...listed(entry), isSet: hot > 1,
    ...(hot > 1 && { valueOf: (places) => places.map((place) => entry.values[place] ?? UNLISTED) }),
    noteOf: (truth) => `${onesOf(truth)} of ${count(buckets)} bits, one for each value${hot > 1 ? `; at most ${hot} are reported` : ""}.`,
    shape: `${8 * Math.ceil(buckets / 8)} bits`,
  }),
};
KINDS["prefix-tree"] = (entry, mechanism, examples) => {
  const lengths = mechanism.lengths.split(" ");
  return {
    ...KINDS["local-hash"](entry, mechanism, examples), levels: lengths.length,
    noteOf: (_, value, level) => `This device reports the first ${lengths[level]} bytes of a text: of “${value}”, one of ${count(mechanism.hash_functions)} public functions puts them into the bucket, as it does one in ${mechanism.hash_buckets}.`,
  };
};
KINDS["k-rr-longitudinal"] = KINDS["k-rr"];
KINDS["local-hash-longitudinal"] = KINDS["local-hash"];

const onesOf = (row) => bitsOf(row).reduce((sum, bit) => sum + bit, 0);
