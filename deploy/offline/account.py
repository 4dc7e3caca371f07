"""The command `deniable account`: what reports cost, and how many a budget allows."""

import json
import math
from collections.abc import Iterable
from typing import Any

import click

from deniable.config.describe import condition_for_ever, most_changes, shown_buckets
from deniable.deploy.cli.options import with_options
from deniable.deploy.offline.costs.account_table import (
    account_table,
    condition_of,
    is_capped,
)
from deniable.deploy.offline.costs.epsilon_range import EPSILON_RANGE, check_epsilons
from deniable.deploy.offline.costs.shuffled_cost import ShuffledNumber, shuffled_cost, shuffled_lines
from deniable.estimators.accounting.accountant import (
    Subject,
    allowed_reports,
    costs,
    epsilon_inf,
    loss_of_reports,
    most_reports,
)
from deniable.estimators.accounting.changing_buckets import ChangingBuckets, hashed_subject
from deniable.estimators.accounting.changing_values import ChangingResponses, changing
from deniable.estimators.accounting.renyi import zcdp_rho
from deniable.estimators.mechanisms.directed_rounding import product_above, rounded_up
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import LARGEST_CELLS, PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor_hot import LARGEST_BUCKETS, HotRappor
from deniable.estimators.mechanisms.square_wave import DEFAULT_STEPS, SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection

LARGEST_HASHES = 256

PARAMETERS = {
    "k-rr": ("k", "epsilon"),
    "k-rr-longitudinal": ("k", "epsilon_inf", "epsilon_one"),
    "k-rr-pair": ("k", "second_k", "epsilon"),
    "one-hot-pair": ("epsilon",),
    "subset-selection": ("k", "epsilon"),
    "local-hash": ("epsilon",),
    "local-hash-longitudinal": ("epsilon_inf", "epsilon_one"),
    "prefix-tree": ("epsilon",),
    "rappor": ("f", "p", "q", "hashes"),
    "number": ("epsilon",),
}

#: Parameters that are checked, and do not change the cost.
OPTIONAL = {"one-hot-pair": {"k", "second_k"}}


@click.command()
@click.option("--mechanism", type=click.Choice(list(PARAMETERS)), required=True)
@click.option("--k", type=int, help="k-RR, subset selection: number of values.")
@click.option(
    "--second-k",
    type=int,
    help="Pair: number of values of the second field; --k is of the first. A one-hot pair needs neither.",
)
@click.option(
    "--epsilon",
    type=float,
    help=f"k-RR, pair, subsets, local hashing, number: privacy loss of one report, in {EPSILON_RANGE}.",
)
@click.option(
    "--epsilon-inf",
    type=float,
    help=f"Longitudinal k-RR and hashing: loss of a permanent response, in {EPSILON_RANGE}.",
)
@click.option(
    "--epsilon-one",
    type=float,
    help="Longitudinal k-RR and hashing: loss of one report, below --epsilon-inf.",
)
@click.option("--f", type=float, help="RAPPOR: share of permanent bits that are noise.")
@click.option("--p", type=float, help="RAPPOR: P(report 1 | permanent bit 0).")
@click.option("--q", type=float, help="RAPPOR: P(report 1 | permanent bit 1).")
@click.option("--hashes", type=int, help="RAPPOR: bits that a value sets; 1 of one-hot, hot of k-hot.")
@click.option("--reports", type=int, metavar="N", help="Show what this many reports cost together.")
@click.option(
    "--budget",
    type=float,
    metavar="E",
    help="Show how many reports keep within this epsilon, up to 100000, memoized up to 10000.",
)
@click.option(
    "--changes",
    type=click.IntRange(0),
    metavar="M",
    help="Longitudinal hashing, memoized: changes of bucket.",
)
@click.option(
    "--shuffled",
    type=ShuffledNumber(),
    metavar="N",
    help="Show what a report costs among N honest ones shuffled together, for prefix-tree those of one "
    "level; with --reports, what one in each of so many windows costs.",
)
@click.option("--delta", type=float, default=1e-6, show_default=True)
@click.option(
    "--memoized",
    is_flag=True,
    help="All reports repeat one permanent response; or, with fresh noise, one report. Implied by "
    "k-rr-longitudinal and local-hash-longitudinal, which always memoize.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; null means unbounded.")
