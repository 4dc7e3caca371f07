"""The recount of uploads: packs that must count, and those that do not, by window and reason."""

from types import SimpleNamespace
from typing import Any

import pytest

from deploy.services.relay.upload_recount import PackJudge, UploadRecount, recount_uploads
from producers import wire
from relay.fold import Fold, Start
from tests.support.relay.logs import KEYS, PARTITION, Log, RandomLog, fold_log

RECORDS = 400


@pytest.fixture(scope="module")
def log() -> Log:
    return RandomLog(4).grow(RECORDS)


def stored(log: Log, first: int = 0) -> list[Any]:
    return [
        SimpleNamespace(offset=offset, timestamp=append_ms, value=value)
        for offset, append_ms, value in log.since(first)
    ]


def recount(log: Log, committed: int | None = None, first: int = 0) -> UploadRecount:
    until = log.offset if committed is None else committed
    return recount_uploads(PARTITION, KEYS, first, stored(log, first), until)


def packs_of(log: Log) -> list[wire.Pack]:
    return [pack for each in fold_log(log).packs.values() for pack in each]


def judged(log: Log, packs: list[wire.Pack]) -> PackJudge:
    judge = PackJudge(recount(log))
    for pack in packs:
        judge.counted(pack, wire.encode(pack))
    return judge


@pytest.mark.slow
def test_all_packs_of_a_relay_are_expected_and_nothing_else(log: Log) -> None:
    packs = packs_of(log)
    assert recount(log).packs.keys() == {pack.pack_id for pack in packs}
    judge = judged(log, packs)
    assert judge.missing().difference == 0
    assert judge.missing().expected.total() == sum(pack.reports for pack in packs)
    assert judge.other_reports == 0


def test_accepted_reports_are_packed_or_held(log: Log) -> None:
    found = recount(log)
    packed = sum(pack.reports for pack in found.packs.values())
    assert packed < found.reports <= packed + found.held.total()
    assert found.rejected["duplicate"] > 0
    assert (found.whole_after_ms, found.without_settings) == (-1, ())


@pytest.mark.slow
def test_batches_that_are_not_committed_need_not_be_sent(log: Log) -> None:
    ends = list(fold_log(log).packs)
    half = recount(log, committed=ends[len(ends) // 2])
    assert 0 < len(half.packs) < len(recount(log).packs)


@pytest.mark.slow
def test_reports_that_leave_in_batches_that_are_not_committed_are_held(log: Log) -> None:
    ends = list(fold_log(log).packs)
    sums = set()
    for committed in (0, *ends[:: len(ends) // 8], ends[-1]):
        found = recount(log, committed)
        sums.add(sum(pack.reports for pack in found.packs.values()) + found.held.total())
    assert len(sums) == 1


@pytest.mark.slow
def test_missing_packs_are_named_by_window_and_reason(log: Log) -> None:
    absent, changed, late, *others = packs_of(log)
    judge = judged(log, others)
    payload = bytes(len(changed.payload))
    fields = {name: getattr(changed, name) for name in changed.__slots__}
    other = wire.Pack(**fields | {"payload": payload})
    assert other.payload != changed.payload
    judge.counted(other, wire.encode(other))
    judge.rejected(wire.encode(late), "too_late")
    judge.rejected(wire.encode(others[0]), "duplicate")  # it was counted before
    judge.rejected(b"no pack", "malformed")
    missing = judge.missing()
    assert missing.difference == absent.reports + changed.reports + late.reports
    found = {reason: count for each in missing.reports.values() for reason, count in each.items()}
    assert found.keys() == {"absent", "changed", "too_late"}
    assert missing.reports.keys() == {
        (pack.fingerprint, pack.window_start) for pack in (absent, changed, late)
    }


@pytest.mark.slow
def test_packs_of_producers_are_counted_apart(log: Log) -> None:
    pack = packs_of(log)[0]
    fields = {name: getattr(pack, name) for name in pack.__slots__}
    judge = judged(log, [wire.Pack(**fields | {"pack_id": bytes(16)})])
    assert judge.other_reports == pack.reports


def test_windows_that_lack_deleted_uploads_are_not_judged(log: Log) -> None:
    """A relay that began before the deletion sent packs of these windows; none is expected."""
    first = log.records[RECORDS // 2][0]
    found = recount(log, first=first)
    assert found.whole_after_ms > log.records[RECORDS // 2][1]
    assert found.packs
    assert all(pack.window[1] * 1000 > found.whole_after_ms for pack in found.packs.values())
    assert found.packs.keys() <= recount(log).packs.keys()


def test_a_log_without_settings_cannot_be_judged() -> None:
    log = Log()
    log.append(1, b"DNBF")
    found = recount(log)
    assert found.without_settings == (PARTITION,)
    total = UploadRecount()
    total.add(found)
    total.add(UploadRecount())
    assert total.without_settings == (PARTITION,)
    assert Fold(PARTITION, KEYS, Start(0)).whole_after_ms == -1
