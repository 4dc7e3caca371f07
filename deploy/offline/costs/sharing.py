"""How many clients or reports share what local hashing shows of one: its function, its counter."""

import msgspec

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.estimators.mechanisms.mechanism import pool_of

#: Clients, or reports of a window, unless `--clients` says another number.
DEFAULT_CLIENTS, MOST_CLIENTS = 1000, 10**12


class SharingFacts(msgspec.Struct, frozen=True):
    """What is expected of so many clients; of reports of a window where functions are drawn for each report.

    Parameters
    ----------
    clients : their number.
    places : functions of longitudinal hashing; else counters of all functions, buckets and levels.
    others : with which a client or report shares its place, expected.
    alone : share of clients or reports that have their place alone, expected; of reports the least, since
        values spread unevenly over buckets.
    lasting : True if a client keeps its place for ever.
    """

    clients: int
    places: int
    others: float
    alone: float
    lasting: bool


def sharing_facts(collection: Collection, clients: int) -> SharingFacts | None:
    """Return how many share a place; None but for local hashing."""
    pool = pool_of(collection.mechanism)
    if pool is None:
        return None
    if pool.keeps_permanent:
        return _facts(clients, pool.hash_functions, lasting=True)
    return _facts(clients, collection.cohorts * collection.width, lasting=False)


def sharing_lines(collection: Collection, clients: int) -> list[str]:
    """Say it in a line of `check`; nothing of other mechanisms."""
    facts = sharing_facts(collection, clients)
    if facts is None:
        return []
    others, alone = f"{facts.others:,.2g}", f"{rounded_up(100 * facts.alone)} %"
    if facts.others >= 100:
        others = f"{facts.others:,.0f}"
    if facts.lasting:
        return [
            f"of {clients:,} clients each shares its function, which never changes, with {others} others, and"
            f" {alone} have one alone: to readers of `reports` and counts it is a pseudonym of these"
        ]
    return [
        f"of {clients:,} reports of a window each shares its counter with {others} others, and {alone} are"
        " alone in it: readers of counts see these one by one, each at its epsilon"
    ]


def _facts(clients: int, places: int, *, lasting: bool) -> SharingFacts:
    others = clients - 1
    return SharingFacts(clients, places, others / places, (1 - 1 / places) ** others, lasting)
