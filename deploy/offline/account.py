"""The command `deniable account`: what reports cost, and how many a budget allows."""

import json
import math
from typing import Any

import click

from deploy.config.describe import rounded_up
from estimators.accounting.accountant import (
    BOUNDS,
    allowed_reports,
    costs,
    epsilon_inf,
    loss_of_reports,
    most_reports,
)
from estimators.accounting.renyi import zcdp_rho
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor_hot import LARGEST_BUCKETS, HotRappor

LARGEST_HASHES = 256

PARAMETERS = {
    "k-rr": ("k", "epsilon"),
    "k-rr-longitudinal": ("k", "epsilon_inf", "epsilon_one"),
    "rappor": ("f", "p", "q", "hashes"),
}


@click.command()
@click.option("--mechanism", type=click.Choice(list(PARAMETERS)), required=True)
@click.option("--k", type=int, help="k-RR: number of values.")
@click.option("--epsilon", type=float, help="k-RR: privacy loss of one report.")
@click.option("--epsilon-inf", type=float, help="Longitudinal k-RR: privacy loss of the permanent response.")
@click.option("--epsilon-one", type=float, help="Longitudinal k-RR: privacy loss of one report.")
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
@click.option("--delta", type=float, default=1e-6, show_default=True)
@click.option(
    "--memoized",
    is_flag=True,
    help="All reports repeat one permanent response; for k-RR: one report, repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; null means unbounded.")
def account(
    mechanism: str,
    reports: int | None,
    budget: float | None,
    delta: float,
    memoized: bool,
    as_json: bool,
    **parameters: float | None,
) -> None:
    """Show what reports of one client and value cost, or how many a budget allows.

    Four bounds: basic composition, tight zCDP, tight RDP, and the exact distribution of the privacy loss
    (for memoized longitudinal k-RR beyond 30 reports, an upper bound that is at most 3 % too high).

    Example: deniable account --mechanism k-rr --k 16 --epsilon 1 --reports 5
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if set(given) != set(PARAMETERS[mechanism]):
        wanted = " ".join(f"--{name.replace('_', '-')}" for name in PARAMETERS[mechanism])
        raise click.UsageError(f"--mechanism {mechanism} takes exactly {wanted}")
    try:
        asked = _mechanism(mechanism, given)
        if reports is not None and budget is None:
            answer: dict[str, Any] = costs(asked, reports, delta, memoized)
        elif budget is not None and reports is None:
            answer = {"reports": allowed_reports(asked, budget, delta, memoized)}
        else:
            raise click.UsageError("give either --reports N or --budget E")
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    found = _one_report(asked, memoized) | answer
    click.echo(
        json.dumps(found, allow_nan=False)
        if as_json
        else _table(found, reports, budget, delta, most_reports(asked, memoized))
    )


def _mechanism(name: str, given: dict[str, float]) -> Mechanism:
    match name:
        case "k-rr":
            return KRR.from_epsilon(int(given["k"]), given["epsilon"])
        case "k-rr-longitudinal":
            return LongitudinalKRR.from_epsilons(int(given["k"]), given["epsilon_inf"], given["epsilon_one"])
        case _:
            hashes = int(given["hashes"])
            if not 1 <= hashes <= LARGEST_HASHES:
                raise ValueError(f"hashes must be in [1, {LARGEST_HASHES}], got {hashes}")
            return HotRappor.from_probabilities(LARGEST_BUCKETS, hashes, given["f"], given["p"], given["q"])


def _one_report(mechanism: Mechanism, memoized: bool) -> dict[str, Any]:
    permanent = epsilon_inf(mechanism, memoized)
    return {
        "epsilon_one": mechanism.epsilon,
        "epsilon_inf": permanent if math.isfinite(permanent) else None,
        "rho": zcdp_rho(loss_of_reports(mechanism, 1, memoized=False)),
    }


def _table(found: dict[str, Any], reports: int | None, budget: float | None, delta: float, most: int) -> str:
    """Write the JSON object's fields as lines of name, figure (rounded up) and meaning."""
    permanent = found["epsilon_inf"]
    lines = [
        ("epsilon_one", rounded_up(found["epsilon_one"]), "one report"),
        (
            "epsilon_inf",
            "unbounded" if permanent is None else rounded_up(permanent),
            "one permanent response",
        ),
        ("rho", rounded_up(found["rho"]), "one report, zCDP"),
    ]
    if reports is not None:
        subject = f"epsilon of {reports} reports at delta {delta:g}"
        lines += [(name, rounded_up(found[name]), subject) for name in BOUNDS]
    else:
        subject = f"reports within epsilon {budget:g} at delta {delta:g}"
        lines += [(name, _allowed(found["reports"][name], most), subject) for name in BOUNDS]
    return "\n".join(f"{name:<12} {figure:<14} {meaning}" for name, figure, meaning in lines)


def _allowed(reports: int | None, most: int) -> str:
    """Write a number of reports; the largest number tried stands for that many or more."""
    if reports is None:
        return "any"
    return f"{reports} or more" if reports == most else str(reports)
