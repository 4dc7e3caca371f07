"""Differing parameters are named as in the collection file, with both values."""

from dataclasses import replace
from functools import partial

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.transport.parameter_differences import differences
from deniable.protocol.publication import publication_of
from tests.support.messages import PinMessages
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY

MANY = Collection("many", KRR.from_epsilon(1000, 1.0), values=tuple(f"value {i}" for i in range(1000)))
LASTING = Collection("lasting", LongitudinalKRR.from_epsilons(4, 2.0, 1.0), memoize=True)

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
DELAY = Collection("delay", SquareWave.from_epsilon(-60.0, 180.0, 256, 1.0))


def valued(*values: str) -> Collection:
    return Collection("carrier", KRR.from_epsilon(len(values) + 1, 1.0), values=values, other=True)


def shown(here: Collection, there: Collection) -> str:
    return "\n".join(differences(here, publication_of(there)))


DIFFERING = {
    "epsilon": (replace(CARRIER, mechanism=KRR.from_epsilon(4, 2.0)), CARRIER),
    "epsilon, rounded up and not to nearest": (
        replace(CARRIER, mechanism=KRR.from_epsilon(4, 2.0000014)),
        CARRIER,
    ),
    "the window": (replace(CARRIER, window_seconds=10), CARRIER),
    "one of the values": (valued("AA", "B6", "UA"), CARRIER),
    "a value less": (valued("AA", "B6"), CARRIER),
    "the order of values": (valued("B6", "AA", "9E"), CARRIER),
    "all values": (valued("a", "b", "c", "d"), CARRIER),
    "a value that is no text for a terminal": (valued("AA", "B6", "\x1b[2J"), CARRIER),
    "the size": (replace(LATENCY, mechanism=KRR.from_epsilon(500, 1.0)), LATENCY),
    "one of 1000 values": (replace(MANY, values=(*MANY.values[:-1], "new")), MANY),
    "the canary": (replace(LATENCY, canary=True), LATENCY),
    "memoization": (replace(DESTINATION, memoize=False), DESTINATION),
    "epsilon of all reports": (
        replace(LASTING, mechanism=LongitudinalKRR.from_epsilons(4, 3.0, 1.0)),
        LASTING,
    ),
    "epsilon and the range": (
        replace(DELAY, mechanism=SquareWave.from_epsilon(-60.0, 90.0, 256, 2.0)),
        DELAY,
    ),
    "the steps": (replace(DELAY, mechanism=SquareWave.from_epsilon(-60.0, 180.0, 128, 1.0)), DELAY),
    "the mechanism": (Collection("destination", KRR.from_epsilon(4, 1.0)), DESTINATION),
    "the bits": (
        replace(DESTINATION, mechanism=Rappor.from_probabilities(256, 2, 8, 0.25, 0.35, 0.65)),
        DESTINATION,
    ),
    "a probability, at equal epsilons": (
        replace(DESTINATION, mechanism=replace(BLOOM, p_threshold=BLOOM.p_threshold + 1)),
        DESTINATION,
    ),
}


def test_messages(pin_messages: PinMessages) -> None:
    """Each parameter that differs is named, with both values."""
    for here, there in DIFFERING.values():
        assert here.fingerprint != there.fingerprint
    pin_messages({what: partial(shown, here, there) for what, (here, there) in DIFFERING.items()})


def test_grace_does_not_differ() -> None:
    other = replace(CARRIER, grace_seconds=9)
    assert differences(CARRIER, publication_of(other)) == []
    assert CARRIER.fingerprint == other.fingerprint


def test_sender_text_is_cut_and_escaped() -> None:
    (found,) = differences(valued("AA", "B6", "x" * 9999), publication_of(valued("AA", "B6", "x\n")))
    assert len(found) < 150
    assert found.isprintable()
