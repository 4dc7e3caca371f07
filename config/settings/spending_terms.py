"""The terms under which a client's reports are counted and charged."""

from dataclasses import dataclass
from typing import Self

FINGERPRINT_BYTES = 8
CHANGES_BYTES = 4
MEMOIZED = b"\1"
MOST_CHANGES = 2 ** (8 * CHANGES_BYTES) - 1

# Length of the only period without a budget: longer than any other.
ENDLESS = 2**32


@dataclass(frozen=True)
class SpendingTerms:
    """The terms under which reports were randomized and counted.

    Parameters
    ----------
    fingerprint : of the collection, FINGERPRINT_BYTES.
    period_seconds : length of a period, at least 1; ENDLESS without a budget.
    epsilon_per_report, epsilon_inf : nats, of the Allowance.
    changes : how many changes of its bucket a client shows, at most MOST_CHANGES; None for any number.
    is_memoized : whether reports share permanent responses, and `epsilon_inf` holds whatever the values do.
        Implied by `changes`. False, too, of what earlier releases stored, whose figure may be that of one
        value.
    """

    fingerprint: bytes
    period_seconds: int
    epsilon_per_report: float
    epsilon_inf: float
    changes: int | None = None
    is_memoized: bool = False

    @property
    def counted(self) -> bytes:
        """Bytes of what numbers of reports count: `fingerprint`, then `changes`, if any."""
        limited = b"" if self.changes is None else self.changes.to_bytes(CHANGES_BYTES, "little")
        return self.fingerprint + limited

    @property
    def meaning(self) -> bytes:
        """Bytes that terms are stored under: `counted`, then MEMOIZED unless `changes` imply it."""
        return self.counted + (MEMOIZED if self.is_memoized and self.changes is None else b"")

    @classmethod
    def stored(cls, meaning: bytes, period_seconds: int, per_report: float, epsilon_inf: float) -> Self:
        """Return the terms that a store knows under this `meaning`."""
        fingerprint, rest = meaning[:FINGERPRINT_BYTES], meaning[FINGERPRINT_BYTES:]
        changes = int.from_bytes(rest, "little") if len(rest) == CHANGES_BYTES else None
        return cls(fingerprint, period_seconds, per_report, epsilon_inf, changes, bool(rest))
