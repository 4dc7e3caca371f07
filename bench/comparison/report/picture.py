"""bench/results.png: the ratio of each figure, and growth of time and memory."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from matplotlib import RcParams, rc_context, rcParamsDefault
from matplotlib.figure import Figure as Canvas

from bench.comparison.report import bars, curves
from bench.comparison.report.figure import ResultsPart

DOTS_PER_INCH = 115
TOP, FOOT, LEAST_BODY = 0.55, 0.6, 1.5  # inches
MARGIN = 0.2
FOOTER_LETTER = 0.06


def draw(parts: Sequence[ResultsPart], title: str, footer: str, path: Path) -> None:
    """Draw the figures, and the growth lines to their right; either may be absent.

    Parameters
    ----------
    parts : of one run.
    title : of the picture.
    footer : machine and versions.
    path : of the PNG.
    """
    lines = [line for part in parts for line in part.lines]
    has_figures = any(part.figures for part in parts)
    left = bars.WIDTH if has_figures else 0.0
    width = left + (curves.WIDTH if lines or not has_figures else 0.0)
    body = max(LEAST_BODY, bars.height(parts), curves.height(lines))
    with rc_context(_style()):
        canvas = Canvas(figsize=(width, TOP + body + FOOT), facecolor="white")
        _inscribe(canvas, title, footer)
        if has_figures:
            bars.draw(canvas, parts, top=TOP, room=body)
        if lines:
            curves.draw(canvas, lines, left=left, top=TOP, room=body)
        canvas.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})


def _inscribe(canvas: Canvas, title: str, footer: str) -> None:
    width, height = canvas.get_size_inches()
    canvas.text(MARGIN / width, 1 - 0.28 / height, title, fontsize=16, fontweight="bold", va="center")
    lines = "\n".join(wrap(footer, int((width - 2 * MARGIN) / FOOTER_LETTER)))
    canvas.text(MARGIN / width, 0.1 / height, lines, fontsize=8, color="#6a6f78", va="bottom")


def _style() -> RcParams:
    """Use matplotlib's defaults regardless of user settings, with a few exceptions."""
    style = RcParams(rcParamsDefault)
    style["font.size"] = 9.5
    style["axes.spines.top"] = style["axes.spines.right"] = False
    style["hatch.linewidth"] = 0.8
    style["axes.edgecolor"], style["text.color"] = "#9aa0a8", "#1c1f24"
    style["xtick.color"] = style["ytick.color"] = "#4a4f58"
    return style
