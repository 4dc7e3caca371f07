"""From a log on a real broker to stored counts, and from an event to the estimate that shows it."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.aggregator_results import Row
from bench.contest.figure import Figure, Part, Table
from bench.contest.parts import delay, sustained
from bench.contest.parts.sustained import Speed, child_of
from bench.contest.parts.visibility import quantile
from bench.contest.parts.workers import WorkerError
from bench.contest.rounds import Scale
from deploy.broker import Broker
from producers.connection import DeliveryError

LOAD_SHARE = 0.5
QUICK_SECONDS, FULL_SECONDS = 6.0, 40.0
PACK_REPORTS = 1000  # of the speed of which the load is half
ABOUT = "TODO"


def measure(scale: Scale) -> Part:
    """Speeds at each size of a pack, then delays at half of the speed."""
    speeds: list[Speed] = []
    figures: list[Figure] = []
    with TemporaryDirectory() as name, Broker() as broker:
        folder = Path(name)
        for size in sustained.QUICK if scale.quick else sustained.FULL:
            found = sustained.sustained(size, folder, broker)
            speeds += found
            figures += sustained.figures(size, found)
        seconds = QUICK_SECONDS if scale.quick else FULL_SECONDS
        rows, notes = delays(folder, broker, speeds, seconds)
    tables = [Table("All readers of a full log", [each.row() for each in speeds])]
    if rows:
        tables.append(Table("Delay at half load, seconds", rows))
    return Part("End to end", ABOUT, figures, tables, notes)


def delays(
    folder: Path, broker: Broker, speeds: Sequence[Speed], seconds: float
) -> tuple[list[Row], list[str]]:
    """Median and 99th percentile, with a sentence of the load; or why there are none."""
    full = next((each.median for each in speeds if each.reports == PACK_REPORTS), 0.0)
    if not full:
        return [], ["Delays were not measured: no speed is known of which the load could be half."]
    try:
        seen = delay.measure(folder, broker.bootstrap_servers, child_of(broker), LOAD_SHARE * full, seconds)
    except (WorkerError, DeliveryError) as error:
        return [], [f"Delays were not measured: {error}."]
    rows: list[Row] = []
    for pack_seconds, events in seen.events.items():
        waiting = f"pack_seconds {pack_seconds:g}{' (the default)' if pack_seconds == 1 else ''}"
        missing = events.missing()
        rows.append(_row(f"event to first estimate with it, {waiting}", events.shown(), missing))
        rows.append(_row(f"end of window and grace to final estimate, {waiting}", events.final(), missing))
    load = (
        f"Delays: a load of {seen.load:,.0f} reports/s was asked for, {seen.counted:,.0f} were counted; the "
        f"worker took {seen.worker_cores:.2f} cores and the broker {seen.broker_cores:.2f}."
    )
    return rows, [load]


def _row(name: str, seconds: Sequence[float], missing: int) -> Row:
    return {
        "": name,
        "events": len(seconds),
        "median": quantile(seconds, 0.5) if seconds else "",
        "p99": quantile(seconds, 0.99) if seconds else "",
        "most": max(seconds, default=""),
        "never final": missing,
    }
