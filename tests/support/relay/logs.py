"""Random logs of uploads, in memory, with everything that a fold distinguishes."""

import random
from dataclasses import dataclass, field
from typing import Any

from deniable.protocol import wire
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.relay_position import Position
from deniable.protocol.uploads.upload import Upload, UploadGroup, encode_upload
from deniable.relay.control import Intake, RelaySettings, encode_marker, encode_settings
from deniable.relay.fold import Fold, RelayBatch, Start
from deniable.relay.keys import RelayKeys
from deniable.relay.recovery import Ends

KEYS = RelayKeys(Secret(bytes(range(32))))
OTHER_KEYS = RelayKeys(Secret(bytes(32)))
PARTITION = 1
PARTITIONS = 2
BEGIN = 1_767_225_600  # a multiple of all windows below
SHORT = Intake(11, wire.KRR_NUMBER, 5, 1, 20, 3)
LONG = Intake(2**64 - 20, wire.RAPPOR_NUMBER, 16, 4, 60, 10)
LATER = Intake(13, wire.LONGITUDINAL_KRR_NUMBER, 300, 2, 30, 0)


def settings_of(*collections: Intake, revision: int = 1, **changed: Any) -> RelaySettings:
    """Return settings with small limits."""
    limits = {"batch_reports": 40, "shuffle_reports": 6, "pack_reports": 4, "window_uploads": 10_000}
    return RelaySettings(
        revision=revision,
        partitions=PARTITIONS,
        key_check=KEYS.check,
        collections=collections,
        **limits | changed,
    )


@dataclass
class Log:
    """Records of one partition, as (offset, append time in ms, value); some offsets are left out."""

    records: list[tuple[int, int, bytes]] = field(default_factory=list)
    offset: int = 0

    def append(self, append_ms: int, value: bytes) -> int:
        self.records.append((self.offset, append_ms, value))
        self.offset += 1
        return self.offset - 1

    def since(self, offset: int) -> list[tuple[int, int, bytes]]:
        return [record for record in self.records if record[0] >= offset]

    def value(self, offset: int) -> bytes:
        return next(value for place, _, value in self.records if place == offset)


def group_of(intake: Intake, chance: random.Random, window_start: int, most: int = 3) -> UploadGroup:
    """Return a group of random reports."""
    reports = chance.randint(1, most)
    size = wire.report_bytes(intake.mechanism, intake.width)
    if intake.mechanism == wire.RAPPOR_NUMBER:
        rows = chance.randbytes(reports * size)
    else:
        values = [chance.randrange(intake.width) for _ in range(reports)]
        rows = b"".join(each.to_bytes(size, "little") for each in values)
    cohort = chance.randrange(intake.cohorts)
    numbers = (intake.fingerprint, intake.mechanism, cohort, window_start, reports, intake.width)
    return UploadGroup(*numbers, rows)


def upload_id(chance: random.Random, partition: int = PARTITION) -> bytes:
    """Return a random id of this partition."""
    low = chance.getrandbits(63) // PARTITIONS * PARTITIONS + partition
    return low.to_bytes(8, "little") + chance.randbytes(8)


