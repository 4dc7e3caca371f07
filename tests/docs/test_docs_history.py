"""The table of docs/history.md: what tests across changes do where other people report in each part."""

import re

import numpy as np
import pytest

from deniable.aggregator.history.inverse_variance import join_shares
from deniable.aggregator.history.rollup import roll_up
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views.joined_so_far import join_so_far
from deniable.analysis.changes.joined_history import Definition, join_history
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.krr import inv, std_error
from deniable.estimators.mechanisms.krr import KRR
from tests.aggregator.views.test_joined_so_far import CLOSER, HOUR, estimated, summed
from tests.support.aggregator.builders import FRUIT, T0
from tests.support.estimators.simulation import generator, krr_counts
from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.slow

HISTORY = (REPOSITORY / "docs" / "history.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| (\d+ %|all) \| (\d+) % \|$", re.MULTILINE)
ROWS = [(int(e), 1.0 if m == "all" else int(m[:-2]) / 100, int(c) / 100) for e, m, c in ROW.findall(HISTORY)]
REPORTS = 1000
THEN, NOW = [900, 330, 170, 100], [600, 450, 270, 180]
POPULATION = np.arange(1, 17.0) ** -1 / (np.arange(1, 17.0) ** -1).sum()


def simulated(epsilon: int, runs: int, *, same_people: bool) -> tuple[float, float]:
    """Return the share of runs with a mark, and of intervals that hold the share of the population."""
    random, mechanism = generator(epsilon), KRR.from_epsilon(16, epsilon)
    fixed = random.multinomial(REPORTS, POPULATION)
    marked, covered = 0, 0
    for _ in range(runs):
        people = [fixed if same_people else random.multinomial(REPORTS, POPULATION) for _ in range(2)]
        shares = np.array([inv(krr_counts(random, each, mechanism), mechanism) for each in people])
        errors = np.array([std_error(each, REPORTS, mechanism) for each in shares])
        found = join_shares(shares, errors, errors, np.zeros(shares.shape))
        truth = fixed / REPORTS if same_people else POPULATION
        marked += int(found.differs.any())
        covered += int(((found.low <= truth) & (truth <= found.high)).sum())
    return marked / runs, covered / runs / len(POPULATION)


def test_former_estimates_give_what_counts_give_as_closely_as_stated() -> None:
    """Of k-RR and windows that are alike; summed in another order, not every last digit is the same."""
    stated = re.search(r"shares agree within (1e-\d+)\.[^|]*within (1e-\d+) of itself", HISTORY)
    assert stated is not None
    of_shares, of_p_values = map(float, stated.groups())
    before, after = (
        alike(each, first, counts) for each, first, counts in ((CLOSER, 0, THEN), (FRUIT, 7, NOW))
    )
    joined = summed(after, {CLOSER.fingerprint: len(before)})
    found = join_so_far(FRUIT, joined, roll_up(FRUIT, joined), estimated(CLOSER, before, FRUIT))
    expected = join_history(Definition(FRUIT, joined), [Definition(CLOSER, summed(before))], HOUR)
    assert found.values == expected.values[:3]
    assert found.share == pytest.approx(expected.share[:3], rel=0, abs=of_shares)
    assert found.p_value == pytest.approx(expected.p_value[:3], rel=of_p_values, abs=1e-300)
    assert 0 < sorted(found.p_value)[1] < 1e-117


def alike(collection: Collection, first: int, counts: list[int]) -> dict[int, WindowCounts]:
    """Seven windows of these counts, from a window number on."""
    array = np.array([counts])
    return {T0 + 10 * (first + each): WindowCounts(array, array.sum(axis=1), 1, 0) for each in range(7)}


def test_table_has_every_epsilon() -> None:
    assert [each[0] for each in ROWS] == [2, 4, 6]


@pytest.mark.all
@pytest.mark.parametrize(
    ("epsilon", "marked", "covered", "runs"),
    [(*ROWS[-1], 80), *(pytest.param(*row, 400, marks=pytest.mark.nightly) for row in ROWS)],
)
def test_other_people_in_each_part_are_marked_and_missed(
    epsilon: int, marked: float, covered: float, runs: int
) -> None:
    """Errors that allowed for who reports fail: 5 % would be marked, and 95 % held, at every epsilon.

    Five standard deviations of a share of the runs, and of one of their intervals of 16 values, taken for 8
    independent ones, with half a percent of rounding: a false alarm has a probability below 1e-6.
    """
    of_runs, of_values = 5 * np.sqrt(0.25 / runs), 5 * np.sqrt(0.25 / (runs * 8)) + 0.005
    of_marks, of_intervals = simulated(epsilon, runs, same_people=False)
    assert of_marks == pytest.approx(marked, abs=of_runs)
    assert of_intervals == pytest.approx(covered, abs=of_values)
    of_marks, of_intervals = simulated(epsilon, runs, same_people=True)
    assert of_marks <= 0.06 + of_runs
    assert of_intervals == pytest.approx(0.95, abs=of_values)
