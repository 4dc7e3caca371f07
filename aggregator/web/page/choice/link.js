// What the page's address says after its #: which collections are shown, and what of each. Pure.
// Rule: what follows a # stays in the browser, so no log of a server or proxy has what people look for.

const FIELDS = [
  "search", "sort", "rows", "intervals", "window", "compare", "compare_search", "compare_rows",
  "so_far", "so_far_search", "so_far_sort", "so_far_rows", "so_far_intervals",
];
const COLLECTIONS = "collections";
const NAME = /^[a-z][a-z0-9_-]{0,62}$/;

/** `collections`: names in order, null if nothing was chosen; `fields`: texts by `NAME.FIELD`. */
export function readLink(hash) {
  const fields = new Map();
  let collections = null;
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const [name, field] = key.split(".");
    if (key === COLLECTIONS) collections = [...new Set(text.split(",").filter((each) => NAME.test(each)))];
    else if (NAME.test(name) && FIELDS.includes(field) && text !== "") fields.set(key, text);
  }
  return { collections, fields };
}

/** The inverse: empty if there is nothing to say. Fields of collections that are not shown are left out. */
export function writeLink({ collections, fields }, shown) {
  const parameters = new URLSearchParams();
  if (collections !== null) parameters.set(COLLECTIONS, collections.join(","));
  for (const [key, text] of [...fields].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (shown.includes(key.split(".")[0])) parameters.set(key, text);
  }
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text === "" ? "" : `#${text}`;
}
