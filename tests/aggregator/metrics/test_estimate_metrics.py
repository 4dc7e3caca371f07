"""Exported estimates: complete, of the newest window, and with a bounded number of values."""

from math import inf

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from deniable.aggregator.metrics import definitions, estimate_metrics
from deniable.aggregator.metrics.estimate_metrics import FIGURES, EstimateMetrics
from deniable.aggregator.records.estimate import (
    ConditionalShares,
    EstimateRecord,
    IndependenceTest,
    NumberMean,
    NumberQuantile,
    Other,
    PairRecord,
)
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, T0, changed, estimate_of

LATENCY = "latency"
MOST_SERIES = 10_000  # of values: the most that Prometheus ever stores for one worker


FIT = {"likelihood_gap": 0.0, "chi_square_ratio": 3.8, "chi_square_limit": 1.27, "unexplained_bits": 16.0}


class Shown:
    """Metrics of estimates in a separate registry."""

    def __init__(self, *collections: str) -> None:
        self.registry = CollectorRegistry()
        self.metrics = EstimateMetrics(collections or ("fruit", "place", LATENCY), self.registry)

    def samples(self, collection: str) -> list[Sample]:
        found = [sample for family in self.registry.collect() for sample in family.samples]
        return [sample for sample in found if sample.labels["collection"] == collection]

    def values(self, collection: str, figure: str = "frequency") -> dict[str, float]:
        """Samples of a metric by value."""
        name = f"deniable_estimate_{figure}_ratio"
        return {s.labels["value"]: s.value for s in self.samples(collection) if s.name == name}

    def figure(self, name: str, collection: str) -> float | None:
        return self.registry.get_sample_value(f"deniable_estimate_{name}", {"collection": collection})

    def dropped(self, collection: str) -> float | None:
        return self.figure("values_dropped_total", collection)


def large(
    first: int = 0, *, significant: bool = True, size: int = 10**6, values: int = 100
) -> EstimateRecord:
    """An estimate of a large domain: values from `first` on, in increasing order."""
    shares = [(i + 1) / 10**6 for i in range(values)]
    return changed(
        estimate_of(),
        collection=LATENCY,
        values=[str(first + i) for i in range(values)],
        frequency=shares,
        count=shares,
        std_error=[0.5] * values,
        low=shares,
        high=shares,
        significant=[significant] * values,
        omitted=size - values,
        other=None,
    )


def test_estimate_replaces_the_one_before() -> None:
    shown, record = Shown(), estimate_of()
    shown.metrics.show(changed(record, values=["old", "older", "oldest"]))
    shown.metrics.show(record)
    assert shown.values("fruit") == dict(zip(FRUIT.values, record.frequency, strict=True))
    assert shown.values("fruit", "std_error") == dict(zip(FRUIT.values, record.std_error, strict=True))
    assert shown.values("fruit", "low") == dict(zip(FRUIT.values, record.low, strict=True))
    assert shown.values("fruit", "high") == dict(zip(FRUIT.values, record.high, strict=True))
    assert shown.figure("reports", "fruit") == 40
    assert shown.figure("window_start_timestamp_seconds", "fruit") == T0


def test_other_differs_from_a_value_named_other() -> None:
    shown, record = Shown(), estimate_of()
    shown.metrics.show(changed(record, values=["apple", "fig", "other"], other=Other(0.25, 0.125, 0.0, 0.5)))
    assert shown.values("fruit")["other"] == record.frequency[2]
    assert shown.figure("other_frequency_ratio", "fruit") == 0.25
    assert shown.figure("other_std_error_ratio", "fruit") == 0.125
    assert shown.figure("other_low_ratio", "fruit") == 0
    assert shown.figure("other_high_ratio", "fruit") == 0.5
    shown.metrics.show(changed(record, other=None))
    assert shown.figure("other_frequency_ratio", "fruit") is None


def test_estimate_of_an_earlier_window_is_ignored() -> None:
    shown, record = Shown(), estimate_of()
    shown.metrics.show(changed(record, window_start=T0 + 10))
    shown.metrics.show(changed(record, reports=7))
    assert shown.figure("reports", "fruit") == 40
    shown.metrics.forget("fruit")
    shown.metrics.show(changed(record, reports=7))
    assert shown.figure("reports", "fruit") == 7


def test_estimates_are_forgotten_singly() -> None:
    shown = Shown()
    for collection in COLLECTIONS.values():
        shown.metrics.show(estimate_of(collection))
    shown.metrics.forget("fruit")
    assert not any("dropped" not in sample.name for sample in shown.samples("fruit"))
    assert shown.figure("reports", "place") == 120


def test_unknown_error_is_infinite() -> None:
    shown = Shown()
    shown.metrics.show(changed(estimate_of(), std_error=[None] * 3, other=Other(0.5, None)))
    assert shown.values("fruit", "std_error") == dict.fromkeys(FRUIT.values, inf)
    assert shown.figure("other_std_error_ratio", "fruit") == inf
    assert shown.figure("other_low_ratio", "fruit") is None


def test_large_domain_exports_its_largest_estimates() -> None:
    shown = Shown()
    shown.metrics.show(large())
    assert set(shown.values(LATENCY)) == {str(i) for i in range(80, 100)}
    assert shown.dropped(LATENCY) == 0


def test_large_domain_exports_only_significant_values() -> None:
    shown = Shown()
    shown.metrics.show(large(significant=False))
    assert shown.values(LATENCY) == {}
    assert shown.dropped(LATENCY) == definitions.VALUES_SHOWN
    shown.metrics.show(large())
    shown.metrics.show(large(significant=False))
    assert len(shown.values(LATENCY)) == definitions.VALUES_SHOWN, "what was significant once is shown on"


