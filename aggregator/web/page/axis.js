// The axis of a table's bars, from 0.
// Rule: every tick has its label; where labels would touch, as on a phone, there are fewer ticks.

const GAP_PIXELS = 4;

/** Draws the most ticks whose labels fit; returns the axis's end, which is at least `highest`. */
export function drawAxis(table, highest) {
  const axis = table.querySelector(".axis");
  const scales = scalesFor(highest);
  for (const { step, steps } of scales) {
    table.style.setProperty("--axis-step", `${100 / steps}%`);
    axis.replaceChildren(...Array.from({ length: steps + 1 }, (_, index) => {
      const tick = document.createElement("span");
      tick.textContent = Number((100 * step * index).toPrecision(3));
      tick.style.setProperty("inset-inline-start", `${100 * index / steps}%`);
      return tick;
    }));
    if (fits(axis)) return steps * step;
  }
  axis.firstElementChild.remove(); // a column of some pixels: bars begin at 0 anyway
  return scales.at(-1).step;
}

/** From many ticks to two: multiples of 1, 2 or 5 x 10^i; then halves, or nothing between, of a round end. */
export function scalesFor(highest) {
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  const fine = [0.2, 0.5, 1, 2].map((part) => part * magnitude).find((part) => highest <= 5 * part);
  const end = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].map((part) => part * magnitude).find((part) => highest <= part);
  return [
    { step: fine, steps: Math.ceil(highest / fine) },
    { step: end / 2, steps: 2 },
    { step: end, steps: 1 },
  ];
}

function fits(axis) {
  const labels = Array.from(axis.children, (label) => label.getBoundingClientRect());
  return labels.every(({ left }, index) => index === 0 || left >= labels[index - 1].right + GAP_PIXELS);
}
