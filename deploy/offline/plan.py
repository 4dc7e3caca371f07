"""`deniable plan`: compare mechanisms by what their estimates will be able to detect."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import click

from deniable.config.file import CollectionFileError
from deniable.deploy.cli.options import CONFIG_PATH, NumberRange, refuse_alone, with_options
from deniable.deploy.offline.costs.epsilon_range import EPSILON_RANGE, check_epsilons
from deniable.deploy.offline.costs.plan_plot import checked_plot, save_plot
from deniable.deploy.offline.costs.plan_rows import GrowthPlan, NumberPlan, PlanRow, fields_of
from deniable.deploy.offline.costs.plan_sentences import (
    growth_sentence,
    number_sentence,
    pair_sentence,
    unlisted_sentence,
    up_to_one,
)
from deniable.deploy.offline.costs.shuffled_cost import ShuffledNumber
from deniable.deploy.offline.costs.shuffled_target import Build, ShuffledTarget, wanted_epsilon
from deniable.estimators.decoding.hashed.growth.expected_finds import ExpectedSearch, expected_finds
from deniable.estimators.frequency.number import expected_median_interval
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import MOST_LEVELS, PrefixTree
from deniable.estimators.mechanisms.krr import KRR, LARGEST_K
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import LARGEST_CELLS, PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import LEAST_COHORTS
from deniable.estimators.mechanisms.rappor_hot import LARGEST_BUCKETS
from deniable.estimators.mechanisms.square_wave import DEFAULT_STEPS, SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.estimators.planning import (
    LARGEST_REPORTS,
    LEAST_STD_ERROR,
    Unlisted,
    best_bloom,
    best_one_hot,
    expected_std_error,
    krr_limit,
    reports_needed,
    smallest_detectable,
)


@click.command("plan")
@click.option(
    "--values", type=click.IntRange(2, LARGEST_K), required=True, help="Number of values or candidates."
)
@click.option("--epsilon", type=float, help=f"Privacy loss of one report, in {EPSILON_RANGE}.")
@click.option(
    "--shuffled-epsilon",
    type=float,
    metavar="E",
    help="Instead: choose each epsilon so that a report among --shuffled ones costs this, in [0.001, 16].",
)
@click.option(
    "--shuffled",
    type=ShuffledNumber(),
    metavar="N",
    help="Honest reports that are shuffled together, of all cohorts.  [default: as relays shuffle --reports]",
)
@click.option(
    "--config",
    type=CONFIG_PATH,
    help="Collection file whose relays shuffle, for --shuffled-epsilon.  [default: defaults of relays]",
)
@click.option("--delta", type=float, default=1e-6, show_default=True, help="For --shuffled-epsilon.")
@click.option(
    "--reports", type=click.IntRange(1, LARGEST_REPORTS), required=True, help="Reports in one window."
)
@click.option(
    "--second-values",
    type=click.IntRange(2, LARGEST_CELLS // 2),
    help="Also say what a pair of fields costs: --values of the first, this many of the second.",
)
@click.option(
    "--levels",
    type=click.IntRange(2, MOST_LEVELS),
    metavar="L",
    help="Also say how many texts a prefix-tree with this many levels finds without a list, if --values "
    "different ones are reported.",
)
@click.option(
    "--std-error",
    type=NumberRange(LEAST_STD_ERROR, 1),
    default=0.01,
    show_default=True,
    help="Wanted standard error, as a fraction of all reports.",
)
@click.option(
    "--unlisted",
    type=NumberRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of reports whose strings are not listed; for rappor and local-hash.",
)
@click.option(
    "--unlisted-strings",
    type=click.IntRange(1, LARGEST_K),
    default=5,
    show_default=True,
    help="Number of these strings, equally frequent; the fewer, the more they disturb.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=checked_plot,
    metavar="FILE.png",
    help="Plot the smallest detectable frequency by the number of reports.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def plan_command(
    values: int,
    epsilon: float | None,
    shuffled_epsilon: float | None,
    shuffled: int | None,
    config: Path | None,
    delta: float,
    reports: int,
    second_values: int | None,
    levels: int | None,
    std_error: float,
    unlisted: float,
    unlisted_strings: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare mechanisms at the same epsilon, and say what a number costs.

    With --shuffled-epsilon the epsilon of each is the largest that shuffled reports permit.

    Example: deniable plan --values 105 --epsilon 1 --reports 336776
    """
    if shuffled_epsilon is None:
        refuse_alone("--shuffled", "--shuffled-epsilon")
        refuse_alone("--delta", "--shuffled-epsilon")
    if shuffled_epsilon is None or shuffled is not None:
        refuse_alone("--config", "--shuffled-epsilon, and excludes --shuffled")
    if not unlisted:
        refuse_alone("--unlisted-strings", "--unlisted above 0")
    try:
        check_epsilons({} if epsilon is None else {"epsilon": epsilon})
        wanted = wanted_epsilon(epsilon, shuffled_epsilon, delta, shuffled, reports, config)
        others = Unlisted(unlisted, unlisted_strings)
        mechanisms = {name: _built(build, wanted) for name, build in _builders(values).items()}
        rows = [
            _row(name, mechanism, values, reports, std_error, others, wanted)
            for name, mechanism in mechanisms.items()
        ]
        limit = None if epsilon is None else krr_limit(best_one_hot(2, epsilon), epsilon)
        number = _number(wanted, reports, std_error)
        pairs = [] if second_values is None else _pairs(values, second_values, wanted)
        pair_rows = [
            _row(each.name, each, values * (second_values or 1), reports, std_error, Unlisted(), wanted)
            for each in pairs
        ]
        growth = None if levels is None else _growth(levels, wanted, reports, values)
    except CollectionFileError:
        raise
    except ValueError as error:  # all numbers are options
        raise click.UsageError(with_options(str(error))) from error
    if plot is not None:
        kind = "epsilon" if epsilon is not None else "shuffled epsilon"
        save_plot(plot, mechanisms, values, f"{kind} {epsilon or shuffled_epsilon:g}", reports, others)
    best = min(rows, key=lambda row: row.std_error).mechanism
    if as_json:
        asked: dict[str, Any] = {
            "values": values,
            "epsilon": epsilon,
            "reports": reports,
            "std_error": std_error,
        }
        if isinstance(wanted, ShuffledTarget):
            asked |= {"shuffled_epsilon": wanted.epsilon, "shuffled": wanted.pool.honest(1), "delta": delta}
        if unlisted:
            asked |= {"unlisted": unlisted, "unlisted_strings": unlisted_strings}
        columns = {name: [fields_of(row)[name] for row in rows] for name in fields_of(rows[0])}
        found = {"asked": asked, "best": best, "krr_limit": limit, **columns, "number": fields_of(number)}
        if pair_rows:
            split, whole = map(fields_of, pair_rows)
            found |= {"second_values": second_values, "pair": split, "one_hot_pair": whole}
        if growth is not None:
            found["growth"] = fields_of(growth)
        click.echo(json.dumps(found, allow_nan=False))
        return
    click.echo(_table(rows, std_error, best, limit))
    if unlisted:
        click.echo(unlisted_sentence(others))
    click.echo(number_sentence(number, std_error))
    for row, mechanism in zip(pair_rows, pairs, strict=True):
        click.echo(pair_sentence(row, std_error, _first_error(mechanism, reports)))
    if growth is not None:
        click.echo(growth_sentence(growth))
    if isinstance(wanted, ShuffledTarget):
        click.echo(wanted.sentence(levels))


