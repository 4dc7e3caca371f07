"""Pairs of texts become a bit; which bits are drawn does not depend on them, and no text is shown."""

import numpy as np
import pytest

from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.producers.responders.factory import responder_of
from deniable.producers.responders.pair import HotPairResponder
from deniable.producers.responders.single_value import value_rule
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import RAPPOR_NUMBER
from tests.support.producers.sources import RepeatableWords

CARRIER, ORIGIN = Field("carrier", ("AA", "B6"), True), Field("origin", ("EWR", "JFK", "LGA"), False)
#: A bit that is not set is shown once in 9 million; the true one in half of all reports.
ALMOST_TRUE = OneHotPair.from_epsilon(3, 3, 16.0)


def responder(mechanism: OneHotPair = ALMOST_TRUE, seed: int = 1) -> HotPairResponder:
    collection = Collection("route", mechanism, pair_labels(CARRIER, ORIGIN), fields=(CARRIER, ORIGIN))
    found = responder_of(collection, Secret(bytes(32)), RepeatableWords(seed))
    assert isinstance(found, HotPairResponder)
    return found


def bits_of(found: HotPairResponder, given: object) -> np.ndarray:
    batch = found.prepare(given, None)
    cohorts, rows = batch.respond(slice(0, batch.count))
    assert cohorts.tolist() == [0] * batch.count
    return np.unpackbits(rows, axis=1, bitorder="little").astype(np.int64)


@pytest.mark.parametrize(("pair", "bit"), [(("AA", "EWR"), 0), (("B6", "LGA"), 5), (["DL", "JFK"], 7)])
def test_pairs_are_numbered_by_rows_and_others_have_the_last_row(pair, bit):
    """1,000 reports show it in half: 6 deviations are 95."""
    found = responder()
    shown = bits_of(found, [pair] * 1000).sum(axis=0)
    assert abs(shown[bit] - 500) < 95
    assert shown.sum() == shown[bit]
    assert found.unknown == (1000 if "DL" in pair else 0)


def test_a_pair_with_a_text_that_has_no_bucket_has_no_bit():
    found = responder()
    assert bits_of(found, [("AA", "SFO"), ("DL", "SFO")] * 100).sum() == 0
    assert found.unknown == 300


def test_words_drawn_do_not_depend_on_the_values():
    mechanism, last = OneHotPair.from_epsilon(3, 3, 1.0), set()
    for others in ([("AA", "EWR")] * 99, [("DL", "SFO")] * 99, [("B6", "LGA")] * 99):
        last.add(bits_of(responder(mechanism), [*others, ("AA", "JFK")])[-1].tobytes())
    assert len(last) == 1


def test_frequencies_of_bits_are_those_of_the_channel():
    """Each of 9 counts of 60,000 within 6 standard deviations, which fails with 2e-8."""
    mechanism, reports = OneHotPair.from_epsilon(3, 3, 1.0), 60_000
    shown = bits_of(responder(mechanism), [("B6", "JFK")] * reports).sum(axis=0)[:9]
    rates = np.full(9, mechanism.p_star)
    rates[4] = mechanism.q_star
    assert (np.abs(shown - reports * rates) < 6 * np.sqrt(reports * rates * (1 - rates))).all()


def test_a_value_is_two_texts():
    assert bits_of(responder(), ("B6", "JFK")).shape == (1, 16)
    with pytest.raises(TypeError, match="a value of route"):
        responder().prepare(["AA"], None)
    collection = Collection("route", ALMOST_TRUE, pair_labels(CARRIER, ORIGIN), fields=(CARRIER, ORIGIN))
    assert value_rule(collection).checked(["AA", "JFK"]) == ("AA", "JFK")
    assert ALMOST_TRUE.wire_number == RAPPOR_NUMBER
