"""Decide which submitted reports may be stored: those in time, and within the limits of their clients."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.producers.budget.charging import ChargeResult
from deniable.producers.budget.lateness import untimely
from deniable.producers.budget.spending import Spending
from deniable.producers.pipeline.queueing.submission import Submission


def timely(
    submissions: Sequence[Submission], collections: Mapping[str, Collection], now: float
) -> list[Submission]:
    """Return submissions without the reports that come too early or too late.

    Parameters
    ----------
    submissions : any.
    collections : by name.
    now : unix seconds.
    """
    kept = []
    for each in submissions:
        off = untimely(collections[each.collection], each.windows, now)
        refused = {"too_early": int(off.too_early.sum()), "too_late": int(off.too_late.sum())}
        kept.append(_without(each, refused, ~(off.too_early | off.too_late)))
    return kept


def charged(submissions: Sequence[Submission], spending: Spending, now: float) -> list[Submission]:
    """Charge the clients of submissions; return these without refused reports, and without clients.

    Deferred reports are made here: in the transaction that stores which bucket each client shows.

    Parameters
    ----------
    submissions : in the order they came, which decides if a client has sent more than it may.
    spending : charges them, in the present transaction.
    now : unix seconds.

    Raises
    ------
    StoreError if spending cannot be written; UnknownLimitError like `Spending.charge`.
    """
    done = list(submissions)
    with_clients: dict[str, list[int]] = {}
    for at, each in enumerate(submissions):
        if each.clients is not None:
            with_clients.setdefault(each.collection, []).append(at)
    for name, places in with_clients.items():
        clients = np.concatenate(
            [clients for at in places if (clients := submissions[at].clients) is not None]
        )
        windows = np.concatenate([submissions[at].windows for at in places])
        deferred = [kept.buckets for at in places if (kept := submissions[at].deferred) is not None]
        buckets = np.concatenate(deferred) if deferred else None
        result = spending.charge(name, clients, windows, now, buckets)
        end = 0
        for at in places:
            part = slice(end, end := end + len(submissions[at].windows))
            done[at] = _charged(submissions[at], result, part)
    return done


def _charged(given: Submission, result: ChargeResult, part: slice) -> Submission:
    """Return a submission, whose reports are this part of those charged, as `charged` does."""
    given = replace(given, clients=None)
    if given.deferred is not None and result.buckets is not None:
        given = replace(given, deferred=replace(given.deferred, buckets=result.buckets[part]))
    decided = ChargeResult(result.decisions[part])
    return _without(given, decided.refused(), decided.accepted).made()


def _without(given: Submission, refused: Mapping[str, int], kept: NDArray[np.bool_]) -> Submission:
    return replace(given.only(kept), refused=Counter(given.refused) + Counter(refused))
