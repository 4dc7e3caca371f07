"""`deniable plan`: compare mechanisms by what their estimates will be able to detect."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from deploy.config.describe import rounded_up
from deploy.offline.plan_plot import save_plot
from estimators.mechanisms.krr import KRR, LARGEST_K
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor_hot import LARGEST_BUCKETS
from estimators.planning import (
    LARGEST_REPORTS,
    LEAST_STD_ERROR,
    best_bloom,
    best_one_hot,
    expected_std_error,
    krr_limit,
    reports_needed,
    smallest_detectable,
)


@dataclass(frozen=True)
class PlanRow:
    """The expected accuracy of one mechanism; a column of the record, a line of the table.

    Parameters
    ----------
    mechanism : name.
    epsilon : privacy loss of one report, exact.
    std_error : of a rare value's frequency, fraction of all reports.
    smallest_detectable : frequency found with probability 0.9; None if there is none.
    reports_needed : number of reports for the wanted standard error.
    """

    mechanism: str
    epsilon: float
    std_error: float
    smallest_detectable: float | None
    reports_needed: int


@click.command("plan")
@click.option(
    "--values", type=click.IntRange(2, LARGEST_K), required=True, help="Number of values or candidates."
)
@click.option("--epsilon", type=float, required=True, help="Privacy loss of one report, in [1e-6, 16].")
@click.option(
    "--reports", type=click.IntRange(1, LARGEST_REPORTS), required=True, help="Reports in one window."
)
@click.option(
    "--std-error",
    type=click.FloatRange(LEAST_STD_ERROR, 1),
    default=0.01,
    show_default=True,
    help="Wanted standard error, as a fraction of all reports.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png",
    help="Plot the smallest detectable frequency by the number of reports.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def plan_command(
    values: int, epsilon: float, reports: int, std_error: float, plot: Path | None, as_json: bool
) -> None:
    """Compare k-RR and RAPPOR at the same epsilon, before any report is sent.

    Example: deniable plan --values 105 --epsilon 1 --reports 336776
    """
    try:
        mechanisms = _mechanisms(values, epsilon)
        rows = [_row(name, mechanism, values, reports, std_error) for name, mechanism in mechanisms.items()]
        limit = krr_limit(best_one_hot(2, epsilon), epsilon)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if plot is not None:
        save_plot(plot, mechanisms, values, epsilon, reports)
    best = min(rows, key=lambda row: row.std_error).mechanism
    if as_json:
        columns = {name: [asdict(row)[name] for row in rows] for name in asdict(rows[0])}
        asked = {"values": values, "epsilon": epsilon, "reports": reports, "std_error": std_error}
        click.echo(json.dumps({"asked": asked, "best": best, "krr_limit": limit, **columns}, allow_nan=False))
    else:
        click.echo(_table(rows, std_error, best, limit))


def _mechanisms(values: int, epsilon: float) -> dict[str, Mechanism]:
    """Return mechanisms by name, each with the least error at this epsilon; one-hot only if values fit."""
    mechanisms: dict[str, Mechanism] = {"k-rr": KRR.from_epsilon(values, epsilon)}
    if values <= LARGEST_BUCKETS:
        mechanisms["rappor-one-hot"] = best_one_hot(values, epsilon)
    mechanisms["rappor"] = best_bloom(epsilon)
    return mechanisms


def _row(name: str, mechanism: Mechanism, values: int, reports: int, std_error: float) -> PlanRow:
    detectable = smallest_detectable(mechanism, reports, values)
    return PlanRow(
        mechanism=name,
        epsilon=mechanism.epsilon,
        std_error=expected_std_error(mechanism, reports, candidates=values),
        smallest_detectable=detectable if math.isfinite(detectable) else None,
        reports_needed=reports_needed(mechanism, std_error, candidates=values),
    )


def _table(rows: list[PlanRow], std_error: float, best: str, limit: float) -> str:
    """Return the comparison for people."""
    wanted = f"reports for {std_error:g}"
    lines = [f"{'mechanism':<15} {'epsilon':>8} {'std error':>10} {'detectable':>11} {wanted:>18}"]
    for row in rows:
        found = "none" if row.smallest_detectable is None else f"{row.smallest_detectable:.6f}"
        lines.append(
            f"{row.mechanism:<15} {rounded_up(row.epsilon):>8} {row.std_error:>10.6f} {found:>11}"
            f" {row.reports_needed:>18,}"
        )
    lines.append(f"least error: {best}; k-RR beats one-hot RAPPOR below {limit:.1f} values at this epsilon")
    lines.append("std error: of a rare value; detectable: found with probability 0.9; rappor: 8 cohorts of")
    lines.append("128 bits, 2 hashes, for values not listed beforehand")
    return "\n".join(lines)
