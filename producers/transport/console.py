"""Print packs instead of sending them: what would leave this machine, and nothing leaves it."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TextIO

from deniable.estimators.collection import OTHER_LABEL, Collection
from deniable.producers.errors import HopelessError
from deniable.producers.transport.packs import Outcome, OutgoingPack
from deniable.protocol.wire import (
    KRR_NUMBER,
    LONGITUDINAL_KRR_NUMBER,
    MAX_RECORD_BYTES,
    Pack,
    decode,
    shown_reports,
)


def shown_pack(pack: Pack, collection: Collection) -> dict[str, object]:
    """Return all that a pack says, but its random id: every field is randomized or the same for all values.

    The reports of k-RR are values in words; those of others are buckets, or bits in hexadecimal.
    """
    reports = shown_reports(pack)
    if pack.mechanism in (KRR_NUMBER, LONGITUDINAL_KRR_NUMBER):
        labels = [*collection.labels(), OTHER_LABEL]
        reports = [labels[int(each)] for each in reports]
    return {
        "collection": collection.name,
        "window": f"{datetime.fromtimestamp(pack.window_start, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "mechanism": collection.mechanism.name,
        "cohort": pack.cohort,
        "reports": reports,
    }


class ConsoleDelivery:
    """Takes packs as `Delivery` does, prints each as one JSON line, and acknowledges it. Not thread-safe.

    Parameters
    ----------
    stream : for the lines.
    collections : by fingerprint.
    wake : called when there is an outcome to read.
    """

    def __init__(
        self, stream: TextIO, collections: Mapping[int, Collection], wake: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._collections = collections
        self._wake = wake
        self._acknowledged: dict[int, int] = {}
        self._lost: set[int] = set()
        self.trouble: HopelessError | None = None

    def start(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def room(self) -> int:
        """Return the bytes that may be sent now."""
        return 0 if self.trouble else 4 * MAX_RECORD_BYTES

    def send(self, packs: Iterable[OutgoingPack]) -> None:
        """Print packs."""
        for each in packs:
            line = json.dumps(shown_pack(decode(each.record), self._collections[each.fingerprint]))
            try:
                print(line, file=self._stream, flush=True)
            except (OSError, ValueError) as error:  # a reader that is gone, or a closed stream
                reason = getattr(error, "strerror", None) or error
                self.trouble = HopelessError(f"what would leave cannot be printed: {reason}")
                self._lost.add(each.number)
            else:
                self._acknowledged[each.number] = time.time_ns() // 1_000_000
        self._wake()

    def outcome(self) -> Outcome:
        """Return the outcomes of packs since the last call."""
        outcome = Outcome(self._acknowledged, frozenset(self._lost))
        self._acknowledged, self._lost = {}, set()
        return outcome
