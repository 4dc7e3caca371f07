"""The terms of a collection in the store: under what its reports were made, by number."""

from producers.budget import Allowance
from producers.heads import ENDLESS, Terms
from producers.store import Store

FINGERPRINT_BYTES = 8
PERIOD_BYTES = 8


def terms_of(allowance: Allowance) -> Terms:
    """Terms under which a report is made that this allowance lets pass."""
    return Terms(
        allowance.collection.fingerprint.to_bytes(FINGERPRINT_BYTES, "little"),
        ENDLESS if allowance.budget is None else allowance.budget.period_seconds,
        allowance.epsilon_per_report,
        allowance.epsilon_inf,
    )


def read_terms(store: Store, collection: int) -> dict[int, Terms]:
    """All terms of a collection, by number.

    Parameters
    ----------
    store : Store.
    collection : its number in the store.
    """
    found = store.rows(
        "SELECT number, fingerprint, epsilon_per_report, epsilon_inf FROM terms WHERE collection = ?",
        collection,
    )
    return {
        number: Terms(
            meaning[:FINGERPRINT_BYTES], int.from_bytes(meaning[FINGERPRINT_BYTES:], "little"), *epsilons
        )
        for number, meaning, *epsilons in found
    }


def register_terms(store: Store, collection: int, terms: Terms) -> int:
    """Note terms in the present transaction, unless they are there; their number."""
    # What the column `fingerprint` tells apart: the collection's, and the length of its periods.
    meaning = (collection, terms.fingerprint + terms.period_seconds.to_bytes(PERIOD_BYTES, "little"))
    store.rows(
        "INSERT OR IGNORE INTO terms (collection, fingerprint, epsilon_per_report, epsilon_inf)"
        " VALUES (?, ?, ?, ?)",
        *meaning,
        terms.epsilon_per_report,
        terms.epsilon_inf,
    )
    ((number,),) = store.rows("SELECT number FROM terms WHERE collection = ? AND fingerprint = ?", *meaning)
    return int(number)
