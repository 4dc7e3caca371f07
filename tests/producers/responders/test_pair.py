"""Pairs of texts become one report; no pair is refused for its values, and none is shown."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.producers.randomization.randomizers import randomize_krr, randomize_pair
from deniable.producers.responders.factory import responder_of
from deniable.producers.responders.pair import PairResponder
from deniable.producers.responders.single_value import value_rule
from deniable.protocol.wire import PAIR_NUMBER
from tests.support.messages import PinMessages
from tests.support.producers.sources import RepeatableWords

CARRIER, ORIGIN = Field("carrier", ("AA", "B6"), True), Field("origin", ("EWR", "JFK", "LGA"), False)
#: At these epsilons a report is the true pair, but for one in a thousand.
ALMOST_TRUE = PairKRR.from_epsilons(3, 3, 8, 8)


def collection(mechanism: PairKRR = ALMOST_TRUE) -> Collection:
    return Collection("route", mechanism, pair_labels(CARRIER, ORIGIN), fields=(CARRIER, ORIGIN))


def responder(mechanism: PairKRR = ALMOST_TRUE, seed: int = 1) -> PairResponder:
    return PairResponder(collection(mechanism), mechanism, RepeatableWords(seed))


def reports_of(batch) -> list[int]:
    cohorts, rows = batch.respond(slice(0, batch.count))
    assert cohorts.tolist() == [0] * batch.count
    return rows[:, 0].tolist()


@pytest.mark.parametrize(
    "given",
    [
        [("AA", "EWR"), ("B6", "LGA"), ("DL", "JFK")],
        [["AA", "EWR"], ["B6", "LGA"], ["DL", "JFK"]],
        (("AA", "EWR"), ("B6", "LGA"), ("DL", "JFK")),
    ],
)
def test_pairs_are_numbered_by_rows_and_others_have_the_last_row(given):
    found = responder()
    assert reports_of(found.prepare(given, None)) == [0, 5, 7]
    assert found.unknown == 1


def test_a_tuple_of_two_texts_is_one_pair():
    assert reports_of(responder().prepare(("B6", "JFK"), "client")) == [4]


def test_a_text_that_its_field_without_other_does_not_list_is_uniformly_random():
    """1,000 of each of 3 columns expected: 6 standard deviations are 155; a single one would be 3,000."""
    found = responder()
    counts = np.bincount(reports_of(found.prepare([("AA", "SFO")] * 3000, None)), minlength=9)
    assert np.abs(counts[:3] - 1000).max() < 155
    assert found.unknown == 3000


def test_words_drawn_do_not_depend_on_the_values():
    mechanism = PairKRR.from_epsilons(3, 3, 1, 1)
    last = set()
    for others in ([("AA", "EWR")] * 99, [("DL", "SFO")] * 99, [("B6", "LGA")] * 99):
        _, rows = responder(mechanism).prepare([*others, ("AA", "JFK")], None).respond(slice(0, 100))
        last.add(rows[-1].tobytes())
    assert len(last) == 1


def test_report_has_both_k_rrs_with_words_of_their_own():
    """The same words give the same as the two k-RRs one after the other."""
    mechanism = PairKRR.from_epsilons(5, 60, 1.0, 2.0)
    first, second = np.arange(1000) % 5, np.arange(1000) % 60
    words = RepeatableWords(3)
    expected = randomize_krr(first, mechanism.first, words).astype(int) * 60
    expected += randomize_krr(second, mechanism.second, words)
    found = randomize_pair(first, second, mechanism, RepeatableWords(3))
    assert found.dtype == np.dtype("<u2")
    np.testing.assert_array_equal(found, expected)


def test_frequencies_of_reports_are_those_of_the_channel():
    """Each of 12 counts of 240,000 within 6 standard deviations, which fails with 3e-8; two equal words for
    both fields would be off by hundreds of them.
    """
    mechanism = PairKRR.from_epsilons(3, 4, 1.0, 0.5)
    reports = 240_000
    truth = np.full(reports, 1), np.full(reports, 2)
    counts = np.bincount(randomize_pair(*truth, mechanism, RepeatableWords(4)), minlength=12)
    exact = [
        float(Fraction(first) * Fraction(second))
        for first in mechanism.first.channel[:, 1].tolist()
        for second in mechanism.second.channel[:, 2].tolist()
    ]
    expected = reports * np.array(exact)
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_a_value_that_is_no_bucket_is_refused():
    with pytest.raises(ValueError, match="bucket"):
        randomize_pair(np.array([0]), np.array([3]), ALMOST_TRUE, RepeatableWords(1))


def test_messages(pin_messages: PinMessages) -> None:
    """`record` and `report` say the same of one value; `report` adds how to give several."""
    items = {
        "a text": "canary-7391",
        "a dict of two texts": {"carrier": "canary-7391", "origin": "JFK"},
        "a dict of one text": {"canary-7391": "JFK"},
        "a set": {"canary-7391", "JFK"},
        "one text": ["canary-7391"],
        "one text, in a tuple": ("canary-7391",),
        "three texts": ("canary-7391", "JFK", "SFO"),
        "a text and bytes": ("canary-7391", b"9"),
        "a dict and a text": [{}, "canary-7391"],
        "bytes and a text": [b"canary-7391", "JFK"],
    }
    reported = {"a text": "canary-7391", "an array": np.array([["canary-7391", "JFK"]])}
    pin_messages(
        {what: partial(value_rule(collection()).checked, item) for what, item in items.items()}
        | {f"{what}, to report": partial(responder().prepare, each, None) for what, each in reported.items()}
    )
    for item in items.values():
        with pytest.raises(TypeError) as of_record:
            value_rule(collection()).checked(item)
        with pytest.raises(TypeError) as of_report:
            responder().prepare(item, None)
        with pytest.raises(TypeError) as of_several:
            responder().prepare([("B6", "LGA"), item], None)
        assert str(of_report.value).startswith(str(of_record.value))
        assert str(of_several.value) == str(of_report.value)


@pytest.mark.parametrize("missing", [None, math.nan, np.ma.masked])
def test_a_missing_pair_is_unknown_in_both_fields(missing):
    """Whether a report leaves must not depend on a value, and one missing pair refuse no others."""
    known = value_rule(collection()).checked((None, None))
    assert value_rule(collection()).checked(missing) == known
    for given in (missing, [("B6", "JFK"), missing]):
        assert reports_of(responder().prepare(given, None))[-1:] == reports_of(
            responder().prepare([(None, None)], None)
        )


@pytest.mark.parametrize("given", [("B6", "JFK"), ["B6", "JFK"]])
def test_record_and_report_take_one_tuple_or_list_of_two_texts(given):
    assert value_rule(collection()).checked(given) == ("B6", "JFK")
    assert reports_of(responder().prepare(given, None)) == [4]


def test_collections_of_pairs_have_this_responder_and_number():
    assert isinstance(responder_of(collection(), None, RepeatableWords(1)), PairResponder)
    assert ALMOST_TRUE.wire_number == PAIR_NUMBER
