"""Ids of a window: their rows stay few and always contain each id once."""

import os

import pytest

from deniable.aggregator.ledger import pack_ids, row_keys, row_values
from deniable.aggregator.ledger.pack_ids import MERGED_IDS, MERGED_ROWS, REWRITTEN_IDS, WindowIds

pytestmark = pytest.mark.slow

WINDOW = (7, 60)


class Stored:
    """Rows as stored in a topic."""

    def __init__(self) -> None:
        self.ids = WindowIds()
        self.rows: dict[row_keys.IdsKey, bytes] = {}
        self.added: set[bytes] = set()
        self.position = 0

    def add(self, count: int) -> None:
        """Count this many packs, then store the changed rows."""
        for _ in range(count):
            pack_id = os.urandom(row_values.ID_BYTES)
            self.ids.add(WINDOW, pack_id)
            self.added.add(pack_id)
            self.position += 1
        replaced, drained = self.ids.drain(self.position)
        for key in replaced:
            del self.rows[key]
        for key in self.rows.keys() & drained.keys():
            assert len(row_values.decode_ids(self.rows[key])) < REWRITTEN_IDS * row_values.ID_BYTES
        self.rows |= {key: row_values.encode_ids(ids) for key, ids in drained.items()}

    def check(self) -> None:
        """The rows contain each id once, and closing the window deletes exactly these rows."""
        size, held = (
            row_values.ID_BYTES,
            b"".join(row_values.decode_ids(value) for value in self.rows.values()),
        )
        assert len(held) == size * len(self.added)
        assert {held[first : first + size] for first in range(0, len(held), size)} == self.added
        read = WindowIds()
        read.restore(self.rows)
        assert set(read.by_window[WINDOW]) == self.added
        assert sorted(self.ids.forget(WINDOW)) == sorted(self.rows)


@pytest.mark.parametrize(
    ("merged", "each"),
    [
        *((128, each) for each in (1, 7, 100, 127, 128, 384)),
        *(pytest.param(MERGED_IDS, each, marks=pytest.mark.nightly) for each in (1, 1023, 1024, 3072)),
    ],
)
def test_small_rows_are_merged(merged: int, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_ids, "MERGED_IDS", merged)
    stored = Stored()
    for _ in range(5 * MERGED_ROWS):
        stored.add(each)
    whole = min(MERGED_ROWS, -(-merged // each))
    assert len(stored.rows) <= 5 * MERGED_ROWS // whole + whole
    stored.check()


def test_short_window_leaves_one_row_for_many_checkpoints() -> None:
    """And one tombstone: a day of them is read whenever the ledger opens."""
    stored = Stored()
    for _ in range(REWRITTEN_IDS // 2):
        stored.add(2)
    assert len(stored.rows) == 1
    stored.add(1)
    assert len(stored.rows) == 2
    stored.check()


def test_rows_of_a_former_owner_stay_unchanged() -> None:
    first = Stored()
    for _ in range(10):
        first.add(3)
    second = Stored()
    second.ids.restore(first.rows)
    second.rows, second.added, second.position = dict(first.rows), first.added, first.position
    for _ in range(MERGED_ROWS + 2):
        second.add(2)
    assert first.rows.keys() <= second.rows.keys()
    second.check()


def test_many_ids_take_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_values, "IDS_PER_ROW", 3)
    stored = Stored()
    for count in (1, 8, 1, 1, 1, 3, 2, 20):
        stored.add(count)
    stored.check()
