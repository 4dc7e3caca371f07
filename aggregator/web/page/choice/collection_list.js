// The list of the worker's collections, of which some are shown.

import { cloneTemplate, placeChildren, setText } from "../dom.js";
import { formatWhole } from "../format.js";
import { fold } from "../rows/search.js";

const SEARCHED_FROM = 13; // fewer are seen at once

/** `choose` takes the names to show, in the worker's order; `hrefOf` gives the link to one collection alone. */
export function createList(root, { choose, hrefOf }) {
  const list = { root, names: [], shown: [], items: new Map(), choose, hrefOf };
  root.querySelector("input").addEventListener("input", () => filterItems(list));
  root.querySelector(".all").addEventListener("click", () => choose(foundNames(list)));
  return list;
}

export function drawList(list, names, shown) {
  const { root } = list;
  const isNew = list.names.join() !== names.join();
  list.names = names;
  list.shown = shown;
  root.hidden = names.length < 2;
  root.classList.toggle("many", names.length >= SEARCHED_FROM);
  if (isNew) {
    list.items = new Map(names.map((name) => [name, list.items.get(name) ?? createItem(list, name)]));
    placeChildren(root.querySelector("ul"), [...list.items.values()]);
    root.querySelector("details").open = names.length >= SEARCHED_FROM && matchMedia("(min-width: 64rem)").matches;
    filterItems(list);
  }
  for (const [name, item] of list.items) item.querySelector("input").checked = shown.includes(name);
  setText(root.querySelector(".count"), `${formatWhole(shown.length)} of ${formatWhole(names.length)} shown`);
}

/** Marks those without new data, or without any. */
export function drawStates({ items }, { stale, waiting }) {
  for (const [name, item] of items) {
    setText(item.querySelector(".state"), name in stale ? "no new data" : waiting.includes(name) ? "no estimate yet" : "");
  }
}

function createItem(list, name) {
  const item = cloneTemplate("item-template");
  setText(item.querySelector(".name"), name);
  const only = item.querySelector("a");
  only.href = list.hrefOf(name);
  only.setAttribute("aria-label", `Show only ${name}`);
  only.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // opens another page
    event.preventDefault();
    list.choose([name]);
  });
  item.querySelector("input").addEventListener("change", ({ target }) => {
    list.choose(list.names.filter((each) => (each === name ? target.checked : list.shown.includes(each))));
  });
  return item;
}

function foundNames({ root, names }) {
  const wanted = fold(root.querySelector("input").value);
  return names.filter((name) => fold(name).includes(wanted));
}

function filterItems(list) {
  const found = foundNames(list);
  for (const [name, item] of list.items) item.hidden = !found.includes(name);
  setText(list.root.querySelector(".all"), found.length < list.names.length ? `Show the ${formatWhole(found.length)} found` : "Show all");
}
