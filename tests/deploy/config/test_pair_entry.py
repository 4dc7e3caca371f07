"""A pair of fields in the collection file: epsilon of both or of each, labels of pairs, mistakes."""

import re
from pathlib import Path

import pytest

from deploy.config.describe import describe
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from estimators.mechanisms.matrix.pair import PairKRR
from producers.budget.allowance import Allowance
from tests.support.deploy.collection_texts import HEAD, read, refusal

TIMES = "window_seconds: 60, grace_seconds: 10, budget: none"
FIELDS = "[{name: carrier, values: [AA, B6]}, {name: origin, values: [EWR, JFK, LGA], other: false}]"


def entry(fields: str = FIELDS, more: str = "epsilon: 2, ") -> str:
    return f"{HEAD}  - {{name: route, mechanism: k-rr-pair, fields: {fields}, {more}{TIMES}}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def test_fields_share_epsilon_equally(file: Path) -> None:
    (found,) = read(file, entry()).collections
    assert found.mechanism == PairKRR.from_epsilons(3, 3, 1.0, 1.0)
    assert found.values == (
        "AA / EWR", "AA / JFK", "AA / LGA", "B6 / EWR", "B6 / JFK", "B6 / LGA",
        "(other) / EWR", "(other) / JFK", "(other) / LGA",
    )  # fmt: skip
    assert (found.other, found.memoize, found.takes_integers, found.entries) == (False, False, False, 9)
    assert found.labels() == found.values
    assert [(each.name, each.other) for each in found.fields] == [("carrier", True), ("origin", False)]


def test_epsilon_may_be_stated_for_each_field(file: Path) -> None:
    fields = "[{name: a, values: [x], epsilon: 1}, {name: b, values: [y], epsilon: 3}]"
    (found,) = read(file, entry(fields, "")).collections
    assert found.mechanism == PairKRR.from_epsilons(2, 2, 1.0, 3.0)


def test_description_names_both_fields(file: Path) -> None:
    (found,) = read(file, entry()).collections
    assert describe(Allowance(found, None, 1)).startswith(
        "route: k-RR of pairs, carrier over 3 buckets with epsilon 1 and origin over 3 buckets with epsilon 1"
    )


def hot_entry(fields: str = FIELDS, more: str = "epsilon: 2, ") -> str:
    return entry(fields, more).replace("k-rr-pair", "one-hot-pair")


def test_bits_of_pairs_have_the_whole_epsilon(file: Path) -> None:
    (found,) = read(file, hot_entry()).collections
    assert found.mechanism == OneHotPair.from_epsilon(3, 3, 2.0)
    (split,) = read(file, entry()).collections
    assert (found.values, found.fields) == (split.values, split.fields)
    assert (found.other, found.memoize, found.takes_integers, found.entries) == (False, False, False, 9)
    assert describe(Allowance(found, None, 1)).startswith(
        "route: one bit for each of 9 pairs, carrier over 3 buckets and origin over 3 buckets"
    )


@pytest.mark.parametrize(
    ("of_carrier", "of_origin", "unlisted"),
    [(True, False, "origin"), (False, True, "carrier"), (False, False, "carrier or origin")],
)
def test_fields_of_bits_that_refuse_values_are_warned_of(
    file: Path, of_carrier: bool, of_origin: bool, unlisted: str
) -> None:
    text = (
        f"[{{name: carrier, values: [AA, B6], other: {str(of_carrier).lower()}}},"
        f" {{name: origin, values: [EWR, JFK], other: {str(of_origin).lower()}}}]"
    )
    (found,) = read(file, hot_entry(text)).collections
    warnings = [line for line in describe(Allowance(found, None, 1)).splitlines() if "warning" in line]
    assert warnings == [
        f"  warning: reports with an unlisted {unlisted} are in no pair and in neither margin, only in the "
        "share `other`; avoid it with other: true"
    ]
    (split,) = read(file, entry(text)).collections
    assert "warning" not in describe(Allowance(split, None, 1))


def test_bits_of_pairs_that_take_any_value_are_not_warned_of(file: Path) -> None:
    (found,) = read(file, hot_entry("[{name: a, values: [x]}, {name: b, values: [y]}]")).collections
    assert "warning" not in describe(Allowance(found, None, 1))


