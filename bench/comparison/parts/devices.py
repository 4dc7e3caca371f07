"""What devices reach: an edge beside plain handlers, a relay, and the browser client, with their goals."""

from collections.abc import Sequence
from itertools import chain

from bench.aggregator.results import ResultRow
from bench.comparison.report.figure import Figure, ResultsPart, Table, absolute
from bench.comparison.timing.rounds import Scale
from bench.devices import browser, edge, relay
from bench.devices.results import PARTS, keep

TITLE = "From devices"
TIMES_A_PLAIN_HANDLER = 5
ALLOWED_MS = 50.0  # p99 at half of the edge's goal
RELAY_GOALS = {1: 200_000.0, 10: 1_000_000.0}  # reports a CPU second, by the reports of an upload
REPORT_MS, MANY_SECONDS = 1.0, 1.0
NOTES = (
    "The load repeats one head on each connection, as a device does, and the edge knows it again; a second "
    "row has heads that vary. The plain handlers decode an upload and know its collection; the edge also "
    "checks buckets, cohort, window and rate limit.",
)


def measure(scale: Scale) -> ResultsPart:
    """Measure all three; the quick cut measures none, because a broker's rounds take minutes."""
    if scale.quick:
        return ResultsPart(TITLE, "What devices reach is measured by the full `make bench` alone.")
    found: dict[str, Sequence[ResultRow]] = {}
    for name, part in (("edge", edge), ("relay", relay), ("browser", browser)):
        found[name] = part.rows()
        keep(name, found[name])
    figures = chain(_of_edge(found["edge"]), _of_relay(found["relay"]), _of_browser(found["browser"]))
    tables = [Table(name.capitalize(), rows) for name, rows in found.items()]
    return ResultsPart(TITLE, " ".join(PARTS[name] for name in found), list(figures), tables, NOTES)


def _of_edge(rows: Sequence[ResultRow]) -> list[Figure]:
    of = {str(row["server"]): row for row in rows}
    ours, unit = float(of["edge"][edge.RATE]), "uploads/s"
    plain = [
        Figure(f"Edge, a core, beside {name}", unit, ours, name, float(row[edge.RATE]), TIMES_A_PLAIN_HANDLER)
        for name, row in of.items()
        if name.startswith("aiohttp")
    ]
    p99 = absolute(
        f"Edge, p99 at {edge.GOAL / 2:,.0f} uploads/s", "ms", float(of["edge"]["p99, ms"]), ALLOWED_MS
    )
    return [
        *(
            absolute(f"{name[0].upper()}{name[1:]}, a core", unit, float(of[name][edge.RATE]), edge.GOAL)
            for name in (edge.NAMES[0], edge.VARIED)
        ),
        *plain,
        p99,
    ]


def _of_relay(rows: Sequence[ResultRow]) -> list[Figure]:
    return [
        absolute(
            f"Relay, a core, {row['collection']}, uploads of {row['reports an upload']}",
            "reports/s",
            float(row["reports a CPU second"]),
            RELAY_GOALS[int(row["reports an upload"])],
        )
        for row in rows
    ]


def _of_browser(rows: Sequence[ResultRow]) -> list[Figure]:
    found = []
    for row in rows:
        name, seconds = f"{row['mechanism']}, {row['where']}", float(row[browser.ALL])
        # Clocks of browsers are coarse: a median is meaningful only where a report takes long.
        one = float(row[browser.MEDIAN]) if row["where"] == browser.STORED else 1000 * seconds / browser.MANY
        found.append(absolute(f"A report of {name}", "ms", one, REPORT_MS))
        if row["where"] == browser.NODE:
            found.append(absolute(f"{browser.MANY:,} reports of {name}", "s", seconds, MANY_SECONDS))
    return found
