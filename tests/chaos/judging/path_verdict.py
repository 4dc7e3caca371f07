"""The verdict on a run of the path of devices: what clients were told, and what is counted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from kafka.consumer.fetcher import ConsumerRecord
from numpy.typing import NDArray

from estimators.collection import Collection
from relay.service.outcomes import Totals
from tests.chaos.judging.judge import HEADER, Cell
from tests.chaos.judging.recount import Counted, Recount
from tests.chaos.judging.uploads import Uploaded
from tests.chaos.judging.verdict import Verdict

LEAST_TOLD = 100
LEAST_REFUSED = 20
LEAST_COUNTED = 0.5  # of the uploads that clients were told of

Bucket = tuple[int, int]  # window start, bucket of `each`


@dataclass(frozen=True)
class PathVerdict(Verdict):
    """The figures of one run: those of the workers, and those of uploads.

    Parameters
    ----------
    requests : answers to good clients, and requests without one.
    uploads : valid ones that clients drew.
    told : of these, those that an edge answered with 204, or 200 for their good groups.
    counted : of those told, the ones counted exactly once.
    refused : of those told, the ones that are not counted: relays or workers rejected them with a reason.
    lost : told or accepted, and neither counted nor rejected.
    twice : how often an upload was counted too often, and counts that no upload explains.
    bits_off : sum of differences between the bits of accepted uploads and those counted or late.
    outcomes_off : difference between `rejected-uploads` and the recount of `uploads`, in reports.
    latest_pack : longest time in seconds from a window's close at the relays to the append of a pack of it;
        beyond `delivery_seconds` it is too late for the workers.
    overdue : reports that workers rejected as too late, unless the fault allows that.
    misanswered : requests with another status than the documented one, or 503 without Retry-After; invalid
        uploads that were taken, too.
    unavailable : requests of good clients that were answered 503.
    refusals : bad requests that were answered as documented.
    unshown : what the run should have shown and did not, 0 to 4: see `unshown`.
    """

    requests: int = 0
    uploads: int = 0
    told: int = 0
    counted: int = 0
    refused: int = 0
    lost: int = 0
    twice: int = 0
    bits_off: int = 0
    outcomes_off: int = 0
    overdue: int = 0
    misanswered: int = 0
    unavailable: int = 0
    refusals: int = 0
    unshown: int = 0
    latest_pack: float = 0.0

    @property
    def apart(self) -> int:
        """Difference between what clients were told and what is counted, or rejected with a reason."""
        return self.lost + self.twice + self.bits_off + self.outcomes_off

    @property
    def exact(self) -> bool:
        return super().exact and not (self.apart or self.overdue or self.misanswered or self.unshown)


@dataclass(frozen=True)
class Sent:
    """An upload of a client: its id, where `each` counts it, and whether the client was told."""

    upload_id: bytes
    bucket: Bucket
    is_told: bool


def figures(
    sent: Iterable[Sent],
    uploaded: Uploaded,
    said: Totals,
    recount: Recount,
    accepted: Mapping[Cell, Counted],
    each: int,
) -> dict[str, int]:
    """Compare clients, the log of uploads, what relays said, and the packs that count.

    Parameters
    ----------
    sent : all uploads of clients.
    uploaded : the log of uploads, judged.
    said : of `rejected-uploads`.
    recount : of the packs.
    accepted : counts of the accepted groups.
    each : fingerprint of the collection that has a bucket for each upload.

    Returns
    -------
    The fields of PathVerdict from `uploads` to `outcomes_off`, by name.
    """
    drawn = {one.bucket: one for one in sent}
    found, late, due = (_buckets(cells, each) for cells in (recount.cells, recount.late, accepted))
    told = [one for one in drawn.values() if one.is_told]
    counted = sum(found.get(one.bucket, 0) == 1 for one in told)
    missing = {one.bucket for one in told if one.upload_id not in uploaded.ids}
    missing |= {bucket for bucket in due if bucket not in found and bucket not in late}
    refused = [one for one in told if one.bucket not in found and one.bucket not in missing]
    twice = sum(number - (bucket in drawn and bucket in due) for bucket, number in found.items())
    return {
        "uploads": len(drawn),
        "told": len(told),
        "counted": counted,
        "refused": len(refused),
        "lost": len(missing),
        "twice": twice,
        "bits_off": _apart(recount, accepted, each),
        "outcomes_off": abs(said.accepted - uploaded.accepted)
        + sum(
            abs(said.rejected.get(reason, 0) - uploaded.rejected[reason])
            for reason in said.rejected.keys() | uploaded.rejected.keys()
        ),
    }


def unshown(verdict: PathVerdict, *, has_good: bool, has_bad: bool, is_away: bool, may_be_late: bool) -> int:
    """Return how much a run leaves open, so that none is exact because nothing happened.

    Parameters
    ----------
    verdict : of the run.
    has_good, has_bad : whether clients sent valid uploads, and others.
    is_away : whether the broker was away for so long that edges must answer 503.
    may_be_late : whether packs may come too late for the workers.
    """
    is_counted = verdict.counted >= LEAST_COUNTED * verdict.told or is_away or may_be_late
    return sum(
        (
            has_good and verdict.told < LEAST_TOLD,
            has_good and not is_counted,
            has_bad and verdict.refusals < LEAST_REFUSED,
            is_away and not verdict.unavailable,
        )
    )


def latest_pack(
    records: Iterable[tuple[int, ConsumerRecord]], collections: Mapping[int, Collection], close_seconds: int
) -> float:
    """Return `PathVerdict.latest_pack` of the topic `reports`, 0 if all packs came before the close."""
    latest, known = 0.0, set()
    for _, record in records:
        *_, fingerprint, window, _, _, pack_id, _ = HEADER.unpack_from(record.value)
        if pack_id not in known:
            known.add(pack_id)
            closes = window + collections[fingerprint].window_seconds + close_seconds
            latest = max(latest, record.timestamp / 1000 - closes)
    return latest


def late_reports(recount: Recount) -> int:
    """Return the reports of packs that came too late and were not counted before."""
    return sum(cell.reports for cell in recount.late.values())


def _buckets(cells: Mapping[Cell, Counted], each: int) -> dict[Bucket, int]:
    """Return how often each bucket of `each` was counted; without those that were not."""
    return {
        (window, int(bucket)): int(cell.counts[bucket])
        for (fingerprint, window, _), cell in cells.items()
        if fingerprint == each
        for bucket in np.flatnonzero(cell.counts)
    }


def _apart(recount: Recount, accepted: Mapping[Cell, Counted], each: int) -> int:
    total = 0
    for cell in recount.cells.keys() | recount.late.keys() | accepted.keys():
        if cell[0] != each:
            counts = _counts(recount.cells, cell) + _counts(recount.late, cell)
            total += int(np.abs(counts - _counts(accepted, cell)).sum())
    return total


def _counts(cells: Mapping[Cell, Counted], cell: Cell) -> NDArray[np.int64] | int:
    found = cells.get(cell)
    return 0 if found is None else found.counts
