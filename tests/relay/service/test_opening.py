"""Where a relay begins, by its commit and by what is left of the log."""

import asyncio
from collections.abc import Mapping

import pytest

from deniable.protocol.uploads.relay_position import NO_SETTINGS, Position
from deniable.relay.control import encode_settings
from deniable.relay.fold import Start
from deniable.relay.service import opening
from deniable.relay.service.opening import Opening, open_partition
from tests.support.messages import PinMessages
from tests.support.relay.logs import KEYS, LONG, OTHER_KEYS, PARTITION, SHORT, settings_of

SETTINGS = settings_of(SHORT, LONG)
AT = 40
COMMIT = Position(100, 60, 5000, AT)


class FakeLog:
    """A log with these bounds, this commit and these records."""

    def __init__(
        self,
        bounds: tuple[int, int],
        commit: Position | tuple[int, str] | None = None,
        records: Mapping[int, bytes] | None = None,
    ) -> None:
        self._bounds, self._records = bounds, records or {}
        self._commit = (commit.position, commit.metadata()) if isinstance(commit, Position) else commit

    async def bounds(self, partition: int) -> tuple[int, int]:
        return self._bounds

    async def committed(self, partition: int) -> tuple[int, str] | None:
        return self._commit

    async def value_at(self, partition: int, offset: int) -> bytes | None:
        return self._records.get(offset)


def opened(log: FakeLog) -> Opening:
    return asyncio.run(open_partition(log, PARTITION, KEYS))


def test_an_empty_or_whole_log_without_a_commit_is_read_from_its_start() -> None:
    assert opened(FakeLog((0, 0))) == Opening(Start(0), -1, 0)
    assert opened(FakeLog((0, 9))) == Opening(Start(0), -1, 9)


@pytest.mark.parametrize("commit", [None, (80, "")])
def test_without_a_commit_deleted_records_are_a_loss(commit: tuple[int, str] | None) -> None:
    """Tools that move a group's position leave its metadata empty."""
    found = opened(FakeLog((7, 90), commit))
    assert (found.start, found.after) == (Start(7), -1)
    assert "offset 7 " in found.loss


def test_a_commit_names_where_to_begin_and_the_settings_there() -> None:
    log = FakeLog((0, 200), COMMIT, {AT: encode_settings(KEYS, PARTITION, SETTINGS)})
    assert opened(log) == Opening(Start(60, 5000, SETTINGS, AT), 100, 200)


def test_a_commit_of_a_fold_that_has_met_no_settings_needs_none() -> None:
    assert opened(FakeLog((0, 200), Position(9, 0, -1, NO_SETTINGS))) == Opening(Start(0), 9, 200)


@pytest.mark.parametrize(("first", "records"), [(61, {AT: b""}), (50, {})])
def test_a_log_that_lost_what_the_commit_names_is_read_from_its_first_record(
    first: int, records: Mapping[int, bytes]
) -> None:
    """Batches that were sent are not sent again."""
    found = opened(FakeLog((first, 200), COMMIT, records))
    assert (found.start, found.after) == (Start(first), 100)
    assert f"offset {first} " in found.loss


@pytest.mark.parametrize("stale", [FakeLog((0, 99), COMMIT), FakeLog((0, 200), COMMIT, {})])
def test_what_one_broker_lacks_is_asked_for_again(stale: FakeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was replaced, say, and lacks the committed records, or those with the settings."""
    whole, asked = FakeLog((0, 200), COMMIT, {AT: encode_settings(KEYS, PARTITION, SETTINGS)}), 0

    class Cluster(FakeLog):
        async def committed(self, partition: int) -> tuple[int, str] | None:
            nonlocal asked
            asked += 1
            return await super().committed(partition)

        async def bounds(self, partition: int) -> tuple[int, int]:
            return await (stale if asked < 3 else whole).bounds(partition)

        async def value_at(self, partition: int, offset: int) -> bytes | None:
            return await (stale if asked < 3 else whole).value_at(partition, offset)

    monkeypatch.setattr(opening, "CUT_SECONDS", 60.0)
    monkeypatch.setattr(opening, "AGAIN_SECONDS", 0.0)
    assert opened(Cluster((0, 0), COMMIT)) == Opening(Start(60, 5000, SETTINGS, AT), 100, 200)
    assert asked == 3


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "CUT_SECONDS", 0.0)


def test_messages(pin_messages: PinMessages) -> None:
    """After a log that is shorter than the commit, new packs could get ids that workers have counted."""
    later = (100, '{"v":2,"rewind":0,"ms":0,"settings":0}')
    other = {AT: encode_settings(OTHER_KEYS, PARTITION, SETTINGS)}
    pin_messages(
        {
            "the log is shorter than the commit": lambda: opened(FakeLog((0, 99), COMMIT)),
            "a commit of a later version": lambda: opened(FakeLog((0, 200), later)),
            "settings of another secret": lambda: opened(FakeLog((0, 200), COMMIT, other)),
            "no commit, and records are deleted": lambda: opened(FakeLog((7, 90))).loss,
            "the records of the commit are deleted": lambda: opened(FakeLog((61, 200), COMMIT)).loss,
            "the settings of the commit are deleted": lambda: opened(FakeLog((50, 200), COMMIT, {})).loss,
        }
    )
