"""End to end on a real broker: throughput from log to stored counts, delay from event to estimate."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.aggregator.results import ResultRow
from bench.comparison.parts.streaming import latency, throughput_figures
from bench.comparison.parts.streaming.full_log import BROKER_GONE
from bench.comparison.parts.streaming.speeds import FULL, QUICK, Speed
from bench.comparison.parts.streaming.throughput import child_of, sustained
from bench.comparison.parts.streaming.visibility import Visibility, quantile
from bench.comparison.parts.streaming.workers import MeasurementError
from bench.comparison.report.figure import Figure, ResultsPart, Table
from bench.comparison.timing.rounds import Scale
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.errors import BrokerError
from deniable.producers.errors import DeliveryError

#: Shares of one worker's sustained rate; the next is tried if it does not keep up.
LOAD_SHARES = {0.5: "half", 0.25: "a quarter", 0.125: "an eighth"}
SECONDS = 40.0
PACK_REPORTS = 1000  # the load is a share of the speed with these packs
TITLE = "End to end"
ABOUT = (
    "A real Kafka broker, worker and reader share this machine. RAPPOR of 128 bits, 64 cohorts; a log of 4 "
    "equally long partitions is prefilled. Ours: the sum of the workers' speeds, each from its second "
    "commit since all count to its last before one has nine tenths of its share, by the metrics of "
    "`deniable aggregate`; others: from their first pack to nine tenths of the log. This excludes startup, "
    "and the log's end, where fetches wait for exhausted partitions. All in turn, median of the runs. "
    "bytewax and quixstreams count the same bits by window and cohort in their own state, with numpy, and "
    "write the counts to Kafka; their counts were checked. Delay: single events, each alone in a window of "
    "2 s of its own collection, are given to our producer at set times beside a steady load of packs of "
    "1,000; an event is visible when a read_committed consumer has the first estimate of its window. A "
    "pack that is not full waits for `pack_seconds`; then come an estimate, which rests in proportion to "
    "what the last one took, and its transaction. Final estimates: from the end of window and grace (3 s)."
)
NOTES = (
    "Our worker checks CRC-32C, pack id, window and partition of every pack, stores counts, ids and position "
    "in one transaction, and publishes estimates meanwhile. The peers' programs check nothing and estimate "
    "nothing.",
    "One worker keeps nearly a core busy. On two cores, two of them share what the broker and this process "
    "leave. `held on one core` shows what changing cores costs a worker's two threads.",
    "bytewax writes its output again after a crash, from its last snapshot on. quixstreams has keyed state, "
    "so packs' counts pass through a second topic, as JSON.",
)
QUICK_NOTE = (
    "Packs of 1 and of 100, two workers, reading alone, bytewax, quixstreams and delays are measured by "
    "`make bench` alone."
)


def measure(scale: Scale) -> ResultsPart:
    """Measure throughput for each pack size, then delays under load; without a broker, say why not."""
    try:
        return _measured(scale)
    except BrokerError as error:
        return ResultsPart(TITLE, ABOUT, unjudged=[f"{TITLE}, all of it: {error}"])


def _measured(scale: Scale) -> ResultsPart:
    speeds: list[Speed] = []
    figures: list[Figure] = []
    notes: list[str] = []
    failed: list[str] = []
    with TemporaryDirectory() as name, Broker() as broker:
        folder = Path(name)
        for size in QUICK if scale.quick else FULL:
            try:
                found = sustained(size, folder, broker)
            except BROKER_GONE as error:
                reported = notes if size.goal is None else failed
                reported.append(f"Packs of {size.reports:,} were not measured: {error}")
                continue
            speeds += found
            figures += throughput_figures.figures(size, found)
            notes += [throughput_figures.limit(size, found), throughput_figures.spent(size, found)]
        rows, delay_notes = ([], []) if scale.quick else delays(folder, broker, speeds)
    skipped = [QUICK_NOTE] if scale.quick else []
    tables = [Table("All readers of a full log", [each.row() for each in speeds])]
    if rows:
        tables.append(Table("Delay, seconds", rows))
    notes = [*filter(None, notes), *delay_notes, *NOTES, *skipped]
    unjudged = [*failed, *throughput_figures.unjudged(speeds)]
    return ResultsPart(TITLE, ABOUT, figures, tables, notes, unjudged=unjudged)


def delays(folder: Path, broker: Broker, speeds: Sequence[Speed]) -> tuple[list[ResultRow], list[str]]:
    """Measure delays at decreasing loads until the worker keeps up; return their rows and a note per load."""
    full = next((each.median for each in speeds if each.reports == PACK_REPORTS), 0.0)
    if not full:
        return [], ["Delays were not measured, because the load is a share of an unknown speed."]
    reported = []
    for share, called in LOAD_SHARES.items():
        load = f"Delays at {called} of the speed of a full log, {share * full:,.0f} reports/s"
        try:
            seen = latency.measure(folder, broker.bootstrap_servers, child_of(broker), share * full, SECONDS)
        except (MeasurementError, DeliveryError, *BROKER_GONE) as error:
            reported.append(f"{load}: not measured, {error}.")
            continue
        reported.append(
            f"{load}: {seen.counted:,.0f} were counted, {seen.behind:,.0f} packs waited at the end; the "
            f"worker took {seen.worker_cores:.2f} cores and the broker {seen.broker_cores:.2f}."
        )
        return [row for each in seen.events.items() for row in _rows(*each)], reported
    return [], reported


def _rows(pack_seconds: float, events: Visibility) -> list[ResultRow]:
    waiting = f"pack_seconds {pack_seconds:g}{' (the default)' if pack_seconds == 1 else ''}"
    missing = events.missing()
    return [
        _row(f"event to first estimate with it, {waiting}", events.shown(), missing),
        _row(f"end of window and grace to final estimate, {waiting}", events.final(), missing),
    ]


def _row(name: str, seconds: Sequence[float], missing: int) -> ResultRow:
    return {
        "": name,
        "events": len(seconds),
        "median": quantile(seconds, 0.5) if seconds else "",
        "p99": quantile(seconds, 0.99) if seconds else "",
        "most": max(seconds, default=""),
        "never final": missing,
    }