def test_small_domain_exports_all_values() -> None:
    shown, share = Shown(), definitions.MOST_VALUES // 3
    shown.metrics.show(large(significant=False, size=share))
    assert len(shown.values(LATENCY)) == definitions.VALUES_SHOWN
    assert shown.dropped(LATENCY) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("collections", "most"), [(1, 300), (3, 900), (100, definitions.MOST_VALUES)])
def test_number_of_exported_values_is_bounded(
    collections: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each collection has its share, however many values others show."""
    assert definitions.MOST_VALUES * len(FIGURES) <= MOST_SERIES
    monkeypatch.setattr(estimate_metrics, "MOST_VALUES", most)
    names = [LATENCY, *(f"other-{i}" for i in range(collections - 1))]
    shown, seen, share = Shown(*names), set[str](), most // collections
    estimates = share // definitions.VALUES_SHOWN + 3
    for i in range(estimates):
        shown.metrics.show(large(1000 * i))
        seen |= shown.values(LATENCY).keys()
    assert len(seen) == share
    assert shown.dropped(LATENCY) == estimates * definitions.VALUES_SHOWN - share
    if collections > 1:
        shown.metrics.show(changed(large(), collection="other-0"))
        assert len(shown.values("other-0")) == definitions.VALUES_SHOWN


def test_p_value_of_a_pair_is_exported_until_forgotten() -> None:
    shown, empty = Shown("fruit"), ConditionalShares([], [], [], [])
    name = "deniable_estimate_independence_p_value"
    pair = PairRecord([], [], [], empty, empty, IndependenceTest(9.5, 2, 0.00865, True))
    shown.metrics.show(changed(estimate_of(), pair=pair))
    assert shown.registry.get_sample_value(name, {"collection": "fruit"}) == 0.00865
    shown.metrics.forget("fruit")
    assert shown.registry.get_sample_value(name, {"collection": "fruit"}) is None


def test_p_value_of_the_fit_is_exported_where_it_was_tested() -> None:
    shown, name = Shown("fruit"), "deniable_estimate_fit_p_value"
    shown.metrics.show(changed(estimate_of(), diagnostics={"fit_p_value": 2e-9}))
    assert shown.registry.get_sample_value(name, {"collection": "fruit"}) == 2e-9
    shown.metrics.show(changed(estimate_of(), diagnostics={}))
    assert shown.registry.get_sample_value(name, {"collection": "fruit"}) is None


def test_share_of_values_may_be_zero() -> None:
    """With more collections than exported values, no values are exported."""
    shown = Shown(LATENCY, *(f"other-{i}" for i in range(definitions.MOST_VALUES)))
    shown.metrics.show(changed(large(values=3), omitted=0))
    assert (shown.values(LATENCY), shown.dropped(LATENCY)) == ({}, 3)
    assert shown.figure("reports", LATENCY) == 40


def test_mean_and_quantiles_of_a_number_are_exported_until_forgotten() -> None:
    shown = Shown("fruit")
    mean, quantiles = NumberMean(3.5, 0.5, 2.5, 4.5), [NumberQuantile(0.5, 3.0, 2.0, 4.0)]
    shown.metrics.show(changed(estimate_of(), mean=mean, quantiles=quantiles))
    figures = {
        name: shown.registry.get_sample_value(f"deniable_estimate_{name}", {"collection": "fruit"} | labels)
        for labels in ({}, {"level": "0.5"})
        for name in (
            f"{kind}{end}" for kind in ("quantile" if labels else "mean",) for end in ("", "_low", "_high")
        )
    }
    assert figures == {
        "mean": 3.5, "mean_low": 2.5, "mean_high": 4.5,
        "quantile": 3.0, "quantile_low": 2.0, "quantile_high": 4.0,
    }  # fmt: skip
    shown.metrics.forget("fruit")
    assert shown.registry.get_sample_value("deniable_estimate_mean", {"collection": "fruit"}) is None


def test_frequent_texts_outside_a_list_are_exported_for_hashing_only() -> None:
    shown = Shown()
    shown.metrics.show(changed(estimate_of(), diagnostics={"unlisted_texts": 2.0, "unlisted_share": 0.3}))
    shown.metrics.show(changed(estimate_of(), collection="place", diagnostics=FIT))

    def figures(collection: str) -> list[float | None]:
        names = ("unlisted_texts", "unlisted_ratio", "chi_square_ratio")
        of = {"collection": collection}
        return [shown.registry.get_sample_value(f"deniable_list_{name}", of) for name in names]

    assert figures("fruit") == [2, 0.3, None]
    assert figures("place") == [None, None, 3.8]


def test_the_fit_of_a_list_is_exported_for_rappor_only() -> None:
    shown = Shown()
    record = estimate_of()
    unreliable = [True, *[False] * (len(record.values) - 1)]
    shown.metrics.show(changed(record, collection="place", diagnostics=FIT, unreliable=unreliable))
    shown.metrics.show(record)
    names = ("chi_square_ratio", "chi_square_limit_ratio", "unexplained", "unreliable_values")

    def figures(collection: str) -> list[float | None]:
        of = {"collection": collection}
        return [shown.registry.get_sample_value(f"deniable_list_{name}", of) for name in names]

    assert figures("place") == [3.8, 1.27, 16, 1]
    assert figures("fruit") == [None] * 4
