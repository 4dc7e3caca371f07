"""Records of `rejected-uploads`: what became of all uploads can be computed, whatever was sent twice."""

import itertools

import pytest

from deniable.relay.fold import Start
from deniable.relay.service.outcomes import (
    OutcomeRecord,
    OutcomeRecordError,
    RejectedGroups,
    decode_outcomes,
    totals,
)
from deniable.relay.service.partition import PartitionRelay
from tests.support.messages import PinMessages
from tests.support.relay.logs import KEYS, PARTITION, PARTITIONS, RandomLog

RECORDS = 500
LOG_APPEND_TIME = 1


class Stored:
    def __init__(self, offset, append_ms, value):
        self.offset, self.timestamp, self.value = offset, append_ms, value
        self.timestamp_type = LOG_APPEND_TIME


def relayed(log, start=None, after=-1):
    """Return the records of each batch that a relay sends, by end, and its positions."""
    relay = PartitionRelay(PARTITION, KEYS, start or Start(0), after, ("reports", "rejected"), PARTITIONS)
    begin = start.offset if start else 0
    sealed = relay.take(Stored(*record) for record in log.since(begin))
    return {each.batch.end: each for each in sealed}


def outcomes_in(batches):
    return [
        decode_outcomes(record.value)
        for each in batches.values()
        for record in each.records
        if record.topic == "rejected"
    ]


def fold_start(log, position):
    from deniable.relay.control import decode_control

    if position.settings < 0:
        return Start(position.rewind)
    settings = decode_control(KEYS, PARTITION, log.value(position.settings))
    return Start(position.rewind, position.watermark_ms, settings, position.settings)


@pytest.mark.slow
def test_a_record_states_the_hour_of_its_batch():
    """A batch may be one upload; packs leave with the time of the broker."""
    batches = relayed(RandomLog(0).grow(RECORDS)).values()
    hours = {
        (record.timestamp_ms, each.batch.watermark_ms // 3_600_000)
        for each in batches
        for record in each.records
        if record.topic == "rejected"
    }
    assert hours
    assert all(stated == hour * 3_600_000 for stated, hour in hours)


@pytest.mark.all
@pytest.mark.parametrize("seed", range(2))
def test_batches_sent_twice_have_the_same_records_under_the_same_keys(seed):
    """So the totals of all records are those of one relay, whichever it is and wherever it began."""
    log = RandomLog(seed).grow(RECORDS)
    whole = relayed(log)
    once = totals(outcomes_in(whole))
    rewound = [each.position for each in whole.values() if each.position.rewind > 0]
    assert rewound
    for position in rewound[:-1][:: len(rewound) // 3]:
        again = relayed(log, fold_start(log, position), position.position)
        assert again
        for end, sealed in again.items():
            assert sealed.records == whole[end].records
        assert totals([*outcomes_in(whole), *outcomes_in(again)]) == once
    assert totals(outcomes_in(whole) * 2) == once


@pytest.mark.slow
def test_accepted_and_rejected_reports_are_those_of_all_uploads():
    from deniable.relay.columns import decode_columns

    log = RandomLog(5).grow(400)
    log.append(RandomLog(5).now_ms * 2, log.value(0))  # settings again, which end the last batch
    uploaded = 0
    for _, _, value in log.records:
        try:
            groups, _ = decode_columns(value)
        except ValueError:
            continue
        uploaded += int(groups.reports.sum())
    found = totals(outcomes_in(relayed(log)))
    assert found.uploaded == uploaded
    assert found.accepted > 0
    assert {"duplicate", "too_late", "too_early", "bad_value", "malformed"} <= found.rejected.keys()


@pytest.mark.slow
def test_a_record_names_batch_window_and_reason_and_no_upload():
    records = outcomes_in(relayed(RandomLog(1).grow(100)))
    assert [each.key for each in records] == [f"{PARTITION}-{each.end}".encode() for each in records]
    assert all(later.begin >= earlier.end for earlier, later in itertools.pairwise(records))
    assert {name for each in records for name in each.__struct_fields__} == {
        *("partition", "begin", "end", "accepted", "rejected", "version"),
    }
    example = OutcomeRecord(1, 5, 9, (), (RejectedGroups("too_late", 2, 3),))
    assert example.encode() == (
        b'{"partition":1,"begin":5,"end":9,"accepted":[],"rejected":[{"reason":"too_late","groups":2,'
        b'"reports":3,"fingerprint":null,"window":null}],"version":1}'
    )


@pytest.mark.parametrize("value", [None, b"", b"[1]", b"\xff"])
def test_other_records_are_refused(value):
    with pytest.raises(OutcomeRecordError):
        decode_outcomes(value)


def test_messages(pin_messages: PinMessages) -> None:
    later = b'{"partition":1,"begin":5,"end":9,"version":2}'
    pin_messages(
        {
            "a record of something else": lambda: decode_outcomes(b"{}"),
            "a record of a later version": lambda: decode_outcomes(later),
        }
    )
