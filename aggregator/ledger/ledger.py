"""The ledger of one partition of `reports`: a pure fold over the log that tracks its changes.

Rule 1: apply is called once for each record, in offset order, or apply_run for a run of them; nothing else
changes counts.
Rule 2: apply reads no clock and no file, so folding the same log under the same terms gives the same ledger,
integer for integer. `deniable replay` is that fold.
Rule 3: each change is drained once. A caller that fails to store it must discard the ledger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.acceptance import Acceptance, Rejection
from deniable.aggregator.ledger.counting.counts import Changes, Counts
from deniable.aggregator.ledger.outcomes import RunOutcome
from deniable.aggregator.ledger.pack_ids import WindowIds
from deniable.aggregator.ledger.row_keys import Stored
from deniable.aggregator.ledger.runs.good_packs import RunPacks, good_packs, new_ids, packs_of, stretches
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.ledger.runs.tally_groups import TallyGroups, add, tally_groups
from deniable.aggregator.ledger.terms import EVERY_COLLECTION, Terms, closing_terms, untouched_window
from deniable.aggregator.ledger.terms_update import (
    changed_terms,
    check_not_retired,
    check_raised,
    check_revision,
)
from deniable.aggregator.ledger.window_ends import NO_RELAYS, Closing, WindowEnds, closed_over
from deniable.estimators.collection import Collection
from deniable.protocol import wire
from deniable.protocol.marker import MARKER


@dataclass(frozen=True)
class Refusal:
    """A rejected record, as published in the topic `rejected`."""

    offset: int
    reason: str


class Ledger:
    """Exact counts of one partition, and the state needed to continue counting.

    Parameters
    ----------
    partition : of `reports`, 0..partitions-1.
    partitions : number of partitions of `reports`.
    terms : by fingerprint, under which packs are accepted.
    """

    def __init__(self, partition: int, partitions: int, terms: Mapping[int, Terms] | None = None) -> None:
        self.partition = partition
        self.terms: dict[int, Terms] = dict(terms or {})
        self.revision = 0  # of the collection file it was last opened with
        self.position = 0
        self.watermark_ms = 0
        self.closed_until_ms = 0  # at most `watermark_ms`: less where windows wait for relays
        self.whole_from = 0  # windows that start earlier may lack records, unix seconds
        self.counts = Counts()
        self.ids = WindowIds()
        self._acceptance = Acceptance(self.terms, partition, partitions)
        self._unstored_terms: dict[int, Terms] = {}
        self._unstored_revision: int | None = None
        self._unpublished_terms: set[int] = set()
        self._tombstones: list[row_keys.Key] = []
        self._refusals: list[Refusal] = []
        self._ends = WindowEnds()

    def apply(self, offset: int, append_ms: int, record: bytes) -> wire.Pack | Rejection | None:
        """Count or reject the record at this offset, and move past it.

        Parameters
        ----------
        offset : of the record; the caller guarantees that no record lies between `position` and it.
        append_ms : its log append time, unix milliseconds.
        record : its value.

        Returns
        -------
        The counted pack, or why the record was rejected; None for a marker, which only moves the watermark.
        """
        self.watermark_ms = max(self.watermark_ms, append_ms)
        self._heed(self.closing.after(record))
        self.closed_until_ms = max(self.closed_until_ms, self.closing.closed_until_ms(self.watermark_ms))
        self._expire()
        return self._count(offset, append_ms, record)

    def apply_run(self, run: Run) -> RunOutcome:
        """Count or reject the records of a run: what `apply` does with each of them, for less.

        Packs that plainly count are counted together, after the others of their stretch: neither those nor
        they depend on their order (see `good_packs`).

        Parameters
        ----------
        run : not empty; the caller guarantees that no record lies between `position` and it, or within it.
        """
        outcome = RunOutcome()
        watermarks_ms = np.maximum(np.maximum.accumulate(run.append_ms), self.watermark_ms)
        closed_ms, closing = closed_over(run.lengths, run.record, watermarks_ms, self.closing)
        closed_ms = np.maximum(closed_ms, self.closed_until_ms)
        self._heed(closing)
        packs = packs_of(run, self.terms, self._acceptance.partition, self._acceptance.partitions)
        ends_ms = self._ends.between(int(closed_ms[0]), int(closed_ms[-1]))
        for first, end in stretches(packs, closed_ms, ends_ms):
            self.closed_until_ms = int(closed_ms[first])
            self._expire()
            good = good_packs(packs, closed_ms, first, end, self.ids.by_window)
            groups = list(tally_groups(packs, good))
            is_left = np.ones(end - first, np.bool_)
            for each in groups:
                is_left[packs.columns.numbers[each.good] - first] = False
            for number in (np.flatnonzero(is_left) + first).tolist():
                self.closed_until_ms = int(closed_ms[number])
                offset, append_ms = int(run.offsets[number]), int(run.append_ms[number])
                outcome.add(number, self._count(offset, append_ms, run.record(number)))
            for each in groups:
                self._count_groups(packs, each, outcome)
            self.watermark_ms = int(watermarks_ms[end - 1])
            self.closed_until_ms = int(closed_ms[end - 1])
            self.position = int(run.offsets[end - 1]) + 1
        return outcome

    def _count_groups(self, packs: RunPacks, groups: TallyGroups, outcome: RunOutcome) -> None:
        for window, ids, low, high in new_ids(packs, groups.good):
            self._track(window)
            self.ids.add_many(window, ids, low, high)
        add(groups, self.counts)
        outcome.packs += len(groups.good)
        for key, reports in zip(groups.keys, np.diff(groups.row_bounds).tolist(), strict=True):
            outcome.reports[key[0]] += reports

    def _count(self, offset: int, append_ms: int, record: bytes) -> wire.Pack | Rejection | None:
        if record == MARKER or self.closing.wrote(record):
            self.position = offset + 1
            return None
        try:
            pack = self._acceptance.accept(
                offset, record, append_ms, self.closed_until_ms, self.ids.by_window
            )
        except Rejection as rejection:
            self._reject(offset, rejection)
            self.position = offset + 1
            return rejection
        window = (pack.fingerprint, pack.window_start)
        self._track(window)
        self.ids.add(window, pack.pack_id)
        self.counts.add(pack)
        self.position = offset + 1
        return pack

    def agree(self, collections: Mapping[int, Collection], revision: int) -> None:
        """Adopt a collection file's additions to the terms, from this position on.

        Parameters
        ----------
        collections : of the file, by fingerprint.
        revision : of the file.

        Raises
        ------
        TermsError if the file is incompatible with the ledger.
        """
        check_revision(self.revision, revision)
        check_not_retired(self.revision, revision, self.terms, collections)
        changed = changed_terms(self.terms, collections, self.position, self.watermark_ms)
        check_raised(self.revision, revision, changed)
        for fingerprint, terms in changed.items():
            self._set_terms(fingerprint, terms)
        if revision != self.revision:
            self.revision = self._unstored_revision = revision

    def adopt(self, terms: Mapping[int, Terms]) -> None:
        """Count under terms, by fingerprint, that a lost ledger recorded elsewhere."""
        for fingerprint, each in terms.items():
            self._set_terms(fingerprint, each)

    def retire(self, fingerprint: int) -> None:
        """Reject packs of this fingerprint from this position on."""
        self._set_terms(fingerprint, msgspec.structs.replace(self.terms[fingerprint], until=self.position))

    @property
    def closing(self) -> Closing:
        """How windows wait for relays."""
        terms = self.terms.get(EVERY_COLLECTION)
        return (terms and terms.closing) or NO_RELAYS

    def expect_relays(self, key: bytes) -> None:
        """Heed relays' markers with this key from this position on."""
        self._set_terms(EVERY_COLLECTION, closing_terms(Closing(key), self.position))

    def pass_hole(self, position: int) -> None:
        """Continue at this position if it is later: only marks of transactions lie in between."""
        self.position = max(self.position, position)

    def pass_over(self, position: int, append_ms: int) -> None:
        """Continue at a later position: the records before it are lost.

        Parameters
        ----------
        position : next offset to count.
        append_ms : upper bound on the append times of the lost records, unix milliseconds.
        """
        self.position = position
        self.whole_from = untouched_window(max(append_ms, self.watermark_ms), 1)

    def drain(self) -> Changes:
        """Changes to `state` since the last call, without the progress row."""
        replaced, ids = self.ids.drain(self.position)
        changes = replace(
            self.counts.drain(),
            dead=[*self._tombstones, *replaced],
            ids=ids,
            terms=self._unstored_terms,
            revision=self._unstored_revision,
        )
        self._unstored_terms, self._unstored_revision, self._tombstones = {}, None, []
        return changes

    def has_dead(self) -> bool:
        """Whether the next `drain` deletes counts or rejections; `counts` must delete them too."""
        return any(not isinstance(key, row_keys.IdsKey) for key in self._tombstones)

    def drain_unpublished(self) -> Changes:
        """Changes to `counts` since the last call; `drain` returns the deletions."""
        terms = {fingerprint: self.terms[fingerprint] for fingerprint in self._unpublished_terms}
        self._unpublished_terms = set()
        return replace(self.counts.drain_unpublished(), terms=terms)

    def drain_refusals(self) -> list[Refusal]:
        """Records rejected since the last call."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def restore(self, stored: Iterable[Stored]) -> None:
        """Load stored rows; all are considered unpublished.

        Raises
        ------
        RowError if a row cannot be read, or has no terms.
        """
        counters: dict[row_keys.CountKey, bytes] = {}
        rejected: dict[row_keys.RejectedKey, bytes] = {}
        ids: dict[row_keys.IdsKey, bytes] = {}
        for key, value in stored:
            match key:
                case row_keys.SingleKey.PROGRESS:
                    progress = row_values.decode_progress(value)
                    self.position, self.watermark_ms = progress.position, progress.watermark_ms
                    self.closed_until_ms = progress.closed_until_ms
                    self.whole_from = progress.whole_from
                case row_keys.SingleKey.REVISION:
                    self.revision = row_values.decode_revision(value)
                case row_keys.TermsKey():
                    self.terms[key.fingerprint] = row_values.decode_terms(value)
                case row_keys.CountKey():
                    counters[key] = value
                case row_keys.IdsKey():
                    ids[key] = value
                case row_keys.RejectedKey():
                    rejected[key] = value
        self.ids.restore(ids)
        self.counts.restore(counters, rejected)
        self._check_widths()
        for window in self.counts.windows():
            if window[1]:
                self._track(window)
        self._unpublished_terms = set(self.terms)

    def _heed(self, closing: Closing) -> None:
        if closing != self.closing:
            since = self.terms[EVERY_COLLECTION].since
            self._set_terms(EVERY_COLLECTION, closing_terms(closing, since))

    def _set_terms(self, fingerprint: int, terms: Terms) -> None:
        self.terms[fingerprint] = terms
        self._unpublished_terms.add(fingerprint)
        self._unstored_terms[fingerprint] = terms

    def _check_widths(self) -> None:
        for (fingerprint, _, _), tally in self.counts.tallies.items():
            width = self._terms_of_rows(fingerprint).width
            if len(tally.counts) != width:
                raise row_values.RowError(f"counter row must hold {width} counters, got {len(tally.counts)}")

    def _terms_of_rows(self, fingerprint: int) -> Terms:
        if fingerprint not in self.terms:
            raise row_values.RowError(f"rows of fingerprint {fingerprint:016x} have no terms beside them")
        return self.terms[fingerprint]

    def _track(self, window: row_keys.Window) -> None:
        if not self._ends.tracks(window):
            terms = self._terms_of_rows(window[0])
            self._ends.track(window, terms.closes_at(window[1]), terms.dies_at(window[1]))

    def _expire(self) -> None:
        for window in self._ends.closed(self.closed_until_ms):
            self._tombstones += self.ids.forget(window)
        for window in self._ends.dead(self.closed_until_ms):
            self._tombstones += self.counts.forget(window)

    def _reject(self, offset: int, rejection: Rejection) -> None:
        key = row_keys.RejectedKey(rejection.fingerprint, rejection.window_start, rejection.reason)
        if key.window_start:
            self._track(key[:2])
        self.counts.reject(key)
        self._refusals.append(Refusal(offset, rejection.reason))
