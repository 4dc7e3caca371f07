"""Server throughput: encoded reports to counts, ours and those of peers."""

from bench.comparison.parts.comparison import compare_with_peers, part_of
from bench.comparison.peer_environment import PYTHON
from bench.comparison.report.figure import ResultsPart
from bench.comparison.timing.contestant import Contestant
from bench.comparison.timing.rounds import Job, Scale

GOAL = 10.0
RAPPOR = {"bits": 128, "hashes": 2, "cohorts": 8, "f": 0.5, "p": 0.5, "q": 0.75}
ABOUT = (
    "From encoded packs of 10,000 reports to counts per bucket, or per cohort and bit, including the checks "
    "of a single record: checksum, header, range; peers: from decoded reports in memory, as their clients "
    "return them, to counts, with an estimate where one call makes both. Each on one core, in turn; reports "
    "per second of processor time."
)
NOTES = (
    "Reports are lists for pure-ldp and multi-freq-ldpy, as their clients make them; the latter takes arrays "
    "more slowly. opendp has no server for its k-RR: its transformation that counts categories of an array "
    "has a separate figure without a goal, and so has numpy.bincount, which ours uses and whose speed is the "
    "limit.",
    "A worker's work besides counting (duplicates, lateness, ledger) is in the last section.",
)


def measure(scale: Scale) -> ResultsPart:
    """Measure k-RR with two numbers of values, and RAPPOR with 128 bits."""
    peer = str(PYTHON)
    with (
        Contestant("ours.deniable_runner") as ours,
        Contestant("peers.numpy_runner") as limit,
        Contestant("peers.pure_ldp_runner", peer) as pure,
        Contestant("peers.multi_freq_ldpy_runner", peer) as multi,
        Contestant("peers.opendp_runner", peer) as opendp,
    ):
        comparisons = [
            compare_with_peers(
                f"Counting k-RR, {k:,} values",
                Job(ours, "count k-RR", asked),
                [Job(each, "count k-RR", asked) for each in (pure, multi)],
                scale,
                GOAL,
                aside=[
                    Job(opendp, "count k-RR", asked, "any categories, an array", "a count of categories"),
                    Job(limit, "bincount", {"k": k}, "the count alone", "numpy.bincount alone"),
                ],
            )
            for k in (100, 10_000)
            for asked in [{"k": k, "epsilon": 2.0}]
        ]
        comparisons.append(
            compare_with_peers(
                "Counting RAPPOR, 128 bits",
                Job(ours, "count RAPPOR", RAPPOR),
                [
                    Job(pure, "count RAPPOR", RAPPOR),
                    Job(multi, "count RAPPOR", RAPPOR, "no cohorts"),
                    Job(opendp, "count RAPPOR", RAPPOR, "no cohorts"),
                ],
                scale,
                GOAL,
            )
        )
    return part_of("Aggregation", ABOUT, "All servers", comparisons, NOTES)
