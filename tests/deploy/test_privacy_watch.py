"""What a worker tells of privacy, and that nothing waits for it."""

import time

import pytest
from prometheus_client import CollectorRegistry

from aggregator.privacy_metrics import PrivacyMetrics
from deploy import privacy_watch
from deploy.privacy_watch import PrivacyWatch
from estimators.account import loss_of_reports
from estimators.accounting.renyi import zcdp_rho
from estimators.collection import Collection
from estimators.krr import KRR
from producers.budget import Allowance, Budget
from producers.exposure import exposure

NOW = 20_000 * 86_400 + 43_200
CARRIER = Allowance(Collection("carrier", KRR.from_epsilon(16, 0.1)), Budget(8.0, 1e-6, 86_400))
PLACE = Allowance(Collection("place", KRR.from_epsilon(4, 1.0)), None)
FIGURES = (
    "rho_per_report_nats",
    "budget_epsilon_nats",
    "budget_reports_bound",
    "budget_used_bound_nats",
    "budget_used_bound_ratio",
)


class Told:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.watch = PrivacyWatch([CARRIER, PLACE], PrivacyMetrics(self.registry))

    def of(self, allowance: Allowance) -> list[float | None]:
        labels = {"collection": allowance.collection.name}
        return [self.registry.get_sample_value(f"deniable_{figure}", labels) for figure in FIGURES]


def test_costs_and_what_a_client_may_have_spent_are_told() -> None:
    told = Told()
    told.watch.tell_costs()
    told.watch.tell_used(NOW)
    assert CARRIER.budget is not None
    rho = zcdp_rho(loss_of_reports(CARRIER.collection.mechanism, 1, memoized=False))
    assert told.of(CARRIER) == [rho, 8.0, *exposure(CARRIER, CARRIER.budget, NOW)]
    assert 0 < told.of(CARRIER)[-1] <= 1


def test_of_a_collection_without_a_budget_nothing_is_told_that_a_budget_bounds() -> None:
    told = Told()
    told.watch.tell_costs()
    told.watch.tell_used(NOW)
    rho = zcdp_rho(loss_of_reports(PLACE.collection.mechanism, 1, memoized=False))
    assert told.of(PLACE) == [rho, None, None, None, None]


def test_it_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told, moments = Told(), iter([NOW, NOW + 3600])
    seen: list[float | None] = []

    def sleep(seconds: float) -> None:
        assert seconds == privacy_watch.WATCH_SECONDS
        seen.append(told.of(CARRIER)[2])
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "time", lambda: next(moments))
    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        told.watch.run()
    first, second = seen
    assert first is not None
    assert second is not None
    assert first < second


def test_the_process_ends_without_it() -> None:
    assert Told().watch.daemon
