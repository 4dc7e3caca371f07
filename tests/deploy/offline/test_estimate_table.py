"""The table of an estimate: steps of a number in their order, and what is left out directly below them."""

import numpy as np

from deploy.offline.estimate_table import SHOWN, name_column, p_value_text, printable_name, roll_up_table
from estimators.frequency.estimate import Estimate, QuantileEstimate, ScalarEstimate
from estimators.rollup import RollUp


def number(steps: int) -> RollUp:
    """Shares that rise in the middle to the largest, as no order by share has them."""
    share = np.roll(np.arange(steps, 0, -1.0), steps // 2)
    share /= share.sum()
    estimate = Estimate(
        "mle",
        1000,
        share,
        np.full(steps, 0.01),
        np.maximum(share - 0.02, 0),
        share + 0.02,
        share > 0.02,
        mean=ScalarEstimate(30.0, 1.0, 28.0, 32.0),
        quantiles=(QuantileEstimate(0.5, 31.0, 29.0, 33.0),),
    )
    return RollUp(estimate, estimate, 1.0)


def test_steps_of_a_number_are_in_order_and_what_is_left_out_is_below_them() -> None:
    steps = SHOWN + 14
    lines = roll_up_table([str(step) for step in range(steps)], number(steps), "value").splitlines()
    rows = [int(line.split()[0]) for line in lines[2 : 2 + SHOWN]]
    assert rows == sorted(rows)
    assert set(range(steps)) - set(rows) == set(range(steps // 2 - 14, steps // 2))  # the smallest shares
    assert lines[2 + SHOWN :] == [
        "and 14 more, of smaller shares; --json shows all",
        "mean: 30, from 28 to 32",
        "quantile 0.5: 31, from 29 to 33",
    ]


def test_p_value_has_three_digits_or_is_below_a_millionth() -> None:
    texts = [p_value_text(each) for each in (1.0, 0.0086512, 1e-6, 9.9e-7, 2.4e-20, 0.0)]
    assert texts == ["p = 1", "p = 0.00865", "p = 1e-06", *["p < 1e-6"] * 3]


def test_no_values_make_an_empty_table() -> None:
    nothing = np.empty(0)
    estimate = Estimate("inv", 1000, nothing, nothing, nothing, nothing, nothing > 0, other=(1.0, 0.02))
    lines = roll_up_table([], RollUp(estimate, estimate, 1.0), "value").splitlines()
    assert lines[0].startswith("1000 reports, 0 values")
    assert len(lines) == 3
    assert "1.000000" in lines[2]


def test_name_column_is_as_wide_as_its_longest_text() -> None:
    names = ["a", "long name", "b\n"]
    assert name_column(names, [2, 0]) == ({2: printable_name("b\n"), 0: "a"}, len("value"))
    assert name_column(names, [1]) == ({1: "long name"}, len("long name"))
    assert name_column([], [], "candidate") == ({}, len("candidate"))
