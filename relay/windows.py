"""Open windows: the upload ids that they have seen, and their reports that are held back. Pure.

Rule: a report leaves in an order drawn for at least `shuffle_reports` reports of its collection, window and
cohort, if the window gets as many. So when a batch ends, a pool with twice as many is put in random order,
and all but the last `shuffle_reports` leave; those wait for others. When the window has closed, all leave.

Whoever sees what left, and in which batch, sees no more than a random order of the whole pool shows: that
order decides both who leaves and in which order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.secrets.order import random_order
from deniable.protocol.uploads.id_set import IdSet
from deniable.relay.control import Intake, RelaySettings
from deniable.relay.keys import RelayKeys, context_of

Rows = NDArray[np.uint8]


@dataclass(frozen=True)
class Release:
    """Reports of one collection, window and cohort that leave together.

    Parameters
    ----------
    intake : of the collection.
    window_start : unix seconds.
    cohort : of the reports.
    rows : uint8 (n, bytes of a report), in random order.
    shuffled : number of reports that this order was drawn for, at least n.
    context : for the keys; no other release has the same.
    """

    intake: Intake
    window_start: int
    cohort: int
    rows: Rows
    shuffled: int
    context: bytes


@dataclass(frozen=True)
class ClosedWindow:
    """A window that takes no more uploads and has sent all its reports.

    Parameters
    ----------
    fingerprint : of the collection.
    start : unix seconds.
    least_shuffled : the smallest number of reports that an order was drawn for, >= 1. Each report was in such
        an order, also those that were held back and then put in a smaller one; who sees what left sees no
        more than the first order of all that were in it.
    """

    fingerprint: int
    start: int
    least_shuffled: int


class OpenWindow:
    """One open window of one collection.

    Parameters
    ----------
    intake : of the collection.
    closes_ms : append time after which it takes no uploads, unix milliseconds.
    """

    def __init__(self, intake: Intake, closes_ms: int) -> None:
        self.intake = intake
        self.closes_ms = closes_ms
        self.ids = IdSet()
        self.least_shuffled = 0  # of the orders drawn so far; 0 before the first
        self._fresh: list[tuple[NDArray[np.uint16], Rows]] = []
        self._pools: dict[int, Rows] = {}

    @property
    def holds_reports(self) -> bool:
        """Whether reports wait to be released."""
        return bool(self._fresh or self._pools)

    @property
    def held_reports(self) -> int:
        """Number of reports that wait to be released."""
        return sum(len(rows) for _, rows in self._fresh) + sum(map(len, list(self._pools.values())))

    def add(self, cohorts: NDArray[np.uint16], rows: Rows) -> None:
        """Add reports: uint16 (n,), uint8 (n, bytes of a report)."""
        self._fresh.append((cohorts, rows))

    def release(
        self, start: int, is_closed: bool, settings: RelaySettings, keys: RelayKeys, place: tuple[int, int]
    ) -> Iterator[Release]:
        """Return the reports that leave at the end of a batch, by cohort.

        Parameters
        ----------
        start : of the window.
        is_closed : whether it takes no more uploads.
        settings : in force.
        keys : of the relays.
        place : partition of `uploads`, and the offset after the batch.
        """
        cohorts = self._pool_fresh()
        for cohort in sorted(self._pools if is_closed else cohorts):
            pool, held = self._pools[cohort], 0 if is_closed else settings.shuffle_reports
            if len(pool) < 2 * held:
                continue
            context = context_of(*place, self.intake.fingerprint, start, cohort)
            rows = pool[random_order(keys.words(context, len(pool)))]
            self._pools[cohort] = rows[len(rows) - held :]
            if not held:
                del self._pools[cohort]
            leaving = rows[: len(rows) - held]
            self.least_shuffled = min(self.least_shuffled or len(pool), len(pool))
            yield Release(self.intake, start, cohort, leaving, len(pool), context)

    def _pool_fresh(self) -> set[int]:
        """Add the reports of this batch to the pools of their cohorts; return these."""
        if not self._fresh:
            return set()
        cohorts = np.concatenate([each for each, _ in self._fresh])
        rows = np.concatenate([each for _, each in self._fresh])
        self._fresh.clear()
        order = cohorts.argsort(kind="stable")
        cohorts, rows = cohorts[order], rows[order]
        places = [0, *(np.flatnonzero(cohorts[1:] != cohorts[:-1]) + 1).tolist(), len(cohorts)]
        grown = set()
        for first, end in pairwise(places):
            cohort = int(cohorts[first])
            pool = self._pools.get(cohort)
            part = rows[first:end]
            self._pools[cohort] = part if pool is None else np.concatenate((pool, part))
            grown.add(cohort)
        return grown


class Windows:
    """All open windows, by fingerprint and start, in `open`; those just closed in `closed`."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, int], OpenWindow] = {}
        self.closed: list[ClosedWindow] = []

    def release(
        self, watermark_ms: int, settings: RelaySettings, keys: RelayKeys, place: tuple[int, int]
    ) -> list[Release]:
        """Return all reports that leave at the end of a batch, and forget windows that have closed.

        Parameters
        ----------
        watermark_ms : the highest append time so far, unix milliseconds.
        settings, keys, place : see `OpenWindow.release`.
        """
        releases: list[Release] = []
        self.closed = []
        for key in sorted(self.open):
            window = self.open[key]
            is_closed = watermark_ms > window.closes_ms
            releases += window.release(key[1], is_closed, settings, keys, place)
            if is_closed:
                del self.open[key]
                if window.least_shuffled:
                    self.closed.append(ClosedWindow(*key, window.least_shuffled))
        return releases

    def next_close_ms(self) -> int | None:
        """When the first window with waiting reports closes, unix milliseconds; None if none waits."""
        waiting = [window.closes_ms for window in self.open.values() if window.holds_reports]
        return min(waiting, default=None)
