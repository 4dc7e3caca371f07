"""Damage in the store affects nothing else."""

import sqlite3

import pytest

from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from tests.support.producers.questions import FREE

NAME = FREE[0].collection.name
VALUE = FREE[0].collection.values[0] if FREE[0].collection.values else 1


def leave_damaged_buffer(path):
    """Leave a crashed producer's lane, with one bit of its buffer flipped."""
    with sqlite3.connect(path) as store:
        (row,) = store.execute("SELECT fingerprint, window_start, cohort, reports FROM buffers").fetchall()
        damaged = bytearray(row[3])
        damaged[-1] ^= 1
        store.execute("INSERT INTO lanes VALUES (7, 0, ?)", (len(damaged),))
        store.execute("INSERT INTO buffers VALUES (7, ?, ?, ?, ?)", (*row[:3], bytes(damaged)))
    store.close()


@pytest.mark.slow
def test_damaged_buffer_does_not_block_producers(make, kafka, tmp_path, caplog):
    first = make(pack_seconds=600)
    assert first.report(NAME, VALUE, None) == Receipt(stored=1)
    leave_damaged_buffer(tmp_path / "producer.sqlite")
    second = make()
    assert second.report(NAME, VALUE, None) == Receipt(stored=1)
    assert "a damaged buffer of a former producer is kept as a pack" in caplog.text
    with pytest.raises(DeliveryError, match=str(tmp_path)):
        second.flush()
    assert second.counters().acknowledged == {NAME: 1}
    with pytest.raises(DeliveryError, match=str(tmp_path)):
        second.close()
