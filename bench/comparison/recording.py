"""One event a call: how many a second, what a call takes, and what applications call today."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

from bench.aggregator.deployments import configure
from bench.comparison.timing.contestant import Contestant, ContestantError, opened
from bench.comparison.timing.rounds import in_turn
from bench.sections import ResultRow, Section, shown
from deniable.deploy.broker.broker import Broker

SECONDS, ROUNDS = 60.0, 5
#: Offered beyond the goal, so that a run which keeps up reaches it.
OFFERED = 1.05
ALONE, BEHIND = 200_000, 20_000.0
PROFILED = 50_000
REPORTS, REPORTS_GOAL = 10_000, 10_000.0
THREADS = 8
#: Runs of the same calls differ by some percent.
NO_WORSE = 0.95
SUSTAINED = """\
`record` of one event a call, as an application calls it, with Kafka away, so all events wait in the
outbox, on disk. One thread records in bursts of a millisecond, 5 % more than the goal a second, for 60 s;
between bursts it sleeps, as a thread that serves requests does. A caller that never pauses hands the
interpreter over every 5 ms only; then at most 262,144 events wait, and others are dropped and counted.
The time ends when the last event is stored: recording, randomizing, charging, packing and storing share
two cores. Events a second of processor time are of all threads, from the call to the outbox;
multi-freq-ldpy's clients, a call a value, randomize, and store nothing."""
CALLS = """\
Each of 200,000 calls was timed, at 20,000 a second, beside the threads behind them; Kafka is away.
`report` waits until its report is on disk: its goal depends on what a write to the disk takes (fsync)."""
BESIDE = """\
One thread calls as fast as it can, in turn with the others, with a real broker on the same machine; the
time of the calls counts, and `with the rest` is until all has reached Kafka. Messages are 8 bytes, a
counter's attribute one of 100 texts. confluent-kafka's queue holds 100,000 messages; while it is full its
caller waits, as its users' do. OpenTelemetry's counter keeps a sum in memory and sends nothing."""
STEPS = "Nanoseconds of processor time of an event, by step, the least of three runs; Kafka is away."


class Load(NamedTuple):
    """A sustained load: names in the results and in the runner, goal, events a second, a peer's job."""

    name: str
    kind: str
    goal: float
    peer: tuple[str, Mapping[str, object]] | None = None


LOADS = (
    Load("k-RR, 100 values, no clients", "k-RR", 500_000, ("k-RR", {"k": 100, "epsilon": 2.0})),
    Load(
        "RAPPOR, 128 bits, remembered",
        "RAPPOR",
        200_000,
        ("RAPPOR", {"bits": 128, "f": 0.5, "p": 0.5, "q": 0.75}),
    ),
    Load("k-RR, clients and budget", "budget", 100_000),
)
#: Percentiles of a call in nanoseconds, and the most they may be.
PERCENTILES = {"p50": 2_000, "p99": 20_000, "p99.9": 1_000_000}
#: Peers, calls in a round, and how many times faster ours must be.
PEERS = {
    "kafka-python": (40_000, 5.0),
    "confluent-kafka": (200_000, 1.0),
    "opentelemetry": (200_000, 1.0),
}
OURS = "ours.events_runner"


def _asked(contestant: Contestant, job: str, count: int, **parameters: object) -> Mapping[str, float]:
    contestant.prepare(job, count, **parameters)
    return cast("Mapping[str, float]", contestant.run().result)


def sustained() -> Section:
    """Offer loads for a minute each; a run that dropped or refused any event misses its goal."""
    rows: list[ResultRow] = []
    missed: list[str] = []
    with opened(OURS, "peers.multi_freq_ldpy_runner") as (ours, multi):
        for load in LOADS:
            rate = OFFERED * load.goal
            ours.prepare("sustained", int(rate * SECONDS), kind=load.kind, rate=rate)
            timing = ours.run()
            found = cast("Mapping[str, float]", timing.result)
            reached, lost = found["stored"] / found["seconds"], found["dropped"] + found["refused"]
            spent = found["stored"] / timing.cpu_seconds
            peer = _peer_rate(multi, *load.peer) if load.peer else None
            rows.append(
                {
                    "load": load.name,
                    "recorded": found["stored"] + lost,
                    "dropped or refused": lost,
                    "seconds": found["seconds"],
                    "stored a second": reached,
                    "goal": load.goal,
                    "stored a second of processor time": spent,
                    "multi-freq-ldpy": peer or "",
                    "ours is, times": spent / peer if peer else "",
                }
            )
            if lost or reached < load.goal:
                missed.append(f"{load.name}: {shown(reached)} events/s, {shown(lost)} dropped or refused")
    return Section(SUSTAINED, rows, missed=missed)


