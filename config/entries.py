"""An entry of `collections` in the collection file: its fields by mechanism, and what it defines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from deniable.config.checks import YEAR_SECONDS, check_distinct, check_range, read_lines
from deniable.config.section import Section
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
from deniable.estimators.mechanisms.hashing.function_pool import LARGEST_BUCKETS, LARGEST_COUNTERS
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import LONGEST, MOST_LEVELS, PrefixTree, utf_8
from deniable.estimators.mechanisms.krr import KRR, LARGEST_EPSILON
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import LEAST_EPSILON, OneHotPair
from deniable.estimators.mechanisms.matrix.pair import LARGEST_CELLS, PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import LARGEST_BITS, LARGEST_COHORTS, Rappor
from deniable.estimators.mechanisms.rappor_bits import LARGEST_EPSILON as LARGEST_BITS_EPSILON
from deniable.estimators.mechanisms.rappor_bits import choose_thresholds, round_to_thresholds
from deniable.estimators.mechanisms.rappor_hot import LARGEST_BUCKETS as LARGEST_HOT
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import DEFAULT_STEPS, LARGEST_STEPS, LEAST_STEPS, SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection

LARGEST_SIZE = 1_400_000
MOST_CANDIDATES = 1_000_000
CHANGE_ALARMS = (0.001, 1000)  # lowest and highest rate of false alarms of changes, a year
MOST_GROWN_COUNTERS = 1 << 26  # of the windows that are kept: 64 to 512 MiB
MOST_PUBLISHED = 100_000  # with publish: all; they are published in one transaction

BUDGET_ADVICE = (
    "write budget: {epsilon: …, delta: …, period_seconds: …}, with values: any or unchanged if it is "
    "memoized, or budget: none, which enforces nothing"
)

Name = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9_-]{0,62}$",
        description="1 to 63 lower-case letters, digits, _ and -, beginning with a letter",
    ),
]
Text = Annotated[str, Meta(extra={"remedy": 'quote it: "…"'})]
Probability = Annotated[float, Meta(gt=0, lt=1)]
Epsilon = Annotated[float, Meta(gt=0, le=LARGEST_EPSILON)]
EpsilonOne = Annotated[float, Meta(gt=0, description="a number in (0, epsilon_inf)")]
CandidatesFile = Annotated[str, Meta(description="a path of a file with one candidate a line")]


class BudgetEntry(Section, frozen=True):
    """What all reports of one client to one collection may cost together in a period."""

    remedy: ClassVar[str] = BUDGET_ADVICE

    epsilon: Annotated[float, Meta(gt=0)]
    delta: Probability
    period_seconds: Annotated[int, Meta(ge=1, lt=2**32)]
    values: Literal["unchanged", "any"] | None = None
    changes: Annotated[int, Meta(ge=0)] | None = None

    def check_budget(self) -> None:
        """Changes are limited only whatever values do."""
        self.budget()

    def budget(self) -> Budget:
        """Return the budget; ValueError if fields contradict each other."""
        return Budget(self.epsilon, self.delta, self.period_seconds, self.changes, self.values)


class _Entry(Section, frozen=True, tag_field="mechanism", kw_only=True):
    name: Name
    window_seconds: Annotated[int, Meta(ge=1, le=YEAR_SECONDS)]
    grace_seconds: Annotated[int, Meta(ge=0, le=YEAR_SECONDS)]
    # If shorter, a window could expire before all partitions have closed it, and never become final.
    retention_seconds: Annotated[int, Meta(ge=60, le=10 * YEAR_SECONDS)] = 3600
    minimum_reports: Annotated[int, Meta(ge=1, le=10**12)] = 100
    window_packs: Annotated[int, Meta(ge=1, le=10**8)] = 4_000_000
    publish: Literal["top", "all"] = "top"
    change_alarms_a_year: Annotated[float, Meta(ge=CHANGE_ALARMS[0], le=CHANGE_ALARMS[1])] = (
        CHANGE_ALARMS_A_YEAR
    )
    reports_per_window: Annotated[int, Meta(ge=1, le=LARGEST_REPORTS_PER_WINDOW)] = 1
    budget: Annotated[Literal["none"] | BudgetEntry, Meta(description="none, or a mapping")]

    def mechanism(self) -> Mechanism:
        """Return what randomizes; ValueError if fields contradict each other."""
        raise NotImplementedError

    def details(self, _: Path) -> dict[str, Any]:
        """Return what the mechanism adds to a Collection; ValueError if fields contradict each other.

        Parameters
        ----------
        folder : that paths in the entry are relative to.
        """
        return {}

    def collection(self, folder: Path) -> Collection:
        """Return the collection that the entry defines; ValueError as in `details`."""
        collection = Collection(
            name=self.name,
            mechanism=self.mechanism(),
            publish_all=self.publish == "all",
            window_seconds=self.window_seconds,
            grace_seconds=self.grace_seconds,
            retention_seconds=self.retention_seconds,
            minimum_reports=self.minimum_reports,
            window_packs=self.window_packs,
            change_alarms_a_year=self.change_alarms_a_year,
            **self.details(folder),
        )
        if collection.publish_all:
            check_range("number of values with publish: all", collection.entries, 1, MOST_PUBLISHED)
        return collection


class _Listed(_Entry, frozen=True, kw_only=True):
    """A list of values or their number, and optionally a bucket for all other values."""

    values: list[Text] | None = None
    size: Annotated[int, Meta(ge=1, le=LARGEST_SIZE)] | None = None
    other: bool = True

    def details(self, _: Path) -> dict[str, Any]:
        """Return the values."""
        return {"values": tuple(self.values or ()), "other": self.other}

    def _k(self) -> int:
        if (self.values is None) == (self.size is None):
            raise ValueError("give either values, a list of text, or size, a number of values")
        check_distinct("values", self.values or ())
        size = len(self.values or ()) if self.size is None else self.size
        check_range("number of values", size, 1 if self.other else 2, LARGEST_SIZE)
        if self.other:
            check_not_other(self.values or ())
        return size + self.other


class SubsetEntry(_Listed, frozen=True, tag="subset-selection", kw_only=True):
    """A collection whose reports are sets of values."""

    epsilon: Epsilon

    def mechanism(self) -> SubsetSelection:
        """Return what randomizes; ValueError if fields contradict each other."""
        k = self._k()
        check_range("number of values, other included", k, 2, LARGEST_HOT)
        return SubsetSelection.from_epsilon(k, self.epsilon)


class _Buckets(_Listed, frozen=True, kw_only=True):
    """Values that a report names, which may be those of a canary."""

    canary: bool = False

    def details(self, _: Path) -> dict[str, Any]:
        """Return the values, and whether they are a canary's."""
        if self.canary:
            self._check_canary()
        return {"values": tuple(self.values or ()), "other": self.other, "canary": self.canary}

    def mechanism(self) -> KRR | LongitudinalKRR:
        """Return what randomizes; ValueError if fields contradict each other."""
        raise NotImplementedError

    def _check_canary(self) -> None:
        if self.other:
            raise ValueError("a canary sends listed values alone; write other: false")
        check_range("number of values of a canary", self._k(), 2, MOST_VALUES)
        # With fewer reports, false alarms are more frequent than stated.
        least = least_reports(self.mechanism())
        check_range("minimum_reports of this canary", self.minimum_reports, least, 10**12)


