"""Coverage of the 95 % intervals of pairs by simulation, on a grid, and the rate of the test.

The true pairs of a cell stay the same in all its runs; only the noise of the randomization is drawn anew. For
the test of independence, clients are drawn anew too, from independent fields.
"""

from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.estimators.populations import channel_counts, shown_bits
from bench.estimators.simulation import means
from bench.sections import ResultRow, Section, percent
from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.decoding.hot.rank_one_test import rank_one_test
from deniable.estimators.frequency.estimate import Estimate, Shares
from deniable.estimators.frequency.pairs.estimate import estimate_pair, independence_test
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR

SIZES = ((4, 3), (16, 3))
EPSILONS = (1.0, 2.0, 4.0)
REPORTS = (10_000, 100_000, 1_000_000)
TABLES = ("independent", "uneven")
MECHANISMS = ("k-rr-pair", "one-hot-pair")
RUNS = 200
ABOUT = """\
Percent covered: of joint, known conditional and first-field intervals. `worst pair` is that of the worst
pair; `known` the share of conditional shares that had an interval; `every` is of all conditional
intervals, also of those that hold all of [0, 1]."""
#: Where the rate of the test is measured: values, epsilon and number of reports.
TESTS = (
    ((17, 3), 1.0, 20_000),
    ((17, 3), 4.0, 20_000),
    ((17, 3), 8.0, 100),
    ((17, 3), 8.0, 300),
    ((17, 105), 1.0, 336_776),
    ((17, 105), 8.0, 336_776),
    ((17, 105), 8.0, 100),
    ((17, 105), 8.0, 300),
    ((17, 105), 8.0, 1_000),
)
SAMPLES = 10_000


class PairCell(NamedTuple):
    """One cell of the grid: shares covered of all joint, known conditional and first-field intervals.

    `least` is that of the worst pair; `known` the share of conditional shares that had an interval; `every`
    is that of all conditional intervals, also of those that hold all of [0, 1].
    """

    joint: float
    least: float
    conditional: float
    known: float
    every: float
    margin: float

    def row(self) -> ResultRow:
        """Columns of the table, percent."""
        names = ("joint", "worst pair", "conditional", "known", "every", "margin")
        return dict(zip(names, map(percent, self), strict=True))


def true_pairs(table: str, size: tuple[int, int], reports: int) -> NDArray[np.int64]:
    """Clients with each pair, int64 (K1, K2): shares 1 / rank and independent, or drawn unevenly."""
    rng = np.random.default_rng(TABLES.index(table))
    ranks = (1 / np.arange(1, k + 1) for k in size)
    shares = np.outer(*ranks) if table == "independent" else rng.dirichlet(np.full(size, 0.3).ravel())
    drawn: NDArray[np.int64] = rng.multinomial(reports, (shares / shares.sum()).ravel()).reshape(size)
    return drawn


def simulated(
    name: str, size: tuple[int, int], epsilon: float, truth: NDArray[np.int64], rng: np.random.Generator
) -> Estimate:
    """Randomize the true pairs once, and estimate."""
    if name == "k-rr-pair":
        split = PairKRR.from_epsilons(*size, epsilon / 2, epsilon / 2)
        return estimate_pair(channel_counts(truth, split, rng), split)
    bits = OneHotPair.from_epsilon(*size, epsilon)
    reports = int(truth.sum())
    return decode_pair(shown_bits(rng, truth.ravel(), reports, bits), np.array([reports]), bits)