def test_bits_of_pairs_take_no_epsilon_of_a_field(file: Path) -> None:
    fields = "[{name: a, values: [x], epsilon: 1}, {name: b, values: [y]}]"
    assert refusal(file, hot_entry(fields)).startswith(
        "collections[0] (route): epsilon is that of the pair: fields of a one-hot-pair take none of their own"
    )
    many = ", ".join(f"v{number}" for number in range(50))
    wide = f"[{{name: a, values: [{many}]}}, {{name: b, values: [{many}]}}]"
    assert refusal(file, hot_entry(wide)).startswith(
        "collections[0] (route): pairs of values must be at most 2000, got 2601"
    )


@pytest.mark.parametrize(
    ("fields", "more", "message"),
    [
        (FIELDS, "", ": give either epsilon, which both fields share equally, or an epsilon in each field"),
        ("[{name: a, values: [x], epsilon: 1}, {name: b, values: [y]}]", "",
         ": give either epsilon, which both fields share equally, or an epsilon in each field"),
        ("[{name: a, values: [x]}, {name: a, values: [y]}]", "epsilon: 1, ",
         ": names of fields must be distinct, got 'a' twice"),
        ("[{name: a, values: [x, x]}, {name: b, values: [y]}]", "epsilon: 1, ",
         ": values of a must be distinct, got 'x' twice"),
        ("[{name: a, values: [x], other: false}, {name: b, values: [y]}]", "epsilon: 1, ",
         ": number of values of a must be in [2, 1000], got 1"),
        ("[{name: a, values: ['(other)']}, {name: b, values: [y]}]", "epsilon: 1, ",
         ": values of a must not contain '(other)', which stands for all others"),
        ("[{name: a, values: ['x', 'x / y']}, {name: b, values: ['z', 'y / z']}]", "epsilon: 1, ",
         ": pairs of values, as shown must be distinct, got 'x / y / z' twice"),
        (FIELDS, "epsilon: 17, ", ": epsilon of both fields together must be in (0, 16], got 17"),
    ],
)  # fmt: skip
def test_contradictions_are_named(file: Path, fields: str, more: str, message: str) -> None:
    assert refusal(file, entry(fields, more)).startswith(f"collections[0] (route){message}")


def test_all_mistakes_of_a_pair_are_named_together(file: Path) -> None:
    fields = "[{name: a, values: [x, x]}, {name: a, values: ['(other)'], other: false, epsilon: 1}]"
    said = refusal(file, entry(fields, "epsilon: 2, ")).splitlines()
    assert [line.partition("collections[0] (route): ")[2] for line in said] == [
        "names of fields must be distinct, got 'a' twice",
        "values of a must be distinct, got 'x' twice",
        "number of values of a must be in [2, 1000], got 1",
        "values of a must not contain '(other)', which stands for all others",
        "give either epsilon, which both fields share equally, or an epsilon in each field",
    ]


def test_wrong_types_of_both_fields_are_named_together(file: Path) -> None:
    fields = "[{name: a, values: 3}, {name: B, vlues: [y]}]"
    said = refusal(file, hot_entry(fields, "")).splitlines()
    assert [re.split("[;,]", line.partition("collections[0]")[2])[0] for line in said] == [
        ".fields[0].values: must be a list of text",
        ".fields[1].name: must be 1 to 63 lower-case letters",
        ".fields[1]: unknown field `vlues`",
        ": field `epsilon` is missing",
    ]


def test_three_fields_are_refused(file: Path) -> None:
    three = FIELDS.replace("]}, {name: o", "]}, {name: x, values: [y]}, {name: o", 1)
    assert refusal(file, entry(three)).startswith(
        "collections[0].fields: must be a list of two fields, each with name and values, got ["
    )


def test_unknown_field_of_a_field_is_named(file: Path) -> None:
    wrong = FIELDS.replace("values: [AA, B6]", "values: [AA, B6], othr: true")
    assert refusal(file, entry(wrong)) == (
        "collections[0].fields[0]: unknown field `othr`; did you mean `other`? "
        "Known fields: name, values, other, epsilon"
    )


def test_field_without_values_is_refused(file: Path) -> None:
    wrong = FIELDS.replace(", values: [AA, B6]", "")
    assert refusal(file, entry(wrong)) == (
        "collections[0].fields[0]: field `values` is missing; it must be a list of text"
    )
