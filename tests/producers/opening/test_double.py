"""The producer for tests of applications checks as a producer does, and its noise is that of its seed."""

import asyncio
from pathlib import Path

import pytest

from deniable.producers.errors import ClosedError, DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.opening.double import Event, ProducerDouble
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages
from tests.support.producers.questions import FREE

CONFTEST = 'pytest_plugins = ["deniable.testing"]\n'
SHOP = """
from deniable import open_producer

def checkout(person):
    with open_producer("shop/deniable.yaml") as producer:
        producer.record("plan", "team", client=person)

def test_each_checkout_is_counted(deniable_producer):
    checkout("user-17")
    checkout("user-18")
    assert [each.client for each in deniable_producer.events] == ["user-17", "user-18"]

def test_each_test_has_its_own(deniable_producer):
    assert deniable_producer.events == []
"""
FILE = """
collections:
  - {name: plan, mechanism: k-rr, values: [free, team], epsilon: 2, window_seconds: 60,
     grace_seconds: 5, budget: none}
"""

pytest_plugins = ["pytester"]


def test_keeps_true_values_and_says_so(caplog: pytest.LogCaptureFixture, pin_messages: PinMessages) -> None:
    with ProducerDouble(FREE) as double:
        double.record("carrier", "AA", client="person", at=60)
        assert double.report("latency", [1, 2], None) == Receipt(stored=2)
        assert double.report("carrier", "B6", client="person") == Receipt(stored=1)
    assert double.events == [
        ("carrier", "AA", "person", 60),
        Event("latency", [1, 2]),
        Event("carrier", "B6", "person"),
    ]
    assert double.counters().stored == {"carrier": 2, "latency": 2, "destination": 0}
    assert double.reasons_not_ready() == []
    pin_messages({"opened": lambda: messages(caplog)[0], "itself": lambda: repr(double)})


def test_same_seed_gives_the_same_reports() -> None:
    def packs(seed: int) -> list[dict[str, object]]:
        double = ProducerDouble(FREE, seed)
        double.report("latency", list(range(50)), None, at=120)
        double.record("destination", "BOS", client="person", at=60)
        return double.packs

    assert packs(1) == packs(1)
    assert packs(1) != packs(2)
    latency, destination = packs(1)
    assert (latency["collection"], latency["window"]) == ("latency", "1970-01-01T00:02:00Z")
    assert len(latency["reports"]) == 50
    assert destination["mechanism"] == "rappor"


def test_errors_are_those_of_a_producer(pin_messages: PinMessages) -> None:
    double = ProducerDouble(FREE)
    pin_messages(
        {
            "unknown collection": lambda: double.record("carriers", "AA"),
            "wrong type of a value": lambda: double.record("carrier", object()),
            "wrong type of values": lambda: double.report("latency", [object()], None),
            "neither clients nor client": lambda: double.report("carrier", "AA"),
            "both": lambda: double.report("carrier", "AA", None, client=None),
        }
    )
    assert double.events == double.packs == []


def test_what_a_producer_drops_is_dropped() -> None:
    double = ProducerDouble(FREE)
    double.record("carrier", "AA", client="")
    double.record("carrier", "AA", at=-1)
    with pytest.raises(DeliveryError, match="2 reports were dropped since the last flush"):
        double.flush()
    double.flush()
    asyncio.run(double.aclose())
    double.record("carrier", "AA")
    assert double.events == []
    assert double.counters().dropped["carrier"] == 3
    with pytest.raises(ClosedError):
        double.report("carrier", "AA", None)


def test_opened_again_it_keeps_events_beside_those_before(caplog: pytest.LogCaptureFixture) -> None:
    double = ProducerDouble(FREE)
    with double.opened() as first, double.opened() as second:
        first.record("carrier", "AA", at=60)
        second.record("carrier", "B6", at=60)
    with double.opened() as third:
        third.record("carrier", "9E", at=60)
        caplog.clear()
        first.record("carrier", "UA", at=60)  # closed, as a producer that is opened once stays
    assert [each.value for each in double.events] == ["AA", "B6", "9E"]
    assert double.counters().dropped["carrier"] == 1
    assert "recorded after close" in messages(caplog)[0]


@pytest.mark.slow
def test_fixture_stands_in_for_the_producer_of_an_application(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    Path(pytester.path, "deniable.yaml").write_text(FILE)
    pytester.makepyfile(SHOP)
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=2)
    assert not (pytester.path / ".deniable").exists()
    Path(pytester.path, "deniable.yaml").unlink()
    without = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    without.assert_outcomes(errors=2)
    without.stdout.fnmatch_lines(
        ["the fixture deniable_file must be *deniable.yaml, which does not exist: *"]
    )
