// Intervals that hold for all values at once, instead of for each alone.

/** Calls `redraw` when people choose one or the other; hidden while an estimate lacks the former. */
export function createForAll(root, redraw) {
  const box = root.querySelector(".for-all input");
  box.addEventListener("change", redraw);
  return { label: root.querySelector(".for-all"), box };
}

/** The estimate with the intervals that are asked for. */
export function withIntervals({ label, box }, estimate) {
  const { low_all: low = [], high_all: high = [] } = estimate;
  label.hidden = low.length === 0;
  return box.checked && low.length > 0 ? { ...estimate, low, high } : estimate;
}
