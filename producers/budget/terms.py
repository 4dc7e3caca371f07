"""Store the terms of a collection under which its reports were randomized, by number."""

from producers.budget.allowance import Allowance
from producers.budget.client_balance import ENDLESS, SpendingTerms
from producers.storage.store import Store

FINGERPRINT_BYTES = 8
PERIOD_BYTES = 8


def terms_of(allowance: Allowance) -> SpendingTerms:
    """Return the terms of reports under an allowance."""
    return SpendingTerms(
        allowance.collection.fingerprint.to_bytes(FINGERPRINT_BYTES, "little"),
        ENDLESS if allowance.budget is None else allowance.budget.period_seconds,
        allowance.epsilon_per_report,
        allowance.epsilon_inf,
    )


def read_terms(store: Store, collection: int) -> dict[int, SpendingTerms]:
    """Read all terms of a collection, by number.

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
        number: SpendingTerms(
            meaning[:FINGERPRINT_BYTES], int.from_bytes(meaning[FINGERPRINT_BYTES:], "little"), *epsilons
        )
        for number, meaning, *epsilons in found
    }


def register_terms(store: Store, collection: int, terms: SpendingTerms) -> int:
    """Store terms in the present transaction, unless they exist; return their number.

    Their horizon starts at that of other terms with the same fingerprint, whose windows are the same.
    """
    # The column `fingerprint` has the collection's fingerprint and the length of its periods.
    meaning = (collection, terms.fingerprint + terms.period_seconds.to_bytes(PERIOD_BYTES, "little"))
    store.rows(
        "INSERT OR IGNORE INTO terms (collection, fingerprint, epsilon_per_report, epsilon_inf, horizon)"
        " SELECT ?1, ?2, ?3, ?4, coalesce(max(horizon), 0) FROM terms"
        " WHERE collection = ?1 AND substr(fingerprint, 1, ?5) = substr(?2, 1, ?5)",
        *meaning,
        terms.epsilon_per_report,
        terms.epsilon_inf,
        FINGERPRINT_BYTES,
    )
    ((number,),) = store.rows("SELECT number FROM terms WHERE collection = ? AND fingerprint = ?", *meaning)
    return int(number)


def raise_horizons(store: Store, collection: int, earliest: int) -> dict[int, int]:
    """Raise the horizons of all terms of a collection, by number (see `charging.horizons`).

    Parameters
    ----------
    store, collection : as in `read_terms`.
    earliest : unix seconds; later horizons stay.
    """
    return dict(
        store.rows(
            "UPDATE terms SET horizon = max(horizon, ?) WHERE collection = ? RETURNING number, horizon",
            earliest,
            collection,
        )
    )
