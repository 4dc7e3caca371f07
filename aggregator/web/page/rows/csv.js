// Tables as CSV files (RFC 4180), and their download.
// Rule: a spreadsheet must not take a value for a formula. A text that begins with = + - @, a tab or a line end gets
// an apostrophe before it, unless it is a number, such as -10. Texts are quoted always, figures never.

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** `rows`: lists of texts, numbers, booleans, or null for nothing. */
export function csvOf(names, rows) {
  return [names, ...rows].map((row) => `${row.map(cellOf).join(",")}\r\n`).join("");
}

function cellOf(cell) {
  if (typeof cell !== "string") return cell === null ? "" : String(cell);
  const safe = FORMULA.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Gives the browser a file to save. It never leaves the machine. */
export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Unix seconds as `2026-01-31T00:00:00Z`. */
export function iso(seconds) {
  return new Date(1000 * seconds).toISOString().replace(".000Z", "Z");
}

/** For a file's name: `2026-01-31T000000Z`. */
export function stamp(seconds) {
  return iso(seconds).replaceAll(":", "");
}
