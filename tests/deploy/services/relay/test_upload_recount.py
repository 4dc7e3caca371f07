"""The recount of uploads: packs that must count, and those that do not, by window and reason."""

from types import SimpleNamespace
from typing import Any

import pytest

from deniable.deploy.services.relay.upload_recount import PackJudge, UploadRecount, recount_uploads
from deniable.protocol import wire
from deniable.relay.fold import Fold, Start
from tests.support.relay.logs import KEYS, PARTITION, Log, RandomLog, fold_log


@pytest.fixture(scope="module")
def log() -> Log:
    return RandomLog(2).grow(160)


@pytest.fixture(scope="module")
def sent(log: Log) -> dict[int, list[wire.Pack]]:
    """Packs of a relay, by the end of their batch."""
    return fold_log(log).packs


@pytest.fixture(scope="module")
def packs(sent: dict[int, list[wire.Pack]]) -> list[wire.Pack]:
    return [pack for each in sent.values() for pack in each]


@pytest.fixture(scope="module")
def whole(log: Log) -> UploadRecount:
    """The recount of all that is committed."""
    return recount(log)


def stored(log: Log, first: int = 0) -> list[Any]:
    return [
        SimpleNamespace(offset=offset, timestamp=append_ms, value=value)
        for offset, append_ms, value in log.since(first)
    ]


def recount(log: Log, committed: int | None = None, first: int = 0) -> UploadRecount:
    until = log.offset if committed is None else committed
    return recount_uploads(PARTITION, KEYS, first, stored(log, first), until)


def judged(whole: UploadRecount, packs: list[wire.Pack]) -> PackJudge:
    judge = PackJudge(whole)
    for pack in packs:
        judge.counted(pack, wire.encode(pack))
    return judge


def changed(pack: wire.Pack, **other: object) -> wire.Pack:
    return wire.Pack(**{name: getattr(pack, name) for name in pack.__slots__} | other)


@pytest.mark.slow
def test_all_packs_of_a_relay_are_expected_and_nothing_else(
    whole: UploadRecount, packs: list[wire.Pack]
) -> None:
    """Accepted reports are packed or held; packs of producers are counted apart."""
    assert whole.packs.keys() == {pack.pack_id for pack in packs}
    judge = judged(whole, packs)
    reports = sum(pack.reports for pack in packs)
    assert (judge.missing().difference, judge.missing().expected.total()) == (0, reports)
    assert judge.other_reports == 0
    assert reports == sum(pack.reports for pack in whole.packs.values())
    assert reports < whole.reports <= reports + whole.held.total()
    assert whole.rejected["duplicate"] > 0
    assert (whole.whole_after_ms, whole.without_settings) == (-1, ())
    assert judged(whole, [changed(packs[0], pack_id=bytes(16))]).other_reports == packs[0].reports


@pytest.mark.slow
def test_batches_that_are_not_committed_need_not_be_sent_and_are_held(
    log: Log, sent: dict[int, list[wire.Pack]], whole: UploadRecount
) -> None:
    ends = list(sent)
    found = [recount(log, committed) for committed in (0, ends[len(ends) // 2])]
    assert [len(each.packs) for each in found] < [len(each.packs) for each in (*found[1:], whole)]
    sums = {sum(pack.reports for pack in each.packs.values()) + each.held.total() for each in (*found, whole)}
    assert len(sums) == 1


@pytest.mark.slow
def test_missing_packs_are_named_by_window_and_reason(whole: UploadRecount, packs: list[wire.Pack]) -> None:
    absent, first, late, *others = packs
    judge = judged(whole, others)
    other = changed(first, payload=bytes(len(first.payload)))
    assert other.payload != first.payload
    judge.counted(other, wire.encode(other))
    judge.rejected(wire.encode(late), "too_late")
    judge.rejected(wire.encode(others[0]), "duplicate")  # it was counted before
    judge.rejected(b"no pack", "malformed")
    missing = judge.missing()
    assert missing.difference == absent.reports + first.reports + late.reports
    found = {reason: count for each in missing.reports.values() for reason, count in each.items()}
    assert found.keys() == {"absent", "changed", "too_late"}
    assert missing.reports.keys() == {(pack.fingerprint, pack.window_start) for pack in (absent, first, late)}


@pytest.mark.slow
def test_windows_that_lack_deleted_uploads_are_not_judged() -> None:
    """A relay that began before the deletion sent packs of these windows; none is expected.

    Of a log in whose second half no collection begins, nor returns.
    """
    log = RandomLog(13).grow(240)
    first, append_ms, _ = log.records[120]
    found = recount(log, first=first)
    assert found.whole_after_ms > append_ms
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
