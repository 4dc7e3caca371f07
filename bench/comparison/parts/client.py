"""Client throughput: true values to randomized reports, ours and those of peers."""

from collections.abc import Mapping
from typing import NamedTuple

from bench.comparison.parts.comparison import PeerComparison, compare_with_goal, compare_with_peers, part_of
from bench.comparison.peer_environment import PYTHON
from bench.comparison.report.figure import ResultsPart
from bench.comparison.timing.contestant import Contestant
from bench.comparison.timing.rounds import Job, Scale

LOOP = "a compiled loop"
BLOOM = {"hashes": 2, "cohorts": 8}
ASKED = {"f": 0.5, "p": 0.5, "q": 0.75}
MILDER = {"f": 0.25, "p": 0.35, "q": 0.65}
ABOUT = (
    "From true values in memory to encoded packs of 10,000 reports, ready for Kafka; budgets and outbox are "
    "left out. Peers: from values to a list of reports in memory. Values are integers for k-RR, and texts "
    "for our RAPPOR and local hashing, integers for those of peers. Ours are given all at once, or in "
    "batches of 1,000 where "
    "noted; peers take one value per call. multi-freq-ldpy's clients are compiled by numba; `a compiled "
    "loop` calls them from a loop that its user would have to write and compile as well. Each on one core, "
    "in turn; reports per second of processor time."
)
NOTES = (
    "No peer remembers permanent responses, multi-freq-ldpy's longitudinal clients neither: averaging the "
    "repeated reports of a client reveals its value. `remembered`: ours derives each client's response from "
    "a secret, with as many clients as reports; peers do the same as before. It has a goal for 128 bits "
    "only: with fewer bits peers have less work, but ours does not.",
    "Our texts are 100 different ones, each hashed once in a part of 65,536 and a cohort; with 10,000 of "
    "them nearly every report is hashed, by the MD5 of google/rappor. multi-freq-ldpy and opendp hash none.",
    "Our calls have a fixed cost, so batches make them fast.",
    "A goal compares with a peer's closest equivalent of RAPPOR, called as documented. multi-freq-ldpy's "
    "`UE_Client` (`one step`) draws half as many random bits as RAPPOR; its `L_SUE_Client`, which has both "
    "steps, is compared. pure-ldp and opendp have only one step. pure-ldp needs scikit-learn, statsmodels "
    "and xxhash 3.5.0, which it does not declare.",
)


class RapporCase(NamedTuple):
    """A RAPPOR job: number of bits, of distinct texts, and batch size (None: one batch).

    `remembered`: permanent responses are memoized per client.
    """

    bits: int
    probabilities: Mapping[str, float]
    remembered: bool = False
    goal: float | None = None
    words: int = 100
    batch: int | None = None

    @property
    def name(self) -> str:
        """Name in the results."""
        listed = ", ".join(f"{name} {value:g}" for name, value in self.probabilities.items())
        remembered = ", remembered" if self.remembered else ""
        words = f", {self.words:,} texts" if self.words != 100 else ""
        return f"RAPPOR, {self.bits} bits, {listed}{remembered}{words}{_batches(self.batch)}"


def _batches(batch: int | None) -> str:
    return f", batches of {batch:,}" if batch else ""


KRR_GOAL = 10.0
LOCAL_HASH_GOAL = 20.0
LOCAL_HASH_CASES = ((100, LOCAL_HASH_GOAL, None), (10_000, LOCAL_HASH_GOAL, None), (100, None, 1000))
FAST = 20e6  # reports/s, goal of clients without a peer to compare with, and of local hashing
FAST_CASES = (
    ("local hashing, 100 texts", "local hashing", {"words": 100, "epsilon": 1.0}),
    ("number, 256 steps", "number", {"epsilon": 2.0, "steps": 256}),
)
KRR_CASES = ((100, KRR_GOAL, None), (10_000, KRR_GOAL, None), (100, None, 1000))
RAPPOR_CASES = (
    RapporCase(32, ASKED, goal=20.0),
    RapporCase(128, ASKED, goal=20.0),
    RapporCase(128, ASKED, remembered=True, goal=20.0),
    RapporCase(32, ASKED, remembered=True),
    RapporCase(32, MILDER),
    RapporCase(128, MILDER),
    RapporCase(128, ASKED, words=10_000),
    RapporCase(128, ASKED, batch=1000),
)


