"""The verdict on a run: differences of stored counts from an independent recount, and other defects."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from deniable.estimators.collection import Collection
from tests.chaos.judging.recount import Counted, Recount, Tallied
from tests.chaos.judging.stored import Final, Stored

Window = tuple[int, int]  # fingerprint, window start
NOTHING = Counted(np.zeros(1, dtype=np.int64), 0, 0)


@dataclass(frozen=True)
class Verdict:
    """The figures of one run.

    Parameters
    ----------
    difference : sum of the absolute differences of all counters of the ledgers: reports of every bucket,
        reports, packs, and rejected packs of every reason.
    published : the same for the merged rows in `counts`.
    refusals_off : the same for the records in `rejected`, by reason.
    finals_off : sum of differences of reports and packs between first final estimates and the recount.
    finals_changed : windows whose first final estimate differs from the recount, or is not their last one.
    replayed : the difference that `deniable replay` prints.
    missing : packs acknowledged to the producer that are not in the log, or in time but not counted.
    doubled : packs counted more than once.
    steps_back : number of times a stored position went back.
    died : workers that ended unexpectedly.
    uncounted : records of the log beyond the stored positions.
    records, packs, rejected, finals : in the log, counted, rejected, final estimates compared.
    longest_gap : seconds without progress while there were records to count.
    partition_gap : the longest such gap of a single partition.
    packs_per_second : achieved by the load.
    compacted : share of `state` that compaction removed, in [0, 1].
    latest_final : longest time from the end of a window's grace to its final estimate, seconds.
    late : windows whose final estimate came later than the fault allows, or not at all.
    late_reports : from devices, that workers rejected as too late.
    ready_seconds : of a cluster, the longest time from the end of a fault, when killed nodes start, until all
        replicas are in sync, and workers are ready and have stored the counts of what was in the log by then.
    """

    difference: int
    published: int
    refusals_off: int
    finals_off: int
    replayed: int
    missing: int
    doubled: int
    steps_back: int
    uncounted: int
    died: int
    records: int
    packs: int
    rejected: int
    finals: int
    longest_gap: float
    partition_gap: float
    packs_per_second: float
    compacted: float
    latest_final: float = 0.0
    late: int = 0
    late_reports: int = 0
    finals_changed: int = 0
    ready_seconds: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether all figures that must be 0 are 0."""
        return not any(
            (
                self.difference,
                self.published,
                self.refusals_off,
                self.finals_off,
                self.finals_changed,
                self.replayed,
                self.missing,
                self.doubled,
                self.steps_back,
                self.uncounted,
                self.died,
                self.late,
            )
        )

    def describe(self) -> str:
        """Return all figures in one line."""
        return ", ".join(f"{name} {value:g}" for name, value in asdict(self).items())


def difference(kept: Tallied, stored: Stored) -> int:
    """Return the sum of absolute differences of all counters."""
    cells = kept.cells.keys() | stored.cells.keys()
    counted = sum(_apart(kept.cells.get(c, NOTHING), stored.cells.get(c, NOTHING)) for c in cells)
    return counted + refusals_off(kept.rejected, stored.rejected)


def differing(kept: Tallied, stored: Stored) -> list[str]:
    """Return a line for each cell whose counts differ."""
    both = (
        (c, kept.cells.get(c, NOTHING), stored.cells.get(c, NOTHING))
        for c in kept.cells.keys() | stored.cells
    )
    return [
        f"{cell}: {ours.packs} packs expected, {theirs.packs} stored"
        for cell, ours, theirs in both
        if _apart(ours, theirs)
    ]


def refusals_off(expected: Counter[str], shown: Counter[str]) -> int:
    """Return the sum of absolute differences of rejections, over all reasons."""
    return sum(abs(expected[reason] - shown[reason]) for reason in expected.keys() | shown.keys())


def doubled(recount: Recount, stored: Stored) -> int:
    """Return the number of packs counted more than once."""
    kept = sum(cell.packs for cell in recount.kept.cells.values())
    return max(0, sum(cell.packs for cell in stored.cells.values()) - kept)


def finals_off(recount: Recount, finals: Iterable[Final]) -> dict[Window, int]:
    """Return by how many reports and packs each window's first final estimate differs from the recount."""
    reports, packs = Counter[Window](), Counter[Window]()
    for cell, counted in recount.cells.items():
        reports[cell[:2]] += counted.reports
        packs[cell[:2]] += counted.packs
    windows = {(final.fingerprint, final.window_start): final for final in finals}
    return {
        window: abs(reports[window] - final.reports) + abs(packs[window] - final.packs)
        for window, final in windows.items()
    }


def finals_changed(off: Mapping[Window, int], finals: Iterable[Final]) -> int:
    """Return how many windows have a first final estimate that is wrong, or is not their last one."""
    return sum(bool(final.later or off[final.fingerprint, final.window_start]) for final in finals)


def lateness(finals: Iterable[Final], collections: Mapping[int, Collection]) -> dict[Window, float]:
    """Return seconds from the end of each window's grace to its first final estimate."""
    return {
        (final.fingerprint, final.window_start): final.appended_ms / 1000
        - _closes(collections[final.fingerprint], final.window_start)
        for final in finals
    }


def late(
    recount: Recount,
    seconds_late: Mapping[Window, float],
    collections: Mapping[int, Collection],
    overdue_seconds: float,
) -> int:
    """Return the number of windows whose final estimate was too late, or missing after a later window's."""
    reports = Counter[Window]()
    for cell, counted in recount.cells.items():
        reports[cell[:2]] += counted.reports
    newest = {each: max((w for name, w in seconds_late if name == each), default=0) for each in collections}
    due = [
        window
        for window, number in reports.items()
        if number >= collections[window[0]].minimum_reports and window[1] <= newest[window[0]]
    ]
    return sum(window not in seconds_late or seconds_late[window] > overdue_seconds for window in due)


def _closes(collection: Collection, window_start: int) -> int:
    return window_start + collection.window_seconds + collection.grace_seconds


def uncounted(ends: Mapping[int, int], stored: Stored) -> int:
    """Return the number of offsets of the log beyond the stored positions."""
    return sum(max(0, end - stored.positions.get(partition, 0)) for partition, end in ends.items())


def _apart(expected: Counted, stored: Counted) -> int:
    size = max(len(expected.counts), len(stored.counts))
    ours = np.pad(expected.counts, (0, size - len(expected.counts)))
    theirs = np.pad(stored.counts, (0, size - len(stored.counts)))
    apart = int(np.abs(ours - theirs).sum())
    return apart + abs(expected.reports - stored.reports) + abs(expected.packs - stored.packs)
