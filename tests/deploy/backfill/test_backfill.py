"""`deniable backfill`: exact counts, the workers' estimates, and no window twice."""

import os
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.ledger import row_keys
from deniable.aggregator.ledger.counting.tally import Tally
from deniable.aggregator.ledger.row_values import encode_counters
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import encode_estimate
from deniable.analysis.sources.files import files_of
from deniable.analysis.sources.newest import NewestEstimates
from deniable.config.file import load
from deniable.deploy.backfill import command
from deniable.deploy.backfill.past_counts import PastCounts
from deniable.deploy.produce.input.source import FeedError
from deniable.producers.concurrency.clock import Clock
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.protocol.secrets.secret import SecretError, secret_of
from tests.analysis.export_points import install
from tests.deploy.backfill.runs import (
    DAY,
    HOUR,
    START,
    backfill,
    collection_of,
    counts_in,
    events_of,
    line_of,
    said,
    shop,
    write_events,
)
from tests.deploy.backfill.test_past_limits import model
from tests.support.messages import PinMessages, refusal_of
from tests.support.processes import FaultPoints, Process, write_order
from tests.support.producers.sources import RepeatableWords

__all__ = ["shop"]


@pytest.fixture
def randomized(shop: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str], Any]]:
    """Values, clients and randomized reports of each call of the producer's randomization, as it returns."""
    seen: list[tuple[list[str], list[str], Any]] = []

    class Spied(Randomization):
        def submissions(self, collection: str, values: Any, clients: Any, *rest: Any) -> Any:
            parts = [*super().submissions(collection, values, clients, *rest)]
            assert len(parts) == 1
            seen.append((values, clients, parts[0]))
            return iter(parts)

    monkeypatch.setattr(command, "Randomization", Spied)
    monkeypatch.setattr(command, "Keystream", lambda: RepeatableWords(7))
    return seen


@pytest.mark.parametrize("name", ["plan", "word"])
def test_counts_are_those_of_the_randomized_reports(randomized: Any, name: str) -> None:
    """Each report of each window and cohort, bit for bit."""
    write_events(events_of(3000))
    lines = said(backfill(collection=name))
    collection = collection_of(name)
    expected: defaultdict[int, Any] = defaultdict(
        lambda: np.zeros((collection.cohorts, collection.width), np.int64)
    )
    sizes: Counter[tuple[int, int]] = Counter()
    for _, _, part in randomized:
        for start, cohort, row in zip(part.windows.tolist(), part.cohorts.tolist(), part.rows, strict=True):
            sizes[start, cohort] += 1
            bits = np.unpackbits(row, bitorder="little") if name == "word" else np.arange(3) == row[0]
            expected[start][cohort] += bits
    found = counts_in("counts", name)
    assert found.keys() == expected.keys() == set(range(START, START + 30 * HOUR, HOUR))
    for start, window in found.items():
        assert (window.counts == expected[start]).all()
        assert window.cohort_sizes.tolist() == [sizes[start, each] for each in range(collection.cohorts)]
    assert f"{sum(sizes.values()):,} reports counted" in lines[0]


def test_cohorts_and_permanent_responses_are_those_of_the_producer(randomized: Any) -> None:
    """With the same words, the reports of clients differ from the producer's if its secret does."""
    write_events(events_of(500))
    backfill(collection="word")
    ((values, clients, part),) = randomized
    loaded = {each.collection.name: each for each in load(Path("deniable.yaml")).allowances}
    producers = Randomization(loaded, secret_of(Path(".deniable")), RepeatableWords(7), Clock())
    (own,) = producers.submissions("word", values, clients, float(START))
    assert (own.cohorts == part.cohorts).all()
    assert (own.rows == part.rows).all()
    assert len(set(own.cohorts.tolist())) == 4