def _built(build: Build, wanted: float | ShuffledTarget) -> Mechanism:
    return wanted.built(build) if isinstance(wanted, ShuffledTarget) else build(wanted)


def _shuffled(mechanism: Mechanism, wanted: float | ShuffledTarget) -> float | None:
    return wanted.shuffled(mechanism) if isinstance(wanted, ShuffledTarget) else None


def _krr(values: int) -> Build:
    return partial(KRR.from_epsilon, values)


def _builders(values: int) -> dict[str, Build]:
    """Return how to build each mechanism with the least error at an epsilon; bits only if values fit."""
    builders: dict[str, Build] = {"k-rr": _krr(values)}
    if values <= LARGEST_BUCKETS:
        builders["rappor-one-hot"] = partial(best_one_hot, values)
    builders |= {"local-hash": LocalHash.from_epsilon, "rappor": best_bloom}
    if values <= LARGEST_BUCKETS:
        builders["subset-selection"] = partial(SubsetSelection.from_epsilon, values)
    return builders


def _number(wanted: float | ShuffledTarget, reports: int, std_error: float) -> NumberPlan:
    build = partial(SquareWave.from_epsilon, 0.0, 1.0, DEFAULT_STEPS)
    mechanism = wanted.built(build) if isinstance(wanted, ShuffledTarget) else build(wanted)
    return NumberPlan(
        mechanism.epsilon,
        expected_std_error(mechanism, reports),
        expected_median_interval(mechanism, reports),
        reports_needed(mechanism, std_error),
        _shuffled(mechanism, wanted),
    )


