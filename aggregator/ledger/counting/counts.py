"""The counts of a ledger: tallies and rejections of its live windows, and which changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.counting.tally import Tally, TallyKey, tallies_of
from deniable.aggregator.ledger.row_keys import RejectedKey, Stored, Window
from deniable.aggregator.ledger.terms import Terms
from deniable.protocol import wire

StateRecord = tuple[bytes, bytes | None]  # key and value of a topic's record; None deletes the key


@dataclass(frozen=True)
class Changes:
    """What one transaction stores and deletes.

    Parameters
    ----------
    tallies, rejected : changed counts; snapshots of the tallies.
    dead : keys of rows to delete.
    ids : new pack ids, joined.
    terms : new or changed terms, by fingerprint.
    revision : of the collection file; None if it has not changed.
    """

    tallies: Mapping[TallyKey, Tally]
    rejected: Mapping[row_keys.RejectedKey, int]
    dead: Sequence[row_keys.Key] = ()
    ids: Mapping[row_keys.IdsKey, bytes] = field(default_factory=dict)
    terms: Mapping[int, Terms] = field(default_factory=dict)
    revision: int | None = None

    def rows(self) -> Iterator[Stored]:
        """Rows to store, encoded."""
        for ids_key, ids in self.ids.items():
            yield ids_key, row_values.encode_ids(ids)
        for fingerprint, terms in self.terms.items():
            yield row_keys.TermsKey(fingerprint), row_values.encode_terms(terms)
        if self.revision is not None:
            yield row_keys.SingleKey.REVISION, row_values.encode_revision(self.revision)
        for tally_key, tally in self.tallies.items():
            for page_key, page in tally.pages(tally_key):
                yield page_key, row_values.encode_counters(page)
        for rejected_key, packs in self.rejected.items():
            yield rejected_key, row_values.encode_rejected(packs)

    def records(self) -> list[StateRecord]:
        """Records of `state`, deletions first."""
        return [
            *((row_keys.encode_key(key), None) for key in self.dead),
            *((row_keys.encode_key(key), value) for key, value in self.rows()),
        ]


@dataclass
class _Changed:
    tallies: set[TallyKey] = field(default_factory=set)
    rejected: set[RejectedKey] = field(default_factory=set)


class Counts:
    """Counted and rejected packs, by window.

    Treat `tallies` and `rejected` as read-only; change them through the methods.
    """

    def __init__(self) -> None:
        self.tallies: dict[TallyKey, Tally] = {}
        self.rejected: dict[RejectedKey, int] = {}
        self._cohorts: dict[Window, set[int]] = {}  # of the keys in `tallies`
        self._reasons: dict[Window, set[str]] = {}  # of the keys in `rejected`
        self._unstored = _Changed()
        self._unpublished = _Changed()

    def add(self, pack: wire.Pack) -> None:
        """Count a countable pack."""
        self.changing((pack.fingerprint, pack.window_start, pack.cohort), pack.width).add(pack)

    def changing(self, key: TallyKey, width: int) -> Tally:
        """The tally of a window and cohort, which the caller is about to change."""
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally.empty(width)
            self._cohorts.setdefault(key[:2], set()).add(key[2])
        self._unstored.tallies.add(key)
        self._unpublished.tallies.add(key)
        return tally

    def reject(self, key: RejectedKey) -> None:
        """Count a rejected pack."""
        self.rejected[key] = self.rejected.get(key, 0) + 1
        self._reasons.setdefault(key[:2], set()).add(key.reason)
        self._unstored.rejected.add(key)
        self._unpublished.rejected.add(key)

    def forget(self, window: Window) -> list[row_keys.Key]:
        """Drop a window; return the keys of its rows."""
        keys: list[row_keys.Key] = []
        for cohort in self._cohorts.pop(window, ()):
            tally_key = (*window, cohort)
            keys += self.tallies.pop(tally_key).page_keys(tally_key)
            self._unstored.tallies.discard(tally_key)
            self._unpublished.tallies.discard(tally_key)
        for reason in self._reasons.pop(window, ()):
            key = RejectedKey(*window, reason)
            del self.rejected[key]
            keys.append(key)
            self._unstored.rejected.discard(key)
            self._unpublished.rejected.discard(key)
        return keys

    def drain(self) -> Changes:
        """Counts changed since the last call, for `state`."""
        changed, self._unstored = self._unstored, _Changed()
        return self._copied(changed)

    def drain_unpublished(self) -> Changes:
        """Counts changed since the last call, for `counts`."""
        changed, self._unpublished = self._unpublished, _Changed()
        return self._copied(changed)

    def restore(
        self, counters: Mapping[row_keys.CountKey, bytes], rejected: Mapping[RejectedKey, bytes]
    ) -> None:
        """Load stored rows, all considered unpublished; RowError if one cannot be read."""
        self.tallies = tallies_of(counters)
        self.rejected = {key: row_values.decode_rejected(value) for key, value in rejected.items()}
        for fingerprint, window_start, cohort in self.tallies:
            self._cohorts.setdefault((fingerprint, window_start), set()).add(cohort)
        for key in self.rejected:
            self._reasons.setdefault(key[:2], set()).add(key.reason)
        self._unpublished = _Changed(set(self.tallies), set(self.rejected))

    def windows(self) -> set[Window]:
        """Windows with tallies or rejections; (0, 0) holds rejected packs without a valid window."""
        return self._cohorts.keys() | self._reasons.keys()

    def rows(self) -> Iterator[Stored]:
        """All rows, for comparison with another ledger's."""
        return Changes(self.tallies, self.rejected).rows()

    def _copied(self, changed: _Changed) -> Changes:
        tallies = {key: self.tallies[key].snapshot() for key in changed.tallies}
        rejected = {key: self.rejected[key] for key in changed.rejected}
        return Changes(tallies, rejected)