def account(
    mechanism: str,
    reports: int | None,
    budget: float | None,
    changes: int | None,
    shuffled: int | None,
    delta: float,
    memoized: bool,
    as_json: bool,
    **parameters: float | None,
) -> None:
    """Show what reports of one client cost, or how many a budget allows.

    Four bounds: basic composition, tight zCDP, tight RDP, and the exact distribution of the privacy loss
    (for memoized longitudinal k-RR beyond 30 reports, an upper bound that is at most 3 % too high; for k-hot
    RAPPOR whose hot is above half of the values, one that is up to twice the truth). What is memoized costs
    that while the value stays the same; the row any holds whatever the values do, on the condition it names.
    Memoized longitudinal hashing is accounted for values that change, in as many buckets as --changes allow;
    where that is only an upper bound, the table says bound instead of exact.
    With --shuffled, two certified values of the epsilon against whoever sees only shuffled reports.

    Example: deniable account --mechanism k-rr --k 16 --epsilon 1 --reports 5
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    wanted, usable = PARAMETERS[mechanism], (*PARAMETERS[mechanism], *OPTIONAL.get(mechanism, ()))
    missing = [name for name in wanted if name not in given]
    surplus = [name for name in given if name not in usable]
    if missing or surplus:
        wrong = ([f"{_options(missing)} missing"] if missing else []) + (
            [f"{_options(surplus)} too many"] if surplus else []
        )
        takes = f"--mechanism {mechanism} takes exactly {_options(wanted)}"
        raise click.UsageError(f"{takes}: {', '.join(wrong)} (see --help)")
    try:
        check_epsilons(given)
        built = _mechanism(mechanism, given)
        memoized = memoized or built.always_memoizes
        asked: Subject = built
        if isinstance(built, LongitudinalHash):
            asked = hashed_subject(built, changes)
        elif changes is not None:
            raise click.UsageError(f"--changes needs --mechanism {LongitudinalHash.name}")
        free = _changing(built, asked) if memoized else asked
        answer: dict[str, Any] = {}
        if shuffled is not None and budget is not None:
            raise click.UsageError("--shuffled takes --reports N, not --budget E")
        if shuffled is not None:
            answer = shuffled_cost(built, shuffled, delta, reports, memoized).as_json()
        if reports is not None and budget is None:
            answer |= costs(asked, reports, delta, memoized)
            figure = costs(free, reports, delta, memoized)["exact"]
            answer["values"] = "any" if free is asked else "unchanged"
            answer["any_values"] = figure
            is_for_ever = is_capped(free, reports, delta, figure)
            answer["any_values_condition"] = condition_of(asked, free, is_for_ever)
        elif budget is not None and reports is None:
            answer = {"reports": allowed_reports(asked, budget, delta, memoized)}
            allowed = allowed_reports(free, budget, delta, memoized)["exact"]
            answer["values"] = "any" if free is asked else "unchanged"
            answer["reports_any_values"] = allowed
            answer["reports_any_values_condition"] = condition_of(asked, free, allowed is None)
        elif shuffled is None:
            raise click.UsageError("give either --reports N or --budget E")
    except ValueError as error:  # all numbers are options
        raise click.UsageError(with_options(str(error))) from error
    found = _one_report(asked, free, memoized) | answer
    if as_json:
        click.echo(json.dumps(found, allow_nan=False))
        return
    click.echo(account_table(asked, free, found, reports, budget, delta, most_reports(asked, memoized)))
    if isinstance(built, LongitudinalHash) and changes is not None:
        click.echo(_changes_sentence(built, changes))
    if shuffled is not None:
        click.echo("\n".join(shuffled_lines(found, built, shuffled, reports, delta)))


def _changes_sentence(mechanism: LongitudinalHash, changes: int) -> str:
    """Say how many buckets a client shows, and what they cost for ever."""
    shown = shown_buckets(mechanism, changes)
    cost = rounded_up(product_above(shown, mechanism.epsilon_inf))
    condition = condition_for_ever(mechanism, changes)
    return (
        f"a client shows {most_changes(changes)}, so {shown} of its {mechanism.hash_buckets} buckets, which "
        f"cost at most {cost} for ever{f', {condition}' if condition else ''}"
    )


def _options(names: Iterable[str]) -> str:
    return " ".join(f"--{name.replace('_', '-')}" for name in names)


def _mechanism(name: str, given: dict[str, float]) -> Mechanism:
    match name:
        case "k-rr":
            return KRR.from_epsilon(int(given["k"]), given["epsilon"])
        case "subset-selection":
            return SubsetSelection.from_epsilon(int(given["k"]), given["epsilon"])
        case "local-hash":
            return LocalHash.from_epsilon(given["epsilon"])
        case "prefix-tree":  # any lengths cost the same
            return PrefixTree.from_epsilon((1, 2), given["epsilon"])
        case "local-hash-longitudinal":
            return LongitudinalHash.from_epsilons(given["epsilon_inf"], given["epsilon_one"])
        case "k-rr-longitudinal":
            return LongitudinalKRR.from_epsilons(int(given["k"]), given["epsilon_inf"], given["epsilon_one"])
        case "k-rr-pair":
            half = given["epsilon"] / 2
            return PairKRR.from_epsilons(*_pair_shape(given), half, half)
        case "one-hot-pair":  # any number of pairs of values costs the same
            return OneHotPair.from_epsilon(*_pair_shape(given), given["epsilon"])
        case "number":
            return SquareWave.from_epsilon(0.0, 1.0, DEFAULT_STEPS, given["epsilon"])
        case _:
            hashes = int(given["hashes"])
            if not 1 <= hashes <= LARGEST_HASHES:
                raise ValueError(f"hashes must be in [1, {LARGEST_HASHES}], got {hashes}")
            return HotRappor.from_probabilities(LARGEST_BUCKETS, hashes, given["f"], given["p"], given["q"])


def _pair_shape(given: dict[str, float]) -> tuple[int, int]:
    """Return the number of values of each field, 2 by default; ValueError names the option out of range."""
    for name in ("k", "second_k"):
        if not 2 <= given.get(name, 2) <= LARGEST_CELLS // 2:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} must be in [2, {LARGEST_CELLS // 2}], got {given[name]}")
    return int(given.get("k", 2)), int(given.get("second_k", 2))


def _changing(mechanism: Mechanism, asked: Subject) -> Subject:
    """Return what is accounted if values change; how many different ones RAPPOR has is not said."""
    match mechanism:
        case LongitudinalHash():
            return asked
        case LongitudinalKRR():
            return changing(mechanism)
        case _:
            return ChangingResponses(mechanism, None)


def _one_report(mechanism: Subject, free: Subject, memoized: bool) -> dict[str, Any]:
    permanent = epsilon_inf(mechanism, memoized)
    found: dict[str, Any] = {
        "epsilon_one": mechanism.epsilon,
        "epsilon_inf": permanent if math.isfinite(permanent) else None,
        "rho": zcdp_rho(loss_of_reports(mechanism, 1, memoized=False)),
    }
    if isinstance(free, ChangingBuckets):
        found |= {"epsilon_inf": free.steps.epsilon_inf, "lifetime": free.epsilon_inf}
        found["lifetime_condition"] = condition_of(mechanism, free, is_for_ever=True)
    return found
