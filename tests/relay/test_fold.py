"""The packs of a log hold what counts, exactly once, and are the same from wherever a relay continues."""

import random
from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.protocol import wire
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.relay_position import NO_SETTINGS, Position
from deniable.protocol.uploads.upload import Upload, UploadGroup, encode_upload
from deniable.relay import control
from deniable.relay.control import Intake, decode_control, encode_marker, encode_settings
from deniable.relay.fold import Fold, Start
from tests.support.messages import PinMessages
from tests.support.needed import but_for
from tests.support.relay.logs import (
    BEGIN,
    KEYS,
    LONG,
    OTHER_KEYS,
    PARTITION,
    SHORT,
    Log,
    RandomLog,
    fold_log,
    group_of,
    settings_of,
    upload_id,
)
from tests.support.relay.model import Model

SEEDS = range(4)


def closed(log, now_ms):
    """End a log with a marker after all windows have closed."""
    log.append(now_ms + 600_000, encode_marker(KEYS, PARTITION))
    return log


def reports_of(packs):
    found = Counter()
    for pack in packs:
        size = wire.report_bytes(pack.mechanism, pack.width)
        for first in range(0, len(pack.payload), size):
            row = bytes(pack.payload[first : first + size])
            found[pack.fingerprint, pack.window_start, pack.cohort, row] += 1
    return found


@cache
def grown(seed, records=300):
    source = RandomLog(seed)
    return closed(source.grow(records), source.now_ms)


@cache
def folded_whole(seed):
    return fold_log(grown(seed))


@cache
def model_of(seed):
    return Model().take(grown(seed))


def start_of(log, position):
    if position.settings == NO_SETTINGS:
        return Start(position.rewind)
    settings = decode_control(KEYS, PARTITION, log.value(position.settings))
    return Start(position.rewind, position.watermark_ms, settings, position.settings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", but_for(SEEDS, range(12), pytest.mark.nightly))
def test_packs_hold_exactly_what_the_literal_model_accepts(seed):
    folded, model = folded_whole(seed), model_of(seed)
    packs = [pack for each in folded.packs.values() for pack in each]
    assert reports_of(packs) == model.reports
    assert sum((batch.outcomes.rejected for batch in folded.batches), Counter()) == model.rejected
    assert sum(sum(batch.outcomes.reports.values()) for batch in folded.batches) == model.reports.total()
    assert len({pack.pack_id for pack in packs}) == len(packs)


@pytest.mark.slow
def test_random_logs_have_every_reason():
    found = set()
    for seed in SEEDS:
        found |= {reason for _, _, reason in model_of(seed).rejected}
    assert found == {
        *("malformed", "not_authentic", "misrouted", "unknown_collection", "bad_cohort"),
        *("too_early", "too_late", "bad_value", "duplicate"),
    }


@pytest.mark.all
@pytest.mark.parametrize(
    ("seed", "every"), [(1, 24), *(pytest.param(each, 9, marks=pytest.mark.nightly) for each in range(4))]
)
def test_same_packs_from_every_committed_position(seed, every):
    """Whatever batch was committed last, the packs that follow are the same, byte for byte."""
    log, whole = grown(seed), folded_whole(seed)
    rewinds = set()
    for position in whole.positions[seed % every :: every]:
        again = Position.of(position.position, position.metadata())
        assert again == position
        rest = fold_log(log, start_of(log, again), again.position)
        ends = [batch.end for batch in whole.batches if batch.end > position.position]
        assert [batch.end for batch in rest.batches] == ends
        for end in ends:
            assert list(map(wire.encode, rest.packs[end])) == list(map(wire.encode, whole.packs[end]))
        # Positions that it commits lead to the same packs, too, though they may rewind further.
        assert [each.position for each in rest.positions] == ends
        rewinds.add(position.rewind)
    assert len(rewinds) > 3, "the log is too short to show anything"


@pytest.mark.all
@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.nightly) for each in (1, 2))])
def test_chain_of_restarts_gives_the_same_packs(seed):
    """Each relay continues from what the one before committed, and dies after a few batches."""
    log, whole, chance = grown(seed), folded_whole(seed), random.Random(seed)
    ends = [batch.end for batch in whole.batches]
    start, after, packs, done = Start(0), -1, {}, 0
    while done < len(ends):
        done = min(done + chance.randint(3, 12), len(ends))
        read = Log([record for record in log.records if record[0] < ends[done - 1]])
        rest = fold_log(read, start, after)
        packs |= rest.packs
        start, after = start_of(log, rest.positions[-1]), rest.positions[-1].position
    assert packs == whole.packs


