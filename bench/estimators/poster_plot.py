"""The picture of the poster: error and likelihood loss against the number of reports."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.estimators.poster_cell import ESTIMATORS, Cell

VALUES = 10_000
EPSILON = 4


def plot(cells: list[Cell], path: Path) -> None:
    """Draw the cells of epsilon 4 and K 10,000: a column for each Zipf exponent, MSE above, loss below.

    The plot shows the loss minus that of MLE*, since the entropy of the data would hide differences. So MLE*
    is the line at 0. Inv is left out, because only negative frequencies reach its loss.
    """
    shown = [cell for cell in cells if cell.values == VALUES and cell.epsilon == EPSILON]
    exponents = sorted({cell.exponent for cell in shown})
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots(2, len(exponents), squeeze=False, sharex=True)
    for column, exponent in enumerate(exponents):
        own = [cell for cell in shown if cell.exponent == exponent]
        _plot_errors(axes[0, column], own)
        _plot_losses(axes[1, column], own)
        axes[0, column].set_title(f"Zipf exponent {exponent}")
        axes[1, column].set_xlabel("reports N")
    axes[0, 0].set_ylabel("mean squared error")
    axes[1, 0].set_ylabel("loss above MLE*, nats per report")
    axes[0, 0].legend()
    figure.suptitle(f"k-RR, K = {VALUES:,}, epsilon = {EPSILON}")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _plot_errors(axes: Axes, cells: list[Cell]) -> None:
    for name in ESTIMATORS:
        axes.loglog([cell.reports for cell in cells], [cell.mse[name] for cell in cells], "o-", label=name)


def _plot_losses(axes: Axes, cells: list[Cell]) -> None:
    for place, name in enumerate(ESTIMATORS):
        if name != "Inv":
            above = [cell.loss[name] - cell.loss["MLE*"] for cell in cells]
            axes.semilogx([cell.reports for cell in cells], above, "o-", color=f"C{place}")
