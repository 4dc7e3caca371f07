"""Whether a collection file is compatible with a ledger's terms, and what it adds to them. Pure."""

from collections.abc import Mapping

import msgspec

from deniable.aggregator.ledger.terms import Terms, span_of, terms_of, untouched_window
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError


class TermsError(DeniableError, ValueError):
    """A collection file is incompatible with a ledger's terms; the message gives the remedy."""

    exit_status = 3


def changed_terms(
    terms: Mapping[int, Terms], collections: Mapping[int, Collection], position: int, watermark_ms: int
) -> dict[int, Terms]:
    """Terms that a ledger must add or change to adopt a file.

    Parameters
    ----------
    terms : of the ledger, by fingerprint.
    collections : of the file, by fingerprint.
    position : next offset that the ledger counts.
    watermark_ms : the highest append time that it counted, unix milliseconds.

    Returns
    -------
    New and changed terms by fingerprint; empty if file and ledger agree. Retired terms never change.

    Raises
    ------
    TermsError if the file lacks a fingerprint that is not retired.
    """
    for fingerprint, held in terms.items():
        if held.until is None and fingerprint not in collections:
            raise TermsError(
                f"collection '{held.name}' (fingerprint {fingerprint:016x}) is counted, and the collection "
                f"file lacks it or defines it differently; put it back as it was, or end it: raise revision, "
                f"then run deniable retire {held.name}"
            )
    changed = {}
    for fingerprint, collection in collections.items():
        known = terms.get(fingerprint)
        if known is None:
            changed[fingerprint] = terms_of(collection, position)
        elif known.until is None and (grown := _extended(known, collection, watermark_ms)) != known:
            changed[fingerprint] = grown
    return changed


def check_revision(ledger: int, file: int) -> None:
    """Check that a file is not older than the one a ledger was last opened with.

    Parameters
    ----------
    ledger : revision of that file, 0 for a new ledger.
    file : revision of this one.

    Raises
    ------
    TermsError.
    """
    if file < ledger:
        raise TermsError(
            f"revision of the collection file must be {ledger} or more, got {file}: a worker has counted "
            f"with a newer file already; start this one with that file"
        )


def check_raised(ledger: int, file: int, changed: Mapping[int, Terms]) -> None:
    """Check that a file that changes terms has a higher revision; `ledger`, `file` : see `check_revision`.

    Raises
    ------
    TermsError.
    """
    if changed and file == ledger:
        names = ", ".join(sorted({terms.name for terms in changed.values()}))
        raise TermsError(
            f"the collection file has changed ({names}) and its revision has not: raise revision to "
            f"{ledger + 1}, so that no worker with the former file counts beside this one"
        )


def check_not_retired(
    ledger: int, file: int, terms: Mapping[int, Terms], collections: Mapping[int, Collection]
) -> None:
    """Check that a newer file holds no retired collection: its reports would be rejected.

    Parameters
    ----------
    ledger, file : see `check_revision`. Workers with the former file continue when a collection is retired.
    terms, collections : see `changed_terms`.

    Raises
    ------
    TermsError.
    """
    over = sorted(terms[each].name for each in collections if each in terms and terms[each].until is not None)
    if file > ledger and over:
        raise TermsError(
            f"collection '{over[0]}' is retired and does not count again, and the collection file holds it: "
            f"remove it from the file, or give it another name"
        )


def _extended(held: Terms, collection: Collection, watermark_ms: int) -> Terms:
    start = untouched_window(watermark_ms, held.window_seconds)
    # Of two changes within a few minutes, the second replaces the first, which no window has used.
    kept = tuple(span for span in held.spans if span.from_window < start)
    wanted = span_of(collection, start)
    latest = held.spans[-1]
    if msgspec.structs.replace(latest, from_window=start) == wanted:
        return held
    return msgspec.structs.replace(held, spans=(*kept, wanted))
