// Helpers that change the document.
// Rule: received data never becomes markup: text goes through textContent, lengths through style properties.

export function cloneTemplate(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

/** Assigns a text only if it changes, since screen readers announce a live region at each assignment. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setTexts(parent, texts) {
  for (const [selector, text] of Object.entries(texts)) setText(parent.querySelector(selector), text);
}

/** Makes `children` the only children of `parent`, in this order; children already in place stay untouched. */
export function placeChildren(parent, children) {
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
}

/** Keeps one child per entry, reusing existing ones; `draw` shows an entry in its child. */
export function drawEach(parent, templateId, entries, draw) {
  placeChildren(parent, entries.map((_, index) => parent.children[index] ?? cloneTemplate(templateId)));
  entries.forEach((entry, index) => draw(parent.children[index], entry));
}
