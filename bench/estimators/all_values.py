"""Intervals for all values at once: how often they hold all of them, for mechanisms other than k-RR.

    python -m bench.estimators.all_values [--runs RUNS] [--only TEXT]

Values have fixed shares by Zipf's law, and all are listed, but for some texts where said. Coverage is over
the noise of reports and over what a collection draws once: each run has another hash key, clients choose
functions or cohorts anew, and with Bloom RAPPOR, whose functions have no key, each run has other texts.
"""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby, product
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bench.estimators.pairs.coverage import pair_reports
from bench.estimators.populations import (
    Counts,
    bit_counts,
    buckets_of,
    fixed_counts,
    round_to_counts,
    zipf_shares,
)
from estimators.decoding.bloom import decode
from estimators.decoding.hashed.decode import decode_hashed
from estimators.decoding.hot.decode import decode_hot
from estimators.frequency.estimate import Estimate, IntervalEnds
from estimators.frequency.pairs.estimate import estimate_pair
from estimators.mechanisms.hashing.function_pool import FunctionPool
from estimators.mechanisms.hashing.hash_functions import hash_functions_of
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor

Window = Callable[[np.random.Generator], Estimate]

EPSILONS, REPORTS, VALUES = (1.0, 4.0), (10_000, 1_000_000), (10, 100)
#: Share of reports of unlisted texts, and their number, where a cell has some.
UNLISTED = (0.1, 5)
#: Mechanisms, exponents of Zipf's law (at 2.5 one value has three quarters), and number of unlisted texts.
KINDS = (
    ("local-hash", 1.3, 0),
    ("local-hash", 1.3, UNLISTED[1]),
    ("local-hash", 2.5, 0),
    ("local-hash-longitudinal", 1.3, 0),
    ("local-hash-longitudinal", 2.5, 0),
    ("rappor", 1.3, 0),
    ("rappor-one-hot", 1.3, 0),
    ("k-rr-pair", 1.3, 0),
)
ROWS = {10: 5, 100: 10}  # values of a pair's first field
BITS, HASHES, COHORTS = 128, 2, 8
RUNS = 1000
SLOW_RUNS = {"local-hash": 500}  # most runs of a cell: they take tens of milliseconds
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class AllValuesCell:
    """One population, and shares of the runs.

    Parameters
    ----------
    mechanism, exponent, unlisted, epsilon, values, reports : of the cell; epsilon is that of one report.
    runs : number of runs.
    each : share covered of all values in all runs by the 95 % intervals of single values.
    single : runs in which all values are covered by these.
    for_all : runs in which all values are covered by the intervals for all values at once.
    """

    mechanism: str
    exponent: float
    unlisted: int
    epsilon: float
    values: int
    reports: int
    runs: int
    each: float
    single: float
    for_all: float

    @property
    def kind(self) -> tuple[str, float, int]:
        """Mechanism, exponent of Zipf's law and number of unlisted texts."""
        return self.mechanism, self.exponent, self.unlisted


def hashed(mechanism: FunctionPool, held: Counts, values: int, rng: np.random.Generator) -> Estimate:
    """Local hashing under another key; texts beyond `values` are not listed."""
    key, texts = int(rng.integers(2**63)), [f"text-{i}" for i in range(len(held))]
    functions = hash_functions_of(mechanism, key)
    counts = fixed_counts(held, buckets_of(functions.words(texts), functions), mechanism, rng)
    return decode_hashed(counts, texts[:values], mechanism, key)


def bloom(mechanism: Rappor, held: Counts, values: int, rng: np.random.Generator) -> Estimate:
    """Bloom RAPPOR with other texts; those beyond `values` are not listed."""
    run = rng.integers(2**63)
    texts = [f"{run}-{i}" for i in range(len(held))]
    return decode(*bit_counts(held, texts, mechanism, rng), texts[:values], mechanism)


def one_hot(mechanism: HotRappor, held: Counts, rng: np.random.Generator) -> Estimate:
    """One-hot RAPPOR; bits beyond the values hold only noise."""
    true, reports = np.append(held, np.zeros(mechanism.bits - len(held), np.int64)), int(held.sum())
    ones = rng.binomial(true, mechanism.q_star) + rng.binomial(reports - true, mechanism.p_star)
    return decode_hot(ones[np.newaxis], np.array([reports]), mechanism)


def pair(mechanism: PairKRR, held: Counts, rng: np.random.Generator) -> Estimate:
    """The joint table of a pair."""
    return estimate_pair(pair_reports(held, mechanism, rng), mechanism)


