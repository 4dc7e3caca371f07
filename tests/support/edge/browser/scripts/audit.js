// Counts outputs of the client's randomizers, for an audit: the same in Node and in a page.

const bucketOf = (row) => row.reduce((sum, byte, i) => sum + byte * 256 ** i, 0);
const bucketIn = ([row, , , cohort = 0], width) => width * cohort + bucketOf(row);
const bitsAt = (row, bits) => bits.reduce((sum, bit, i) => sum | (((row[bit >> 3] >> (bit & 7)) & 1) << i), 0);

/**
 * Count how often each input has each outcome.
 *
 * `subject`: the list's entry; `inputs`, for each a list of values that are one input, such as texts with the same
 * bits, used in turn; `bits` to look at, or `groups`, the outcome of each bucket, else the bucket itself; `outcomes`;
 * `samples` of each input; `devices`: after how many rounds another device begins, 0 for one device; `reports`: of
 * which the majority of each bit counts; `width`: of the buckets of a cohort, if cohorts are part of the outcome.
 */
export function count({ entry, inputs, bits, groups, outcomes, samples, devices = 0, reports = 1, width = 0 }, parts) {
  const { freshWords, mechanisms, memoryOf, randomBytes, readCollection } = parts;
  const [, , parameters, responderOf] = readCollection(entry, mechanisms)._mechanism, hits = inputs.map(() => Array(outcomes).fill(0));
  let responder;
  for (let sample = 0; sample < samples; sample++) {
    if (!responder || (devices && sample % devices === 0)) {
      responder = responderOf(memoryOf(randomBytes(32), "device", entry.name, parameters));
    }
    inputs.forEach((values, input) => {
      const value = values[sample % values.length], seen = [];
      for (let report = 0; report < reports; report++) seen.push(responder(value)(freshWords));
      const outcome = !bits ? (groups?.[bucketIn(seen[0], width)] ?? bucketIn(seen[0], width))
        : bits.reduce((sum, bit, i) => sum | ((seen.filter(([row]) => bitsAt(row, [bit])).length * 2 > reports) << i), 0);
      hits[input][outcome]++;
    });
  }
  return hits;
}
