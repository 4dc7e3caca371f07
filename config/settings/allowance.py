"""What a client may spend: a budget's rules, without state."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.spending_terms import ENDLESS, FINGERPRINT_BYTES, MOST_CHANGES, SpendingTerms
from deniable.estimators.accounting.accountant import Subject, epsilon_inf, most_reports
from deniable.estimators.accounting.changing_values import changing
from deniable.estimators.accounting.limits import exact_cost, exactly_allowed
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import product_above
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR

LEVELS = 64
LARGEST_REPORTS_PER_WINDOW = 65535
UNLIMITED = 2**62
# delta at which the epsilon of a collection without a budget is stated.
STATED_DELTA = 1e-6


#: What a budget of memoized reports holds for: values that stay the same, or whatever they do.
BudgetValues = Literal["unchanged", "any"]

VALUES_ADVICE = (
    "write values: any, so that the limit holds whatever the values of a client do, if it is known when they"
    " change, or values: unchanged, so that it holds while a client's value stays the same: each further"
    " value then costs epsilon_inf again"
)


@dataclass(frozen=True)
class Budget:
    """The privacy loss that all reports of one client in one period may cost together.

    Parameters
    ----------
    epsilon : nats, in (0, inf).
    delta : in (0, 1).
    period_seconds : at least 1. A period is floor(unix time / period_seconds).
    values : `unchanged`, for one value; `any`, whatever the values do. Needed for memoized reports; without
        permanent responses, n reports cost the same either way.
    changes : with `any`, and only of longitudinal local hashing: how many changes of its bucket a client's
        reports show, in all periods together, at least 0; None for any number. After these, reports of
        whatever value show the last bucket, by its permanent response and fresh noise. None is refused, since
        that would depend on values.

    Raises
    ------
    ValueError if a parameter is out of range, or changes are given without values: any.
    """

    epsilon: float
    delta: float
    period_seconds: int
    changes: int | None = None
    values: BudgetValues | None = None

    def __post_init__(self) -> None:
        if self.values not in (None, *get_args(BudgetValues)):
            raise ValueError(f"values of a budget must be unchanged or any, got {self.values}")
        if self.changes is not None and self.changes < 0:
            raise ValueError(f"changes of a budget must be at least 0, got {self.changes}")
        if self.changes is not None and self.values != "any":
            raise ValueError(
                f"changes of a budget, which {LongitudinalHash.name} alone has, need values: any, got"
                f" {self.values or 'no values'}: they limit what changing values cost"
            )
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon of a budget must be in (0, inf), got {self.epsilon}")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta of a budget must be in (0, 1), got {self.delta}")
        if not 1 <= self.period_seconds < 2**32:
            raise ValueError(f"period_seconds must be in [1, {2**32}), got {self.period_seconds}")


@dataclass(frozen=True)
class Allowance:
    """What each client may report to one collection. Only numbers of reports decide.

    Parameters
    ----------
    collection : Collection.
    budget : Budget, or None for none.
    reports_per_window : of one client, in [1, 65535].

    Raises
    ------
    ValueError if reports_per_window is out of range, the budget has changes that the mechanism has not, or
    does not say what its limit on memoized reports holds for.
    """

    collection: Collection
    budget: Budget | None
    reports_per_window: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.reports_per_window <= LARGEST_REPORTS_PER_WINDOW:
            raise ValueError(
                f"reports_per_window must be in [1, {LARGEST_REPORTS_PER_WINDOW}],"
                f" got {self.reports_per_window}"
            )
        mechanism = self.collection.mechanism
        has_changes = self.budget is not None and self.budget.changes is not None
        if has_changes and mechanism.epsilon_of_all_buckets is None:
            raise ValueError(
                f"changes of a budget need mechanism {LongitudinalHash.name}, got {mechanism.name}"
            )
        if self.memoized and self.budget is not None and self.budget.values is None:
            raise ValueError(
                f"values of the budget of {self.collection.name}, which is memoized, must be any or "
                f"unchanged: {VALUES_ADVICE}"
            )

    def check_own_clients(self) -> None:
        """Check that one report costs no more than the budget: enough if each event is a different client.

        Raises
        ------
        ValueError if it costs more.
        """
        cost = self.collection.mechanism.epsilon
        if self.budget is not None and cost > self.budget.epsilon:
            raise ValueError(
                f"epsilon of one report to {self.collection.name} must be in (0, {self.budget.epsilon}], "
                f"its budget, got {cost}"
            )

    @property
    def values(self) -> BudgetValues:
        """What the limits hold for: as the budget says, or any without one or without permanent responses."""
        stated = None if self.budget is None else self.budget.values
        return "unchanged" if self.memoized and stated == "unchanged" else "any"

    def _subject(self, values: BudgetValues) -> Subject:
        """Return what is accounted."""
        mechanism = self.collection.mechanism
        if self.memoized and values == "any":
            return changing(mechanism, None if self.budget is None else self.budget.changes)
        return mechanism.response if isinstance(mechanism, LongitudinalHash) else mechanism

    @cached_property
    def memoized(self) -> bool:
        """Whether all reports of a client and value share one permanent response."""
        mechanism = self.collection.mechanism
        return mechanism.always_memoizes or (self.collection.memoize and mechanism.keeps_permanent)

    @cached_property
    def epsilon_per_report(self) -> float:
        """Bound such that n reports cost at most n times as much at delta = 0, for every n.

        For fresh reports, the loss of one; the same for memoized bits: n reports reveal of a differing bit,
        in either direction, at most F(na) + F(nb), with a = ln(q / p), b = ln((1 - p) / (1 - q)) and F(d) = 2
        artanh((1 - f) tanh(d/2)), which is concave for d >= 0, so at most n times the loss of one. With k
        values, n equal reports can reveal more than n times the loss of one. But they depend on the truth
        only through the permanent response, so n times the loss of the second step bounds them.
        """
        mechanism = self.collection.mechanism
        if isinstance(mechanism, LongitudinalKRR | LongitudinalHash):
            return mechanism.instantaneous.epsilon
        return mechanism.epsilon

    @cached_property
    def terms(self) -> SpendingTerms:
        """The terms of reports under this allowance."""
        return SpendingTerms(
            self.collection.fingerprint.to_bytes(FINGERPRINT_BYTES, "little"),
            ENDLESS if self.budget is None else self.budget.period_seconds,
            self.epsilon_per_report,
            self.epsilon_inf("any"),
            self.changes,
            self.memoized,
        )

    @property
    def changes(self) -> int | None:
        """How many changes of its bucket a client shows, at most MOST_CHANGES; None for any number."""
        limited = None if self.budget is None else self.budget.changes
        return None if limited is None else min(limited, MOST_CHANGES)

    def epsilon_inf(self, values: BudgetValues) -> float:
        """Return a bound for any number of reports at delta = 0; inf if there is none.

        Parameters
        ----------
        values : `unchanged`, for one value; `any`, whatever the values do, if it is known when they change.
        """
        return epsilon_inf(self._subject(values), self.memoized) if self.memoized else math.inf

    def levels(self, carried: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the share of the budget spent under earlier parameters, in 64ths, rounded up: [0, LEVELS].

        With so few levels, the limit of each is computed only once.

        Parameters
        ----------
        carried : floats (n,), epsilon at delta = 0, >= 0.
        """
        if self.budget is None:
            return np.zeros(len(carried), np.int64)
        # A quotient and a product round by 2^-53 each.
        exact = np.minimum(carried.astype(np.float64) * (LEVELS / self.budget.epsilon) * (1 + 2**-50), LEVELS)
        return np.ceil(exact).astype(np.int64)

    def limits(self, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the reports under present parameters that one period allows, int64 (n,), <= UNLIMITED."""
        limits = np.zeros(LEVELS + 1, np.int64)
        for level in np.flatnonzero(np.bincount(levels)).tolist():
            limits[level] = self._limit(level)
        return limits[levels]

    @cached_property
    def unspent_limit(self) -> int:
        """The reports that one period allows to a client that has spent nothing; UNLIMITED for any number."""
        return self._limit(0)

    def _limit(self, level: int) -> int:
        if self.budget is None:
            return UNLIMITED
        if level >= LEVELS:
            return 0
        left = self.budget.epsilon * (1 - level / LEVELS)
        allowed = exactly_allowed(self._subject(self.values), left, self.budget.delta, self.memoized)
        return UNLIMITED if allowed is None else allowed

    @property
    def delta(self) -> float:
        """The delta at which epsilon is stated: the budget's, or STATED_DELTA."""
        return STATED_DELTA if self.budget is None else self.budget.delta

    def epsilon(self, reports: int, values: BudgetValues | None = None) -> float:
        """Return the joint loss of this many reports of one client, at `delta`; 0 for none.

        Rounded up, as far as the accountant goes (`most_reports`); beyond, the bound for delta = 0.

        Parameters
        ----------
        reports : of one client.
        values : as in `epsilon_inf`; None for what the limits hold for.
        """
        covered = self.values if values is None else values
        subject = self._subject(covered)
        bound = min(product_above(reports, self.epsilon_per_report), self.epsilon_inf(covered))
        if not 0 < reports <= most_reports(subject, self.memoized):
            return bound
        return min(bound, exact_cost(subject, reports, self.delta, self.memoized))
