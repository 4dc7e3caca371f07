"""An entry of `collections` in the collection file: its fields by mechanism, and what it defines."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from deniable.config.checks import YEAR_SECONDS, check_all, check_distinct, check_range, read_lines
from deniable.config.settings.allowance import LARGEST_REPORTS_PER_WINDOW, Allowance, Budget
from deniable.estimators.canary import MOST_VALUES, least_reports
from deniable.estimators.collection import (
    CHANGE_ALARMS_A_YEAR,
    OTHER_LABEL,
    Collection,
    Field,
    GrowthRule,
    pair_labels,
)
from deniable.estimators.decoding.hashed.growth.alphabet import alphabet_of
from deniable.estimators.decoding.hashed.growth.branches import check_steps
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree, utf_8
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import LARGEST_CELLS, PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import choose_thresholds, round_to_thresholds
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import DEFAULT_STEPS, SquareWave

LARGEST_SIZE = 1_400_000
MOST_CANDIDATES = 1_000_000
CHANGE_ALARMS = (0.001, 1000)  # lowest and highest rate of false alarms of changes, a year
MOST_GROWN_COUNTERS = 1 << 26  # of the windows that are kept: 64 to 512 MiB
MOST_PUBLISHED = 100_000  # with publish: all; they are published in one transaction

Name = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,62}$")]


class BudgetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all reports of one client to one collection may cost together in a period."""

    epsilon: float
    delta: float
    period_seconds: int
    values: Literal["unchanged", "any"] | None = None
    changes: int | None = None

    def __post_init__(self) -> None:
        self.budget()

    def budget(self) -> Budget:
        """Return the budget; ValueError if a field is out of range."""
        return Budget(self.epsilon, self.delta, self.period_seconds, self.changes, self.values)


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="mechanism", kw_only=True):
    name: Name
    window_seconds: int
    grace_seconds: int
    retention_seconds: int = 3600
    minimum_reports: int = 100
    window_packs: int = 4_000_000
    publish: Literal["top", "all"] = "top"
    change_alarms_a_year: float = CHANGE_ALARMS_A_YEAR
    reports_per_window: int = 1
    budget: Literal["none"] | BudgetEntry

    def __post_init__(self) -> None:
        check_range("window_seconds", self.window_seconds, 1, YEAR_SECONDS)
        check_range("grace_seconds", self.grace_seconds, 0, YEAR_SECONDS)
        # If shorter, a window could expire before all partitions have closed it, and never become final.
        check_range("retention_seconds", self.retention_seconds, 60, 10 * YEAR_SECONDS)
        check_range("minimum_reports", self.minimum_reports, 1, 10**12)
        check_range("window_packs", self.window_packs, 1, 10**8)
        check_range("change_alarms_a_year", self.change_alarms_a_year, *CHANGE_ALARMS)
        check_range("reports_per_window", self.reports_per_window, 1, LARGEST_REPORTS_PER_WINDOW)

    def _collection(self, mechanism: Mechanism, **fields: Any) -> Collection:
        collection = Collection(
            name=self.name,
            mechanism=mechanism,
            publish_all=self.publish == "all",
            window_seconds=self.window_seconds,
            grace_seconds=self.grace_seconds,
            retention_seconds=self.retention_seconds,
            minimum_reports=self.minimum_reports,
            window_packs=self.window_packs,
            change_alarms_a_year=self.change_alarms_a_year,
            **fields,
        )
        if collection.publish_all:
            check_range("number of values with publish: all", collection.entries, 1, MOST_PUBLISHED)
        return collection


