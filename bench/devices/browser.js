// Times reports of the client, in Node and in a page: the shipped module, from a value to a stored upload.

/** Uploads that wait in a stored queue at most: the record grows with them, and a device has few. */
const QUEUED = 20;

const pair = (i) => [`first-${i % 16}`, `second-${i % 3}`];
/** The i-th value, where it is not a text. */
const VALUES = {
  "k-rr": (i) => i % 100, longitudinal: (i) => i % 100, number: (i) => (i * 0.37) % 100,
  "k-rr-pair": pair, "one-hot-pair": pair,
};

/** Report distinct values; return the median and the 99th percentile of one, and the sum, in milliseconds. */
export async function measure({ open, memoryStorage, mechanisms }, { list, publicKey, name, reports, isStored }) {
  globalThis.fetch = async () => new Response(list);
  const edge = "https://edge.example";
  const client = await open({
    edge, publicKey, maxEpsilon: 16, sendOnLeave: false, mechanisms,
    ...(isStored ? { maxUploads: QUEUED } : { maxUploads: reports, storage: memoryStorage() }),
  });
  const valueOf = VALUES[name] ?? ((i) => `https://site-${i}.example/`);
  for (let i = 0; i < 50; i++) await client.report(name, valueOf(i));
  if (isStored) await client.optOut().then(() => client.optIn());
  const times = [], begun = performance.now();
  for (let i = 0; i < reports; i++) {
    const start = performance.now();
    if ((await client.report(name, valueOf(i))) !== "queued") throw new Error("a report was refused");
    times.push(performance.now() - start);
  }
  const all = performance.now() - begun;
  client.close();
  times.sort((a, b) => a - b);
  return { median: times[Math.floor(reports / 2)], late: times[Math.floor(0.99 * reports)], all };
}
