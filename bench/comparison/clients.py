"""Client throughput: true values to randomized reports, ours and those of peers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.comparison.rivals import Comparison, beside_peers, section_of, with_goal
from bench.comparison.timing.contestant import Contestant, opened
from bench.comparison.timing.rounds import Job
from bench.sections import Section

ABOUT = """\
From true values in memory to encoded packs of 10,000 reports, ready for Kafka; budgets and outbox are
left out. Peers: from values to a list of reports in memory. Values are integers for k-RR, and texts for
our RAPPOR and local hashing, integers for those of peers. Ours are given all at once, or in batches of
1,000 where noted; peers take one value per call. multi-freq-ldpy's clients are compiled by numba; `a
compiled loop` calls them from a loop that its user would have to write and compile as well. Each on one
core, in turn; reports per second of processor time.

- No peer remembers permanent responses, multi-freq-ldpy's longitudinal clients neither: averaging the
  repeated reports of a client reveals its value. `remembered`: ours derives each client's response from a
  secret, with as many clients as reports; peers do the same as before.
- Our texts are 100 different ones, each hashed once in a part of 65,536 and a cohort; with 10,000 of them
  nearly every report is hashed, by the MD5 of google/rappor. multi-freq-ldpy and opendp hash none.
- A goal compares with a peer's closest equivalent of RAPPOR, called as documented. multi-freq-ldpy's
  `UE_Client` (one step) draws half as many random bits as RAPPOR; its `L_SUE_Client`, which has both
  steps, is compared. pure-ldp and opendp have only one step. pure-ldp needs scikit-learn, statsmodels and
  xxhash 3.5.0, which it does not declare."""
LOOP = "a compiled loop"
PROBABILITIES = {"f": 0.5, "p": 0.5, "q": 0.75}
ONE_BIT = "one true bit, no hashing"
KRR_GOAL, GOAL = 10.0, 20.0
NUMBER_GOAL = 20e6  # reports/s, since no peer has numbers


class ClientCase(NamedTuple):
    """A job, its name in the results, what all are asked, what only ours is asked, and the goal."""

    job: str
    name: str
    asked: Mapping[str, object]
    ours: Mapping[str, object]
    goal: float | None


def _case(job: str, name: str, goal: float | None, asked: Mapping[str, object], **ours: object) -> ClientCase:
    return ClientCase(job, name, asked, ours, goal)


KRR, HASHED = "k-RR", "local hashing"
LONGITUDINAL = "longitudinal local hashing"
ASKED_LONGITUDINAL = {"words": 100, "epsilon_inf": 2.0, "epsilon_one": 1.0}


def _bits(bits: int, words: int = 100) -> Mapping[str, object]:
    return {"hashes": 2, "cohorts": 8, **PROBABILITIES, "bits": bits, "words": words}


CASES_OF_CLIENTS = (
    _case(KRR, "k-RR, 100 values", KRR_GOAL, {"k": 100, "epsilon": 2.0}),
    _case(KRR, "k-RR, 10,000 values", KRR_GOAL, {"k": 10_000, "epsilon": 2.0}),
    _case(KRR, "k-RR, 100 values, batches of 1,000", None, {"k": 100, "epsilon": 2.0}, batch=1000),
    _case(HASHED, "local hashing, 100 texts", GOAL, {"words": 100, "epsilon": 1.0}),
    _case(HASHED, "local hashing, 10,000 texts", GOAL, {"words": 10_000, "epsilon": 1.0}),
    _case(HASHED, "local hashing, batches of 1,000", None, {"words": 100, "epsilon": 1.0}, batch=1000),
    _case(LONGITUDINAL, LONGITUDINAL, GOAL, ASKED_LONGITUDINAL, remembered=False),
    _case(LONGITUDINAL, f"{LONGITUDINAL}, remembered", GOAL, ASKED_LONGITUDINAL, remembered=True),
    _case("RAPPOR", "RAPPOR, 32 bits", GOAL, _bits(32), memoize=False),
    _case("RAPPOR", "RAPPOR, 128 bits", GOAL, _bits(128), memoize=False),
    _case("RAPPOR", "RAPPOR, 128 bits, remembered", GOAL, _bits(128), memoize=True),
    _case("RAPPOR", "RAPPOR, 128 bits, 10,000 texts", None, _bits(128, 10_000), memoize=False),
    _case("RAPPOR", "RAPPOR, 128 bits, batches of 1,000", None, _bits(128), memoize=False, batch=1000),
)
#: Of each job, by peer: what it does otherwise. Jobs aside are others of multi-freq-ldpy.
PEERS: Mapping[str, Mapping[str, str]] = {
    KRR: {"pure-ldp": "", "multi-freq-ldpy": "", "opendp": ""},
    HASHED: {"pure-ldp": "", "multi-freq-ldpy": ""},
    LONGITUDINAL: {"multi-freq-ldpy": "draws a permanent response for each report"},
    "RAPPOR": {
        "pure-ldp": "never clears a 1-bit: infinite epsilon; permanent step only",
        "multi-freq-ldpy": f"{ONE_BIT}; p and q by their epsilon",
        "opendp": "filters given; permanent step only",
    },
}
ASIDE: Mapping[str, Mapping[str, str]] = {
    KRR: {"k-RR, compiled loop": LOOP},
    "RAPPOR": {
        "one step": f"{ONE_BIT}; permanent step only",
        "RAPPOR, compiled loop": f"{ONE_BIT}; p and q by their epsilon; {LOOP}",
        "one step, compiled loop": f"{ONE_BIT}; permanent step only; {LOOP}",
    },
}


def clients() -> Section:
    """Measure all mechanisms, with fresh and with memoized responses."""
    names = ("pure-ldp", "multi-freq-ldpy", "opendp")
    runners = (f"peers.{name.replace('-', '_')}_runner" for name in names)
    with opened("ours.deniable_runner", *runners) as (ours, *others):
        peers = dict(zip(names, others, strict=True))
        compared = [_compared(case, ours, peers) for case in CASES_OF_CLIENTS]
        number = Job(ours, "number", {"epsilon": 2.0, "steps": 256})
        compared.append(with_goal("number, 256 steps, all at once", number, NUMBER_GOAL))
    return section_of(ABOUT, compared)


def _compared(case: ClientCase, ours: Contestant, peers: Mapping[str, Contestant]) -> Comparison:
    rivals = [Job(peers[name], case.job, case.asked, says) for name, says in PEERS[case.job].items()]
    multi = peers["multi-freq-ldpy"]
    aside: Sequence[Job] = [
        Job(multi, job, case.asked, says) for job, says in ASIDE.get(case.job, {}).items()
    ]
    mine = Job(ours, case.job, {**case.asked, **case.ours})
    return beside_peers(case.name, mine, rivals, case.goal, aside)


CASES = {"clients": clients}