@pytest.mark.parametrize("name", ["plan", "word"])
def test_estimates_are_those_that_a_worker_publishes(
    shop: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_events(events_of(3000))
    said(backfill(collection=name))
    collection, newest = collection_of(name), NewestEstimates()
    home, metrics = {collection.fingerprint: collection}, WorkerMetrics({collection.fingerprint: collection})
    estimator = Estimator(home, 1, {}, LostWindows(metrics), metrics)
    for start, window in counts_in("counts", name).items():
        for cohort, counts in enumerate(window.counts):
            packs = window.packs if cohort == 0 else 0
            tally = Tally(counts, int(window.cohort_sizes[cohort]), packs)
            for key, page in tally.pages((collection.fingerprint, start, cohort)):
                estimator.take(row_keys.with_source(row_keys.encode_key(key), 0), encode_counters(page))
        result = estimator.estimate_window((collection.fingerprint, start), final=True)
        assert result is not None
        for record in result.records:
            newest.add(encode_estimate(record))
    written = deniable.read_estimates(collection=name, files="past", other=True)
    assert written.arrow.to_pylist() == newest.table(other=True).to_pylist()
    assert len({*written.arrow["window_start"].to_pylist()}) == 30


def test_files_are_read_by_what_reads_exports(shop: Path) -> None:
    write_events([(f"u{i}", "free" if i % 4 else "team", START + i % 7200) for i in range(4000)])
    said(backfill("--files", "csv"))
    frame = deniable.read_estimates("deniable.yaml", collection="plan", files="past").arrow.to_pylist()
    shares = {each["value"]: each["frequency"] for each in frame if each["window_start"].hour == 1}
    assert shares["free"] == pytest.approx(0.75, abs=0.1)
    day = deniable.rollup("deniable.yaml", collection="plan", files="counts", start=START, end=START + DAY)
    assert day.about["reports"] == 4000


def test_a_second_run_changes_nothing_and_says_so(randomized: Any, pin_messages: PinMessages) -> None:
    write_events(events_of(2000))
    first = said(backfill())
    before = {path: path.read_bytes() for path in (*files_of("past", "plan"), *files_of("counts", "plan"))}
    assert len(before) == 4
    randomized.clear()
    second = said(backfill())
    assert randomized == []
    assert before == {path: path.read_bytes() for path in before}
    one_kind = said(backfill(past="--output past"))
    pin_messages(
        {
            "the first run": lambda: "\n".join(first),
            "the second run": lambda: "\n".join(second),
            "one kind of files alone": lambda: "\n".join(one_kind),
        }
    )


def test_estimates_follow_from_counts_without_another_randomization(randomized: Any) -> None:
    """Also after a kill between the two kinds of files."""
    write_events(events_of(2000))
    said(backfill(past="--counts counts"))
    randomized.clear()
    said(backfill())
    assert randomized == []
    assert (
        len({*deniable.read_estimates(collection="plan", files="past").arrow["window_start"].to_pylist()})
        == 30
    )


def test_open_windows_and_small_ones_are_left_out(
    randomized: Any, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    """The second window is open until its grace is over; the first has too few reports for an estimate."""
    write_events(
        [(f"u{i}", "free", START + i) for i in range(19)]
        + [(f"u{i}", "free", START + HOUR) for i in range(30)]
    )
    closes = START + 2 * HOUR + 60
    monkeypatch.setattr(command, "time", SimpleNamespace(time=lambda: float(closes)))
    early = said(backfill())
    assert sum(len(values) for values, _, _ in randomized) == 19
    assert counts_in("counts").keys() == {START}
    monkeypatch.setattr(command, "time", SimpleNamespace(time=lambda: closes + 0.5))
    late = said(backfill())
    assert sum(len(values) for values, _, _ in randomized) == 49
    assert counts_in("counts").keys() == {START, START + HOUR}
    pin_messages({"at the grace's end": lambda: "\n".join(early), "after it": lambda: "\n".join(late)})


def test_lines_without_client_or_time_are_skipped(shop: Path, pin_messages: PinMessages) -> None:
    """And without clients no limit applies; what the values are never matters."""
    events = [*events_of(300, hours=1, clients=1), ("", "free", START), ("u1", "", START)]
    write_events(events)
    with open("events.csv", "a") as file:
        file.write("u1,free,yesterday\n")
    pin_messages(
        {
            "with clients": lambda: backfill(past="--output past").stderr,
            "without clients": lambda: backfill(clients=None, past="--output other").stderr,
        }
    )


@pytest.mark.slow
def test_killed_between_two_files_the_next_run_goes_on(shop: Path) -> None:
    """The files that are there are whole and stay; only windows that are missing are randomized."""
    events = events_of(3000, hours=72)
    write_events(events)
    write_order(shop / "process", "replaced", passes=2)
    Process.call(run_in, shop, folder=shop / "process").await_kill("replaced")
    kept = {path: path.read_bytes() for path in files_of("counts", "plan")}
    assert len(counts_in("counts")) == 48
    assert not list(Path("past").rglob("*.parquet"))
    said(backfill())
    assert len(kept) == 2
    assert kept == {path: path.read_bytes() for path in kept}
    found = counts_in("counts")
    assert len(found) == len(estimated()) == 72
    assert sum(each.reports for each in found.values()) == sum(model(events))


def run_in(folder: str) -> None:
    """Run the command in a process of its own, which has an order to be killed."""
    os.chdir(folder)
    install(FaultPoints(Path(folder) / "process"))
    command.backfill.main(line_of(), standalone_mode=False)


def estimated() -> set[Any]:
    """Return the windows that have an estimate in the files."""
    return {*deniable.read_estimates(collection="plan", files="past").arrow["window_start"].to_pylist()}


def test_windows_beyond_memory_are_refused(
    shop: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    write_events(events_of(100))
    monkeypatch.setattr(command, "PastCounts", partial(PastCounts, max_bytes=10_000))
    pin_messages({"more than nine windows": lambda: raised(backfill())})
    assert files_of_folder("past") == files_of_folder("counts") == []


def test_an_unattended_run_over_the_wrong_column_writes_nothing(
    shop: Path, pin_messages: PinMessages
) -> None:
    write_events((client, "somewhere else", at) for client, _, at in events_of(3000))
    pin_messages({"a column that the collection does not list": lambda: raised(backfill())})
    assert files_of_folder("past") == files_of_folder("counts") == []
    assert said(backfill("--hide-unknown"))


def files_of_folder(name: str) -> list[Path]:
    return [each for each in Path(name).rglob("*") if each.is_file()]


def raised(ended: Any) -> str:
    assert ended.exception is not None
    raise ended.exception


def test_messages(shop: Path, pin_messages: PinMessages) -> None:
    write_events(events_of(100))
    Path("short.csv").write_text("user,plan,at\nu1,free\n")
    Path("bad.csv").write_text("user,plan,at\n,free,1\n")
    other = {"collection": "tree"}

    def refused(*options: str, status: int = 2, **asked: Any) -> str:
        return refusal_of(backfill(*options, **asked), status)

    pin_messages(
        {
            "no place": partial(refused, past="--files csv"),
            "one place for both": partial(refused, past="--output past --counts past"),
            "the value as client": partial(refused, clients="plan"),
            "the value as time": partial(refused, "--time-field", "plan"),
            "neither clients nor none": partial(refused, "--no-clients"),
            "estimates of texts that nobody lists": partial(refused, **other),
            "changes that the producer counts": partial(refused, collection="shown"),
            "a second field": partial(refused, "--second-field", "at"),
            "a collection that is not there": lambda: raised(backfill(collection="plans")),
            "a record without a cell": lambda: raised(backfill("--input", "short.csv")),
            "a bad line, if strict": lambda: raised(backfill("--input", "bad.csv", "--strict")),
            "only bad lines": lambda: raised(backfill("--input", "bad.csv")),
            "a folder of other files": lambda: (backfill(), raised(backfill(past="--output counts")))[1],
        }
    )


@pytest.mark.parametrize("options", [(), ("--strict",)], ids=["a column is missing", "values are of another"])
def test_the_wrong_file_leaves_no_secret_and_no_folder(shop: Path, options: tuple[str, ...]) -> None:
    Path("other.csv").write_text("user,plan,at\nu1,elsewhere,1767225600\n" if options else "a,b\nx,y\n")
    ended = backfill("--input", "other.csv", *options)
    assert isinstance(ended.exception, FeedError)
    assert {each.name for each in shop.iterdir()} == {"deniable.yaml", "other.csv"}


def test_another_secret_is_refused(shop: Path) -> None:
    write_events(events_of(50))
    said(backfill())
    Path(".deniable/secret").write_bytes(bytes(32))
    assert isinstance(backfill(past="--output other").exception, SecretError)
    Path(".deniable/secret").unlink()
    assert isinstance(backfill(past="--output other").exception, SecretError)
    assert files_of_folder("other") == []
