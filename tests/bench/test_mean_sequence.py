"""The simulation of sequences of a mean: its table shows its figures, and it notices what misses."""

import numpy as np
import pytest

from bench.estimators.numbers.mean_sequence import SCENES, coverage, text_of


@pytest.mark.slow
def test_all_figures_are_in_the_table() -> None:
    """100 runs of 300 windows: a sequence misses 5 % at most, so 21 runs or more but for 1e-7."""
    cells = [coverage(np.random.default_rng(1), each, 100, 1.0, 100) for each in SCENES]
    assert min(each.sequence for each in cells) >= 0.8
    assert cells[0].fixed < 0.8
    assert all(
        width > fixed for each in cells for width, fixed in zip(each.widths, each.fixed_widths, strict=True)
    )
    text = text_of(cells)
    for each in cells:
        assert f"| {each.numbers} | 100 | 1 | {100 * each.fixed:.1f} | {100 * each.sequence:.1f} |" in text