def _peer_rate(multi: Contestant, job: str, parameters: Mapping[str, object]) -> float | None:
    """Values a second of processor time; None if the library fails."""
    try:
        multi.prepare(job, PROFILED, **parameters)
        multi.run()  # compiles
        return median(PROFILED / multi.run().cpu_seconds for _ in range(3))
    except ContestantError:
        return None


def steps() -> Section:
    """Take events through each step, one step after the other."""
    with opened(OURS) as (ours,):
        rows: list[ResultRow] = []
        for load in LOADS:
            found = [_asked(ours, "profile", PROFILED, kind=load.kind) for _ in range(3)]
            least = min(found, key=lambda each: sum(each.values()))
            rows.append({"load": load.name, **{step: took / PROFILED * 1e9 for step, took in least.items()}})
    return Section(STEPS, rows)


def calls() -> Section:
    """Time single calls, several threads beside one, and `report`."""
    with opened(OURS) as (ours,):
        took = _asked(ours, "latencies", ALONE, rate=BEHIND)
        one, several = _loops(ours, 1), _loops(ours, THREADS)
        found = _asked(ours, "report", REPORTS, threads=THREADS)
    reports = found["stored"] / found["seconds"]
    rows: list[ResultRow] = [
        {"what": f"a call, {name}", "measured": took[name], "unit": "ns", "goal": PERCENTILES.get(name, "")}
        for name in took
        if name[0] == "p"
    ]
    rows += [
        {"what": "one thread", "measured": one, "unit": "calls/s", "goal": ""},
        {"what": f"{THREADS} threads", "measured": several, "unit": "calls/s", "goal": NO_WORSE * one},
        {
            "what": f"report of one value, {THREADS} threads",
            "measured": reports,
            "unit": "reports/s",
            "goal": REPORTS_GOAL,
        },
    ]
    missed = [f"{name} is {took[name]:,} ns" for name, most in PERCENTILES.items() if took[name] > most]
    missed += [f"{THREADS} threads: {several / one:.2f} of one"] if several < NO_WORSE * one else []
    missed += [f"{reports:,.0f} reports/s"] if reports < REPORTS_GOAL else []
    return Section(CALLS, rows, missed=missed)


def _loops(ours: Contestant, threads: int) -> float:
    """Median calls a second of all threads together."""
    return median(ALONE / _asked(ours, "loop", ALONE, threads=threads)["seconds"] for _ in range(3))


def beside() -> Section:
    """Call ours and what applications call today, in turn."""
    runners = {name: f"peers.{name.replace('-', '_')}_events" for name in PEERS}
    counts = {"deniable": ALONE, **{name: count for name, (count, _) in PEERS.items()}}
    with opened(OURS, *runners.values()) as contestants, TemporaryDirectory() as folder, Broker() as broker:
        servers = broker.bootstrap_servers
        tasks: dict[str, Callable[[], Mapping[str, float]]] = {}
        for name, contestant in zip(counts, contestants, strict=True):
            topic = configure(Path(folder), servers, f"{name}-", 1).topics.reports
            tasks[name] = partial(_asked, contestant, "called", counts[name], servers=servers, topic=topic)
        found, failed = in_turn(tasks, ROUNDS, (ContestantError,))
        if "deniable" in failed:
            raise ContestantError(failed["deniable"])
        versions = {
            each: f"{one.library} {one.version}" for each, one in zip(counts, contestants, strict=True)
        }
    speeds = {name: _medians(counts[name], each) for name, each in found.items() if name not in failed}
    rows: list[ResultRow] = []
    missed: list[str] = []
    for name, (called, flushed) in speeds.items():
        times, goal = speeds["deniable"][0] / called, PEERS[name][1] if name in PEERS else 0.0
        rows.append(
            {
                "library": versions[name],
                "calls/s": called,
                "with the rest": flushed,
                "ours is, times": times if goal else "",
                "goal": goal or "",
            }
        )
        if times < goal:
            missed.append(f"{times:.2f} times {name}, of {goal:g} asked")
    return Section(BESIDE, rows, "\n".join(f"{name} failed: {why}" for name, why in failed.items()), missed)


def _medians(count: int, results: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    seconds, flushed = (median(count / each[name] for each in results) for name in ("seconds", "flushed"))
    return seconds, flushed


CASES = {
    "what applications call today": beside,
    "a call alone": calls,
    "sustained": sustained,
    "where the processor time of an event goes": steps,
}
