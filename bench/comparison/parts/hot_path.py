"""Profile of the hot paths: time per report in each stage of a producer and of a worker."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from bench.aggregator.results import ResultRow
from bench.comparison.report.figure import ResultsPart, Table
from bench.comparison.timing.contestant import Contestant
from bench.comparison.timing.rounds import Scale

SHOWN_SHARE, SHOWN_STAGES = 0.75, 3  # a sentence covers most of the time, with at most this many stages
QUICK_ROUNDS, FULL_ROUNDS = 7, 40  # short rounds, of which at least one is undisturbed by other load
PRODUCED, REMEMBERED, COUNTED, SINGLE = 200_000, 40_000, 1_000_000, 200_000  # reports per round
ABOUT = (
    "Functions are timed where they are called, each excluding nested stages, in a child process on one "
    "core, in the fastest round. There is no Kafka: the producer's packs stay in memory, from where the "
    "worker takes them, {reports:,} reports to a checkpoint ({single:,} in packs of 1); the notes of End to "
    "end state the time of a report with Kafka, which adds fetching, Faust's event loop and transactions. "
    "Packs are of 10,000 reports unless noted otherwise; k-RR has 10,000 values; RAPPOR has 128 bits, 8 "
    "cohorts, f and p 0.5, q 0.75. {overhead}"
)


class Path(NamedTuple):
    """A job of `hot_path_runner` and its number of reports."""

    name: str
    job: str
    reports: int
    parameters: Mapping[str, object] = {}


class Profile(NamedTuple):
    """Nanoseconds per report of a path: by stage, and in total without stopwatch."""

    name: str
    stages: Mapping[str, float]
    unwatched: float

    @property
    def total(self) -> float:
        """Nanoseconds per report of all stages."""
        return _total(self.stages)

    def ranked(self) -> list[tuple[str, float]]:
        """Return the stages, the longest first."""
        return sorted(self.stages.items(), key=lambda stage: -stage[1])


PRODUCER = (
    Path("producer, k-RR", "producer k-RR", PRODUCED),
    Path("producer, RAPPOR", "producer RAPPOR", PRODUCED),
    Path("producer, RAPPOR, remembered", "producer RAPPOR", REMEMBERED, {"memoize": True}),
)
WORKER = (
    Path("worker, k-RR", "worker k-RR", COUNTED),
    Path("worker, RAPPOR", "worker RAPPOR", COUNTED),
    Path("worker, RAPPOR, packs of 1,000", "worker RAPPOR", COUNTED, {"pack_reports": 1_000}),
    Path("worker, RAPPOR, packs of 100", "worker RAPPOR", COUNTED, {"pack_reports": 100}),
    Path("worker, RAPPOR, packs of 1", "worker RAPPOR", SINGLE, {"pack_reports": 1}),
)


def measure(scale: Scale) -> ResultsPart:
    """Profile the producer's and the worker's paths."""
    rounds = QUICK_ROUNDS if scale.quick else FULL_ROUNDS
    with Contestant("ours.hot_path_runner") as child:
        producer, worker = ([_profile(child, path, rounds) for path in paths] for paths in (PRODUCER, WORKER))
    sentences = "".join(f"\n- {sentence(each)}" for each in (*producer, *worker))
    about = ABOUT.format(reports=COUNTED, single=SINGLE, overhead=overhead([*producer, *worker]))
    return ResultsPart(
        "Where the time goes",
        f"{about}\n{sentences}",
        tables=[
            Table("Producer, from values to records", [row for each in producer for row in rows(each)]),
            Table("Worker, from records to a checkpoint", [row for each in worker for row in rows(each)]),
        ],
    )


def sentence(profile: Profile) -> str:
    """Describe the longest stages in a sentence."""
    shown: list[str] = []
    so_far = 0.0
    for name, took in profile.ranked()[:SHOWN_STAGES]:
        if so_far >= SHOWN_SHARE * profile.total:
            break
        so_far += took
        shown.append(f"{took:.3g} ({took / profile.total:.0%}) {'' if shown else 'go '}to {name}")
    listed = " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
    return f"**{profile.name}**: of {profile.total:.3g} ns a report, {listed}."


def overhead(profiles: Sequence[Profile]) -> str:
    """State the largest overhead of the stopwatch over all paths."""
    most = max(profiles, key=lambda each: each.total / each.unwatched)
    return (
        f"With the stopwatch a path takes at most {max(0, most.total / most.unwatched - 1):.0%} longer than "
        f"without it ({most.name})."
    )


def rows(profile: Profile) -> list[ResultRow]:
    """Return a row for each stage, the longest first, and one for the total."""
    found = [_row(profile, name, took) for name, took in profile.ranked()]
    return [*found, _row(profile, "**all**", profile.total)]


def _row(profile: Profile, stage: str, took: float) -> ResultRow:
    share = f"{took / profile.total:.1%}"
    return {"path": profile.name, "stage": stage, "ns per report": took, "share": share}


def _profile(child: Contestant, path: Path, rounds: int) -> Profile:
    child.prepare(path.job, path.reports, **path.parameters)
    child.run()  # loading is not timed
    found = [cast("Mapping[str, object]", child.run().result) for _ in range(rounds)]
    # Wall time includes whatever else the machine does, least of all in the shortest round.
    stages = min((cast("Mapping[str, float]", each["stages"]) for each in found), key=_total)
    return Profile(path.name, stages, min(cast("float", each["unwatched"]) for each in found))


def _total(stages: Mapping[str, float]) -> float:
    return sum(stages.values())
