"""Where a relay begins with a partition: at what its commit names, if the log still has that.

Rule: a relay continues from a commit only with the log that the commit is of. If that log ends before the
committed position, new uploads come at offsets whose packs were sent already, and their packs could get the
same ids: so the relay refuses. One answer is no proof: a leader that was replaced, or has just begun, may
know of less. It is asked again for longer than a broker's session lasts.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from deniable.protocol.uploads.relay_position import NO_SETTINGS, Position
from deniable.relay.control import RelaySettings, decode_control
from deniable.relay.fold import Start
from deniable.relay.keys import RelayKeys
from deniable.relay.service.errors import RelayError

CUT_SECONDS = 60.0
AGAIN_SECONDS = 1.0


class UploadLog(Protocol):
    """What the brokers know of a partition of `uploads`."""

    async def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset, and the one after the last."""

    async def committed(self, partition: int) -> tuple[int, str] | None:
        """Return the position and its metadata; None without a commit."""

    async def value_at(self, partition: int, offset: int) -> bytes | None:
        """Return the value of this record; None if the log no longer has it."""


@dataclass(frozen=True)
class Opening:
    """Where a partition begins.

    Parameters
    ----------
    start : of the fold.
    after : batches that end later are sent.
    end : of the log now.
    loss : what is lost, and why; empty if nothing is.
    """

    start: Start
    after: int
    end: int
    loss: str = ""


async def open_partition(log: UploadLog, partition: int, keys: RelayKeys) -> Opening:
    """Find where to begin.

    Raises
    ------
    RelayError if the commit is of another log or version; ControlError if a newer relay wrote the log; what
    `log` raises.
    """
    until = time.monotonic() + CUT_SECONDS
    while True:
        if found := await _opened(log, partition, keys, is_sure=time.monotonic() >= until):
            return found
        await asyncio.sleep(AGAIN_SECONDS)


async def _opened(log: UploadLog, partition: int, keys: RelayKeys, *, is_sure: bool) -> Opening | None:
    """Return where to begin; None if a broker lacks what was committed, and that is not sure yet."""
    held = await log.committed(partition)  # first: retention continues
    first, end = await log.bounds(partition)
    if held is None or not held[1]:
        why = "" if first == 0 else _cut(first, "no position is committed for it")
        return Opening(Start(first), -1, end, why)
    position = _position(partition, *held)
    if position.position > end:
        if is_sure:
            raise _cut_off(partition, position.position, end)
        return None
    if position.rewind < first:
        why = _cut(first, f"the relay must read it from offset {position.rewind} on")
        return Opening(Start(first), position.position, end, why)
    if position.settings == NO_SETTINGS:
        return Opening(Start(position.rewind, position.watermark_ms), position.position, end)
    settings = await _settings(log, partition, position.settings, keys)
    if settings is None and position.settings >= first and not is_sure:
        return None
    if settings is None:
        why = _cut(first, f"the settings at offset {position.settings} are needed")
        return Opening(Start(first), position.position, end, why)
    start = Start(position.rewind, position.watermark_ms, settings, position.settings)
    return Opening(start, position.position, end)


def _cut_off(partition: int, position: int, end: int) -> RelayError:
    return RelayError(
        f"uploads partition {partition} ends at offset {end}, but a relay has read it to {position}: "
        "acknowledged records were lost, or the topic was created again. If a broker still holds them, let "
        "it lead, and start this relay again. If none does, packs of new uploads could get ids that workers "
        "know already: end all relays, delete the records that are left (kafka-delete-records.sh), reset the "
        "group's offsets to the end, and give all relays a new secret"
    )


def _cut(first: int, why: str) -> str:
    return (
        f"records before offset {first} are deleted, but {why}: reports that were held back are lost, and "
        "uploads for windows that have begun are rejected as incomplete"
    )


def _position(partition: int, offset: int, metadata: str) -> Position:
    try:
        return Position.of(offset, metadata)
    except ValueError as error:
        raise RelayError(
            f"uploads partition {partition}: {error}; upgrade this relay, or reset the group's offsets to "
            "begin at the first record that is left"
        ) from None


async def _settings(log: UploadLog, partition: int, offset: int, keys: RelayKeys) -> RelaySettings | None:
    value = await log.value_at(partition, offset)
    if value is None:
        return None
    try:
        return decode_control(keys, partition, value)
    except ValueError:
        raise RelayError(
            f"uploads partition {partition}: the settings at offset {offset} were written with "
            "another secret; "
            "all relays of a deployment must have the same one: replace the one here by a copy of theirs"
        ) from None
