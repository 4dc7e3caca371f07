// The period of a question about all windows so far: chosen in its form, or as the page's address says.
// Rule 1: the beginning stays while the end moves, else intervals would not hold at every look.
// Rule 2: the address says `day` of an open part, and `day,START/END`, unix seconds, of one that shows an answer: a
// link asks the same again, whenever and in whatever time zone it is opened.

const PERIODS = ["day", "week", "month"];

/** `ask` is called with start and end when people ask, and when the address has an answer that is not shown. */
export function createPeriod(root, keep, ask) {
  const period = { root, keep, ask, select: root.querySelector("select"), end: null, asked: "" };
  root.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    askFor(period, beginningOf(period.select.value, period.end), period.end);
    write(period);
  });
  period.select.addEventListener("change", () => write(period));
  root.addEventListener("toggle", () => write(period));
  return period;
}

/** `end`: of the newest final window, unix seconds. */
export function updatePeriod(period, end) {
  period.end = end;
}

/** Opens or closes the part, and asks, as the page's address says. */
export function restorePeriod(period) {
  const found = parse(period.keep.read("so_far"));
  period.root.open = found !== null;
  if (found === null) return;
  period.select.value = found.name;
  if (found.asked !== "" && found.asked !== period.asked) askFor(period, ...found.asked.split("/").map(Number));
}

function askFor(period, start, end) {
  period.asked = `${start}/${end}`;
  period.ask(start, end);
}

function write({ root, keep, select, asked }) {
  keep.write("so_far", !root.open ? "" : asked === "" ? select.value : `${select.value},${asked}`);
}

/** Name of the period, and what was asked, "" for nothing; null if the text is none. */
function parse(text) {
  const [name, asked = ""] = text.split(",");
  if (!PERIODS.includes(name)) return null;
  return { name, asked: /^\d{1,12}\/\d{1,12}$/.test(asked) ? asked : "" };
}

/** Start of the day, week or month that a window's last second is in, in local time, as unix seconds. */
function beginningOf(name, end) {
  const last = new Date(1000 * (end - 1));
  const [year, month, day] = [last.getFullYear(), last.getMonth(), last.getDate()];
  const daysSinceMonday = (last.getDay() + 6) % 7;
  const first = name === "month" ? 1 : name === "week" ? day - daysSinceMonday : day;
  return Math.round(new Date(year, month, first).getTime() / 1000);
}
