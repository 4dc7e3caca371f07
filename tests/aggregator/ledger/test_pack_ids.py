"""The ids of a window behave as a set, take few bytes each and need no long step."""

import sys
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger import pack_ids
from deniable.aggregator.ledger.pack_ids import PackIds
from deniable.protocol.uploads import id_set

pytestmark = pytest.mark.slow

MANY, MORE = 1_000_000, 10_000_000
BYTES_PER_ID = 400 * 2**20 / MORE
STEP_SECONDS = 0.1

some_ids = st.sets(st.binary(min_size=16, max_size=16) | st.integers(0, 300).map(lambda n: n.to_bytes(16)))


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_set, "RUN_IDS", 8)
    monkeypatch.setattr(pack_ids, "RESTORED_IDS", 5)
    monkeypatch.setattr(pack_ids, "FRESH_IDS", 3)
    monkeypatch.setattr(pack_ids, "LEAST_FRESH_IDS", 2)


def halves(ids: list[bytes]) -> tuple[id_set.Halves, id_set.Halves]:
    """The halves of ids, the first ascending."""
    pairs = sorted((int.from_bytes(each[:8], "little"), int.from_bytes(each[8:], "little")) for each in ids)
    return np.array([low for low, _ in pairs], np.uint64), np.array([high for _, high in pairs], np.uint64)


@pytest.mark.usefixtures("small_runs")
def test_ids_behave_as_a_set() -> None:
    """Includes ids that begin or end with zeros, with which NumPy pads text arrays."""

    @given(stored=some_ids, added=some_ids, asked=some_ids, part=st.integers(1, 20), alone=st.integers(0, 5))
    def check(stored: set[bytes], added: set[bytes], asked: set[bytes], part: int, alone: int) -> None:
        data = memoryview(b"".join(sorted(stored)))
        ids = PackIds.of([data[first : first + 16 * part] for first in range(0, len(data), 16 * part)])
        for number, each in enumerate(sorted(added - stored)):
            if number < alone:
                ids.add(each)
        many = halves(sorted(added - stored)[alone:])
        assert not ids.holds(*many).any()
        ids.add_many(*many)
        assert ids.holds(*many).all()
        whole = stored | added
        assert len(ids) == len(whole)
        assert sorted(ids) == sorted(whole)
        assert {each for each in asked | whole if each in ids} == whole

    check()


@pytest.mark.all
@pytest.mark.parametrize("many", [MANY, pytest.param(MORE, marks=pytest.mark.nightly)])
def test_ten_million_ids_are_compact_and_fast(many: int) -> None:
    """Times every step that sorts, by CPU time; the other steps only add to a small set."""
    data = np.random.default_rng(1).bytes(16 * many)
    ids = PackIds()
    longest = 0.0
    for first in range(0, len(data), 16):
        if len(ids._fresh) + 1 < ids._most_fresh:
            ids._fresh.add(data[first : first + 16])
            continue
        began = time.thread_time()
        ids.add(data[first : first + 16])
        longest = max(longest, time.thread_time() - began)
    assert len(ids) == many
    assert data[:16] in ids
    assert data[-16:] in ids
    assert bytes(16) not in ids
    assert longest < STEP_SECONDS
    settled = ids._settled
    assert settled is not None
    arrays = settled._taken.nbytes + sum(low.nbytes + high.nbytes for low, high in settled.runs())
    assert arrays + sys.getsizeof(ids._fresh) + 49 * len(ids._fresh) < BYTES_PER_ID * many


def test_stored_ids_are_restored_without_two_more_copies() -> None:
    data = np.random.default_rng(3).bytes(16 * 3_000_000)
    parts = [memoryview(data)[first : first + 160_000] for first in range(0, len(data), 160_000)]
    tracemalloc.start()
    ids = PackIds.of(parts)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ids) == 3_000_000
    assert most < 3 * len(data)


def test_many_windows_of_few_ids_are_compact() -> None:
    windows, each = 8, 4095
    data = np.random.default_rng(2).bytes(16 * windows * each)
    tracemalloc.start()
    kept = [PackIds() for _ in range(windows)]
    for number in range(windows * each):
        kept[number % windows].add(data[16 * number : 16 * number + 16])
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, kept)) == windows * each
    assert taken < BYTES_PER_ID * windows * each
