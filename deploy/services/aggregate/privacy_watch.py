"""Compute what collections cost in privacy, beside a worker, for its metrics.

Exact composition may take seconds, so neither the worker's start nor its event loop waits for it.
"""

import threading
import time
from collections.abc import Iterable

from deniable.aggregator.metrics.privacy_metrics import PrivacyMetrics
from deniable.config.settings.allowance import UNLIMITED, Allowance
from deniable.estimators.accounting.accountant import loss_of_reports
from deniable.estimators.accounting.renyi import zcdp_rho
from deniable.producers.budget.exposure import exposure

WATCH_SECONDS = 15.0


class PrivacyWatch(threading.Thread):
    """Computes the gauges in a daemon thread, which never delays the end of the process.

    Parameters
    ----------
    allowances : of the collection file.
    metrics : to update.
    """

    def __init__(self, allowances: Iterable[Allowance], metrics: PrivacyMetrics) -> None:
        super().__init__(name="privacy", daemon=True)
        self._allowances = tuple(allowances)
        self._metrics = metrics

    def run(self) -> None:
        """Show what one report costs; then, every 15 s, what a client may have spent by now."""
        self.show_costs()
        while True:
            self.show_used(time.time())
            time.sleep(WATCH_SECONDS)

    def show_costs(self) -> None:
        """Show rho, lifetime epsilon and budget of every collection."""
        for allowance in self._allowances:
            name, mechanism = allowance.collection.name, allowance.collection.mechanism
            self._metrics.show_rho(name, zcdp_rho(loss_of_reports(mechanism, 1, memoized=False)))
            self._metrics.show_lifetime(name, allowance.epsilon_inf("any"))
            if allowance.budget is not None:
                unlimited = allowance.unspent_limit == UNLIMITED
                self._metrics.show_budget(name, allowance.budget.epsilon, unlimited)

    def show_used(self, now: float) -> None:
        """Show what one client may have spent by `now`, unix seconds, for collections with a budget."""
        for allowance in self._allowances:
            if allowance.budget is not None:
                used = exposure(allowance, allowance.budget, now)
                self._metrics.show_used(allowance.collection.name, *used)
