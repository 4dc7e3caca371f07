"""How fast true values become randomized reports, beside what peers' clients do."""

from collections.abc import Mapping
from typing import NamedTuple

from bench.contest.contestant import Contestant
from bench.contest.environment import PYTHON
from bench.contest.figure import Part, Table
from bench.contest.parts.contests import contest
from bench.contest.rounds import Job, Scale

BLOOM = {"hashes": 2, "cohorts": 8, "words": 100}
ASKED = {"f": 0.5, "p": 0.5, "q": 0.75}
MILDER = {"f": 0.25, "p": 0.35, "q": 0.65}
ABOUT = (
    "From true values in memory to encoded packs of 10,000 reports, ready for Kafka; peers: from values to a "
    "list of reports in memory. Values are integers for k-RR, and texts (100 different ones) for our RAPPOR, "
    "integers for that of peers. Each on one core, in turn; reports per second of processor time."
)


class RapporCase(NamedTuple):
    """RAPPOR of so many bits; remembered: each client's permanent response is what it always was."""

    bits: int
    probabilities: Mapping[str, float]
    remembered: bool
    goal: float | None

    @property
    def name(self) -> str:
        """As it stands in the results."""
        told = ", ".join(f"{name} {value:g}" for name, value in self.probabilities.items())
        return f"RAPPOR, {self.bits} bits, {told}{', remembered' if self.remembered else ''}"


KRR_GOAL = 10.0
RAPPOR_CASES = (
    RapporCase(32, ASKED, remembered=False, goal=20.0),
    RapporCase(128, ASKED, remembered=False, goal=20.0),
    RapporCase(128, ASKED, remembered=True, goal=20.0),
    RapporCase(32, ASKED, remembered=True, goal=None),
    RapporCase(32, MILDER, remembered=False, goal=None),
    RapporCase(128, MILDER, remembered=False, goal=None),
)


def measure(scale: Scale) -> Part:
    """k-RR and RAPPOR, with fresh noise and with responses that are remembered; quick: those with a goal."""
    peer = str(PYTHON)
    with (
        Contestant("deniable_runner") as ours,
        Contestant("pure_ldp_runner", peer) as pure,
        Contestant("multi_freq_ldpy_runner", peer) as multi,
        Contestant("opendp_runner", peer) as opendp,
    ):
        contests = [
            contest(
                f"k-RR, {k:,} values",
                Job(ours, "k-RR", parameters),
                [Job(each, "k-RR", parameters) for each in (pure, multi, opendp)],
                scale,
                KRR_GOAL,
            )
            for k in (100, 10_000)
            for parameters in [{"k": k, "epsilon": 2.0}]
        ]
        contests += [
            contest(
                case.name,
                Job(ours, "RAPPOR", {**parameters, "memoize": case.remembered}),
                [
                    Job(
                        pure,
                        "RAPPOR",
                        parameters,
                        "never clears a 1-bit: infinite epsilon; permanent step only",
                    ),
                    Job(multi, "RAPPOR", parameters, "one true bit, no hashing; p and q by their epsilon"),
                    Job(opendp, "RAPPOR", parameters, "filters given; permanent step only"),
                ],
                scale,
                case.goal,
                aside=[Job(multi, "one step", parameters, "one true bit, no hashing; permanent step only")],
            )
            for case in RAPPOR_CASES
            if case.goal or not scale.quick
            for parameters in [{**BLOOM, **case.probabilities, "bits": case.bits}]
        ]
    return Part(
        "Client",
        ABOUT,
        [figure for figures, _ in contests for figure in figures],
        [Table("All clients", [row for _, rows in contests for row in rows])],
        [
            "No peer remembers permanent responses: a client that reports one value again and again gives "
            "it away to whoever averages. `remembered`: ours derives the response of each client, of whom "
            "there are as many as reports, from a secret; peers do the same as before.",
            "multi-freq-ldpy's `UE_Client` draws half of what RAPPOR draws: it is in the table, beside "
            "its `L_SUE_Client`, which has both steps and is compared.",
        ],
    )
