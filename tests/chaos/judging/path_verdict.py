"""The verdict on a run of the path of devices: what clients were told, and what is counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from kafka.consumer.fetcher import ConsumerRecord
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.relay.service.outcomes import Totals
from tests.chaos.judging.judge import HEADER, Cell
from tests.chaos.judging.recount import Counted, Recount
from tests.chaos.judging.uploads import Uploaded
from tests.chaos.judging.verdict import Verdict
from tests.chaos.load.drafts import Draft
from tests.chaos.load.packs import MARKER


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
    latest_pack : longest time in seconds from a window's close at the relays to the append of a pack of it.
    overdue : reports that workers rejected as too late, although relays had taken their uploads.
    misanswered : requests with another status than the documented one, or 503 without Retry-After; invalid
        uploads that were taken, too.
    unavailable : requests of good clients that were answered 503.
    refusals : bad requests that were answered as documented.
    unshown : what the run should have shown and did not, 0 to 4, so none is exact because nothing happened.
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


def figures(
    drawn: Sequence[Draft],
    uploaded: Uploaded,
    said: Totals,
    recount: Recount,
    accepted: Mapping[Cell, Counted],
    each: int,
) -> dict[str, int]:
    """Compare clients, the log of uploads, what relays said, and the packs that count.

    Parameters
    ----------
    drawn : all uploads of clients.
    uploaded : the log of uploads, judged.
    said : of `rejected-uploads`.
    recount : of the packs.
    accepted : counts of the accepted groups.
    each : fingerprint of the collection that has a bucket for each upload.

    Returns
    -------
    The fields of PathVerdict from `uploads` to `outcomes_off`, by name.
    """
    told = [draft for draft in drawn if draft.is_told]
    numbers = [_at(recount.cells, (each, draft.window_start, 0), draft.bucket) for draft in told]
    lost, twice, bits_off = sum(draft.upload_id not in uploaded.ids for draft in told), 0, 0
    for cell in recount.cells.keys() | recount.late.keys() | accepted.keys():
        due = _counts(accepted, cell)
        if cell[0] == each and cell in accepted:  # nobody counts what no client drew
            own = [draft.bucket for draft in drawn if draft.window_start == cell[1]]
            due = np.where(np.isin(np.arange(len(due)), own), due, 0)
        apart = _counts(recount.cells, cell) + _counts(recount.late, cell) - due
        if cell[0] == each:
            lost -= int(np.minimum(apart, 0).sum())
            twice += int(np.maximum(apart, 0).sum())
        else:
            bits_off += int(np.abs(apart).sum())
    reasons = said.rejected.keys() | uploaded.rejected.keys()
    return {
        "uploads": len(drawn),
        "told": len(told),
        "counted": numbers.count(1),
        "refused": max(0, numbers.count(0) - lost),
        "lost": lost,
        "twice": twice,
        "bits_off": bits_off,
        "outcomes_off": abs(said.accepted - uploaded.accepted)
        + sum(abs(said.rejected.get(reason, 0) - uploaded.rejected[reason]) for reason in reasons),
    }


def _counts(cells: Mapping[Cell, Counted], cell: Cell) -> NDArray[np.int64]:
    return cells[cell].counts if cell in cells else np.zeros(1, np.int64)


def _at(cells: Mapping[Cell, Counted], cell: Cell, bucket: int) -> int:
    return int(cells[cell].counts[bucket]) if cell in cells else 0


def latest_pack(
    records: Iterable[tuple[int, ConsumerRecord]], collections: Mapping[int, Collection], close_seconds: int
) -> float:
    """Return `PathVerdict.latest_pack` of the topic `reports`, 0 if all packs came before the close."""
    latest, known = 0.0, set()
    for _, record in records:
        if record.value.startswith(MARKER):
            continue
        *_, fingerprint, window, _, _, pack_id, _ = HEADER.unpack_from(record.value)
        if pack_id not in known:
            known.add(pack_id)
            closes = window + collections[fingerprint].window_seconds + close_seconds
            latest = max(latest, record.timestamp / 1000 - closes)
    return latest


def late_reports(recount: Recount) -> int:
    """Return the reports of packs that came too late and were not counted before."""
    return sum(cell.reports for cell in recount.late.values())
