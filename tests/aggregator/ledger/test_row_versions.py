"""Rows of an older version are read, continued and rewritten; rows of a newer version are refused."""

import asyncio
import json

import pytest

from deniable.aggregator.estimation.counts_reader import CountsReader
from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.records.known_texts import decode_known_texts, encode_known_texts
from tests.chaos.processes.row_versions import read_version_2, write_version_2
from tests.support.aggregator.builders import (
    FRUIT,
    PLACE,
    T0,
    TOPICS,
    MemoryLog,
    ids_of,
    record_of,
    run_of,
    tallies_of,
)
from tests.support.aggregator.owner_runs import NOW_MS, Broker, Running, packs, position, served_from_memory
from tests.support.messages import PinMessages
from tests.support.paths import VECTORS

EXPECTED = json.loads((VECTORS / "state_v1.json").read_text(encoding="utf-8"))
STORED = {
    row_keys.decode_key(bytes.fromhex(row["key"])): bytes.fromhex(row["value"]) for row in EXPECTED["rows"]
}
KINDS = {row["kind"]: row for row in EXPECTED["rows"]}
#: Name of the codec in `row_values` for each kind of row in `rows`; a nonce has none.
CODECS = {
    "count": "counters",
    **{kind: kind for kind in KINDS if kind not in ("count", "owner", "known_texts")},
}
COUNTED = 2  # packs of FRUIT's window at T0 in the vectors
COUNT_KEY = row_keys.CountKey(FRUIT.fingerprint, T0, 0, 0)
OTHER_KEY = row_keys.CountKey(PLACE.fingerprint, T0, 2, 0)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """A broker whose `state` has version 1."""
    broker = served_from_memory(monkeypatch)
    for row in EXPECTED["rows"]:
        broker.log.append(TOPICS.state, 0, bytes.fromhex(row["value"]), bytes.fromhex(row["key"]))
    return broker


def count_on(broker: Broker, number: int) -> None:
    """A worker opens the ledger, counts a new pack and one that was counted before, and ends."""

    async def run() -> None:
        async with Running(broker) as running:
            first = position(broker)
            broker.fetch(first, first + 1)
            running.owner.offer(run_of(first, NOW_MS, record_of(number=number)))
            running.owner.offer(run_of(first + 1, NOW_MS, record_of(number=0)))

    asyncio.run(run())


def test_vectors_contain_every_kind_of_row() -> None:
    assert sorted(CODECS.values()) == sorted(row_values.Decoders._fields)
    assert {type(key) for key in STORED} == set(row_keys.Key.__args__)
    assert set(row_keys.SingleKey) <= STORED.keys()


@pytest.mark.parametrize("row", EXPECTED["rows"], ids=lambda row: row["kind"])
def test_version_1_rows_reencode_identically(row: dict[str, str]) -> None:
    key, value = bytes.fromhex(row["key"]), bytes.fromhex(row["value"])
    assert row_keys.encode_key(row_keys.decode_key(key)) == key
    if row["kind"] == "known_texts":
        assert encode_known_texts(decode_known_texts(value)) == value
    elif row["kind"] != "owner":
        codec = CODECS[row["kind"]]
        encode, decode = getattr(row_values, f"encode_{codec}"), getattr(row_values, f"decode_{codec}")
        assert encode(decode(value)) == value


def test_version_1_rows_are_restored() -> None:
    ledger, holds = Ledger(0, TOPICS.partitions), EXPECTED["holds"]
    ledger.restore(STORED.items())
    assert [ledger.position, ledger.watermark_ms, ledger.revision] == [
        holds["position"],
        holds["watermark_ms"],
        holds["revision"],
    ]
    tallies = [[f"{key[0]:016x}", *key[1:], *tally] for key, tally in tallies_of(ledger).items()]
    assert sorted(tallies) == sorted(holds["tallies"])
    ids = [[f"{key[0]:016x}", key[1], sorted(i.hex() for i in each)] for key, each in ids_of(ledger).items()]
    assert sorted(ids) == sorted(holds["ids"])
    rejected = [[f"{key[0]:016x}", *key[1:], number] for key, number in ledger.counts.rejected.items()]
    assert sorted(rejected) == sorted(holds["rejected"])


def test_worker_continues_from_version_1_rows(broker: Broker) -> None:
    count_on(broker, 100)
    assert (packs(broker), position(broker)) == (COUNTED + 1, EXPECTED["holds"]["position"] + 2)


def test_newer_worker_upgrades_only_changed_rows(broker: Broker) -> None:
    with pytest.MonkeyPatch.context() as patch:
        write_version_2(patch.setattr)
        count_on(broker, 100)
        stored = broker.stored()
        assert (packs(broker), stored[COUNT_KEY][0], stored[OTHER_KEY][0]) == (COUNTED + 1, 2, 1)
        count_on(broker, 101)
        assert (packs(broker), position(broker)) == (COUNTED + 2, EXPECTED["holds"]["position"] + 4)
    with pytest.raises(row_values.RowError, match="version"):
        Ledger(0, TOPICS.partitions).restore(broker.stored().items())


def test_release_before_the_one_that_writes_a_version_reads_it(broker: Broker) -> None:
    for install, version in ((write_version_2, 2), (read_version_2, 1)):
        with pytest.MonkeyPatch.context() as patch:
            install(patch.setattr)
            count_on(broker, 100 + version)
            assert broker.stored()[COUNT_KEY][0] == version
            assert packs(broker) == COUNTED + 3 - version


def test_superseded_row_of_a_newer_version_ends_no_reader_of_counts() -> None:
    """A row that was written again in a version that is known; and one that was not."""
    log, key = MemoryLog(), row_keys.with_source(row_keys.encode_key(COUNT_KEY), 0)
    known = STORED[COUNT_KEY]
    log.append(TOPICS.counts, 0, b"\x02" + known[1:], key)
    log.append(TOPICS.counts, 0, known, key)
    taken = asyncio.run(read_counts(log))
    assert taken.packs((FRUIT.fingerprint, T0)) == COUNTED
    log.append(TOPICS.counts, 0, b"\x02" + known[1:], key)
    with pytest.raises(row_values.RowError, match="version"):
        asyncio.run(read_counts(log))
    log.append(TOPICS.counts, 0, None, key)
    assert not asyncio.run(read_counts(log)).windows()


async def read_counts(log: MemoryLog) -> MergedCounts:
    """What is merged of a partition of `counts`."""
    merged = MergedCounts()
    reader = log.reader(None, TOPICS.counts, 0)
    await CountsReader(reader, TOPICS.partitions, merged.apply).read()
    return merged


def test_messages(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    read_version_2(monkeypatch.setattr)
    pin_messages({"a version that is neither of both": lambda: row_values.decode_progress(b"\x03")})
