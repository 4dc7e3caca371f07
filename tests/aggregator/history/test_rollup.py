"""A roll-up: which windows it joined, and its estimate under both assumptions."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import coverage_of, record_of, roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import decode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.rollup.overlap import client_overlap
from tests.support.aggregator.builders import FRUIT, PLACE, T0, counts_of

HOUR = Period(T0 + 1, T0 + 59)  # whole windows of 10 s: from T0 + 10 to T0 + 50
LONGITUDINAL = replace(FRUIT, mechanism=LongitudinalKRR.from_epsilons(4, 3.0, 2.0), memoize=True)
HOT = replace(FRUIT, mechanism=HotRappor.from_probabilities(3, 1, 0.25, 0.35, 0.65), other=False)
HASHED = replace(
    FRUIT, mechanism=LocalHash.from_epsilon(1.0, 26), values=(), other=False, candidates=("a", "b", "c")
)
KEPT = replace(HASHED, mechanism=LongitudinalHash.from_epsilons(2.0, 1.0, 26, 3), memoize=True)
ALL = {
    "k-rr": FRUIT,
    "longitudinal": LONGITUDINAL,
    "rappor": PLACE,
    "one-hot": HOT,
    "local-hash": HASHED,
    "kept": KEPT,
}


def joined_of(collection: Collection, *windows: int, reports: int = 40) -> Joined:
    """Windows of this many reports each; starts are window numbers counted from T0."""
    krr = collection.width == FRUIT.width
    each = counts_of(FRUIT, [0, 1, 1, 2] * (reports // 4)) if krr else np.full(collection.width, reports // 2)
    counts = each[None].repeat(collection.cohorts, axis=0) * len(windows)
    sizes = np.full(collection.cohorts, reports * len(windows))
    starts = {T0 + 10 * number: reports * collection.cohorts for number in windows}
    total = WindowCounts(counts, sizes, packs=len(windows), rejected=3)
    return Joined(total, starts, [], {}, 0)


@pytest.mark.parametrize("collection", ALL.values(), ids=ALL)
def test_record_holds_both_estimates_over_the_whole_period(collection: Collection) -> None:
    joined = joined_of(collection, 1, 2, 4)
    result = roll_up(collection, joined)
    assert result is not None
    assert result.overlap == client_overlap(np.array(list(joined.reports.values())))
    record = msgspec.json.decode(
        msgspec.json.encode(record_of(collection, coverage_of(collection, HOUR, joined), joined, result))
    )
    assert (record["version"], record["collection"], record["window_seconds"]) == (
        1,
        "place" if collection is PLACE else "fruit",
        10,
    )
    assert (record["reports"], record["packs"], record["rejected"]) == (joined.counts.reports, 3, 3)
    assert record["overlap"] == 3
    for name in ("independent", "shared"):
        estimate = decode_estimate(msgspec.json.encode(record[name]))
        assert (estimate.window_start, estimate.window_end, estimate.final) == (T0 + 10, T0 + 50, True)
        assert estimate.frequency == pytest.approx(getattr(result, name).frequency[: collection.entries])
    independent = record["independent"]
    assert independent == msgspec.json.decode(
        msgspec.json.encode(
            msgspec.structs.replace(
                window_estimate.record_of(
                    collection,
                    T0 + 10,
                    joined.counts,
                    window_estimate.estimate(collection, joined.counts),
                    final=True,
                ),
                window_end=T0 + 50,
            )
        )
    )


@pytest.mark.parametrize("collection", [LONGITUDINAL, PLACE, HOT], ids=["longitudinal", "rappor", "one-hot"])
def test_errors_are_larger_if_clients_return(collection: Collection) -> None:
    result = roll_up(collection, joined_of(collection, 1, 2, 3, 4, reports=4000))
    assert result is not None
    assert (result.shared.std_error > result.independent.std_error).all()


TWICE = LongitudinalKRR.from_epsilons(3000, 6.0, 5.0)


@pytest.mark.parametrize(
    ("mechanism", "is_reported"),
    [
        (KRR.from_epsilon(3000, 5.0), True),
        (TWICE, False),
        (HotRappor.from_probabilities(3000, 1, 0.25, 0.35, 0.65), False),
        (HotRappor.from_probabilities(3000, 3, 0.25, 0.35, 0.65), False),
    ],
    ids=["k-rr", "longitudinal", "one-hot", "k-hot"],
)
def test_other_is_estimated_unless_permanent_noise_selected_values(
    mechanism: Mechanism, is_reported: bool
) -> None:
    collection = Collection("wide", mechanism, memoize=not isinstance(mechanism, KRR))
    counts = np.random.default_rng(1).integers(900, 1100, (1, mechanism.width))
    reports = 4000 if isinstance(mechanism, HotRappor) else int(counts.sum())
    joined = Joined(
        WindowCounts(counts, np.array([reports]), 2, 0), {0: reports // 2, 60: reports // 2}, [], {}, 0
    )
    result = roll_up(collection, joined)
    coverage = coverage_of(collection, Period(0, 120), joined)
    cut = record_of(collection, coverage, joined, result)
    assert cut.independent is not None
    assert cut.shared is not None
    assert cut.independent.omitted == cut.shared.omitted == 1000
    assert (cut.independent.other is not None, cut.shared.other is not None) == (True, is_reported)
    whole = record_of(collection, coverage, joined, result, whole=True)
    for kind, few in ((whole.independent, cut.independent), (whole.shared, cut.shared)):
        assert kind is not None
        assert (kind.omitted, kind.other, kind.window_end) == (0, None, few.window_end)
        shares = dict(zip(kind.values, kind.frequency, strict=True))
        assert [shares[value] for value in few.values] == few.frequency
        assert len(shares) == 3000


def test_coverage_lists_joined_and_missing_windows() -> None:
    joined = joined_of(FRUIT, 1, 4)
    found = Joined(joined.counts, joined.reports, [T0 + 30], {0xAB: 2}, 5)
    shown = msgspec.json.decode(msgspec.json.encode(coverage_of(FRUIT, HOUR, found)))
    assert shown == {
        "from": T0 + 10,
        "to": T0 + 50,
        "expected": 4,
        "windows": 2,
        "missing": [[T0 + 20, T0 + 30]],
        "incomplete": [[T0 + 30, T0 + 40]],
        "passed_over": {"00000000000000ab": 2},
        "foreign": 5,
    }


@pytest.mark.parametrize(
    ("reports", "is_enough"), [(FRUIT.minimum_reports - 1, False), (FRUIT.minimum_reports, True)]
)
def test_below_the_minimum_there_is_no_estimate(reports: int, is_enough: bool) -> None:
    """The minimum applies to all windows together; each alone may be below it."""
    counts = WindowCounts(np.array([[reports, 0, 0, 0]]), np.array([reports]), 2, 0)
    joined = Joined(counts, {T0 + 10: 1, T0 + 20: reports - 1}, [], {}, 0)
    result = roll_up(FRUIT, joined)
    assert (result is not None) == is_enough
    record = record_of(FRUIT, coverage_of(FRUIT, HOUR, joined), joined, result)
    assert [each is None for each in (record.overlap, record.independent, record.shared)] == [
        not is_enough
    ] * 3
    assert record.reports == reports


def test_counts_that_no_estimate_fits_are_refused() -> None:
    counts = WindowCounts(np.full((3, 16), 9), np.full(3, 8), 1, 0)
    with pytest.raises(ValueError, match="bit_counts"):
        roll_up(PLACE, Joined(counts, {T0: 24}, [], {}, 0))


@pytest.mark.parametrize(
    "mechanism", [PairKRR.from_epsilons(2, 2, 1.0, 1.0), OneHotPair.from_epsilon(2, 2, 2.0)]
)
def test_pairs_are_rolled_up_with_their_margins_and_test(mechanism: Mechanism) -> None:
    fields = Field("a", ("x", "y"), False), Field("b", ("u", "v"), False)
    collection = Collection("route", mechanism, pair_labels(*fields), fields=fields, minimum_reports=10)
    counts = np.full((1, mechanism.width), 100)
    counts[0, :4] += [50, 0, 0, 50]
    reports = int(counts.sum()) if mechanism.width == 4 else 600
    joined = Joined(WindowCounts(counts, np.array([reports]), packs=2, rejected=0), {T0: reports}, [], {}, 0)
    result = roll_up(collection, joined)
    assert result is not None
    assert result.shared is result.independent
    assert result.independent.pair is not None
    assert [len(margin.frequency) for margin in result.independent.pair.margins] == [2, 2]
    assert result.independent.pair.independence.degrees == 1
    assert (result.independent.other is not None) == isinstance(mechanism, OneHotPair)
