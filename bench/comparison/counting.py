"""Server throughput: encoded reports to counts, ours and those of peers."""

from bench.comparison.rivals import beside_peers, section_of
from bench.comparison.timing.contestant import opened
from bench.comparison.timing.rounds import Job
from bench.sections import Section

GOAL = 10.0
RAPPOR = {"bits": 128, "hashes": 2, "cohorts": 8, "f": 0.5, "p": 0.5, "q": 0.75}
ABOUT = """\
From encoded packs of 10,000 reports to counts per bucket, or per cohort and bit, including the checks of
a single record: checksum, header, range; peers: from decoded reports in memory, as their clients return
them, to counts, with an estimate where one call makes both. Each on one core, in turn; reports per second
of processor time.

Reports are lists for pure-ldp and multi-freq-ldpy, as their clients make them; the latter takes arrays
more slowly. opendp has no server for its k-RR, but counts categories of an array. numpy.bincount, which
ours uses, is the limit."""


def counting() -> Section:
    """Measure k-RR with two numbers of values, and RAPPOR with 128 bits."""
    peers = (f"peers.{name}_runner" for name in ("pure_ldp", "multi_freq_ldpy", "opendp"))
    with opened("ours.deniable_runner", "ours.numpy_runner", *peers) as (ours, numpy, pure, multi, opendp):
        compared = [
            beside_peers(
                f"Counting k-RR, {k:,} values",
                Job(ours, "count k-RR", asked),
                [Job(each, "count k-RR", asked) for each in (pure, multi)],
                GOAL,
                aside=[
                    Job(opendp, "count k-RR", asked, "counts categories of an array"),
                    Job(numpy, "bincount", {"k": k}, "the count alone"),
                ],
            )
            for k in (100, 10_000)
            for asked in [{"k": k, "epsilon": 2.0}]
        ]
        others = [Job(each, "count RAPPOR", RAPPOR, "no cohorts") for each in (multi, opendp)]
        compared.append(
            beside_peers(
                "Counting RAPPOR, 128 bits",
                Job(ours, "count RAPPOR", RAPPOR),
                [Job(pure, "count RAPPOR", RAPPOR), *others],
                GOAL,
            )
        )
    return section_of(ABOUT, compared)


CASES = {"counting": counting}
