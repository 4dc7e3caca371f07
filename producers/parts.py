"""A batch in parts: how much is randomized, queued and stored at once."""

from collections.abc import Iterator

from estimators.mechanisms.mechanism import Mechanism
from producers.client_keys import CLIENT_KEY_BYTES
from producers.wire import mechanism_number, report_bytes

PART_REPORTS = 65_536
PART_BYTES = 4 * 2**20
# What a report takes in the queue beside its own bytes: window, cohort, key of its client.
QUEUED_BYTES = 8 + 2 + CLIENT_KEY_BYTES


def parts(mechanism: Mechanism, count: int) -> Iterator[slice]:
    """Slices of `count` values whose reports are small enough for the queue."""
    size = report_bytes(mechanism_number(mechanism), mechanism.width) + QUEUED_BYTES
    step = min(PART_REPORTS, PART_BYTES // size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