class KRREntry(_Buckets, frozen=True, tag="k-rr", kw_only=True):
    """A k-RR collection."""

    epsilon: Epsilon

    def mechanism(self) -> KRR:
        """Return what randomizes; ValueError if fields contradict each other."""
        return KRR.from_epsilon(self._k(), self.epsilon)


class LongitudinalEntry(_Buckets, frozen=True, tag="k-rr-longitudinal", kw_only=True):
    """A k-RR collection with permanent responses: always memoized."""

    epsilon_inf: Epsilon
    epsilon_one: EpsilonOne

    def mechanism(self) -> LongitudinalKRR:
        """Return what randomizes; ValueError if fields contradict each other."""
        return LongitudinalKRR.from_epsilons(self._k(), self.epsilon_inf, self.epsilon_one)

    def details(self, folder: Path) -> dict[str, Any]:
        """Return the values, and that permanent responses are kept."""
        return _Buckets.details(self, folder) | {"memoize": True}


class _Bits(_Entry, frozen=True, kw_only=True):
    """Permanent and instantaneous noise on bits, given as probabilities or as epsilons."""

    f: Annotated[float, Meta(ge=0, lt=1)] | None = None
    p: Annotated[float, Meta(gt=0, lt=1, description="a number in (0, q)")] | None = None
    q: Probability | None = None
    epsilon_inf: Annotated[float, Meta(gt=0, le=LARGEST_BITS_EPSILON)] | None = None
    epsilon_one: EpsilonOne | None = None
    memoize: bool = True

    def _thresholds(self, ones: int) -> tuple[int, int, int]:
        probabilities, epsilons = (self.f, self.p, self.q), (self.epsilon_inf, self.epsilon_one)
        match probabilities, epsilons:
            case (float(f), float(p), float(q)), (None, None):
                return round_to_thresholds(f, p, q)
            case (None, None, None), (float(epsilon_inf), float(epsilon_one)):
                return choose_thresholds(ones, epsilon_inf, epsilon_one)
        raise ValueError("give either f, p and q, or epsilon_inf and epsilon_one")


