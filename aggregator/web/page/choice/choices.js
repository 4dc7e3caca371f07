// What the people at this page have chosen, kept in its address: a copy of the address shows the same.

import { readLink, writeLink } from "./link.js";

const WRITE_MILLISECONDS = 200; // browsers limit how often an address may change

/** `changed` is called when the address changes otherwise: by Back, by hand, or by a link. */
export function openChoices(changed) {
  const choices = { ...readLink(location.hash), shown: [], timer: 0 };
  addEventListener("hashchange", () => {
    Object.assign(choices, readLink(location.hash));
    changed();
  });
  return choices;
}

/** What one collection's view keeps: `read` gives a field's text or "", `write` replaces it. */
export function keeperOf(choices, name) {
  return {
    name,
    read: (field) => choices.fields.get(`${name}.${field}`) ?? "",
    write: (field, text) => {
      const key = `${name}.${field}`;
      if ((choices.fields.get(key) ?? "") === text) return;
      if (text === "") choices.fields.delete(key);
      else choices.fields.set(key, text);
      clearTimeout(choices.timer);
      choices.timer = setTimeout(() => history.replaceState(null, "", addressOf(choices)), WRITE_MILLISECONDS);
    },
  };
}

/** Chooses collections, as a step that Back undoes. */
export function choose(choices, names) {
  clearTimeout(choices.timer);
  choices.collections = names;
  choices.shown = names;
  history.pushState(null, "", addressOf(choices));
}

/** A link to what is shown, also later: `windows` has the start of the window that each collection shows. */
export function linkOf(choices, windows) {
  const fields = new Map(choices.fields);
  for (const [name, start] of windows) fields.set(`${name}.window`, String(start));
  return new URL(addressOf({ ...choices, collections: choices.shown, fields }), location.href).href;
}

function addressOf(choices) {
  return `${location.pathname}${location.search}${writeLink(choices, choices.shown)}`;
}
