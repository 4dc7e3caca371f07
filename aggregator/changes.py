"""What changed in a ledger, as it was: it goes on counting while this is encoded in a thread."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aggregator import row_keys, rows
from aggregator.row_keys import Stored
from aggregator.tally import Tally, TallyKey

Row = tuple[bytes, bytes | None]  # key and value of a topic's record; None deletes the key


@dataclass(frozen=True)
class Changes:
    """Rows that one transaction stores or deletes.

    Parameters
    ----------
    dead : keys of rows to delete.
    stored : rows that are encoded already.
    tallies, rejected : what is to be encoded; of tallies, snapshots.
    """

    dead: Sequence[row_keys.Key]
    stored: Sequence[Stored]
    tallies: Mapping[TallyKey, Tally]
    rejected: Mapping[row_keys.RejectedKey, int]

    def rows(self) -> Iterator[Stored]:
        """Rows to store."""
        yield from self.stored
        for key, tally in self.tallies.items():
            yield from tally.pages(key)
        for refused, packs in self.rejected.items():
            yield refused, rows.encode_rejected(packs)

    def records(self) -> list[Row]:
        """Records of `state`, deletions first."""
        return [
            *((row_keys.encode_key(key), None) for key in self.dead),
            *((row_keys.encode_key(key), value) for key, value in self.rows()),
        ]
