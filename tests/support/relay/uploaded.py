"""What devices uploaded in a round, and what workers counted of it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.protocol import wire
from deniable.protocol.uploads.upload import Upload
from deniable.relay.control import Intake

INTAKE_GRACE = 4
COLLECTIONS = [
    Collection("relayed-krr", KRR.from_epsilon(7, 2.0), window_seconds=2, grace_seconds=120),
    Collection(
        "relayed-rappor",
        Rappor.from_probabilities(16, 2, 2, 0.25, 0.35, 0.65),
        window_seconds=3,
        grace_seconds=120,
    ),
]
INTAKES = [
    Intake(
        each.fingerprint,
        each.mechanism.wire_number,
        each.width,
        each.cohorts,
        each.window_seconds,
        INTAKE_GRACE,
    )
    for each in COLLECTIONS
]

Counts = dict[tuple[int, int, int], np.ndarray[Any, Any]]


@dataclass
class Uploaded:
    """What devices uploaded: all uploads that were acknowledged, and the counts of their reports.

    `written` has the reports of all uploads, with those that were sent again.
    """

    uploads: list[bytes] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)
    reports: int = 0
    written: int = 0

    def add(self, upload: Upload) -> None:
        for group in upload.groups:
            rows = np.frombuffer(group.rows, np.uint8)
            if group.mechanism == wire.RAPPOR_NUMBER:
                bits = np.unpackbits(rows, bitorder="little").reshape(-1, group.width)
                found = bits.sum(axis=0, dtype=np.int64)
            else:
                found = np.bincount(rows, minlength=group.width)
            key = (group.fingerprint, group.window_start, group.cohort)
            self.counts[key] = self.counts.get(key, 0) + found
            self.reports += group.reports


@dataclass
class Counted:
    """What a worker's ledgers count, rejected packs by reason, and records of `reports`."""

    counts: Counts = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    records: int = 0
