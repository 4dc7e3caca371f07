"""Metrics of the privacy cost of collections. Slow computations happen elsewhere."""

from math import isfinite

from prometheus_client import CollectorRegistry

from deniable.aggregator.metrics import definitions
from deniable.estimators.collection import Collection


class PrivacyMetrics:
    """Gauges of all collections of the file. Any thread may set them.

    Parameters
    ----------
    registry : to register in.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._epsilon = definitions.EPSILON_PER_REPORT.register(registry)
        self._permanent = definitions.EPSILON_PERMANENT.register(registry)
        self._lifetime = definitions.EPSILON_LIFETIME.register(registry)
        self._rho = definitions.RHO_PER_REPORT.register(registry)
        self._budget = definitions.BUDGET_EPSILON.register(registry)
        self._unlimited = definitions.BUDGET_UNLIMITED.register(registry)
        self._reports = definitions.BUDGET_REPORTS_BOUND.register(registry)
        self._used = definitions.BUDGET_USED_BOUND.register(registry)
        self._used_ratio = definitions.BUDGET_USED_BOUND_RATIO.register(registry)
        self._used_any = definitions.BUDGET_USED_ANY.register(registry)

    def show_collection(self, collection: Collection) -> None:
        """Show the cost of one report, and of any number, if bounded."""
        self._epsilon.labels(collection.name).set(collection.mechanism.epsilon)
        if isfinite(collection.epsilon_inf):
            self._permanent.labels(collection.name).set(collection.epsilon_inf)

    def show_rho(self, collection: str, rho: float) -> None:
        """Show zCDP rho of one report."""
        self._rho.labels(collection).set(rho)

    def show_lifetime(self, collection: str, epsilon: float) -> None:
        """Show what any number of reports costs whatever the values do, unless it is infinite."""
        if isfinite(epsilon):
            self._lifetime.labels(collection).set(epsilon)

    def show_budget(self, collection: str, budget: float, unlimited: bool) -> None:
        """Show the epsilon of a budget, and whether any number of reports is within it."""
        self._budget.labels(collection).set(budget)
        self._unlimited.labels(collection).set(unlimited)

    def show_used(
        self, collection: str, reports: int, epsilon: float, ratio: float, any_epsilon: float
    ) -> None:
        """Show how much of the budget one client may have used so far.

        Parameters
        ----------
        collection : its name.
        reports : upper bound for one client in this period so far.
        epsilon : of these reports together, at the budget's delta, about values as the budget says.
        ratio : epsilon / budget.
        any_epsilon : of these reports together, whatever the values do.
        """
        self._reports.labels(collection).set(reports)
        self._used.labels(collection).set(epsilon)
        self._used_ratio.labels(collection).set(ratio)
        self._used_any.labels(collection).set(any_epsilon)
