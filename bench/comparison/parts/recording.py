"""One event a call: how many a second, what a call takes, and what applications call today."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import cast

from bench.aggregator.deployments import configure
from bench.aggregator.results import ResultRow
from bench.comparison.peer_environment import PYTHON
from bench.comparison.report.figure import Figure, ResultsPart, Table, absolute
from bench.comparison.timing.contestant import Contestant, ContestantError
from bench.comparison.timing.rounds import Scale, in_turn
from deniable.deploy.broker.broker import Broker

FULL_SECONDS, QUICK_SECONDS = 60.0, 3.0
FULL_ROUNDS, QUICK_ROUNDS = 5, 1
#: Offered beyond the goal, so that a run which keeps up reaches it.
OFFERED = 1.05
ALONE, BEHIND = 200_000, 20_000.0
PROFILED = 50_000
#: Runs of the same calls differ by some percent.
NO_WORSE = 0.95
REPORTS = 10_000
THREADS = 8
ABOUT = (
    "`record` of one event a call, as an application calls it. Kafka is away in the first two tables, so "
    "all events wait in the outbox, on disk. Sustained: one thread records in bursts of a millisecond, 5 % "
    "more than the goal a second, for {seconds:.0f} s; between bursts it sleeps, as a thread that serves "
    "requests does. The time ends when the last event is stored: recording, randomizing, charging, packing "
    "and storing share two cores. A run that dropped or refused any event has no figure. Calls: each of "
    "{alone:,} calls was timed, at {behind:,.0f} a second, beside the threads behind them. Beside others: "
    "one thread calls as fast as it can, in turn with the others, with a real broker on the same machine; "
    "the time of the calls counts, and `with the rest` is until all has reached Kafka. Messages are 8 "
    "bytes, a counter's attribute one of 100 texts."
)
NOTES = (
    "A caller that never pauses hands the interpreter over every 5 ms only; then at most 262,144 events "
    "wait, and others are dropped and counted.",
    "`report` waits until its report is on disk; its goal depends on what a write to the disk takes (fsync).",
    "confluent-kafka's queue holds 100,000 messages; while it is full its caller waits, as its users' do. "
    "OpenTelemetry's counter keeps a sum in memory and sends nothing.",
    "Beside multi-freq-ldpy: processor time of all threads from the call to the outbox; its clients "
    "randomize, and store nothing.",
)


@dataclass(frozen=True)
class Load:
    """A sustained load: its name in the results and in the runner, and the goal, events a second."""

    name: str
    kind: str
    goal: float


LOADS = (
    Load("k-RR, 100 values, no clients", "k-RR", 500_000),
    Load("RAPPOR, 128 bits, remembered", "RAPPOR", 200_000),
    Load("k-RR, clients and budget", "budget", 100_000),
)
#: Percentiles of a call in nanoseconds, and the most they may be.
CALLS = {"p50": 2_000, "p99": 20_000, "p99.9": 1_000_000}
#: Peers, their runner, calls in a round, and how many times faster ours must be.
PEERS = {
    "kafka-python": ("events.kafka_python_events", 40_000, 5.0),
    "confluent-kafka": ("events.confluent_kafka_events", 200_000, 1.0),
    "opentelemetry-sdk": ("events.opentelemetry_events", 200_000, 1.0),
}


def measure(scale: Scale) -> ResultsPart:
    """Measure sustained loads, single calls, and ours beside others."""
    seconds = QUICK_SECONDS if scale.quick else FULL_SECONDS
    rounds = QUICK_ROUNDS if scale.quick else FULL_ROUNDS
    with Contestant("events.deniable_events") as ours:
        figures, rows, unjudged, spent = _sustained(ours, seconds)
        more, calls = _calls(ours)
        beside, table, missing = _beside(ours, rounds)
        private, steps = _beside_ldp(spent), _steps(ours)
    return ResultsPart(
        "Recording",
        ABOUT.format(seconds=seconds, alone=ALONE, behind=BEHIND),
        [*figures, *more, *beside, *private],
        [
            Table("Sustained", rows),
            Table("Where the processor time of an event goes", steps),
            Table("A call alone", calls),
            Table("What applications call today", table),
        ],
        NOTES,
        unjudged=[*unjudged, *missing],
    )


def _sustained(
    ours: Contestant, seconds: float
) -> tuple[list[Figure], list[ResultRow], list[str], dict[str, float]]:
    figures: list[Figure] = []
    rows: list[ResultRow] = []
    unjudged: list[str] = []
    spent: dict[str, float] = {}
    for load in LOADS:
        rate = OFFERED * load.goal
        ours.prepare("sustained", int(rate * seconds), kind=load.kind, rate=rate)
        timing = ours.run()
        found = cast("Mapping[str, float]", timing.result)
        reached = found["stored"] / found["seconds"]
        lost = found["dropped"] + found["refused"]
        figure = absolute(f"Sustained, {load.name}", "events/s", reached, load.goal)
        figures.append(replace(figure, is_judged=not lost))
        if lost:
            unjudged.append(f"Sustained, {load.name}: {lost:,.0f} events were dropped or refused")
        spent[load.kind] = found["stored"] / timing.cpu_seconds
        rows.append(
            {
                "load": load.name,
                "recorded": found["stored"] + lost,
                "dropped or refused": lost,
                "seconds": found["seconds"],
                "stored a second": reached,
                "stored a second of processor time": spent[load.kind],
            }
        )
    return figures, rows, unjudged, spent


def _calls(ours: Contestant) -> tuple[list[Figure], list[ResultRow]]:
    ours.prepare("latencies", ALONE, rate=BEHIND)
    took = cast("Mapping[str, float]", ours.run().result)
    figures = [absolute(f"A call, {name}", "ns", took[name], most) for name, most in CALLS.items()]
    one, several = _loops(ours, 1), _loops(ours, THREADS)
    figures.append(
        Figure(f"{THREADS} threads beside one", "events/s", several, "one thread", one, goal=NO_WORSE)
    )
    ours.prepare("report", REPORTS, threads=THREADS)
    found = cast("Mapping[str, float]", ours.run().result)
    reports = found["stored"] / found["seconds"]
    figures.append(absolute(f"report of one value, {THREADS} threads", "reports/s", reports, 10_000))
    rows: list[ResultRow] = [
        {"percentile": name, "nanoseconds": value} for name, value in took.items() if name[0] == "p"
    ]
    return figures, rows


def _steps(ours: Contestant) -> list[ResultRow]:
    """Nanoseconds of processor time of an event, by step and load, the least of three runs."""
    rows: list[ResultRow] = []
    for load in LOADS:
        found: list[Mapping[str, float]] = []
        for _ in range(3):
            ours.prepare("profile", PROFILED, kind=load.kind)
            found.append(cast("Mapping[str, float]", ours.run().result))
        least = min(found, key=lambda each: sum(each.values()))
        rows.append({"load": load.name, **{step: took / PROFILED * 1e9 for step, took in least.items()}})
    return rows


def _loops(ours: Contestant, threads: int) -> float:
    """Median calls a second of all threads together."""
    rates: list[float] = []
    for _ in range(3):
        ours.prepare("loop", ALONE, threads=threads)
        rates.append(ALONE / cast("Mapping[str, float]", ours.run().result)["seconds"])
    return median(rates)


def _beside(ours: Contestant, rounds: int) -> tuple[list[Figure], list[ResultRow], list[str]]:
    peers = {name: Contestant(runner, str(PYTHON)) for name, (runner, _, _) in PEERS.items()}
    counts = {"deniable": ALONE, **{name: count for name, (_, count, _) in PEERS.items()}}
    try:
        with TemporaryDirectory() as folder, Broker() as broker:
            servers = broker.bootstrap_servers
            topics = {name: configure(Path(folder), servers, f"{name}-", 1).topics.reports for name in counts}
            tasks: dict[str, Callable[[], Mapping[str, float]]] = {
                name: partial(_called, contestant, counts[name], servers, topics[name])
                for name, contestant in {"deniable": ours, **peers}.items()
            }
            found, failed = in_turn(tasks, rounds, (ContestantError,))
    finally:
        for each in peers.values():
            each.close()
    if "deniable" in failed:
        raise ContestantError(failed["deniable"])
    calls = {name: _medians(counts[name], results) for name, results in found.items() if name not in failed}
    figures = [
        Figure(f"A call beside {name}", "calls/s", calls["deniable"][0], name, calls[name][0], goal)
        for name, (_, _, goal) in PEERS.items()
        if name in calls
    ]
    versions = {"deniable": ours.version, **{name: each.version for name, each in peers.items()}}
    rows: list[ResultRow] = [
        {"library": f"{name} {versions[name]}", "calls/s": called, "with the rest": flushed}
        for name, (called, flushed) in calls.items()
    ]
    return figures, rows, [f"A call beside {name}: {why}" for name, why in failed.items()]


def _called(contestant: Contestant, count: int, servers: str, topic: str) -> Mapping[str, float]:
    contestant.prepare("called", count, servers=servers, topic=topic)
    return cast("Mapping[str, float]", contestant.run().result)


def _medians(count: int, results: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    return (
        median(count / each["seconds"] for each in results),
        median(count / each["flushed"] for each in results),
    )


def _beside_ldp(spent: Mapping[str, float]) -> list[Figure]:
    """Compare with multi-freq-ldpy, a call a value, by processor time."""
    asked: dict[str, tuple[str, dict[str, float], float | None]] = {
        "RAPPOR": ("RAPPOR", {"bits": 128, "f": 0.5, "p": 0.5, "q": 0.75}, 1.0),
        "k-RR": ("k-RR", {"k": 100, "epsilon": 2.0}, None),
    }
    figures: list[Figure] = []
    with Contestant("peers.multi_freq_ldpy_runner", str(PYTHON)) as multi:
        for kind, (job, parameters, goal) in asked.items():
            count = 50_000
            multi.prepare(job, count, **parameters)
            multi.run()  # compiles
            rate = median(count / multi.run().cpu_seconds for _ in range(3))
            name = f"A call a value, {kind}, from the call to the outbox"
            figures.append(Figure(name, "events/s", spent[kind], "multi-freq-ldpy", rate, goal))
    return figures
