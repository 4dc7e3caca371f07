"""What one collection means: its mechanism, its vocabulary, its windows, its fingerprint."""

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
    """A question that clients answer, one report a window, under one mechanism.

    Parameters
    ----------
    name : text matching `[a-z][a-z0-9_-]{0,62}`.
    mechanism : KRR, LongitudinalKRR, Rappor or HotRappor.
    values : all but Bloom RAPPOR: what the buckets mean, in order, without `other`; empty when the values
        are the integers from 0 on. Bloom RAPPOR: empty.
    other : all but Bloom RAPPOR: True when the last bucket takes every value that is not listed.
    candidates : Bloom RAPPOR: the strings to look for when decoding. They change no report, so they are
        no part of the fingerprint.
    memoize : all but plain k-RR: True when one client and value always repeat the same permanent response.
    window_seconds : length of a tumbling window, seconds, >= 1.
    grace_seconds : how long after its end a window still takes reports, seconds of log append time, >= 0.
    retention_seconds : how long after that its counts are kept, seconds, >= 0.
    minimum_reports : a window with fewer reports is not published.
    window_packs : packs of one window that each partition takes, >= 1.
    publish_all : True when final estimates are published with all values, not the largest alone.
    canary : True when the values are drawn from `estimators.canary.true_frequencies`, nobody's. That is part
        of what a report means: no other producer's reports are blended with them.

    Raises
    ------
    ValueError if `memoize` is asked of a RAPPOR whose permanent response would be the true value.
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

    @cached_property
    def fingerprint(self) -> int:
        """Unsigned 64-bit name of all that changes what a report means (DESIGN section 3).

        BLAKE2b-64, read little-endian, of the canonical JSON (sorted keys, no spaces, UTF-8) of name,
        mechanism with its exact integer thresholds, values, other, memoize and window_seconds, and canary
        where it is true. Two producers that differ in any of them can never be blended.
        """
        meaning = {
            "name": self.name,
            "mechanism": self.mechanism.parameters(),
            "values": self.values,
            "other": self.other,
            "memoize": self.memoize,
            "window_seconds": self.window_seconds,
        }
        if self.canary:
            meaning["canary"] = True
        text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).digest()
        return int.from_bytes(digest, "little")

    @property
    def takes_integers(self) -> bool:
        """True when values are the integers from 0 on, False when they are text."""
        return not isinstance(self.mechanism, Rappor) and not self.values

    @property
    def width(self) -> int:
        """Counters in one row: k of k-RR, bits of RAPPOR, a multiple of 8."""
        return self.mechanism.width

    @property
    def cohorts(self) -> int:
        """Cohorts that clients are spread over; 1 of all but Bloom RAPPOR."""
        return self.mechanism.cohorts

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of all reports of one client and unchanged value, nats; inf where each costs anew."""
        if not self.memoize or isinstance(self.mechanism, KRR):
            return math.inf
        return self.mechanism.epsilon_inf

    def window_start(self, unix_seconds: float) -> int:
        """Start of the window that holds this moment, unix seconds."""
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
        """What each estimated entry is called, in the order of the estimate's arrays, `other` left out."""
        if isinstance(self.mechanism, Rappor):
            return self.candidates
        return self.values or tuple(str(value) for value in range(self.entries))
