// What an observer of one report learns: probabilities of the report under each value, and beliefs after it.

const WORDS = 2 ** 64, HALVES = 2 ** 32;

/** Probability of a report of k values under the value itself, and under each other one. */
function ofValues(k, { threshold, permanent_threshold, instantaneous_threshold }) {
  const truth = Number(instantaneous_threshold ?? threshold) / WORDS, lie = (1 - truth) / (k - 1);
  if (permanent_threshold === undefined) return [truth, lie];
  const kept = Number(permanent_threshold) / WORDS, changed = (1 - kept) / (k - 1);
  const own = kept * truth + (k - 1) * changed * lie;
  return [own, (1 - own) / (k - 1)];
}

/** Probability of a reported bucket, given the true one, by kind. */
const OF_BUCKETS = {
  "k-rr-pair": ({ first_k, first_threshold, second_k, second_threshold }, truth, report) => {
    const [first, second] = [ofValues(first_k, { threshold: first_threshold }), ofValues(second_k, { threshold: second_threshold })];
    const isFirst = Math.floor(truth / second_k) === Math.floor(report / second_k), isSecond = (truth - report) % second_k === 0;
    return first[isFirst ? 0 : 1] * second[isSecond ? 0 : 1];
  },
  number: ({ steps, half_width, threshold }, truth, report) => {
    const near = Number(threshold) / WORDS;
    return Math.abs(truth - report) <= half_width ? near / (2 * half_width + 1) : (1 - near) / (steps - 1);
  },
  /** Buckets of one function, which is drawn for each report, or else once for the device. */
  "local-hash": ({ hash_functions, hash_buckets, permanent_threshold, ...thresholds }, truth, report) =>
    ofValues(hash_buckets, { permanent_threshold, ...thresholds })[truth === report ? 0 : 1] / (permanent_threshold === undefined ? hash_functions : 1),
  "k-rr": (mechanism, truth, report) => ofValues(mechanism.k, mechanism)[truth === report ? 0 : 1],
};
OF_BUCKETS["prefix-tree"] = OF_BUCKETS["local-hash-longitudinal"] = OF_BUCKETS["local-hash"];
OF_BUCKETS["k-rr-longitudinal"] = OF_BUCKETS["k-rr"];

/** Probability of a 1 where the true bit is 0, and where it is 1. */
export function ofBits({ mechanism: { flip_threshold = 0, p_threshold, q_threshold } }) {
  const [flip, p, q] = [flip_threshold, p_threshold, q_threshold].map((each) => Number(each) / HALVES);
  return [(1 - flip) * p + flip * q, (1 - flip) * q + flip * p];
}

export const bitsOf = (row) => Array.from({ length: row.length * 8 }, (_, bit) => (row[bit >> 3] >> (bit & 7)) & 1);
export const bucketOf = (row) => row.reduce((sum, byte, i) => sum + byte * 256 ** i, 0);

/** Natural logarithm of the probability of a report, given the true row of a value. */
export function logProbability(entry, truth, report) {
  const ofBuckets = OF_BUCKETS[entry.mechanism.kind];
  if (ofBuckets) return Math.log(ofBuckets(entry.mechanism, bucketOf(truth), bucketOf(report)));
  const ones = ofBits(entry), shown = bitsOf(report);
  return bitsOf(truth).reduce((sum, bit, i) => sum + Math.log(shown[i] ? ones[bit] : 1 - ones[bit]), 0);
}

/** Beliefs after the report of someone who thought all values equally likely: they sum to 1. */
export function beliefs(logs) {
  const most = Math.max(...logs), weights = logs.map((each) => Math.exp(each - most));
  const sum = weights.reduce((total, each) => total + each, 0);
  return weights.map((each) => each / sum);
}
