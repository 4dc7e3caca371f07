"""Final estimates of a collection's windows under former parameters, from the topic `estimates`.

Rule 1: of a window the newest revision counts; one without reports withdraws it.
Rule 2: a record that leaves values out is not used: noise chose those that it lists. Nor is one of a version
before `unbiased`, whose shares are clipped at 0.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import aclosing
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np

from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate
from deniable.aggregator.records.estimate_parts import Parts
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS, records_since
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError
from deniable.protocol.topic_names import Topics

MOST_SHARES = 1 << 22  # of all windows together: 96 MiB
HEAD_BYTES = 256  # hold all fields up to `final`; within a text, their quotes are escaped


class TooManySharesError(DeniableError, ValueError):
    """A period has more shares under former parameters than are held at once."""


class WindowFigures(NamedTuple):
    """Shares of one window that was counted under former parameters. Arrays float64 (n,), fractions.

    Parameters
    ----------
    end : of the window, unix seconds.
    reports : N, >= 1.
    values : labels.
    share : unconstrained estimates.
    error : of the window alone, > 0; inf where nothing is known.
    alike : the part of it that is the same in every window: of strings that are not listed, of collisions.
    """

    end: int
    reports: int
    values: tuple[str, ...]
    share: FloatArray
    error: FloatArray
    alike: FloatArray


class FormerDefinition(NamedTuple):
    """What was estimated under one former fingerprint.

    Parameters
    ----------
    record : the newest of its estimates that can be used, or else the newest: it says parameters and values.
    windows : shares by start, unix seconds, ascending.
    unfit : how many windows have records that are not used, see rule 2.
    reason : why the last one of these is not used; empty if there is none.
    """

    record: EstimateRecord
    windows: Mapping[int, WindowFigures]
    unfit: int
    reason: str


class _Known(NamedTuple):
    """Of the newest revision of a window: its shares, or why there are none; neither if it was withdrawn."""

    revision: int
    figures: WindowFigures | None
    unfit: str


class FormerEstimates:
    """One reading of the topic.

    Parameters
    ----------
    collection : whose name the estimates have; those under its own fingerprint are skipped.
    period : that contains the windows entirely.

    Attributes
    ----------
    failure : why the topic could not be read; empty if it was.
    """

    def __init__(self, collection: Collection, period: Period) -> None:
        self.period = period
        self.failure = ""
        self._name = collection.name
        self._prefix = f"{collection.name}/".encode()
        self._ours = f'"fingerprint":"{collection.fingerprint:016x}"'.encode()
        self._parts: defaultdict[str, Parts] = defaultdict(Parts)
        self._known: defaultdict[str, dict[int, _Known]] = defaultdict(dict)
        self._said: dict[str, EstimateRecord] = {}
        self._lists: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._held = 0

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Read the next record; True if it was an estimate that is wanted. TooManySharesError."""
        if key is None or value is None or not key.startswith(self._prefix):
            return False
        head = value[:HEAD_BYTES]
        if self._ours in head or b'"final":false' in head:
            return False
        try:
            part = decode_estimate(value)
        except msgspec.DecodeError:
            return False
        is_inside = self.period.start <= part.window_start and part.window_end <= self.period.end
        if part.collection != self._name or not part.final or not is_inside:
            return False
        record = part if part.parts == 1 else self._parts[part.fingerprint].add(part)
        if record is not None:
            self._keep(record)
        return True

    def definitions(self) -> list[FormerDefinition]:
        """What was found, by the start of the last window, so that the definition before ours is the last."""
        found = [_definition(self._said.get(each), windows) for each, windows in self._known.items()]
        return sorted((each for each in found if each), key=lambda each: each.record.window_start)

    def _keep(self, record: EstimateRecord) -> None:
        windows = self._known[record.fingerprint]
        former = windows.get(record.window_start)
        if former is not None and former.revision > record.revision:
            return
        unfit = _unfit(record)
        figures = self._figures(record) if record.reports and not unfit else None
        self._held += _size(figures) - (_size(former.figures) if former else 0)
        if self._held > MOST_SHARES:
            raise TooManySharesError(
                f"estimates under former parameters must have at most {MOST_SHARES:,} shares in a period, "
                "and have more"
            )
        windows[record.window_start] = _Known(record.revision, figures, unfit)
        if record.reports:
            said = self._said.setdefault(record.fingerprint, record)
            self._said[record.fingerprint] = max(
                said, record, key=lambda each: (not _unfit(each), each.window_start)
            )

    def _figures(self, record: EstimateRecord) -> WindowFigures:
        values = tuple(record.values)
        errors = np.array([inf if each is None else each for each in record.std_error], np.float64)
        if record.unreliable:
            errors[np.array(record.unreliable)] = inf
        alike = record.misfit_error or [record.diagnostics.get("collision_error", 0.0)] * len(values)
        return WindowFigures(
            record.window_end,
            record.reports,
            self._lists.setdefault(values, values),
            np.array(record.unbiased, np.float64),
            errors,
            np.array(alike, np.float64),
        )


async def read_former_estimates(cluster: Cluster, topics: Topics, reading: FormerEstimates) -> None:
    """Read the topic from the start of the reading's period.

    Raises
    ------
    KafkaError, TimeoutError; TooManySharesError.
    """
    since_ms = reading.period.start * 1000 - CLOCKS_MILLISECONDS
    found = records_since(cluster, topics.estimates, range(topics.partitions), since_ms)
    async with aclosing(found) as records:
        async for _, record in records:
            if reading.take(record.key, record.value):
                await asyncio.sleep(0)  # a record of 2,000 values takes milliseconds


def _definition(record: EstimateRecord | None, windows: Mapping[int, _Known]) -> FormerDefinition | None:
    usable = {start: each.figures for start, each in sorted(windows.items()) if each.figures is not None}
    unfit = [each.unfit for each in windows.values() if each.unfit]
    if record is None or not (usable or unfit):
        return None
    return FormerDefinition(record, usable, len(unfit), unfit[-1] if unfit else "")


def _size(figures: WindowFigures | None) -> int:
    return len(figures.values) if figures else 0


def _unfit(record: EstimateRecord) -> str:
    """Return why a record cannot be joined with others, see rule 2; empty if it can."""
    if record.omitted:
        return "records leave out the lowest values, and noise chose those that they list"
    if record.values and not record.unbiased:
        return "records have no unbiased shares"
    return ""