@pytest.mark.slow
def test_a_start_without_ids_is_found_out():
    """Continuing at the position, without reading what came before, gives other packs."""
    log, whole = grown(0), folded_whole(0)
    position = whole.positions[len(whole.positions) // 2]
    fold = Fold(PARTITION, KEYS, Start(0))
    for record in log.records:
        if record[0] < position.position:
            fold.apply(*record)
    blank = Start(position.position, fold.watermark_ms, fold.settings, 0)
    rest = fold_log(log, blank)
    assert any(rest.packs[end] != whole.packs[end] for end in rest.packs)


def settings_in_force(log):
    """Offsets of the records with settings that were in force after them."""
    fold, found = Fold(PARTITION, KEYS, Start(0)), []
    for record in log.records:
        fold.apply(*record)
        if fold.settings and fold.settings_offsets[fold.settings.revision] == record[0]:
            found.append(record[0])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3, *(pytest.param(each, marks=pytest.mark.nightly) for each in (4, 7))])
def test_without_a_position_nothing_is_packed_that_was_packed_before(seed):
    """After the group's commits and the log's beginning are gone, packs are the same ones or missing.

    As long as the first settings that are left were in force: see the limits.
    """
    log = grown(seed)
    whole = {pack.pack_id: pack for packs in folded_whole(seed).packs.values() for pack in packs}
    third = log.records[len(log.records) // 3][0]
    left = Log(log.since(next(each for each in settings_in_force(log) if each >= third)))
    rest = fold_log(left, Start(left.records[0][0]))
    packs = [pack for each in rest.packs.values() for pack in each]
    assert packs
    assert all(whole[pack.pack_id] == pack for pack in packs)
    reasons = {reason for batch in rest.batches for _, _, reason in batch.outcomes.rejected}
    assert "incomplete" in reasons


def frame(chance, intake, start, uploads, most=1):
    return encode_frame(
        [
            encode_upload(Upload(upload_id(chance), (group_of(intake, chance, start, most),)))
            for _ in range(uploads)
        ]
    )


def test_reports_leave_shuffled_among_enough_or_at_the_end_of_their_window():
    chance, log = random.Random(1), Log()
    log.append(BEGIN * 1000, encode_settings(KEYS, PARTITION, settings_of(SHORT, shuffle_reports=50)))
    for number in range(40):
        log.append(BEGIN * 1000 + number * 100, frame(chance, SHORT, BEGIN, 10))
    log.append(BEGIN * 1000 + 23_000, encode_marker(KEYS, PARTITION))
    before = fold_log(log)
    log.append(BEGIN * 1000 + 23_001, encode_marker(KEYS, PARTITION))
    folded = fold_log(log)
    releases = [each for batch in folded.batches for each in batch.releases]
    assert all(each.shuffled >= 50 for each in releases)
    assert sum(len(each.rows) for each in releases) == 400
    held = 400 - sum(len(each.rows) for batch in before.batches for each in batch.releases)
    assert 50 <= held < 100


def test_few_reports_leave_when_their_window_closes():
    chance, log = random.Random(1), Log()
    log.append(BEGIN * 1000, encode_settings(KEYS, PARTITION, settings_of(LONG, shuffle_reports=50)))
    log.append(BEGIN * 1000 + 1, frame(chance, LONG, BEGIN, 7))
    fold = Fold(PARTITION, KEYS, Start(0))
    for record in log.records:
        fold.apply(*record)
    assert fold.windows.next_close_ms() == (BEGIN + 70) * 1000
    marker = encode_marker(KEYS, PARTITION)
    assert fold.apply(2, (BEGIN + 70) * 1000, marker).releases == []
    batch = fold.apply(3, (BEGIN + 70) * 1000 + 1, marker)
    assert sum(len(each.rows) for each in batch.releases) == 7
    assert fold.windows.next_close_ms() is None
    assert fold.windows.open == {}


def test_order_is_keyed_and_covers_all_reports():
    """With another key the same reports leave in another order, under other ids."""
    chance = random.Random(3)
    records = [frame(chance, LONG, BEGIN, 200), encode_marker(KEYS, PARTITION)]
    packs = {}
    for keys in (KEYS, OTHER_KEYS):
        fold = Fold(PARTITION, keys, Start(0))
        fold.apply(0, 0, encode_settings(keys, PARTITION, settings_of(LONG, batch_reports=10**6)))
        fold.apply(1, BEGIN * 1000, records[0])
        packs[keys] = fold.apply(2, BEGIN * 1000 + 71_000, encode_marker(keys, PARTITION)).packs(keys)
    first, second = packs.values()
    assert reports_of(first) == reports_of(second)
    assert [pack.payload for pack in first] != [pack.payload for pack in second]
    assert not {pack.pack_id for pack in first} & {pack.pack_id for pack in second}


def test_packs_hold_any_values_in_any_order():
    chance, log = random.Random(4), Log()
    log.append(0, encode_settings(KEYS, PARTITION, settings_of(SHORT, pack_reports=50, batch_reports=10**6)))
    log.append(BEGIN * 1000, frame(chance, SHORT, BEGIN, 250))
    log.append(BEGIN * 1000 + 24_000, encode_marker(KEYS, PARTITION))
    (packs,) = [packs for packs in fold_log(log).packs.values() if packs]
    assert [pack.reports for pack in packs] == [50] * 5
    for pack in packs:
        buckets = wire.buckets(pack)
        assert (np.sort(buckets) != buckets).any()
        assert set(buckets.tolist()) == set(range(5))


@pytest.mark.parametrize("mechanism", wire.BUCKET_NUMBERS)
def test_buckets_without_a_counter_are_refused(mechanism):
    chance, log, intake = random.Random(4), Log(), Intake(11, mechanism, 390, 1, 20, 3)
    log.append(0, encode_settings(KEYS, PARTITION, settings_of(intake, pack_reports=50)))
    for buckets in ((389, 0), (390,), (5, 65_535)):
        rows = np.array(buckets, "<u2").tobytes()
        group = UploadGroup(intake.fingerprint, mechanism, 0, BEGIN, len(buckets), 390, rows)
        log.append(BEGIN * 1000, encode_frame([encode_upload(Upload(upload_id(chance), (group,)))]))
    log.append(BEGIN * 1000 + 24_000, encode_marker(KEYS, PARTITION))
    (_, batch) = fold_log(log).batches
    assert batch.outcomes.rejected == {(intake.fingerprint, BEGIN, "bad_value"): 2}
    assert batch.outcomes.reports == {(intake.fingerprint, BEGIN): 2}


def test_uploads_before_any_settings_are_incomplete_and_in_no_batch():
    """The first settings end them; the first batch after has the size that it has in a log without them."""
    chance = random.Random(5)
    settings = encode_settings(KEYS, PARTITION, settings_of(SHORT, batch_reports=5))
    early, uploads = frame(chance, SHORT, BEGIN, 3), frame(chance, SHORT, BEGIN, 4)
    fold = Fold(PARTITION, KEYS, Start(0))
    assert fold.apply(0, BEGIN * 1000, early) is None
    batch = fold.apply(1, BEGIN * 1000, settings)
    assert batch.outcomes.rejected == batch.outcomes.rejected_reports == {(0, 0, "incomplete"): 3}
    assert (batch.outcomes.uploads, batch.outcomes.reports) == (3, {})
    assert fold.apply(2, BEGIN * 1000, uploads) is None
    assert fold.apply(3, BEGIN * 1000, uploads).end == 4


@pytest.mark.parametrize("uploads", [(1, 1, 3), (1, 3, 2)])
def test_a_batch_ends_with_the_record_that_brings_its_reports(uploads):
    """Of five reports: at exactly five, or beyond, and so does the next one."""
    chance, fold = random.Random(6), Fold(PARTITION, KEYS, Start(0))
    fold.apply(0, BEGIN * 1000, encode_settings(KEYS, PARTITION, settings_of(SHORT, batch_reports=5)))
    records = [frame(chance, SHORT, BEGIN, number) for number in uploads * 2]
    ends = [fold.apply(1 + place, BEGIN * 1000, record) for place, record in enumerate(records)]
    assert [batch and (batch.end, batch.outcomes.uploads) for batch in ends] == [
        *(None, None, (4, sum(uploads))),
        *(None, None, (7, sum(uploads))),
    ]


def test_window_full():
    chance, log = random.Random(4), Log()
    log.append(0, encode_settings(KEYS, PARTITION, settings_of(SHORT, window_uploads=5)))
    for _ in range(3):
        log.append(BEGIN * 1000, frame(chance, SHORT, BEGIN, 5))
    log.append(BEGIN * 1000 + 24_000, encode_marker(KEYS, PARTITION))
    (_, batch) = fold_log(log).batches
    assert batch.outcomes.rejected == {(SHORT.fingerprint, BEGIN, "window_full"): 10}
    assert batch.outcomes.rejected_reports == {(SHORT.fingerprint, BEGIN, "window_full"): 10}


def test_messages(monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages) -> None:
    stranger = Fold(PARTITION, OTHER_KEYS, Start(0))
    settings = encode_settings(KEYS, PARTITION, settings_of(SHORT))
    later = encode_settings(KEYS, PARTITION, settings_of(SHORT, fold_version=2))
    with monkeypatch.context() as patch:
        patch.setattr(control, "VERSION", 2)
        marker = encode_marker(KEYS, PARTITION)
    sizes = ("batch_reports", 0), ("pack_reports", 0), ("shuffle_reports", -1)
    invalid = {
        "the window is 0": (1, 5, 1, 0, 3),
        "the width is 1": (1, 1, 1, 20, 3),
        "the mechanism is unknown": (9, 5, 1, 20, 3),
        "the grace is below 0": (1, 5, 1, 20, -1),
    }
    commits = {
        "a commit without metadata": "",
        "a commit without fields": "{}",
        "a commit of a later version": '{"v":2,"rewind":1,"ms":1,"settings":1}',
        "a commit with a version that is text": '{"v":"1"}',
    }
    pin_messages(
        {f"{name} is {value}": partial(settings_of, SHORT, **{name: value}) for name, value in sizes}
        | {what: lambda each=each: settings_of(Intake(11, *each)) for what, each in invalid.items()}
        | {what: partial(Position.of, 3, text) for what, text in commits.items()}
        | {
            "a relay with another secret": lambda: stranger.apply(0, 0, settings),
            "a record of another partition": lambda: decode_control(KEYS, 0, settings),
            "a record of a later version": lambda: decode_control(KEYS, PARTITION, marker),
            "a fold of a later version": lambda: decode_control(KEYS, PARTITION, later),
        }
    )


def test_settings_of_another_secret_change_nothing_later():
    fold = Fold(PARTITION, KEYS, Start(0))
    fold.apply(0, 0, encode_settings(KEYS, PARTITION, settings_of(SHORT)))
    assert fold.apply(1, 0, encode_settings(OTHER_KEYS, PARTITION, settings_of(LONG, revision=9))) is None
    assert list(fold.intakes.current) == [SHORT.fingerprint]
    rejected = fold.apply(2, 0, encode_marker(KEYS, PARTITION)).outcomes.rejected
    assert rejected == {(0, 0, "not_authentic"): 1}


def test_null_record_is_malformed():
    fold = Fold(PARTITION, KEYS, Start(0))
    fold.apply(0, 0, encode_settings(KEYS, PARTITION, settings_of(SHORT)))
    fold.apply(1, 0, None)
    assert fold.apply(2, 0, encode_marker(KEYS, PARTITION)).outcomes.rejected == {(0, 0, "malformed"): 1}


@given(st.lists(st.binary(max_size=60) | st.binary(max_size=60).map(lambda tail: b"DNBF\x01\x01\0" + tail)))
def test_any_records_end_no_batch_and_raise_nothing(records):
    fold = Fold(PARTITION, KEYS, Start(0))
    fold.apply(0, 0, encode_settings(KEYS, PARTITION, settings_of(SHORT)))
    assert [fold.apply(1 + each, 0, value) for each, value in enumerate(records)] == [None] * len(records)
    assert sum(fold.apply(999, 0, encode_marker(KEYS, PARTITION)).outcomes.rejected.values()) == len(records)


def test_retired_collection_does_not_return():
    """Neither by settings that list it again, nor by ones that forget that it ended."""
    fold = Fold(PARTITION, KEYS, Start(0))
    retired = (LONG.fingerprint,)
    settings = [
        settings_of(SHORT, LONG),
        settings_of(SHORT, revision=2),
        settings_of(SHORT, revision=3, retired=retired),
        settings_of(SHORT, LONG, revision=4),
        settings_of(SHORT, LONG, revision=5, retired=retired),
        settings_of(SHORT, revision=6, retired=retired),
    ]
    for offset, each in enumerate(settings):
        fold.apply(offset, 0, encode_settings(KEYS, PARTITION, each))
    assert fold.settings == settings[-1]
    assert fold.settings_offsets == {1: 0, 3: 2, 6: 5}


def test_grace_of_a_window_that_has_begun_does_not_change():
    fold = Fold(PARTITION, KEYS, Start(0))
    longer = Intake(11, wire.KRR_NUMBER, 5, 1, 20, 100)
    fold.apply(0, BEGIN * 1000, encode_settings(KEYS, PARTITION, settings_of(SHORT)))
    fold.apply(1, BEGIN * 1000, encode_settings(KEYS, PARTITION, settings_of(longer, revision=2)))
    assert fold.intakes.closes_ms(longer, BEGIN + 300) == (BEGIN + 323) * 1000
    assert fold.intakes.closes_ms(longer, BEGIN + 320) == (BEGIN + 440) * 1000


@pytest.mark.parametrize("mechanism", wire.BUCKET_NUMBERS)
def test_buckets_without_a_counter_are_rejected(mechanism):
    """Of every mechanism whose reports are buckets: 300 of them in two bytes."""
    intake = Intake(12, mechanism, 300, 1, 60, 3)
    chance, log, packs = random.Random(1), Log(), []
    log.append(BEGIN * 1000, encode_settings(KEYS, PARTITION, settings_of(intake)))
    for bucket in (299, 300, 0):
        numbers = (intake.fingerprint, mechanism, 0, BEGIN, 1, intake.width)
        group = UploadGroup(*numbers, bucket.to_bytes(2, "little"))
        log.append(BEGIN * 1000 + 1, encode_frame([encode_upload(Upload(upload_id(chance), (group,)))]))
    folded = fold_log(closed(log, BEGIN * 1000))
    for each in folded.packs.values():
        packs += each
    assert sorted(row for _, _, _, row in reports_of(packs).elements()) == [b"\x00\x00", b"+\x01"]
    rejected = sum((batch.outcomes.rejected for batch in folded.batches), Counter())
    assert rejected == {(12, BEGIN, "bad_value"): 1}
