// Words that are drawn at given times, in JSON: how often the operating system was asked, after each.

const source = process.argv[2];
const times = JSON.parse(process.argv[3]);
const { freshWords } = await import(source);

let asked = 0, number = 0, at = 0;
Date.now = () => at;
Object.defineProperty(globalThis, "crypto", {
  value: { getRandomValues: (pool) => { asked += 1; return pool.map((_, i, all) => (all[i] = ++number)); } },
});
const seen = new Set();
const found = times.map((milliseconds) => {
  at = milliseconds;
  for (const half of freshWords(2)) {
    if (!half || seen.has(half)) throw new Error("a word is used twice");
    seen.add(half);
  }
  return asked;
});
process.stdout.write(JSON.stringify(found));
