"""An entry of `collections` in the collection file: its fields by mechanism, and what it defines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from deploy.config.checks import YEAR_SECONDS, check_distinct, check_range, read_lines
from estimators.canary import MOST_VALUES, least_reports
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_bits import round_to_thresholds
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.rappor_parameters import choose_thresholds
from producers.budget.allowance import LARGEST_REPORTS_PER_WINDOW, Allowance, Budget

LARGEST_SIZE = 1_400_000
MOST_CANDIDATES = 1_000_000
MOST_PUBLISHED = 100_000  # with publish: all; they are published in one transaction

Name = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,62}$")]


class BudgetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all reports of one client to one collection may cost together in a period."""

    epsilon: float
    delta: float
    period_seconds: int

    def __post_init__(self) -> None:
        self.budget()

    def budget(self) -> Budget:
        """Return the budget; ValueError if a field is out of range."""
        return Budget(self.epsilon, self.delta, self.period_seconds)


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="mechanism", kw_only=True):
    name: Name
    window_seconds: int
    grace_seconds: int
    retention_seconds: int = 3600
    minimum_reports: int = 100
    window_packs: int = 4_000_000
    publish: Literal["top", "all"] = "top"
    reports_per_window: int = 1
    budget: Literal["none"] | BudgetEntry

    def __post_init__(self) -> None:
        check_range("window_seconds", self.window_seconds, 1, YEAR_SECONDS)
        check_range("grace_seconds", self.grace_seconds, 0, YEAR_SECONDS)
        # If shorter, a window could expire before all partitions have closed it, and never become final.
        check_range("retention_seconds", self.retention_seconds, 60, 10 * YEAR_SECONDS)
        check_range("minimum_reports", self.minimum_reports, 1, 10**12)
        check_range("window_packs", self.window_packs, 1, 10**8)
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
        candidates = tuple(self._candidates(folder))
        check_distinct("candidates", candidates)
        check_range("number of candidates", len(candidates), 1, MOST_CANDIDATES)
        return self._collection(mechanism, candidates=candidates, memoize=self.memoize)

    def _candidates(self, folder: Path) -> Iterable[str]:
        if self.candidates and self.candidates_file is None:
            return self.candidates
        if self.candidates is not None or self.candidates_file is None:
            raise ValueError(
                "give either candidates, a list of at least one text, or candidates_file, a path"
            )
        return read_lines("candidates_file", folder / self.candidates_file)


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


Entry = KRREntry | LongitudinalEntry | RapporEntry | OneHotEntry | KHotEntry


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
