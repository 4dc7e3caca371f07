"""The mean of former windows by hand: weights, what is alike in all windows, and what is not known."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from deniable.aggregator.views.former_estimates import FormerDefinition, WindowFigures
from deniable.aggregator.views.so_far_parts import Part, part_of_estimates
from tests.support.aggregator.builders import T0, changed, estimate_of

ALIKE = 0.012
WINDOWS = {
    T0: WindowFigures(
        T0 + 10, 100, ("a", "b"), np.array([0.2, 0.5]), np.array([0.05, 0.04]), np.full(2, ALIKE)
    ),
    T0 + 10: WindowFigures(
        T0 + 20, 300, ("a", "c"), np.array([0.4, 0.1]), np.array([0.03, np.inf]), np.full(2, ALIKE)
    ),
}


def part(mechanism: str) -> Part:
    former = FormerDefinition(changed(estimate_of(), mechanism=mechanism), WINDOWS, 0, "")
    return part_of_estimates(former, ["d", "a", "b", "c"], {T0: 1, T0 + 10: 2})


@pytest.mark.parametrize("mechanism", ["k-rr", "local-hash", "local-hash-longitudinal", "rappor"])
def test_mean_is_weighted_by_reports(mechanism: str) -> None:
    """Noise averages out in `error`, what is alike does not; clients who return may keep all of it."""
    found = part(mechanism)
    assert found.share[1:3] == pytest.approx([0.35, 0.5])
    assert np.isnan(found.share[[0, 3]]).all()
    sampling = [(0.25, 0.05), (0.75, 0.03)]
    error = math.sqrt(sum(u**2 * (each**2 - ALIKE**2) for u, each in sampling) + ALIKE**2)
    assert found.error[1:3] == pytest.approx([error, 0.04])
    assert np.isinf(found.error[[0, 3]]).all()
    is_fresh = mechanism in ("k-rr", "local-hash")
    assert found.shared_error[1] == pytest.approx(error if is_fresh else 0.25 * 0.05 + 0.75 * 0.03)
    is_alike = mechanism in ("local-hash-longitudinal", "rappor")
    assert found.misfit == pytest.approx([0, ALIKE, ALIKE, 0] if is_alike else [0] * 4)
    assert found.first[1:3] == pytest.approx([0.25, 1])
    assert (found.windows, found.end) == ({T0: 100, T0 + 10: 300}, T0 + 20)


def test_half_widths_add_up_the_quantiles_of_the_windows() -> None:
    """The first window misses with probability alpha / 2, the second with alpha / 6."""
    found = part("rappor")
    for row, alpha in enumerate((0.05, 0.05 / 4)):
        quantiles = [-ndtri(alpha / misses / 2) for misses in (2, 6)]
        expected = 0.25 * 0.05 * quantiles[0] + 0.75 * 0.03 * quantiles[1]
        assert found.half[row, 1] == pytest.approx(expected)
        assert np.isinf(found.half[row, [0, 3]]).all()
