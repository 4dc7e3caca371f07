"""The variance that the bench measures is that of the formula, collisions included."""

import pytest

from bench.estimators.hash_variance import hash_variance


@pytest.mark.slow
@pytest.mark.parametrize("reports", [10_000, 1_000_000])
def test_measured_variance_is_that_of_the_formula(reports: int) -> None:
    """Within 6 standard errors of 12 runs (false alarm 1e-4, with t of 11 degrees) and 2 %."""
    found = hash_variance(4.0, reports, 12)
    assert abs(found.measured - found.formula) < 6 * found.error + 0.02 * found.formula
    assert found.error < 0.3 * found.formula
    row = found.row()
    assert [row[name] for name in ("epsilon", "g", "C", "N")] == [4, 53, 1236, reports]


@pytest.mark.slow
def test_collisions_are_most_of_it_with_many_reports() -> None:
    found = hash_variance(4.0, 1_000_000, 12)
    assert found.measured > 5 * found.noise
