// Sorting a table by a click on a column's head: one way, the other way, and back to the table's own order.

const SEPARATOR = "-";
const texts = new Intl.Collator("en", { numeric: true });
const orders = {
  value: (a, b) => texts.compare(a.value, b.value),
  frequency: (a, b) => a.frequency - b.frequency,
  low: (a, b) => a.low - b.low,
};
const FALLING_FIRST = ["frequency", "low"];

/** `root` holds buttons with `data-sort`; `keep` stores the order, such as "value" or "-low". */
export function createSorting(root, keep, redraw) {
  const sorting = { root, key: "", keep };
  for (const button of root.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => {
      sorting.key = nextKey(sorting.key, button.dataset.sort);
      keep.write("sort", sorting.key);
      drawHeads(sorting);
      redraw();
    });
  }
  restoreSorting(sorting);
  return sorting;
}

/** Takes the order that the page's address keeps. */
export function restoreSorting(sorting) {
  const key = sorting.keep.read("sort");
  sorting.key = columnOf(key) in orders ? key : "";
  drawHeads(sorting);
}

/** The rows in the chosen order; as they are if none is chosen. */
export function sortRows({ key }, rows) {
  if (key === "") return rows;
  const order = orders[columnOf(key)];
  return rows.toSorted((a, b) => (isFalling(key) ? order(b, a) : order(a, b)));
}

function nextKey(key, column) {
  const [rising, falling] = [column, `${SEPARATOR}${column}`];
  const ways = FALLING_FIRST.includes(column) ? [falling, rising] : [rising, falling];
  return ways[ways.indexOf(key) + 1] ?? "";
}

function isFalling(key) {
  return key.startsWith(SEPARATOR);
}

function columnOf(key) {
  return isFalling(key) ? key.slice(SEPARATOR.length) : key;
}

function drawHeads({ root, key }) {
  for (const button of root.querySelectorAll("[data-sort]")) {
    const isSorted = button.dataset.sort === columnOf(key);
    const direction = !isSorted ? "none" : isFalling(key) ? "descending" : "ascending";
    button.closest("th").setAttribute("aria-sort", direction);
  }
}