class _Buckets(_Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A list of values or their number, and optionally a bucket for all other values."""

    values: list[str] | None = None
    size: int | None = None
    other: bool = True
    canary: bool = False

    def _bucket_collection(self, mechanism: KRR | LongitudinalKRR, *, memoize: bool) -> Collection:
        if self.canary:
            self._check_canary(mechanism)
        return self._collection(
            mechanism,
            values=tuple(self.values or ()),
            other=self.other,
            canary=self.canary,
            memoize=memoize,
        )

    def _check_canary(self, mechanism: KRR | LongitudinalKRR) -> None:
        if self.other:
            raise ValueError("a canary sends listed values alone; write other: false")
        check_range("number of values of a canary", mechanism.k, 2, MOST_VALUES)
        # With fewer reports, false alarms are more frequent than stated.
        check_range("minimum_reports of this canary", self.minimum_reports, least_reports(mechanism), 10**12)

    def _k(self) -> int:
        if (self.values is None) == (self.size is None):
            raise ValueError("give either values, a list of text, or size, a number of values")
        check_distinct("values", self.values or ())
        size = len(self.values or ()) if self.size is None else self.size
        check_range("number of values", size, 1 if self.other else 2, LARGEST_SIZE)
        if self.other:
            check_not_other("values", self.values or ())
        return size + self.other


class KRREntry(_Buckets, frozen=True, forbid_unknown_fields=True, tag="k-rr", kw_only=True):
    """A k-RR collection."""

    epsilon: float

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        return self._bucket_collection(KRR.from_epsilon(self._k(), self.epsilon), memoize=False)


class LongitudinalEntry(
    _Buckets, frozen=True, forbid_unknown_fields=True, tag="k-rr-longitudinal", kw_only=True
):
    """A k-RR collection with permanent responses: always memoized."""

    epsilon_inf: float
    epsilon_one: float

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        mechanism = LongitudinalKRR.from_epsilons(self._k(), self.epsilon_inf, self.epsilon_one)
        return self._bucket_collection(mechanism, memoize=True)


class _Bits(_Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Permanent and instantaneous noise on bits, given as probabilities or as epsilons."""

    f: float | None = None
    p: float | None = None
    q: float | None = None
    epsilon_inf: float | None = None
    epsilon_one: float | None = None
    memoize: bool = True

    def _thresholds(self, ones: int) -> tuple[int, int, int]:
        probabilities, epsilons = (self.f, self.p, self.q), (self.epsilon_inf, self.epsilon_one)
        match probabilities, epsilons:
            case (float(f), float(p), float(q)), (None, None):
                return round_to_thresholds(f, p, q)
            case (None, None, None), (float(epsilon_inf), float(epsilon_one)):
                return choose_thresholds(ones, epsilon_inf, epsilon_one)
        raise ValueError("give either f, p and q, or epsilon_inf and epsilon_one")

    def _hot_collection(self, values: list[str], hot: int) -> Collection:
        check_distinct("values", values)
        mechanism = HotRappor(len(values), hot, *self._thresholds(hot))
        return self._collection(mechanism, values=tuple(values), memoize=self.memoize)


class _Hashed(_Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A pool of hash functions, and the strings to look for."""

    hash_functions: int | None = None
    hash_buckets: int | None = None
    candidates: list[str] | None = None
    candidates_file: str | None = None


class HashEntry(_Hashed, frozen=True, forbid_unknown_fields=True, tag="local-hash", kw_only=True):
    """A local-hashing collection."""

    epsilon: float

    def collection(self, folder: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other.

        Parameters
        ----------
        folder : that `candidates_file` is relative to.
        """
        mechanism = LocalHash.from_epsilon(self.epsilon, self.hash_functions, self.hash_buckets)
        return self._collection(mechanism, candidates=_candidates(self, folder))


class LongitudinalHashEntry(
    _Hashed, frozen=True, forbid_unknown_fields=True, tag="local-hash-longitudinal", kw_only=True
):
    """A local-hashing collection with permanent responses: always memoized."""

    epsilon_inf: float
    epsilon_one: float

    def collection(self, folder: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other.

        Parameters
        ----------
        folder : that `candidates_file` is relative to.
        """
        mechanism = LongitudinalHash.from_epsilons(
            self.epsilon_inf, self.epsilon_one, self.hash_functions, self.hash_buckets
        )
        return self._collection(mechanism, candidates=_candidates(self, folder), memoize=True)


class GrowEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That workers look for frequent texts at each final window."""

    windows: int
    rate: float = FALSE_DISCOVERY_RATE

    def rule(self, mechanism: PrefixTree) -> GrowthRule:
        """Return the rule; ValueError if a field is out of range."""
        most = MOST_GROWN_COUNTERS // (mechanism.cohorts * mechanism.width)
        check_range("grow.windows", self.windows, 1, most)
        if not 0 < self.rate < 1:
            raise ValueError(f"grow.rate must be in (0, 1), got {self.rate}")
        return GrowthRule(self.windows, self.rate)


class PrefixTreeEntry(_Hashed, frozen=True, forbid_unknown_fields=True, tag="prefix-tree", kw_only=True):
    """A prefix tree: any text, of which frequent ones are found without candidates."""

    epsilon: float
    lengths: list[int]
    alphabet: str = ""
    grow: GrowEntry | None = None

    def collection(self, folder: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other.

        Parameters
        ----------
        folder : that `candidates_file` is relative to.
        """
        mechanism = PrefixTree.from_epsilon(
            self.lengths, self.epsilon, self.hash_functions, self.hash_buckets
        )
        check_steps(mechanism, alphabet_of(self.alphabet))
        is_listed = self.candidates is not None or self.candidates_file is not None
        candidates = _candidates(self, folder) if is_listed else ()
        prefixes = [mechanism.prefix(utf_8(each), mechanism.cohorts - 1) for each in candidates]
        check_distinct(
            f"candidates in their first {mechanism.lengths[-1]} bytes",
            [each.decode("utf-8", "backslashreplace") for each in prefixes],
        )
        growth = None if self.grow is None else self.grow.rule(mechanism)
        return self._collection(mechanism, candidates=candidates, alphabet=self.alphabet, growth=growth)


class RapporEntry(_Bits, frozen=True, forbid_unknown_fields=True, tag="rappor", kw_only=True):
    """A Bloom-filter RAPPOR collection."""

    bits: int
    hashes: int
    cohorts: int
    candidates: list[str] | None = None
    candidates_file: str | None = None

    def collection(self, folder: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other.

        Parameters
        ----------
        folder : that `candidates_file` is relative to.
        """
        mechanism = Rappor(self.bits, self.hashes, self.cohorts, *self._thresholds(self.hashes))
        return self._collection(mechanism, candidates=_candidates(self, folder), memoize=self.memoize)


class OneHotEntry(_Bits, frozen=True, forbid_unknown_fields=True, tag="rappor-one-hot", kw_only=True):
    """RAPPOR with one bit for each listed value, of which a report sets one."""

    values: list[str]

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        return self._hot_collection(self.values, 1)


class KHotEntry(_Bits, frozen=True, forbid_unknown_fields=True, tag="rappor-k-hot", kw_only=True):
    """RAPPOR with one bit for each listed value, of which a report sets up to `hot`."""

    values: list[str]
    hot: int

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        return self._hot_collection(self.values, self.hot)


class NumberEntry(_Entry, frozen=True, forbid_unknown_fields=True, tag="number", kw_only=True):
    """A number between two ends, by Square Wave."""

    minimum: float
    maximum: float
    steps: int = DEFAULT_STEPS
    epsilon: float

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        mechanism = SquareWave.from_epsilon(self.minimum, self.maximum, self.steps, self.epsilon)
        return self._collection(mechanism)


class FieldEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the two fields of a pair."""

    name: Name
    values: list[str]
    other: bool = True
    epsilon: float | None = None

    def field(self) -> Field:
        """Return the field; MistakesError if its values are too few, repeated or reserved."""
        least, number = 1 if self.other else 2, f"number of values of {self.name}"
        check_all(
            lambda: check_distinct(f"values of {self.name}", self.values),
            lambda: check_range(number, len(self.values), least, LARGEST_CELLS // 2 - self.other),
            lambda: check_not_other(f"values of {self.name}", self.values),
        )
        return Field(self.name, tuple(self.values), self.other)


def check_not_other(field: str, values: Sequence[str]) -> None:
    """Raise ValueError if a value is the name of the bucket of all others."""
    if OTHER_LABEL in values:
        raise ValueError(f"{field} must not contain '{OTHER_LABEL}', which stands for all others")


class _Pair(_Entry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Two fields that are reported together."""

    fields: Annotated[list[FieldEntry], Meta(min_length=2, max_length=2)]

    def _two(self, check_epsilon: Callable[[], object]) -> tuple[Field, Field]:
        """Return the fields; MistakesError with all that is wrong with them and with epsilon."""
        names = [each.name for each in self.fields]
        check_all(
            lambda: check_distinct("names of fields", names),
            *(each.field for each in self.fields),
            check_epsilon,
        )
        first, second = (each.field() for each in self.fields)
        return first, second

    def _pair_collection(self, mechanism: PairKRR | OneHotPair, first: Field, second: Field) -> Collection:
        labels = pair_labels(first, second)
        check_distinct("pairs of values as shown", labels)
        return self._collection(mechanism, values=labels, fields=(first, second))


class PairEntry(_Pair, frozen=True, forbid_unknown_fields=True, tag="k-rr-pair", kw_only=True):
    """Two fields that are reported together, each by k-RR."""

    epsilon: float | None = None

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        first, second = self._two(lambda: PairKRR.from_epsilons(2, 2, *self._epsilons()))
        mechanism = PairKRR.from_epsilons(len(first.labels), len(second.labels), *self._epsilons())
        return self._pair_collection(mechanism, first, second)

    def _epsilons(self) -> tuple[float, float]:
        """Privacy loss of each field: as stated, or half of the whole."""
        match self.epsilon, *(each.epsilon for each in self.fields):
            case float(whole), None, None:
                return whole / 2, whole / 2
            case None, float(first), float(second):
                return first, second
        raise ValueError("give either epsilon, which both fields share equally, or an epsilon in each field")


class HotPairEntry(_Pair, frozen=True, forbid_unknown_fields=True, tag="one-hot-pair", kw_only=True):
    """Two fields that are reported together, as one bit for each pair of values."""

    epsilon: float

    def collection(self, _: Path) -> Collection:
        """Return the collection that the entry defines; ValueError if its fields contradict each other."""
        first, second = self._two(self._check_epsilon)
        mechanism = OneHotPair.from_epsilon(len(first.labels), len(second.labels), self.epsilon)
        return self._pair_collection(mechanism, first, second)

    def _check_epsilon(self) -> None:
        if any(each.epsilon is not None for each in self.fields):
            raise ValueError("epsilon is that of the pair: fields of a one-hot-pair take none of their own")
        OneHotPair.from_epsilon(2, 2, self.epsilon)


Entry = (
    KRREntry
    | LongitudinalEntry
    | PairEntry
    | HotPairEntry
    | HashEntry
    | LongitudinalHashEntry
    | PrefixTreeEntry
    | RapporEntry
    | OneHotEntry
    | KHotEntry
    | NumberEntry
)


def _candidates(entry: _Hashed | RapporEntry, folder: Path) -> tuple[str, ...]:
    """Return the strings to look for: those listed, or those of a file with one a line."""
    listed: Iterable[str]
    if entry.candidates and entry.candidates_file is None:
        listed = entry.candidates
    elif entry.candidates is not None or entry.candidates_file is None:
        raise ValueError("give either candidates, a list of at least one text, or candidates_file, a path")
    else:
        listed = read_lines("candidates_file", folder / entry.candidates_file)
    candidates = tuple(listed)
    check_distinct("candidates", candidates)
    check_range("number of candidates", len(candidates), 1, MOST_CANDIDATES)
    return candidates


def allowance_of(entry: Entry, folder: Path) -> Allowance:
    """Build the collection of an entry with the limits of its clients.

    Parameters
    ----------
    entry : of the file.
    folder : that the entry's paths are relative to.

    Raises
    ------
    ValueError if its fields contradict each other.
    """
    budget = entry.budget.budget() if isinstance(entry.budget, BudgetEntry) else None
    return Allowance(entry.collection(folder), budget, entry.reports_per_window)