class _Hashed(_Entry, frozen=True, kw_only=True):
    """A pool of hash functions, and the strings to look for."""

    hash_functions: Annotated[int, Meta(ge=1, le=LARGEST_COUNTERS // 2)] | None = None
    hash_buckets: (
        Annotated[int, Meta(ge=2, le=LARGEST_BUCKETS, description=f"a prime in [2, {LARGEST_BUCKETS}]")]
        | None
    ) = None
    candidates: list[Text] | None = None
    candidates_file: CandidatesFile | None = None

    def details(self, folder: Path) -> dict[str, Any]:
        """Return the strings to look for."""
        return {"candidates": _candidates(self.candidates, self.candidates_file, folder)}


class HashEntry(_Hashed, frozen=True, tag="local-hash", kw_only=True):
    """A local-hashing collection."""

    epsilon: Epsilon

    def mechanism(self) -> LocalHash:
        """Return what randomizes; ValueError if fields contradict each other."""
        return LocalHash.from_epsilon(self.epsilon, self.hash_functions, self.hash_buckets)


class LongitudinalHashEntry(_Hashed, frozen=True, tag="local-hash-longitudinal", kw_only=True):
    """A local-hashing collection with permanent responses: always memoized."""

    epsilon_inf: Epsilon
    epsilon_one: EpsilonOne

    def mechanism(self) -> LongitudinalHash:
        """Return what randomizes; ValueError if fields contradict each other."""
        return LongitudinalHash.from_epsilons(
            self.epsilon_inf, self.epsilon_one, self.hash_functions, self.hash_buckets
        )

    def details(self, folder: Path) -> dict[str, Any]:
        """Return the strings to look for, and that permanent responses are kept."""
        return _Hashed.details(self, folder) | {"memoize": True}


class GrowEntry(Section, frozen=True):
    """That workers look for frequent texts at each final window."""

    windows: Annotated[
        int,
        Meta(
            ge=1,
            description=f"an integer from 1 to {MOST_GROWN_COUNTERS} divided by the counters of a window",
        ),
    ]
    rate: Probability = FALSE_DISCOVERY_RATE

    def rule(self, mechanism: PrefixTree) -> GrowthRule:
        """Return the rule; ValueError if it would need too much memory."""
        most = MOST_GROWN_COUNTERS // (mechanism.cohorts * mechanism.width)
        check_range("grow.windows", self.windows, 1, most)
        return GrowthRule(self.windows, self.rate)


class PrefixTreeEntry(_Hashed, frozen=True, tag="prefix-tree", kw_only=True):
    """A prefix tree: any text, of which frequent ones are found without candidates."""

    epsilon: Epsilon
    lengths: Annotated[
        list[Annotated[int, Meta(ge=1, le=LONGEST)]],
        Meta(
            min_length=2,
            max_length=MOST_LEVELS,
            description=f"a list of 2 to {MOST_LEVELS} ascending integers in [1, {LONGEST}]",
        ),
    ]
    alphabet: Annotated[str, Meta(description="the characters of texts, as one text")] = ""
    grow: Annotated[GrowEntry, Meta(description="a mapping with windows, and if need be rate")] | None = None

    def mechanism(self) -> PrefixTree:
        """Return what randomizes; ValueError if fields contradict each other."""
        return PrefixTree.from_epsilon(self.lengths, self.epsilon, self.hash_functions, self.hash_buckets)

    def details(self, folder: Path) -> dict[str, Any]:
        """Return alphabet, candidates and when to look for frequent texts."""
        mechanism = self.mechanism()
        check_steps(mechanism, alphabet_of(self.alphabet))
        is_listed = self.candidates is not None or self.candidates_file is not None
        candidates = _candidates(self.candidates, self.candidates_file, folder) if is_listed else ()
        prefixes = [mechanism.prefix(utf_8(each), mechanism.cohorts - 1) for each in candidates]
        check_distinct(
            f"candidates in their first {mechanism.lengths[-1]} bytes",
            [each.decode("utf-8", "backslashreplace") for each in prefixes],
        )
        growth = None if self.grow is None else self.grow.rule(mechanism)
        return {"candidates": candidates, "alphabet": self.alphabet, "growth": growth}


class RapporEntry(_Bits, frozen=True, tag="rappor", kw_only=True):
    """A Bloom-filter RAPPOR collection."""

    bits: Annotated[int, Meta(ge=8, le=LARGEST_BITS, multiple_of=8)]
    hashes: Annotated[int, Meta(ge=1)]
    cohorts: Annotated[int, Meta(ge=1, le=LARGEST_COHORTS)]
    candidates: list[Text] | None = None
    candidates_file: CandidatesFile | None = None

    def mechanism(self) -> Rappor:
        """Return what randomizes; ValueError if fields contradict each other."""
        return Rappor(self.bits, self.hashes, self.cohorts, *self._thresholds(self.hashes))

    def details(self, folder: Path) -> dict[str, Any]:
        """Return the strings to look for, and whether permanent responses are kept."""
        candidates = _candidates(self.candidates, self.candidates_file, folder)
        return {"candidates": candidates, "memoize": self.memoize}


class _HotEntry(_Bits, frozen=True, kw_only=True):
    """RAPPOR with one bit for each listed value."""

    values: list[Text]

    def details(self, _: Path) -> dict[str, Any]:
        """Return the values, and whether permanent responses are kept."""
        check_distinct("values", self.values)
        return {"values": tuple(self.values), "memoize": self.memoize}


class OneHotEntry(_HotEntry, frozen=True, tag="rappor-one-hot", kw_only=True):
    """RAPPOR with one bit for each listed value, of which a report sets one."""

    def mechanism(self) -> HotRappor:
        """Return what randomizes; ValueError if fields contradict each other."""
        return HotRappor(len(self.values), 1, *self._thresholds(1))


class KHotEntry(_HotEntry, frozen=True, tag="rappor-k-hot", kw_only=True):
    """RAPPOR with one bit for each listed value, of which a report sets up to `hot`."""

    hot: Annotated[int, Meta(ge=1, description="an integer in [1, number of values]")]

    def mechanism(self) -> HotRappor:
        """Return what randomizes; ValueError if fields contradict each other."""
        return HotRappor(len(self.values), self.hot, *self._thresholds(self.hot))


class NumberEntry(_Entry, frozen=True, tag="number", kw_only=True):
    """A number between two ends, by Square Wave."""

    minimum: Annotated[float, Meta(description="a number below maximum")]
    maximum: Annotated[float, Meta(description="a number above minimum")]
    steps: Annotated[int, Meta(ge=LEAST_STEPS, le=LARGEST_STEPS)] = DEFAULT_STEPS
    epsilon: Epsilon

    def mechanism(self) -> SquareWave:
        """Return what randomizes; ValueError if fields contradict each other."""
        return SquareWave.from_epsilon(self.minimum, self.maximum, self.steps, self.epsilon)


class FieldEntry(Section, frozen=True):
    """One of the two fields of a pair."""

    name: Name
    values: list[Text]
    other: bool = True
    epsilon: Epsilon | None = None

    def check_distinct(self) -> None:
        """Each value is listed once."""
        check_distinct("values", self.values)

    def check_number(self) -> None:
        """There must be as many values as a pair can have."""
        least = 1 if self.other else 2
        check_range("number of values", len(self.values), least, LARGEST_CELLS // 2 - self.other)

    def check_not_other(self) -> None:
        """No value may have the name of all others."""
        check_not_other(self.values)

    def field(self) -> Field:
        """Return the field."""
        return Field(self.name, tuple(self.values), self.other)


class _Pair(_Entry, frozen=True, kw_only=True):
    """Two fields that are reported together."""

    fields: Annotated[
        list[FieldEntry],
        Meta(min_length=2, max_length=2, description="a list of two fields, each with name and values"),
    ]

    def check_names(self) -> None:
        """The fields must have different names."""
        check_distinct("names of fields", [each.name for each in self.fields])

    def details(self, _: Path) -> dict[str, Any]:
        """Return fields, and pairs of values."""
        first, second = (each.field() for each in self.fields)
        labels = pair_labels(first, second)
        check_distinct("pairs of values as shown", labels)
        return {"values": labels, "fields": (first, second)}

    def _sizes(self) -> tuple[int, int]:
        first, second = (len(each.field().labels) for each in self.fields)
        return first, second


class PairEntry(_Pair, frozen=True, tag="k-rr-pair", kw_only=True):
    """Two fields that are reported together, each by k-RR."""

    epsilon: Epsilon | None = None

    def mechanism(self) -> PairKRR:
        """Return what randomizes; ValueError if fields contradict each other."""
        return PairKRR.from_epsilons(*self._sizes(), *self._epsilons())

    def check_epsilon(self) -> None:
        """Epsilon must be given once, and not exceed its range."""
        PairKRR.from_epsilons(2, 2, *self._epsilons())

    def _epsilons(self) -> tuple[float, float]:
        """Privacy loss of each field: as stated, or half of the whole."""
        match self.epsilon, *(each.epsilon for each in self.fields):
            case float(whole), None, None:
                return whole / 2, whole / 2
            case None, float(first), float(second):
                return first, second
        raise ValueError("give either epsilon, which both fields share equally, or an epsilon in each field")


class HotPairEntry(_Pair, frozen=True, tag="one-hot-pair", kw_only=True):
    """Two fields that are reported together, as one bit for each pair of values."""

    epsilon: Annotated[float, Meta(ge=LEAST_EPSILON, le=LARGEST_EPSILON)]

    def mechanism(self) -> OneHotPair:
        """Return what randomizes; ValueError if fields contradict each other."""
        return OneHotPair.from_epsilon(*self._sizes(), self.epsilon)

    def check_epsilon(self) -> None:
        """Epsilon must be that of the pair."""
        if any(each.epsilon is not None for each in self.fields):
            raise ValueError("epsilon is that of the pair: fields of a one-hot-pair take none of their own")


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
    | SubsetEntry
    | NumberEntry
)


def check_not_other(values: Sequence[str]) -> None:
    """Raise ValueError if a value is the name of the bucket of all others."""
    if OTHER_LABEL in values:
        raise ValueError(f"values must not contain '{OTHER_LABEL}', which stands for all others")


def _candidates(listed: Sequence[str] | None, file: str | None, folder: Path) -> tuple[str, ...]:
    """Return the strings to look for: those listed, or those of a file with one a line."""
    if listed and file is None:
        candidates = tuple(listed)
    elif listed is not None or file is None:
        raise ValueError("give either candidates, a list of at least one text, or candidates_file, a path")
    else:
        candidates = tuple(read_lines("candidates_file", folder / file))
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
    budget = None if entry.budget == "none" else entry.budget.budget()
    return Allowance(entry.collection(folder), budget, entry.reports_per_window)
