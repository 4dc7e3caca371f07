"""The tables of docs/parameters.md match mechanisms, accountant and planner.

A table is found by the line above it, `<!-- table: NAME -->`.
"""

import math
import re
from collections.abc import Callable

import pytest

from deniable.estimators.accounting.accountant import costs, epsilon_inf
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import choose_thresholds
from deniable.estimators.planning import expected_std_error, smallest_detectable
from tests.support.paths import REPOSITORY

PARAMETERS = (REPOSITORY / "docs" / "parameters.md").read_text(encoding="utf-8")
TABLES = dict(re.findall(r"^<!-- table: (\w+) -->\n((?:\|.*\n)+)", PARAMETERS, re.MULTILINE))

REPORTS, CANDIDATES, DELTA = 1_000_000, 100, 1e-6
#: epsilon_inf, epsilon_one and hashes.
ASKED = (
    (1, 1, 1),
    (1.25, 1, 1),
    (4, 1, 1),
    (2.9, 2, 1),
    (4, 2, 1),
    (2.5, 2, 2),
    (4, 2, 2),
    (8, 2, 2),
    (4, 2, 4),
)
BASE = {"bits": 128, "hashes": 2, "cohorts": 8, "f": 0.25, "p": 0.35, "q": 0.65}

Rows = list[list[str]]


def odds() -> Rows:
    """Largest odds factor; the most that suspicions of 1 % and 50 % can become."""
    rows = []
    for epsilon in (0.1, 0.5, 1, 2, 4, 8):
        factor = math.exp(epsilon)
        one_percent = 0.01 * factor / (0.01 * factor + 0.99)
        half = factor / (factor + 1)
        rows.append([f"{epsilon:g}", f"{factor:,.4g}", f"{one_percent:.2%}", f"{half:.2%}"])
    return rows


def repeated() -> Rows:
    """Exact cost of several reports about one value."""
    fresh, kept = Rappor.from_probabilities(**BASE), LongitudinalKRR.from_epsilons(4, 4.0, 1.0)
    subjects = (
        ("k-RR of 4, epsilon 0.1", KRR.from_epsilon(4, 0.1), False),
        ("k-RR of 4, epsilon 1", KRR.from_epsilon(4, 1.0), False),
        ("RAPPOR, `memoize: false`", fresh, False),
        ("RAPPOR, memoized", fresh, True),
        ("longitudinal k-RR of 4, epsilon_inf 4, epsilon_one 1", kept, True),
    )
    return [
        [
            name,
            *(
                rounded_up(costs(mechanism, reports, DELTA, memoized)["exact"])
                for reports in (1, 7, 30, 365, 1440)
            ),
        ]
        for name, mechanism, memoized in subjects
    ]


def changes() -> Rows:
    """Effect of each parameter of RAPPOR, with all others as in BASE."""
    asked: list[dict[str, float]] = [{}]
    asked += [{"f": 0.5}, {"f": 0.75}, {"p": 0.25, "q": 0.75}, {"p": 0.45, "q": 0.55}]
    asked += [{"hashes": 1}, {"hashes": 4}, {"cohorts": 2}, {"cohorts": 64}, {"bits": 32}, {"bits": 256}]
    rows = []
    for one in asked:
        mechanism = Rappor.from_probabilities(**(BASE | one))  # type: ignore[arg-type] # integers stay integers
        name = ", ".join(f"{key} {value:g}" for key, value in one.items()) or "as above"
        rows.append([name, *_figures(mechanism)])
    return rows


def chosen() -> Rows:
    """Probabilities f, p and q with the smallest error within two epsilons."""
    rows = []
    for permanent, one, hashes in ASKED:
        mechanism = Rappor(128, hashes, 8, *choose_thresholds(hashes, permanent, one))
        shares = (f"{share:.3f}" for share in (mechanism.f, mechanism.p, mechanism.q))
        error = expected_std_error(mechanism, REPORTS, candidates=CANDIDATES)
        rows.append([f"{permanent:g}", f"{one:g}", str(hashes), *shares, f"{error:.3%}"])
    return rows


def _figures(mechanism: Rappor) -> list[str]:
    return [
        rounded_up(mechanism.epsilon),
        rounded_up(epsilon_inf(mechanism, True)),
        f"{expected_std_error(mechanism, REPORTS, candidates=CANDIDATES):.3%}",
        f"{smallest_detectable(mechanism, REPORTS, CANDIDATES):.2%}",
    ]


MADE: dict[str, Callable[[], Rows]] = {
    "odds": odds,
    "repeated": repeated,
    "changes": changes,
    "chosen": chosen,
}


def test_every_table_is_tested() -> None:
    assert list(TABLES) == list(MADE)


@pytest.mark.slow
def test_tables_match_the_code() -> None:
    computed = {name: [f"| {' | '.join(row)} |" for row in rows()] for name, rows in MADE.items()}
    wrong = [
        "\n".join([name, *lines])
        for name, lines in computed.items()
        if TABLES[name].splitlines()[2:] != lines
    ]
    assert wrong == [], "\n".join(wrong)


def test_secret_separates_values() -> None:
    """docs/threats.md: 28 bits differ by permanent noise; one report separates by 10 nats on average."""
    mechanism = Rappor.from_probabilities(**BASE)
    flip = mechanism.f / 2
    differ = mechanism.bits * 2 * flip * (1 - flip)
    odds_of_a_bit = math.log(mechanism.q * (1 - mechanism.p) / (mechanism.p * (1 - mechanism.q)))
    nats = differ * (mechanism.q - mechanism.p) * odds_of_a_bit
    text = (REPOSITORY / "docs" / "threats.md").read_text(encoding="utf-8")
    assert f"differ in {differ:.0f} bits" in text
    assert f"by {nats:.0f} nats on average" in " ".join(text.split())
