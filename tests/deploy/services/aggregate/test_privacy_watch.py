"""Privacy figures of a worker's metrics and page; computing them blocks nothing."""

import json
import shlex
import time
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from deniable.aggregator.metrics.privacy_metrics import PrivacyMetrics
from deniable.config.settings.allowance import Allowance, Budget
from deniable.deploy.offline.account import account
from deniable.deploy.services.aggregate import command
from deniable.deploy.services.aggregate.command import PrivacyWatch
from deniable.estimators.accounting.accountant import loss_of_reports
from deniable.estimators.accounting.renyi import zcdp_rho
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.budget.exposure import exposure

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


class Recorder:
    def __init__(self, *allowances: Allowance) -> None:
        self.registry = CollectorRegistry()
        self.metrics = PrivacyMetrics(self.registry)
        self.watch = PrivacyWatch(allowances or (CARRIER, PLACE), self.metrics)

    def of(self, allowance: Allowance) -> list[float | None]:
        return [self.figure(allowance, figure) for figure in FIGURES]

    def figure(self, allowance: Allowance, figure: str) -> float | None:
        labels = {"collection": allowance.collection.name}
        return self.registry.get_sample_value(f"deniable_{figure}", labels)


def test_costs_and_bound_on_spending_are_reported() -> None:
    shown = Recorder()
    shown.watch.show_costs()
    shown.watch.show_used(NOW)
    assert CARRIER.budget is not None
    rho = zcdp_rho(loss_of_reports(CARRIER.collection.mechanism, 1, memoized=False))
    assert shown.of(CARRIER) == [rho, 8.0, *exposure(CARRIER, CARRIER.budget, NOW)[:3]]
    assert 0 < shown.of(CARRIER)[-1] <= 1


def test_collection_without_budget_has_no_budget_metrics() -> None:
    shown = Recorder()
    shown.watch.show_costs()
    shown.watch.show_used(NOW)
    rho = zcdp_rho(loss_of_reports(PLACE.collection.mechanism, 1, memoized=False))
    assert shown.of(PLACE) == [rho, None, None, None, None]


def hourly(mechanism: Any, epsilon: float, *, memoize: bool = False) -> Allowance:
    """A report an hour: so few by noon that memoized ones cost less than their permanent response."""
    collection = Collection("hourly", mechanism, memoize=memoize, window_seconds=3600)
    return Allowance(collection, Budget(epsilon, 1e-6, 86_400, values="unchanged"))


def accounted(line: str) -> dict[str, Any]:
    """What `deniable account --json` says at the budgets' delta."""
    ended = CliRunner().invoke(account, shlex.split(f"{line} --delta 1e-6 --json"))
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    assert isinstance(found, dict)
    return found


BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
AS_ACCOUNT = {
    "many k-rr": (CARRIER, "--mechanism k-rr --k 16 --epsilon 0.1"),
    "k-rr": (hourly(KRR.from_epsilon(4, 0.5), 20.0), "--mechanism k-rr --k 4 --epsilon 0.5"),
    "memoized rappor": (
        hourly(BLOOM, 8.0, memoize=True),
        "--mechanism rappor --f 0.25 --p 0.35 --q 0.65 --hashes 2 --memoized",
    ),
    "fresh rappor": (
        hourly(BLOOM, 50.0),
        "--mechanism rappor --f 0.25 --p 0.35 --q 0.65 --hashes 2",
    ),
    "longitudinal": (
        hourly(LongitudinalKRR.from_epsilons(4, 3.0, 0.5), 8.0, memoize=True),
        "--mechanism k-rr-longitudinal --k 4 --epsilon-inf 3 --epsilon-one 0.5 --memoized",
    ),
}


@pytest.mark.parametrize(("allowance", "line"), AS_ACCOUNT.values(), ids=AS_ACCOUNT)
def test_gauges_are_what_account_says_of_so_many_reports(allowance: Allowance, line: str) -> None:
    shown = Recorder(allowance)
    shown.metrics.show_collection(allowance.collection)
    shown.watch.show_costs()
    shown.watch.show_used(NOW)
    rho, budget, reports, used, ratio = shown.of(allowance)
    assert reports
    assert budget
    message = accounted(f"{line} --reports {reports:.0f}")
    assert (rho, used) == (message["rho"], message["exact"])
    assert ratio == message["exact"] / budget < 1
    assert shown.figure(allowance, "epsilon_per_report_nats") == message["epsilon_one"]
    permanent = message["epsilon_inf"] if allowance.memoized else None
    assert shown.figure(allowance, "epsilon_permanent_nats") == permanent
    lifetime = shown.figure(allowance, "epsilon_lifetime_nats")
    if isinstance(allowance.collection.mechanism, LongitudinalKRR):  # as often as there are buckets
        assert lifetime == pytest.approx(4 * message["epsilon_inf"], rel=1e-9)
    else:
        assert lifetime is None


def test_gauge_at_an_exhausted_budget_equals_account() -> None:
    """So many that the bounds allow different numbers."""
    allowance = replace(CARRIER, budget=Budget(2.0, 1e-6, 86_400))
    shown = Recorder(allowance)
    shown.watch.show_used(NOW)
    line = "--mechanism k-rr --k 16 --epsilon 0.1"
    assert (
        shown.figure(allowance, "budget_reports_bound") == accounted(f"{line} --budget 2")["reports"]["exact"]
    )


def test_used_budget_is_refreshed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, moments = Recorder(), iter([NOW, NOW + 3600])
    seen: list[float | None] = []

    def sleep(seconds: float) -> None:
        assert seconds == command.WATCH_SECONDS
        seen.append(shown.of(CARRIER)[2])
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "time", lambda: next(moments))
    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        shown.watch.run()
    first, second = seen
    assert first is not None
    assert second is not None
    assert first < second


def test_the_process_ends_without_it() -> None:
    assert Recorder().watch.daemon
