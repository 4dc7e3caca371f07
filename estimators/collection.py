"""The definition of a collection: its mechanism, values and windows, and the fingerprint of their meaning."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from estimators.mechanisms.krr import KRR
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_bits import TwoStepBits
from estimators.mechanisms.rappor_hot import HotRappor

FINGERPRINT_BYTES = 8


@dataclass(frozen=True)
class Collection:
    """A question that clients answer with one report per window, under one mechanism.

    Parameters
    ----------
    name : text matching `[a-z][a-z0-9_-]{0,62}`.
    mechanism : KRR, LongitudinalKRR, Rappor or HotRappor.
    values : labels of the buckets, in order, without `other`; empty if the values are integers from 0 on.
        Always empty for Bloom RAPPOR.
    other : True if the last bucket takes every value that is not listed; always False for Bloom RAPPOR.
    candidates : strings to decode, Bloom RAPPOR only. They do not affect reports, so they are not part of the
        fingerprint.
    memoize : True if a client memoizes the permanent response of each value; plain k-RR has none.
    window_seconds : length of a tumbling window, seconds, >= 1.
    grace_seconds : time after a window's end in which it still takes reports, in log append time, >= 0.
    retention_seconds : time after the grace period for which counts are kept, seconds, >= 0.
    minimum_reports : smallest number of reports with which a window is published.
    window_packs : largest number of packs per window and partition, >= 1.
    publish_all : True if final estimates contain all values, not only the largest ones.
    canary : True if values are drawn from `estimators.canary.true_frequencies` and no person's. It is part of
        the fingerprint, so canary reports never mix with others.

    Raises
    ------
    ValueError if `memoize` is True for a RAPPOR with f = 0, whose permanent response is the true value.
    """

    name: str
    mechanism: Mechanism
    values: tuple[str, ...] = ()
    other: bool = False
    candidates: tuple[str, ...] = ()
    memoize: bool = False
    window_seconds: int = 60
    grace_seconds: int = 30
    retention_seconds: int = 3600
    minimum_reports: int = 100
    window_packs: int = 4_000_000
    publish_all: bool = False
    canary: bool = False

    def __post_init__(self) -> None:
        if self.memoize and isinstance(self.mechanism, TwoStepBits) and self.epsilon_inf == math.inf:
            raise ValueError(
                "memoize needs f > 0: at f = 0 the remembered response is the true value, which many reports"
                " reveal; set f, or memoize: false"
            )

    @property
    def meaning(self) -> dict[str, object]:
        """Everything that defines the meaning of a report: what `fingerprint` hashes.

        Returns
        -------
        name, mechanism with its exact integer thresholds, values, other, memoize, window_seconds, and canary
        if True. All can be written as JSON.
        """
        meaning: dict[str, object] = {
            "name": self.name,
            "mechanism": self.mechanism.parameters(),
            "values": self.values,
            "other": self.other,
            "memoize": self.memoize,
            "window_seconds": self.window_seconds,
        }
        return meaning | ({"canary": True} if self.canary else {})

    @cached_property
    def fingerprint(self) -> int:
        """Unsigned 64-bit hash of `meaning` (DESIGN section 3).

        BLAKE2b-64, read little-endian, of its canonical JSON (sorted keys, no spaces, UTF-8). Reports of two
        producers that differ in any of these are never mixed.
        """
        text = json.dumps(self.meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).digest()
        return int.from_bytes(digest, "little")

    @property
    def takes_integers(self) -> bool:
        """True if values are integers from 0 on, False if they are text."""
        return not isinstance(self.mechanism, Rappor) and not self.values

    @property
    def width(self) -> int:
        """Counters in one row: k of k-RR, bits of RAPPOR, a multiple of 8."""
        return self.mechanism.width

    @property
    def cohorts(self) -> int:
        """Number of cohorts; 1 except for Bloom RAPPOR."""
        return self.mechanism.cohorts

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of all reports of a client with an unchanged value, nats; inf without memoization."""
        if not self.memoize or isinstance(self.mechanism, KRR):
            return math.inf
        return self.mechanism.epsilon_inf

    def window_start(self, unix_seconds: float) -> int:
        """Start of the window that contains this moment, unix seconds."""
        return int(unix_seconds // self.window_seconds) * self.window_seconds

    def window_end(self, window_start: int) -> int:
        """First second after the window, unix seconds."""
        return window_start + self.window_seconds

    def closes_at(self, window_start: int) -> int:
        """Log append time, unix seconds, after which the window takes no more reports."""
        return self.window_end(window_start) + self.grace_seconds

    def dies_at(self, window_start: int) -> int:
        """Log append time, unix seconds, after which the window's counts are deleted."""
        return self.closes_at(window_start) + self.retention_seconds

    @property
    def entries(self) -> int:
        """Number of `labels`."""
        if isinstance(self.mechanism, Rappor):
            return len(self.candidates)
        buckets = self.mechanism.buckets if isinstance(self.mechanism, HotRappor) else self.mechanism.k
        return buckets - self.other

    def labels(self) -> tuple[str, ...]:
        """Return the labels of the estimated entries, in the order of an estimate's arrays; not `other`."""
        if isinstance(self.mechanism, Rappor):
            return self.candidates
        return self.values or tuple(str(value) for value in range(self.entries))
