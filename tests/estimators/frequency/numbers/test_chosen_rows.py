"""Rows that an analyst chooses: on the steps of the reports, each with the interval of its own share."""

from functools import partial

import numpy as np

from deniable.estimators.frequency.number import estimate_number, row_sums
from deniable.estimators.frequency.numbers.chosen_rows import with_growing_rows, with_rows
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.messages import PinMessages

MINUTES = SquareWave.from_epsilon(-0.5, 719.5, 240, 2.0)  # steps of three minutes
COUNTS = np.arange(1, MINUTES.width + 1)


def test_edges_are_boundaries_of_steps_also_as_labels_print_them() -> None:
    edges = [-0.5, 2.5, 59.5, 719.5]
    chosen = with_rows(MINUTES, edges)
    assert chosen.chosen == (0, 1, 20, 240)
    assert chosen.row_bounds == ("-0.5", "2.5", "59.5", "719.5")
    assert chosen.parameters() == MINUTES.parameters()
    thirds = SquareWave.from_epsilon(0.0, 1.0, 6, 2.0)
    assert with_rows(thirds, [float(f"{1 / 3:.10g}"), 0.5]).chosen == (2, 3)


def test_rows_have_the_estimate_of_their_own_share() -> None:
    """The default edges give the default rows, with all figures; others the sums of the density."""
    default = estimate_number(COUNTS, MINUTES)
    same = estimate_number(COUNTS, with_rows(MINUTES, [*map(float, MINUTES.row_bounds)]))
    for figure in ("frequency", "low", "high", "std_error", "significant"):
        np.testing.assert_array_equal(getattr(same, figure), getattr(default, figure))
    inner = estimate_number(COUNTS, with_rows(MINUTES, [2.5, 8.5, 59.5]))
    density = default.density
    assert density is not None
    np.testing.assert_allclose(inner.frequency, [density[1:3].sum(), density[3:20].sum()])
    assert (inner.mean, inner.quantiles) == (default.mean, default.quantiles)


def test_growing_rows_begin_with_a_step_and_about_double() -> None:
    for steps in range(4, 513):
        edges = np.array(with_growing_rows(SquareWave.from_epsilon(0.0, 1.0, steps, 2.0)).chosen)
        assert (edges[0], edges[1], edges[-1]) == (0, 1, steps)
        assert (edges[2:] / edges[1:-1]).min() >= 1.5
        assert (edges[2:] / edges[1:-1]).max() <= 2.5


UNIT = SquareWave.from_epsilon(0.0, 1.0, 64, 2.0)


def test_intervals_of_growing_rows_hold_skewed_numbers() -> None:
    """In 40 runs of 7 rows, 95 % is below .9 with a probability of 2e-4 if rows were independent.

    Each row must hold in 32: fewer are of 1e-4. If the last row began a step late, it would hold in none.
    """
    generator, mechanism, reports = np.random.default_rng(7), with_growing_rows(UNIT), 100_000
    truth = np.bincount(mechanism.cells(generator.lognormal(np.log(0.05), 1.0, reports)), minlength=64)
    columns, true = mechanism.channel.T / mechanism.channel.sum(axis=0)[:, None], row_sums(truth, mechanism)
    held = []
    for _ in range(40):
        found = estimate_number(generator.multinomial(truth, columns).sum(axis=0), mechanism)
        held.append((found.low <= true / reports) & (true / reports <= found.high))
    assert np.mean(held) >= 0.9
    assert np.sum(held, axis=0).min() >= 32


def test_messages(pin_messages: PinMessages) -> None:
    wrong = {
        "one edge": [0.5],
        "below the minimum": [-1, 2.5],
        "above the maximum": [2.5, 720],
        "no number": [2.5, float("nan")],
        "infinite": [2.5, float("inf")],
        "not ascending": [5.5, 2.5],
        "twice the same": [2.5, 2.5],
        "between steps": [0, 1, 60, 719.5],
        "less than a step apart": [2.5, 2.5001, 719.5],
    }
    pin_messages({what: partial(with_rows, MINUTES, edges) for what, edges in wrong.items()})