def pair_cell(
    mechanism: str, size: tuple[int, int], epsilon: float, reports: int, table: str, runs: int = RUNS
) -> PairCell:
    """Simulate one population under one mechanism."""
    truth = true_pairs(table, size, reports)
    rows = truth.sum(axis=1, keepdims=True)
    given = (truth / np.maximum(rows, 1)).ravel()

    def run(rng: np.random.Generator) -> dict[str, ArrayLike]:
        found = simulated(mechanism, size, epsilon, truth, rng)
        joint = _holds(found, truth.ravel() / reports)
        if found.pair is None:
            raise ValueError(f"an estimate of pairs must have margins, got none of {mechanism}")
        known, held = np.isfinite(found.pair.given_first.std_error), _holds(found.pair.given_first, given)
        margin = _holds(found.pair.margins[0], rows.ravel() / reports)
        return {"joint": joint, "known": known, "held": held, "both": held & known, "margin": margin}

    found = means(run, runs)
    joint, known = found["joint"], float(found["known"].mean())
    every, margin = float(found["held"].mean()), float(found["margin"].mean())
    conditional = float(found["both"].mean()) / max(known, 1e-9)
    return PairCell(float(joint.mean()), float(joint.min()), conditional, known, every, margin)


def _holds(found: Estimate | Shares, truth: NDArray[np.float64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (found.low <= truth) & (truth <= found.high)
    return inside


def rejected_share(
    mechanism: str, size: tuple[int, int], epsilon: float, reports: int, samples: int = SAMPLES
) -> float:
    """Share of samples of clients with independent fields whose independence is rejected."""
    rng, rejected = np.random.default_rng(3), 0
    shares = np.outer(*(1 / np.arange(1, k + 1) for k in size))
    for _ in range(samples):
        rejected += _is_rejected(mechanism, epsilon, reports, shares / shares.sum(), rng)
    return rejected / samples


def _is_rejected(
    name: str, epsilon: float, reports: int, shares: NDArray[np.float64], rng: np.random.Generator
) -> bool:
    """Draw clients and their reports; run only the test, without the rest of the estimate."""
    k1, k2 = shares.shape
    if name == "k-rr-pair":
        split = PairKRR.from_epsilons(k1, k2, epsilon / 2, epsilon / 2)
        rates = split.first.channel @ shares @ split.second.channel
        drawn = rng.multinomial(reports, (rates / rates.sum()).ravel())
        return independence_test(drawn.reshape(shares.shape)).is_rejected
    bits = OneHotPair.from_epsilon(k1, k2, epsilon)
    truth = rng.multinomial(reports, shares.ravel())
    ones = shown_bits(rng, truth, reports, bits)[0, : bits.buckets]
    return rank_one_test(ones.reshape(shares.shape), reports, bits).is_rejected


def rates(samples: int = SAMPLES) -> Section:
    """How often each mechanism's test rejects independent fields."""
    rows: list[ResultRow] = [
        {
            "mechanism": name,
            "values": _shown(size),
            "epsilon": epsilon,
            "N": reports,
            "rejected": percent(rejected_share(name, size, epsilon, reports, samples)),
        }
        for name, (size, epsilon, reports) in product(MECHANISMS, TESTS)
    ]
    return Section(f"Independent fields rejected in {samples:,} samples of clients, percent.", rows)


def pairs(mechanism: str, runs: int = RUNS) -> Section:
    """All cells of a mechanism, and what they cover."""
    grid = list(product(SIZES, EPSILONS, REPORTS, TABLES))
    cells = [pair_cell(mechanism, *each, runs) for each in grid]
    rows: list[ResultRow] = [
        {"values": _shown(size), "epsilon": epsilon, "N": reports, "table": table, **cell.row()}
        for cell, (size, epsilon, reports, table) in zip(cells, grid, strict=True)
    ]
    return Section(ABOUT, rows, summary(cells, [k1 * k2 for (k1, k2), *_ in grid]))


def _shown(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def summary(cells: list[PairCell], pairs_of_cells: list[int]) -> str:
    """What all cells cover, conditional shares weighed by those known."""
    known = np.array([one.known for one in cells]) * pairs_of_cells
    held = float(np.array([one.conditional for one in cells]) @ known) / max(known.sum(), 1e-9)
    joint, margin = (float(np.mean([getattr(one, name) for one in cells])) for name in ("joint", "margin"))
    return f"Joint {percent(joint)} %, conditional {percent(held)} %, first margin {percent(margin)} %."


CASES = {**{f"{name}, covered": partial(pairs, name) for name in MECHANISMS}, "tests of independence": rates}