class RandomLog:
    """Grows a log by one record after the other.

    Parameters
    ----------
    seed : decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.log = Log()
        self.now_ms = BEGIN * 1000
        self.settings = settings_of(SHORT, LONG)
        self.sent: list[Upload] = []
        self.log.append(self.now_ms, encode_settings(KEYS, PARTITION, self.settings))

    def grow(self, records: int) -> Log:
        for _ in range(records):
            self.now_ms += self.chance.choice((0, 50, 1000, 2000, 8000))
            self.log.offset += self.chance.random() < 0.05  # a hole
            # Brokers' clocks differ, so append times go back a little now and then.
            append_ms = self.now_ms - self.chance.choice((0, 0, 0, 400))
            self.log.append(append_ms, self._record())
        return self.log

    def _record(self) -> bytes:
        kind = self.chance.random()
        if kind < 0.03:
            return encode_marker(KEYS, PARTITION)
        if kind < 0.05:
            return encode_settings(KEYS, PARTITION, self.settings)
        if kind < 0.07:
            return encode_settings(KEYS, PARTITION, self._changed())
        if kind < 0.08:
            return self.chance.choice((b"", b"DNBF\x01", encode_marker(OTHER_KEYS, PARTITION)))
        return encode_frame([self._upload() for _ in range(self.chance.randint(1, 6))])

    def _changed(self) -> RelaySettings:
        chance = self.chance
        if chance.random() < 0.2:
            return settings_of(revision=self.settings.revision - 1)  # of a relay with a former file
        if chance.random() < 0.2:
            return settings_of(LATER, revision=self.settings.revision + 9)  # forgets what has ended
        retired = {*self.settings.retired}
        former = {each.fingerprint for each in self.settings.collections} - retired
        added = {chance.choice((SHORT, LONG, LATER)).fingerprint} - retired
        ended = {each for each in former if chance.random() < 0.05}
        collections = [
            Intake(*(*_fields(each)[:-1], chance.choice((0, 3, 20))))
            for each in (SHORT, LONG, LATER)
            if each.fingerprint in (former | added) - ended
        ]
        self.settings = settings_of(
            *collections,
            revision=self.settings.revision + 1,
            batch_reports=chance.choice((10, 40)),
            shuffle_reports=chance.choice((0, 6)),
            retired=tuple(sorted(retired | ended)),
        )
        return self.settings

    def _upload(self) -> bytes:
        chance = self.chance
        kind = chance.random()
        if self.sent and kind < 0.15:
            return encode_upload(chance.choice(self.sent[-40:]))
        if kind < 0.2:
            return chance.randbytes(chance.randint(1, 80))
        groups = tuple(self._group() for _ in range(chance.choice((1, 1, 1, 2, 5))))
        used = [each.upload_id for each in self.sent[-40:]]
        if used and kind < 0.25:
            return encode_upload(Upload(chance.choice(used), groups))  # other reports under a known id
        upload = Upload(upload_id(chance, PARTITION if kind < 0.97 else 0), groups)
        self.sent.append(upload)
        return encode_upload(upload)

    def _group(self) -> UploadGroup:
        chance = self.chance
        intake = chance.choice((SHORT, SHORT, LONG, LATER))
        seconds = self.now_ms // 1000 + chance.choice((0, 0, 0, 0, -10, -40, 100, 400))
        start = seconds - seconds % intake.window_seconds + (chance.random() < 0.02)
        group = group_of(intake, chance, start)
        if chance.random() > 0.06:
            return group
        numbers = [group.fingerprint, group.mechanism, group.cohort, start, group.reports, group.width]
        wrong = chance.choice((None, 0, 2))
        if wrong is None:
            return UploadGroup(*numbers, b"\xff" * len(group.rows))
        numbers[wrong] += 9
        return UploadGroup(*numbers, group.rows)


def _fields(intake: Intake) -> tuple[int, ...]:
    return tuple(getattr(intake, name) for name in intake.__struct_fields__)


@dataclass
class Folded:
    """Batches of a log, the packs of each, and the position to commit after it."""

    batches: list[RelayBatch] = field(default_factory=list)
    packs: dict[int, list[wire.Pack]] = field(default_factory=dict)
    positions: list[Position] = field(default_factory=list)


def fold_log(log: Log, start: Start | None = None, after: int = -1) -> Folded:
    """Fold a log from `start`; keep batches that end beyond `after`."""
    begin = start or Start(0)
    fold, ends, folded = Fold(PARTITION, KEYS, begin), Ends(begin), Folded()
    for record in log.since(begin.offset):
        batch = fold.apply(*record)
        if batch is None:
            continue
        position = ends.passed(batch, fold)
        if batch.end > after:
            folded.batches.append(batch)
            folded.packs[batch.end] = batch.packs(KEYS)
            folded.positions.append(position)
    return folded
