"""Speed of the pure parts on one core: decode, fold and pack.

python -m tests.support.relay.speed [--ids MILLIONS]

Prints reports per second for uploads of one report and of ten, frames of 256; with --ids, what that many
upload ids of one window cost, and how fast a relay that starts has them again: from rows, or from the log.
"""

import argparse
import random
import resource
import time
from collections.abc import Sequence

import numpy as np
from crc32c import crc32c

from deniable.protocol import wire
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.id_set import IdSet
from deniable.protocol.uploads.upload import Upload, UploadGroup, encode_upload
from deniable.relay.control import Intake, RelaySettings, encode_marker, encode_settings
from deniable.relay.fold import Fold, Start
from tests.support.relay.logs import BEGIN, KEYS

KRR = Intake(11, wire.KRR_NUMBER, 100, 1, 3600, 60)
RAPPOR = Intake(12, wire.RAPPOR_NUMBER, 128, 8, 3600, 60)
SETTINGS = RelaySettings(
    revision=1,
    partitions=1,
    batch_reports=50_000,
    shuffle_reports=10_000,
    pack_reports=1000,
    window_uploads=20_000_000,
    key_check=KEYS.check,
    collections=(KRR, RAPPOR),
)
FRAMES = 400
UPLOADS = 256


def frames(intake: Intake, reports: int, count: int = FRAMES) -> list[bytes]:
    chance = random.Random(1)
    size = wire.report_bytes(intake.mechanism, intake.width)

    def upload() -> bytes:
        rows = chance.randbytes(reports * size)
        if intake is KRR:
            rows = bytes(each % intake.width for each in rows)
        cohort = chance.randrange(intake.cohorts)
        numbers = (intake.fingerprint, intake.mechanism, cohort, BEGIN, reports, intake.width)
        return encode_upload(Upload(chance.randbytes(16), (UploadGroup(*numbers, rows),)))

    return [encode_frame([upload() for _ in range(UPLOADS)]) for _ in range(count)]


def fold(records: Sequence[bytes], sends: bool = True) -> tuple[float, int]:
    """Return processor seconds for a log, and the reports packed."""
    one = Fold(0, KEYS, Start(0))
    one.apply(0, 0, encode_settings(KEYS, 0, SETTINGS))
    began, packed = time.process_time(), 0
    marker = (len(records) + 1, (BEGIN + 9999) * 1000, encode_marker(KEYS, 0))
    for record in [*((1 + each, BEGIN * 1000, value) for each, value in enumerate(records)), marker]:
        batch = one.apply(*record)
        if batch is not None and sends:
            for pack in batch.packs(KEYS):
                packed += pack.reports
                wire.encode(pack)
    return time.process_time() - began, packed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ids", type=int, default=0)
    millions = parser.parse_args().ids
    for name, intake in (("k-RR of 100 values", KRR), ("RAPPOR of 128 bits, 8 cohorts", RAPPOR)):
        for reports in (1, 10):
            records = frames(intake, reports)
            seconds = min(fold(records)[0] for _ in range(3))
            total = FRAMES * UPLOADS * reports
            print(f"{name}, uploads of {reports}: {total / seconds:,.0f} reports/s")  # noqa: T201
    if millions:
        ids_of(millions)


def ids_of(millions: int) -> None:
    """Print what this many ids cost, from sorted rows and from the log."""
    count, words = millions * 1_000_000, np.random.default_rng(1)
    ids, began = IdSet(), time.process_time()
    for _ in range(count // UPLOADS):
        ids.add(np.sort(words.integers(0, 2**64, UPLOADS, np.uint64)), np.zeros(UPLOADS, np.uint64))
    added = time.process_time() - began
    low = [np.sort(words.integers(0, 2**64, UPLOADS, np.uint64)) for _ in range(300)]
    began = time.process_time()
    for each in low:
        ids.holds(each, each)
    looked = (time.process_time() - began) / (300 * UPLOADS) * 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{millions} M ids: added in {added:.1f} s, {looked:.2f} us a look-up, {peak:.0f} MiB")  # noqa: T201
    rows, began = words.integers(0, 2**64, (count, 2), np.uint64), time.process_time()
    _ = rows[rows[:, 0].argsort()]
    print(f"from rows: {time.process_time() - began:.1f} s")  # noqa: T201
    print(f"from the log: {_log_seconds(count):.1f} s")  # noqa: T201


def _log_seconds(count: int) -> float:
    """Return the processor seconds in which a fold takes this many uploads of one k-RR report."""
    (frame,) = frames(KRR, 1, 1)
    head, body = frame[: -55 * UPLOADS], np.frombuffer(frame[-55 * UPLOADS :], np.uint8).reshape(UPLOADS, 55)
    words, one, seconds = np.random.default_rng(1), Fold(0, KEYS, Start(0)), 0.0
    one.apply(0, 0, encode_settings(KEYS, 0, SETTINGS))
    for number in range(count // UPLOADS):
        uploads = body.copy()
        uploads[:, 7:23] = words.integers(0, 256, (UPLOADS, 16), np.uint8)
        sums = [crc32c(row) for row in uploads[:, :51].copy()]
        uploads[:, 51:] = np.array(sums, "<u4").view(np.uint8).reshape(-1, 4)
        record = head + uploads.tobytes()
        began = time.process_time()
        one.apply(1 + number, BEGIN * 1000, record)
        seconds += time.process_time() - began
    return seconds


if __name__ == "__main__":
    main()