def _growth(levels: int, wanted: float | ShuffledTarget, reports: int, values: int) -> GrowthPlan:
    build = partial(PrefixTree.from_epsilon, range(1, levels + 1))
    mechanism = wanted.built(build) if isinstance(wanted, ShuffledTarget) else build(wanted)
    return GrowthPlan(
        levels,
        mechanism.epsilon,
        reports,
        values,
        expected_finds(mechanism, reports, values),
        ExpectedSearch.of_ranks(mechanism, reports, values).least_found(),
        _shuffled(mechanism, wanted),
    )


def _pairs(first: int, second: int, wanted: float | ShuffledTarget) -> list[PairKRR | OneHotPair]:
    """Two fields that share epsilon equally, and one bit for each pair of their values."""

    def split(epsilon: float) -> PairKRR:
        return PairKRR.from_epsilons(first, second, epsilon / 2, epsilon / 2)

    whole = partial(OneHotPair.from_epsilon, first, second)
    if isinstance(wanted, ShuffledTarget):
        return [wanted.built(split), wanted.built(whole)]
    return [split(wanted), whole(wanted)]


def _first_error(mechanism: PairKRR | OneHotPair, reports: int) -> float:
    """Standard error of a rare value of the first field: of one k-RR, or of the sum of K2 bits."""
    if isinstance(mechanism, PairKRR):
        return expected_std_error(mechanism.first, reports)
    return math.sqrt(mechanism.columns) * expected_std_error(mechanism, reports)


def _row(
    name: str,
    mechanism: Mechanism,
    values: int,
    reports: int,
    std_error: float,
    unlisted: Unlisted,
    wanted: float | ShuffledTarget,
) -> PlanRow:
    detectable = smallest_detectable(mechanism, reports, values, unlisted)
    return PlanRow(
        mechanism=name,
        epsilon=mechanism.epsilon,
        std_error=expected_std_error(mechanism, reports, candidates=values, unlisted=unlisted),
        smallest_detectable=detectable if math.isfinite(detectable) else None,
        reports_needed=reports_needed(mechanism, std_error, candidates=values, unlisted=unlisted),
        shuffled=_shuffled(mechanism, wanted),
    )


def _table(rows: list[PlanRow], std_error: float, best: str, limit: float | None) -> str:
    """Return the comparison for people."""
    wanted = f"reports for {std_error:g}"
    lines = [f"{'mechanism':<16} {'epsilon':>8} {'std error':>10} {'detectable':>11} {wanted:>18}"]
    for row in rows:
        needed = "none" if row.reports_needed is None else f"{row.reports_needed:,}"
        found = "none" if row.smallest_detectable is None else f"{row.smallest_detectable:.6f}"
        lines.append(
            f"{row.mechanism:<16} {rounded_up(row.epsilon):>8} {up_to_one(row.std_error):>10} {found:>11}"
            f" {needed:>18}"
        )
    few = "" if limit is None else f"; k-RR beats one-hot RAPPOR below {limit:.1f} values at this epsilon"
    lines.append(f"least error: {best}{few}")
    lines.append("std error: of a rare value; detectable: found with probability 0.9; for values not listed")
    lines.append(
        "beforehand: local-hash, with 65,536 counters and the collisions of values whose shares fall as"
    )
    lines.append("1 / rank, and rappor, with 8 cohorts of 128 bits and 2 hashes; with fewer than")
    lines.append(f"{LEAST_COHORTS} cohorts, rappor states no intervals and calls nothing significant")
    return "\n".join(lines)