def window_of(mechanism: str, epsilon: float, values: int, held: Counts) -> Window:
    """What randomizes and estimates one window."""
    if mechanism == "local-hash":
        return partial(hashed, LocalHash.from_epsilon(epsilon), held, values)
    if mechanism == "local-hash-longitudinal":
        return partial(hashed, LongitudinalHash.from_epsilons(2 * epsilon, epsilon), held, values)
    if mechanism == "k-rr-pair":
        rows = ROWS[values]
        return partial(pair, PairKRR.from_epsilons(rows, values // rows, epsilon / 2, epsilon / 2), held)
    hashes = HASHES if mechanism == "rappor" else 1
    p = 1 / (1 + np.exp(epsilon / (2 * hashes)))
    if mechanism == "rappor":
        return partial(bloom, Rappor.from_probabilities(BITS, hashes, COHORTS, 0.0, p, 1 - p), held, values)
    return partial(one_hot, HotRappor.from_probabilities(values, hashes, 0.0, p, 1 - p), held)


def held_values(values: int, reports: int, exponent: float, unlisted: int) -> Counts:
    """Clients with each listed and unlisted value, int64 (values + unlisted,), both by Zipf's law."""
    rare = round(reports * UNLISTED[0]) if unlisted else 0
    listed = round_to_counts(zipf_shares(values, exponent), reports - rare)
    return np.append(listed, round_to_counts(zipf_shares(unlisted, exponent), rare)) if unlisted else listed


def all_values_cell(
    kind: tuple[str, float, int], epsilon: float, values: int, reports: int, runs: int = RUNS
) -> AllValuesCell:
    """Simulate one population: mechanism, exponent and number of unlisted texts of a kind, and the rest."""
    mechanism, exponent, unlisted = kind
    runs = min(runs, SLOW_RUNS.get(mechanism, runs))
    held = held_values(values, reports, exponent, unlisted)
    window, share = window_of(mechanism, epsilon, values, held), held[:values] / reports
    rng, hits = np.random.default_rng(1), np.zeros(3)
    for _ in range(runs):
        found = window(rng)
        if found.for_all is None:
            raise ValueError(f"for_all must be estimated, got None for {mechanism}")
        each, together = holds(IntervalEnds(found.low, found.high), share), holds(found.for_all, share)
        hits += each.mean(), each.all(), together.all()
    return AllValuesCell(*kind, epsilon, values, reports, runs, *(hits / runs).tolist())


def holds(ends: IntervalEnds, share: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each interval holds its share, bool (n,)."""
    inside: NDArray[np.bool_] = (ends.low <= share) & (share <= ends.high)
    return inside


def all_values_table(cells: list[AllValuesCell]) -> str:
    """Markdown: percent, a line for each cell, and the range of each kind."""
    lines = [
        "Percent. `each value`: of the values of all runs, those that 95 % intervals of single values hold;",
        "then of runs, those in which all values are held, by these, and by the intervals for all at once.",
        "",
        "| mechanism | Zipf | unlisted | epsilon | K | N | runs | each value | all by these | for all |",
        "|---|---:|---|---:|---:|---:|---:|:---:|:---:|:---:|",
    ]
    for one in cells:
        unlisted = f"{100 * UNLISTED[0]:.0f} % in {one.unlisted}" if one.unlisted else "none"
        figures = " | ".join(f"{100 * each:.1f}" for each in (one.each, one.single, one.for_all))
        lines.append(
            f"| {one.mechanism} | {one.exponent:g} | {unlisted} | {one.epsilon:g} | {one.values}"
            f" | {one.reports:,} | {one.runs:,} | {figures} |"
        )
    lasts = [_summary(list(of_kind)) for _, of_kind in groupby(cells, key=lambda one: one.kind)]
    return "\n".join([*lines, "", *lasts, ""])


def _summary(cells: list[AllValuesCell]) -> str:
    (mechanism, exponent, unlisted), found = cells[0].kind, [100 * one.for_all for one in cells]
    name = f"{mechanism}, Zipf {exponent:g}" + (f", {unlisted} unlisted texts" if unlisted else "")
    runs = sum(one.runs for one in cells)
    return (
        f"All of {name}: {min(found):.1f} to {max(found):.1f} %, on average {np.mean(found):.1f} %"
        f" of {runs:,} runs.  "
    )


@click.command()
@click.option("--runs", type=click.IntRange(1), default=RUNS, show_default=True, help="Most runs of a cell.")
def main(runs: int) -> None:
    """Print the table and write it to bench/results."""
    grid = product(KINDS, EPSILONS, VALUES, REPORTS)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        cells = list(pool.map(partial(all_values_cell, runs=runs), *zip(*grid, strict=True)))
    text = all_values_table(cells)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "all_values.md").write_text(text)
    (RESULTS / "all_values.json").write_text(json.dumps([asdict(one) for one in cells], indent=1) + "\n")
    click.echo(text, nl=False)


if __name__ == "__main__":
    main()
