// The shares so far across changes of parameters: what is joined, and what is said of each part. Pure, but for the list.

import { placeChildren, setText } from "../dom.js";
import { formatCount, formatMoment, quoted } from "../format.js";
import { nameOf } from "../names.js";

const NAMES_SHOWN = 5;
const OF_JOINED = ["std_error", "shared_std_error", "parts_of_value", "p_value", "differs"];

/**
 * The shares that are shown: joined ones, or else those of the present parameters. `columns`: names of those of both,
 * to which joined shares add some.
 */
export function sharesOf({ joined, sequence, independent }, columns) {
  if (joined && joined.values.length > 0) {
    const estimator = "means over windows, joined by inverse variance";
    return { ...joined, columns: [...columns, ...OF_JOINED], isEveryLook: joined.unread === 0, estimator };
  }
  if (!sequence) return null;
  const { omitted } = independent;
  return { ...sequence, columns, isEveryLook: true, estimator: "mean over windows", omitted };
}

/** Draws a line for each of them. */
export function drawParts(list, record) {
  const texts = record === undefined ? [] : describeParts(record);
  list.hidden = texts.length === 0;
  placeChildren(list, texts.map((_, index) => list.children[index] ?? document.createElement("li")));
  texts.forEach((text, index) => setText(list.children[index], text));
}

/** A sentence for each part under other parameters, and for what cannot be joined. */
export function describeParts({ joined, independent, coverage: { passed_over: passedOver } }) {
  const others = Object.values(passedOver).reduce((sum, each) => sum + each, 0);
  if (!joined) return others > 0 ? [leftOut(others)] : [];
  if (joined.failure !== "") return [`${leftOut(others)} Not joined here: ${joined.failure}.`];
  const texts = joined.parts.map(describePart);
  if (joined.unread > 0) {
    texts.push(`${leftOut(joined.unread)} No estimate of them can be joined here: they have too few reports, ` +
      "leave values out, or are older than the topic keeps.");
  }
  const parts = joined.parts.filter(({ not_joined: reason }) => reason === "").length + (independent === null ? 0 : 1);
  const partly = joined.values.filter((_, place) => joined.parts_of_value[place] < parts);
  if (partly.length > 0) texts.push(`Only some lists have ${named(partly)}: estimated from the windows of these.`);
  const different = joined.values.filter((_, place) => joined.differs[place]);
  if (different.length > 0) {
    texts.push(`Found to differ between parameters: ${named(different)}. A mean of different shares is weighted by ` +
      "certainty, not by reports. The test allows for the randomizers’ noise alone: where other people report after a " +
      "change, shares may differ although nobody changed.");
  }
  return texts;
}

function describePart({ to, windows, reports, change, not_joined: reason }) {
  const which = `Other parameters until ${formatMoment(to)}: ${change}.`;
  if (reason !== "") return `${which} Not comparable, so left out: ${quoted(reason)}.`;
  return `${which} ${formatCount(reports, "report")} in ${formatCount(windows, "window")}, joined by inverse variance.`;
}

function leftOut(others) {
  const [are, their] = others === 1 ? ["was", "its"] : ["were", "their"];
  return `${formatCount(others, "window")} of other parameters ${are} left out; deniable rollup --former joins what ` +
    `${their} counts say.`;
}

function named(values) {
  const more = values.length - NAMES_SHOWN;
  return values.slice(0, NAMES_SHOWN).map(nameOf).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
