"""The plot of `deniable plan`: how small a frequency can be detected, by the number of reports."""

from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np

from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.planning import LARGEST_REPORTS, Unlisted, smallest_detectable

_POINTS = 61
_SUFFIX = ".png"
_DECADES = 2  # on either side of the number of reports asked for


def checked_plot(_: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Return the path; click.BadParameter if its name is not that of a PNG."""
    if path is not None and path.suffix.lower() != _SUFFIX:
        raise click.BadParameter(
            f"must be the name of a PNG, such as plan.png, got {path.name}", param=option
        )
    return path


def save_plot(
    path: Path,
    mechanisms: Mapping[str, Mechanism],
    values: int,
    privacy: str,
    reports: int,
    unlisted: Unlisted,
) -> None:
    """Write a PNG with one curve for each mechanism, around the number of reports.

    Parameters
    ----------
    path : file to write.
    mechanisms : by name.
    values : number of values.
    privacy : for the title, such as epsilon 1.
    reports : number of reports to mark.
    unlisted : reports of strings that are not listed.

    Raises
    ------
    click.ClickException if matplotlib is not installed, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure  # here: only a plot needs it
    except ImportError as error:
        raise click.ClickException("--plot needs matplotlib: pip install 'deniable[analysis]'") from error
    numbers = np.clip(reports * 10.0 ** np.linspace(-_DECADES, _DECADES, _POINTS), 1, LARGEST_REPORTS)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, mechanism in mechanisms.items():
        found = [smallest_detectable(mechanism, round(number), values, unlisted) for number in numbers]
        axes.loglog(numbers, np.where(np.isfinite(found), found, np.nan), label=name)
    axes.axvline(reports, color="gray", linestyle=":", label=f"{reports:,} reports")
    axes.set(
        xlabel="reports",
        ylabel="smallest detectable frequency",
        title=f"{values:,} values, {privacy}",
    )
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path, format="png", dpi=150)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
