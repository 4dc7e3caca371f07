"""Differing parameters are named as in the collection file, with both values."""

from dataclasses import replace

import pytest

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.square_wave import SquareWave
from producers.transport.parameter_differences import differences
from producers.transport.publication import publication_of
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY

MANY = Collection("many", KRR.from_epsilon(1000, 1.0), values=tuple(f"value {i}" for i in range(1000)))
LASTING = Collection("lasting", LongitudinalKRR.from_epsilons(4, 2.0, 1.0), memoize=True)

DELAY = Collection("delay", SquareWave.from_epsilon(-60.0, 180.0, 256, 1.0))


def valued(*values: str) -> Collection:
    return Collection("carrier", KRR.from_epsilon(len(values) + 1, 1.0), values=values, other=True)


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (CARRIER, replace(CARRIER, grace_seconds=9), []),
        (
            replace(CARRIER, mechanism=KRR.from_epsilon(4, 2.0)),
            CARRIER,
            ["epsilon: 2 here, 1 at the workers"],
        ),
        (
            replace(CARRIER, mechanism=KRR.from_epsilon(4, 2.0000014)),
            CARRIER,
            ["epsilon: 2.00001 here, 1 at the workers"],  # up, not to nearest
        ),
        (replace(CARRIER, window_seconds=10), CARRIER, ["window_seconds: 10 here, 60 at the workers"]),
        (
            valued("AA", "B6", "UA"),
            CARRIER,
            ['values: "9E" is missing here, "UA" is unknown to the workers'],
        ),
        (valued("AA", "B6"), CARRIER, ['values: "9E" is missing here']),
        (valued("B6", "AA", "9E"), CARRIER, ["values: in another order"]),
        (
            valued("a", "b", "c", "d"),
            CARRIER,
            ['values: "AA", "B6", "9E" are missing here, 4 are unknown to the workers'],
        ),
        (
            valued("AA", "B6", "\x1b[2J"),
            CARRIER,
            [r'values: "9E" is missing here, "\u001b[2J" is unknown to the workers'],
        ),
        (
            replace(LATENCY, mechanism=KRR.from_epsilon(500, 1.0)),
            LATENCY,
            ["size: 500 here, 1000 at the workers"],
        ),
        (replace(MANY, values=(*MANY.values[:-1], "new")), MANY, ["values: 1000, of which some differ"]),
        (replace(LATENCY, canary=True), LATENCY, ["canary: true here, false at the workers"]),
        (replace(DESTINATION, memoize=False), DESTINATION, ["memoize: false here, true at the workers"]),
        (
            replace(LASTING, mechanism=LongitudinalKRR.from_epsilons(4, 3.0, 1.0)),
            LASTING,
            ["epsilon_inf: 3 here, 2 at the workers"],
        ),
        (
            replace(DELAY, mechanism=SquareWave.from_epsilon(-60.0, 90.0, 256, 2.0)),
            DELAY,
            ["epsilon: 2 here, 1 at the workers", "maximum: 90.0 here, 180.0 at the workers"],
        ),
        (
            replace(DELAY, mechanism=SquareWave.from_epsilon(-60.0, 180.0, 128, 1.0)),
            DELAY,
            ["steps: 128 here, 256 at the workers"],
        ),
    ],
    ids=lambda case: case.name if isinstance(case, Collection) else None,
)
def test_each_differing_parameter_is_named(here: Collection, there: Collection, found: list[str]) -> None:
    assert differences(here, publication_of(there)) == found
    assert (found == []) == (here.fingerprint == there.fingerprint)


def test_mechanism_and_bits_are_named() -> None:
    krr = Collection("destination", KRR.from_epsilon(4, 1.0))
    assert "mechanism: k-rr here, rappor at the workers" in differences(krr, publication_of(DESTINATION))
    wide = replace(DESTINATION, mechanism=Rappor.from_probabilities(256, 2, 8, 0.25, 0.35, 0.65))
    assert differences(wide, publication_of(DESTINATION)) == ["bits: 256 here, 128 at the workers"]


def test_probabilities_are_named_where_epsilons_are_equal() -> None:
    bloom = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    close = replace(DESTINATION, mechanism=replace(bloom, p_threshold=bloom.p_threshold + 1))
    (found,) = differences(close, publication_of(DESTINATION))
    assert found == "p: 0.3500000003 here, 0.3500000001 at the workers"


def test_sender_text_is_cut_and_escaped() -> None:
    (found,) = differences(valued("AA", "B6", "x" * 9999), publication_of(valued("AA", "B6", "x\n")))
    assert len(found) < 150
    assert found.isprintable()
