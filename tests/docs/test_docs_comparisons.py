"""The table of docs/analysis.md: how often a comparison marks a value though no share changed."""

import json
import re

import numpy as np
import pytest

from deniable.analysis.comparison import ComparisonRecord
from deniable.analysis.differences import SideShares, compare_shares
from deniable.analysis.functions.roll_ups import compare
from deniable.estimators.frequency.krr import inv, std_error
from deniable.estimators.mechanisms.krr import KRR
from tests.support.estimators.simulation import generator, krr_counts
from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.slow

ANALYSIS = (REPOSITORY / "docs" / "analysis.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| (\d+ %|all) \|$", re.MULTILINE)
ROWS = [(int(e), 1.0 if m == "all" else int(m[:-2]) / 100) for e, m in ROW.findall(ANALYSIS)]
NOTEBOOK = json.loads((REPOSITORY / "docs" / "analysis.ipynb").read_text(encoding="utf-8"))
REPORTS = 10_000
POPULATION = np.arange(1, 17.0) ** -1 / (np.arange(1, 17.0) ** -1).sum()


def test_places_say_what_a_comparison_allows_for() -> None:
    """As the command and the page do, see their tests."""
    said = "the randomizers' noise alone.*here other people report in each period, shares may differ although"
    texts = {
        "notebook": "".join(line for cell in NOTEBOOK["cells"] for line in cell["source"]),
        "page": (REPOSITORY / "docs" / "page.md").read_text(encoding="utf-8"),
        "record": ComparisonRecord.__doc__ or "",
        "function": compare.__doc__ or "",
    }
    assert [place for place, text in texts.items() if not re.search(said, " ".join(text.split()))] == []


def marked(epsilon: int, runs: int, *, same_people: bool) -> float:
    """Return the share of so many comparisons in which a value is marked; all are of the same population."""
    random, mechanism = generator(epsilon), KRR.from_epsilon(16, epsilon)
    fixed = random.multinomial(REPORTS, POPULATION)

    def side() -> SideShares:
        people = fixed if same_people else random.multinomial(REPORTS, POPULATION)
        share = inv(krr_counts(random, people, mechanism), mechanism)
        step = 1 / (REPORTS * mechanism.contrast)
        return SideShares(share, std_error(share, REPORTS, mechanism), step)

    return float(np.mean([compare_shares(side(), side()).significant.any() for _ in range(runs)]))


def tolerance(share: float, runs: int) -> float:
    """Five standard deviations and half a percent of rounding: a false alarm has a probability below 1e-6."""
    return 5 * np.sqrt(max(share * (1 - share), 0.01) / runs) + 0.005


def test_table_has_every_epsilon() -> None:
    assert [each[0] for each in ROWS] == [1, 2, 3, 4, 6]


@pytest.mark.parametrize(
    ("epsilon", "expected", "runs"),
    [*(pytest.param(*row, 2000, marks=pytest.mark.nightly) for row in ROWS), (*ROWS[-1], 400)],
)
def test_other_people_in_each_period_are_marked_as_often_as_stated(
    epsilon: int, expected: float, runs: int
) -> None:
    """Errors that allowed for who reports fail from epsilon 3 on: 5 % would be marked at every epsilon."""
    assert marked(epsilon, runs, same_people=False) == pytest.approx(expected, abs=tolerance(expected, runs))
    assert marked(epsilon, runs, same_people=True) == pytest.approx(0.05, abs=tolerance(0.05, runs))