def measure(scale: Scale) -> ResultsPart:
    """Measure all mechanisms, with fresh and with memoized responses; quick: only jobs with a goal."""
    peer = str(PYTHON)
    with (
        Contestant("ours.deniable_runner") as ours,
        Contestant("peers.pure_ldp_runner", peer) as pure,
        Contestant("peers.multi_freq_ldpy_runner", peer) as multi,
        Contestant("peers.opendp_runner", peer) as opendp,
    ):
        comparisons = [
            compare_with_peers(
                f"k-RR, {k:,} values{_batches(batch)}",
                Job(ours, "k-RR", {**asked, "batch": batch}),
                [Job(each, "k-RR", asked) for each in (pure, multi, opendp)],
                scale,
                goal,
                aside=_unless_quick(scale, Job(multi, "k-RR, compiled loop", asked, LOOP, LOOP)),
            )
            for k, goal, batch in KRR_CASES
            if goal or not scale.quick
            for asked in [{"k": k, "epsilon": 2.0}]
        ]
        comparisons += [
            compare_with_peers(
                f"local hashing, {words:,} texts{_batches(batch)}",
                Job(ours, "local hashing", {**asked, "batch": batch}),
                [Job(each, "local hashing", asked) for each in (pure, multi)],
                scale,
                goal,
            )
            for words, goal, batch in LOCAL_HASH_CASES
            if goal or not scale.quick
            for asked in [{"words": words, "epsilon": 1.0}]
        ]
        comparisons += [
            compare_with_peers(
                f"longitudinal local hashing, 100 texts{', remembered' if remembered else ''}",
                Job(ours, "longitudinal local hashing", {**asked, "remembered": remembered}),
                [
                    Job(
                        multi,
                        "longitudinal local hashing",
                        asked,
                        "draws a permanent response for each report",
                    )
                ],
                scale,
                LOCAL_HASH_GOAL,
            )
            for asked in [{"words": 100, "epsilon_inf": 2.0, "epsilon_one": 1.0}]
            for remembered in (False, True)
        ]
        comparisons += [
            compare_with_goal(f"{name}, all at once", Job(ours, job, asked), scale, FAST)
            for name, job, asked in FAST_CASES
        ]
        comparisons += [
            _rappor(case, ours, pure, multi, opendp, scale)
            for case in RAPPOR_CASES
            if case.goal or not scale.quick
        ]
    return part_of("Client", ABOUT, "All clients", comparisons, NOTES)


def _rappor(
    case: RapporCase, ours: Contestant, pure: Contestant, multi: Contestant, opendp: Contestant, scale: Scale
) -> PeerComparison:
    asked = {**BLOOM, **case.probabilities, "bits": case.bits, "words": case.words}
    says = "one true bit, no hashing; "
    return compare_with_peers(
        case.name,
        Job(ours, "RAPPOR", {**asked, "memoize": case.remembered, "batch": case.batch}),
        [
            Job(pure, "RAPPOR", asked, "never clears a 1-bit: infinite epsilon; permanent step only"),
            Job(multi, "RAPPOR", asked, f"{says}p and q by their epsilon"),
            Job(opendp, "RAPPOR", asked, "filters given; permanent step only"),
        ],
        scale,
        case.goal,
        aside=[
            Job(multi, "one step", asked, f"{says}permanent step only", "one step"),
            *_unless_quick(
                scale,
                Job(multi, "RAPPOR, compiled loop", asked, f"{says}p and q by their epsilon; {LOOP}", LOOP),
                Job(
                    multi,
                    "one step, compiled loop",
                    asked,
                    f"{says}permanent step only; {LOOP}",
                    f"one step in {LOOP}",
                ),
            ),
        ],
    )


def _unless_quick(scale: Scale, *jobs: Job) -> list[Job]:
    """Leave out jobs that need seconds to compile."""
    return [] if scale.quick else list(jobs)
