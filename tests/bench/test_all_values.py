"""The simulated coverage of all values at once counts what intervals hold, and its table shows it."""

import numpy as np
import pytest

from bench.estimators.all_values import (
    KINDS,
    UNLISTED,
    AllValuesCell,
    all_values_cell,
    all_values_table,
    held_values,
    holds,
)
from bench.estimators.populations import SINGLY, spread_evenly
from estimators.decoding.hashed.decode import decode_hashed
from estimators.frequency.estimate import IntervalEnds


def test_a_tenth_of_the_clients_hold_unlisted_texts() -> None:
    share, texts = UNLISTED
    held = held_values(10, 10_000, 1.3, texts)
    assert (len(held), held[10:].sum(), held.sum()) == (10 + texts, 10_000 * share, 10_000)
    assert held_values(10, 10_000, 1.3, 0).sum() == 10_000


def test_ends_of_an_interval_belong_to_it() -> None:
    ends = IntervalEnds(np.array([0.1, 0.1, 0.1]), np.array([0.2, 0.2, 0.2]))
    assert holds(ends, np.array([0.1, 0.2, 0.3])).tolist() == [True, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_cells_of_all_kinds_are_estimated(kind: tuple[str, float, int]) -> None:
    """Of 40 runs, single intervals hold all 10 values in about 60 %: more than 90 % has 1e-5."""
    cell = all_values_cell(kind, 4.0, 10, 10_000, 40)
    assert cell.kind == kind
    assert cell.single < 0.9
    assert cell.single <= cell.for_all
    assert 0.75 <= cell.for_all <= 1  # that of 95 % is below in 1e-5
    assert 0.85 < cell.each < 1


def test_each_run_has_another_hash_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collisions are averaged over, so a cell says nothing of one collection's functions."""
    keys = set()

    def decode_and_note(counts, candidates, mechanism, key):
        keys.add(key)
        return decode_hashed(counts, candidates, mechanism, key)

    monkeypatch.setattr("bench.estimators.all_values.decode_hashed", decode_and_note)
    all_values_cell(("local-hash", 1.3, 0), 4.0, 10, 10_000, 3)
    assert len(keys) == 3


@pytest.mark.parametrize("each", [SINGLY - 1, SINGLY])
def test_single_draws_and_multinomials_have_the_same_moments(each: int) -> None:
    """Chi-square of 5,000 places: 5 standard deviations, a false alarm in 1e-6 of seeds."""
    places = 5000
    drawn = spread_evenly(each * places, places, np.random.default_rng(1))
    assert drawn.sum() == each * places
    squares = (drawn - each) ** 2 / each
    assert abs(squares.mean() - 1) < 5 * np.sqrt(2.1 / places)


def test_table_has_a_range_of_each_kind() -> None:
    cells = [
        AllValuesCell("local-hash", 1.3, 0, 1.0, 10, 10_000, 200, 0.951, 0.6, 0.94),
        AllValuesCell("local-hash", 1.3, 0, 4.0, 100, 10_000, 200, 0.951, 0.01, 0.96),
        AllValuesCell("local-hash", 1.3, 5, 4.0, 100, 1_000_000, 100, 0.951, 0.01, 0.97),
    ]
    lines = all_values_table(cells).splitlines()
    assert "| local-hash | 1.3 | none | 1 | 10 | 10,000 | 200 | 95.1 | 60.0 | 94.0 |" in lines
    assert "| local-hash | 1.3 | 10 % in 5 | 4 | 100 | 1,000,000 | 100 | 95.1 | 1.0 | 97.0 |" in lines
    assert lines[-2:] == [
        "All of local-hash, Zipf 1.3: 94.0 to 96.0 %, on average 95.0 % of 400 runs.  ",
        "All of local-hash, Zipf 1.3, 5 unlisted texts: 97.0 to 97.0 %, on average 97.0 % of 100 runs.  ",
    ]
