"""The definition of a collection: its mechanism, values and windows, and the fingerprint of their meaning."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from deniable.estimators.mechanisms.hashing.prefix_tree import shown_text
from deniable.estimators.mechanisms.mechanism import Mechanism, number_of
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.traits import QuestionKind

FINGERPRINT_BYTES = 8
#: False alarms of changes, of one collection, unless its entry says another rate.
CHANGE_ALARMS_A_YEAR = 0.1
#: Label of all values of a field that are not listed.
OTHER_LABEL = "(other)"


@dataclass(frozen=True)
class Field:
    """One of the two fields of a pair.

    Parameters
    ----------
    name : of the field, to people.
    values : its values in order, without `other`.
    other : True if a last bucket takes every value that is not listed.
    """

    name: str
    values: tuple[str, ...]
    other: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all its buckets, `other` included."""
        return (*self.values, OTHER_LABEL) if self.other else self.values


def pair_labels(first: Field, second: Field) -> tuple[str, ...]:
    """Return the labels of all pairs of values, by rows: the first one, a slash, the second one."""
    return tuple(f"{one} / {other}" for one in first.labels for other in second.labels)


@dataclass(frozen=True)
class GrowthRule:
    """That workers look for frequent texts of a prefix tree at each final window.

    Parameters
    ----------
    windows : whose reports are added up for a look, >= 1. Texts that one of the last `windows` looks found
        are listed.
    rate : largest expected share of false texts among those listed, in (0, 1).
    """

    windows: int
    rate: float

    @property
    def rate_of_look(self) -> float:
        """False-discovery rate of one look.

        A list joins what `windows` looks have found. Of the texts listed, the expected share of false ones is
        at most the sum of that of each look, since a look finds no more texts than are listed.
        """
        return self.rate / self.windows


@dataclass(frozen=True)
class Collection:
    """A question that clients answer with one report per window, under one mechanism.

    Parameters
    ----------
    name : text matching `[a-z][a-z0-9_-]{0,62}`.
    mechanism : any.
    values : labels of the buckets, in order, without `other`; empty if the values are integers from 0 on.
        Always empty for Bloom RAPPOR, local hashing and Square Wave; of a pair, `pair_labels` of its fields.
    other : True if the last bucket takes every value that is not listed; always False for Bloom RAPPOR,
        local hashing and Square Wave.
    candidates : strings to decode, Bloom RAPPOR and local hashing only. They do not affect reports, so
        they are not part of the fingerprint. Of a prefix tree there may be none.
    alphabet : of a prefix tree: the characters of texts that are searched for; empty for any. Not part of the
        fingerprint either.
    growth : of a prefix tree, in whose windows workers look for frequent texts; None if they do not. Not part
        of the fingerprint either.
    found : prefixes of the last level, in bytes, that are listed after the candidates of a growing tree.
    memoize : True if a client memoizes the permanent response of each value; plain k-RR, also of pairs,
        local hashing and Square Wave have none.
    window_seconds : length of a tumbling window, seconds, >= 1.
    grace_seconds : time after a window's end in which it still takes reports, in log append time, >= 0.
    retention_seconds : time after the grace period for which counts are kept, seconds, >= 0.
    minimum_reports : smallest number of reports with which a window is published.
    window_packs : largest number of packs per window and partition, >= 1.
    publish_all : True if final estimates contain all values, not only the largest ones.
    canary : True if values are drawn from `estimators.canary.true_frequencies` and no person's. It is part of
        the fingerprint, so canary reports never mix with others.
    change_alarms_a_year : false alarms of changes in a year, at most, while nothing changes, > 0.
    fields : the two fields of a pair; empty for other mechanisms. Their values are part of the fingerprint,
        in `values`; their names are not.

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
    change_alarms_a_year: float = CHANGE_ALARMS_A_YEAR
    fields: tuple[Field, ...] = ()
    alphabet: str = ""
    growth: GrowthRule | None = None
    found: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if self.memoize and self.mechanism.keeps_permanent and self.epsilon_inf == math.inf:
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
        return _hashed(self.meaning)

    @property
    def hash_key(self) -> int:
        """Unsigned 64-bit key of the hash functions of local hashing, public: the fingerprint.

        Where clients keep functions and permanent responses, BLAKE2b-64 of what these depend on instead:
        `name` and `permanent_parameters`, as JSON like the fingerprint.
        """
        permanent = self.mechanism.permanent_parameters()
        return _hashed({"name": self.name, "mechanism": permanent}) if permanent else self.fingerprint

    @property
    def kind(self) -> QuestionKind:
        """The kind of its question."""
        return self.mechanism.kind

    @property
    def number(self) -> SquareWave | None:
        """The mechanism if the question is of a number; None for others."""
        return number_of(self.mechanism)

    @property
    def takes_any_text(self) -> bool:
        """True if values are any text, whose candidates are chosen afterwards."""
        return self.kind is QuestionKind.STRINGS

    @property
    def takes_several(self) -> bool:
        """True if one value is a set of values."""
        return self.mechanism.max_values > 1

    @property
    def takes_integers(self) -> bool:
        """True if values are integers from 0 on, False if they are text, or any numbers."""
        return self.kind in (QuestionKind.VALUES, QuestionKind.PAIR) and not self.values

    @property
    def may_lack_bit(self) -> bool:
        """True if a report of two fields has no pair's bit where a field does not list its value."""
        return (
            self.mechanism.is_of_bits and bool(self.fields) and not all(field.other for field in self.fields)
        )

    @property
    def width(self) -> int:
        """Counters in one row: values, pairs of values, bits, buckets of all hash functions, or cells."""
        return self.mechanism.width

    @property
    def cohorts(self) -> int:
        """Number of cohorts; 1 except for Bloom RAPPOR, and the levels of a prefix tree."""
        return self.mechanism.cohorts

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of all reports of a client with an unchanged value, nats; inf without memoization."""
        return self.mechanism.epsilon_inf if self.memoize else math.inf

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
        if self.takes_any_text:
            return len(self.candidates) + len(self.found)
        if (number := self.number) is not None:
            return len(number.row_edges) - 1
        return self.mechanism.domain_size - self.other

    def labels(self) -> tuple[str, ...]:
        """Return the labels of the estimated entries, in the order of an estimate's arrays; not `other`.

        Rows of a number are named by their lower edges, in decimal.
        """
        if self.takes_any_text:
            return (*self.candidates, *map(shown_text, self.found)) if self.found else self.candidates
        if (number := self.number) is not None:
            return number.row_bounds[:-1]
        return self.values or tuple(str(value) for value in range(self.entries))


def _hashed(meaning: dict[str, object]) -> int:
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return int.from_bytes(blake2b(text.encode(), digest_size=FINGERPRINT_BYTES).digest(), "little")
