"""The table of an estimate: steps of a number in their order, and what is left out directly below them."""

import numpy as np
import pytest

from bench.estimators.populations import bit_counts
from deniable.deploy.offline.estimate_table import (
    SHOWN,
    incomplete_list,
    name_column,
    p_value_text,
    printable_name,
    record_of,
    roll_up_table,
    table,
)
from deniable.estimators.decoding.bloom import decode
from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.frequency.estimate import Estimate, QuantileEstimate, ScalarEstimate
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.rollup.overlap import RollUp


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
    lines = roll_up_table([str(step) for step in range(steps)], number(steps), "value", 1000).splitlines()
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


def test_without_values_the_table_says_what_to_do() -> None:
    nothing = np.empty(0)
    estimate = Estimate("inv", 1000, nothing, nothing, nothing, nothing, nothing > 0, other=(1.0, 0.02))
    lines = roll_up_table([], RollUp(estimate, estimate, 1.0), "value", 5000, "search").splitlines()
    assert lines[0] == (
        "search has no candidates, so no shares are estimated: deniable decode search --grow --last 1d finds "
        "frequent texts of the past"
    )
    assert len(lines) == 2
    assert "1.000000" in lines[1]


def test_other_strings_have_no_negative_share() -> None:
    share = np.array([0.7, 0.3])
    ends = share - 0.02, share + 0.02
    estimate = Estimate("ml", 1000, share, np.full(2, 0.01), *ends, share > 0, other=(-0.012, 0.02))
    assert table(["a", "b"], estimate).splitlines()[-1] == "other strings: 0.000000, standard error 0.020000"


def test_pairs_with_an_unlisted_value_are_below_the_table() -> None:
    mechanism = OneHotPair.from_epsilon(2, 2, 2.0)
    ones = np.array([[300, 200, 200, 300, 120, 120, 120, 120]])
    estimate = decode_pair(ones, np.array([1000]), mechanism, may_lack_bit=True)
    lines = table(["AA / JFK", "AA / EWR", "B6 / JFK", "B6 / EWR"], estimate, "pair").splitlines()
    assert estimate.other is not None
    assert lines[-1] == (
        f"pairs with an unlisted value: {estimate.other[0]:.6f}, standard error {estimate.other[1]:.6f}"
    )


def test_name_column_is_as_wide_as_its_longest_text() -> None:
    names = ["a", "long name", "b\n"]
    assert name_column(names, [2, 0]) == ({2: printable_name("b\n"), 0: "a"}, len("value"))
    assert name_column(names, [1]) == ({1: "long name"}, len("long name"))
    assert name_column([], [], "candidate") == ({}, len("candidate"))


def test_long_names_are_cut_unless_they_would_look_alike() -> None:
    long, alike = "x" * 5_000, ["y" * 40 + "1", "y" * 40 + "2"]
    assert name_column(["short", long], [0, 1]) == ({0: "short", 1: "x" * 39 + "…"}, 40)
    assert name_column(["z" * 40], [0]) == ({0: "z" * 40}, 40)
    assert name_column(alike, [0, 1]) == (dict(enumerate(alike)), 41)


def test_names_that_a_terminal_hides_are_quoted() -> None:
    assert list(map(printable_name, ["", " ", "AA ", "a\x1b[2J"])) == ['""', "' '", "'AA '", "'a\\x1b[2J'"]
    assert printable_name('""') != printable_name("")
    assert list(map(printable_name, ["AA", "Zürich", "two words"])) == ["AA", "Zürich", "two words"]


def test_one_report_and_one_candidate_are_no_plural() -> None:
    one = np.ones(1)
    estimate = Estimate("mle", 1, one, one, one, one, one > 0)
    lines = table([""], estimate).splitlines()
    assert lines[0] == "1 report, 1 candidate, 95 % intervals, * significant"
    assert lines[2].startswith('""')


@pytest.mark.parametrize(
    ("texts", "some", "together", "them"),
    [(1.0, "1 frequent text is", "", "it"), (3.0, "3 frequent texts are", " together", "them")],
)
def test_frequent_texts_missing_from_a_list_of_local_hashing_are_counted(
    texts: float, some: str, together: str, them: str
) -> None:
    figures = {"unlisted_texts": texts, "unlisted_share": 0.286}
    said = (
        f"the list is incomplete: {some} not on it, with about 28.6 % of the reports{together}; the listed "
        f"shares are corrected for {them}"
    )
    assert incomplete_list(figures) == said
    one = np.ones(1)
    estimate = Estimate("inv", 9, one, one, one, one, one > 0, diagnostics=figures)
    assert table(["a"], estimate).splitlines()[-1] == said
    assert incomplete_list({"unlisted_texts": 0.0, "unlisted_share": 0.0}) == ""


@pytest.mark.parametrize("cohorts", [1, 8])
def test_what_few_cohorts_withhold_is_said(cohorts: int) -> None:
    mechanism = Rappor.from_probabilities(128, 2, cohorts, 0.0, 0.3, 0.7)
    ones, sizes = bit_counts(np.array([9000, 1000]), ["tea", "milk"], mechanism, np.random.default_rng(1))
    names = ["tea", "milk"]
    result = decode(ones, sizes, names, mechanism)
    lines = roll_up_table(names, RollUp(result, result, 1.0), "candidate", 10_000).splitlines()
    said = [any(part in line for line in lines) for part in ("fewer than 6 cohorts", ", from 0 to 1", "inf")]
    assert said == [cohorts == 1, cohorts == 1, False]
    assert (record_of(names, result)["other_std_error"] is None) == (cohorts == 1)
