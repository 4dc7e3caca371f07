"""The demo judges a number by its mean and quantiles, each against the numbers that were sent."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from deniable.deploy.demo.number_verdict import JudgedNumber, judge_number
from deniable.deploy.demo.verdict import faults, tally
from deniable.deploy.demo.view import truth_table, verdict
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate, QuantileEstimate, ScalarEstimate
from deniable.estimators.mechanisms.square_wave import SquareWave

MECHANISM = SquareWave.from_epsilon(-0.5, 11.5, 4, 2)
NUMBERS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 11.0]


def judged(mean: float = 4.7, median: float = 4.5) -> JudgedNumber:
    """Build an estimate whose intervals reach .5 or .7 to both sides, beside the truth of NUMBERS."""
    empty = np.zeros(0)
    quantiles = (
        QuantileEstimate(0.5, median, median - 0.5, median + 0.5),
        QuantileEstimate(0.9, 8, 7.3, 8.7),
    )
    of_mean = ScalarEstimate(mean, 0.25, mean - 0.5, mean + 0.5)
    estimate = Estimate("ems", 10, *[empty] * 4, empty > 0, mean=of_mean, quantiles=quantiles)
    return judge_number(Collection("minutes", MECHANISM), estimate, NUMBERS)


def test_truth_is_of_the_numbers() -> None:
    assert judged().truth == pytest.approx({"mean": 4.7, "median": 4.5, "90 %": 8.3})


def test_figures_begin_in_the_middle() -> None:
    one = judged()
    extreme = QuantileEstimate(0.01, 0, 0, 0)
    estimate = replace(one.estimate, quantiles=(extreme, *one.estimate.quantiles[::-1]))
    assert list(replace(one, estimate=estimate).figures()) == ["mean", "median", "90 %", "1 %"]


def test_misses_are_named_and_count() -> None:
    assert judged().misses() == []
    one = judged(mean=5.3, median=3.9)
    assert one.misses() == ["mean", "median"]
    counted = tally([one])
    assert (counted.real, counted.missed, counted.found, counted.false) == (3, 2, 0, 0)


def test_a_number_whose_every_interval_misses_fails() -> None:
    """Three in three at 5 % are 1.25e-4: no fault yet; with two numbers they are 1.6e-8."""
    one = judged(mean=5.3, median=3.9)
    missing = JudgedNumber(one.collection, one.estimate, {**one.truth, "90 %": 9.0})
    assert faults([missing]) == []
    assert faults([missing, missing]) == ["6 of 6 intervals of 95 % miss the truth"]


def test_table_and_sentence_show_figures() -> None:
    output = io.StringIO()
    one = judged(median=3.9)
    Console(file=output, width=80).print(truth_table(one, missed=set(one.misses())))
    lines = [line.split() for line in output.getvalue().splitlines()]
    assert lines[0][:2] == ["minutes,", "epsilon"]
    assert lines[2] == ["figure", "truth", "estimate", "95", "%", "interval"]
    assert ["mean", "4.7", "4.7", "4.2", "–", "5.2"] in lines
    assert ["median", "4.5", "3.9", "3.4", "–", "4.4", "miss"] in lines
    assert verdict([one])[0] == "minutes: 2 of 3 intervals contain the truth"
