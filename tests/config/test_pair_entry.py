"""A pair of fields in the collection file: epsilon of both or of each, labels of pairs, mistakes."""

from functools import partial
from pathlib import Path

import pytest

from deniable.config.describe import describe
from deniable.config.settings.allowance import Allowance
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from tests.support.deploy.collection_texts import HEAD, read
from tests.support.messages import PinMessages

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


def test_messages_of_bits(file: Path, pin_messages: PinMessages) -> None:
    many = ", ".join(f"v{number}" for number in range(50))
    fields = {
        "an epsilon of a field": "[{name: a, values: [x], epsilon: 1}, {name: b, values: [y]}]",
        "too many pairs": f"[{{name: a, values: [{many}]}}, {{name: b, values: [{many}]}}]",
    }
    several = "[{name: a, values: 3}, {name: B, vlues: [y]}]"
    pin_messages(
        {what: partial(read, file, hot_entry(field)) for what, field in fields.items()}
        | {"wrong types in both fields, and no epsilon": partial(read, file, hot_entry(several, ""))}
    )


def test_messages(file: Path, pin_messages: PinMessages) -> None:
    """All mistakes of a pair are named together."""
    one = "epsilon: 1, "
    entries = {
        "no epsilon": entry(FIELDS, ""),
        "an epsilon of one field": entry("[{name: a, values: [x], epsilon: 1}, {name: b, values: [y]}]", ""),
        "fields of the same name": entry("[{name: a, values: [x]}, {name: a, values: [y]}]", one),
        "a value twice": entry("[{name: a, values: [x, x]}, {name: b, values: [y]}]", one),
        "one value, and no others": entry(
            "[{name: a, values: [x], other: false}, {name: b, values: [y]}]", one
        ),
        "a value has the name of all others": entry(
            "[{name: a, values: ['(other)']}, {name: b, values: [y]}]", one
        ),
        "two pairs are shown alike": entry(
            "[{name: a, values: ['x', 'x / y']}, {name: b, values: ['z', 'y / z']}]", one
        ),
        "epsilon is too large": entry(FIELDS, "epsilon: 17, "),
        "five mistakes": entry(
            "[{name: a, values: [x, x]}, {name: a, values: ['(other)'], other: false, epsilon: 1}]"
        ),
        "three fields": entry(FIELDS.replace("]}, {name: o", "]}, {name: x, values: [y]}, {name: o", 1)),
        "a field of a field is misspelt": entry(
            FIELDS.replace("values: [AA, B6]", "values: [AA, B6], othr: true")
        ),
        "a field without values": entry(FIELDS.replace(", values: [AA, B6]", "")),
    }
    pin_messages({what: partial(read, file, text) for what, text in entries.items()})
