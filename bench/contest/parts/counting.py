"""How fast reports become counts, beside what peers' servers do."""

from bench.contest.contestant import Contestant
from bench.contest.environment import PYTHON
from bench.contest.figure import Part, Table
from bench.contest.parts.contests import contest
from bench.contest.rounds import Job, Scale

GOAL = 10.0
RAPPOR = {"bits": 128, "hashes": 2, "cohorts": 8, "f": 0.5, "p": 0.5, "q": 0.75}
ABOUT = (
    "From encoded packs of 10,000 reports, checksum and checks included, to counts per bucket, or per cohort "
    "and bit; peers: from decoded reports in memory, as their clients return them, to counts, with an "
    "estimate where one call makes both. Each on one core, in turn; reports per second of processor time."
)


def measure(scale: Scale) -> Part:
    """k-RR of two sizes, and RAPPOR of 128 bits."""
    peer = str(PYTHON)
    with (
        Contestant("deniable_runner") as ours,
        Contestant("pure_ldp_runner", peer) as pure,
        Contestant("multi_freq_ldpy_runner", peer) as multi,
        Contestant("opendp_runner", peer) as opendp,
    ):
        contests = [
            contest(
                f"Counting k-RR, {k:,} values",
                Job(ours, "count k-RR", parameters),
                [Job(each, "count k-RR", parameters) for each in (pure, multi)],
                scale,
                GOAL,
            )
            for k in (100, 10_000)
            for parameters in [{"k": k, "epsilon": 2.0}]
        ]
        contests.append(
            contest(
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
    return Part(
        "Aggregation",
        ABOUT,
        [figure for figures, _ in contests for figure in figures],
        [Table("All servers", [row for _, rows in contests for row in rows])],
        ["opendp has no counting of categories: a user counts them with Python's own Counter."],
    )
