// Intervals that hold for all values at once, instead of for each alone.

/** `keep` stores the choice; `redraw` is called when people make it. Hidden while an estimate lacks such intervals. */
export function createForAll(root, keep, redraw) {
  const forAll = { label: root.querySelector(".for-all"), box: root.querySelector(".for-all input"), keep };
  forAll.box.addEventListener("change", () => {
    keep.write("intervals", forAll.box.checked ? "all" : "");
    redraw();
  });
  restoreForAll(forAll);
  return forAll;
}

/** Takes the choice from the page's address. */
export function restoreForAll({ box, keep }) {
  box.checked = keep.read("intervals") === "all";
}

/** The estimate with the intervals that are asked for. */
export function withIntervals({ label, box }, estimate) {
  const { low_all: low = [], high_all: high = [] } = estimate;
  label.hidden = low.length === 0;
  return box.checked && low.length > 0 ? { ...estimate, low, high } : estimate;
}
