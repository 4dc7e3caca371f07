"""Which windows are tested, by which detector, and which of their revisions."""

import numpy as np
import pytest

from deniable.aggregator.history.forgery_detection import (
    DetectorFinding,
    ScoredWindow,
    finding,
    judge_pack,
    judge_windows,
)
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import EachWindow
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE, T0, MemoryRecord, pack_of

EVEN = (1000, 1000, 1000)
PERIOD = Period(T0, T0 + 1000)


def krr(*counts: int, packs: int = 1) -> WindowCounts:
    return WindowCounts(np.array([counts]), np.array([sum(counts)]), packs, 0)


def rappor(sizes: tuple[int, ...] = EVEN, share: float = 0.4, packs: int = 1) -> WindowCounts:
    counts = np.round(np.outer(sizes, np.full(16, share))).astype(np.int64)
    return WindowCounts(counts, np.array(sizes), packs, 0)


def judged(collection: Collection, *windows: WindowCounts) -> dict[str, DetectorFinding]:
    by_start = {T0 + 10 * number: window for number, window in enumerate(windows)}
    return {each.detector: each for each in judge_windows(collection, by_start, 0.001)}


def test_p_values_are_corrected_for_their_number() -> None:
    places = [
        ScoredWindow({"window_start": number}, p_value)
        for number, p_value in enumerate((0.3, 2e-4, 0.9, 4e-4))
    ]
    found = finding("change", places, 0.001)
    assert (found.judged, found.p_value) == (4, pytest.approx(8e-4))
    assert found.alarms == [{"window_start": 1, "p_value": pytest.approx(8e-4)}]
    assert finding("change", [], 0.001) == DetectorFinding("change", 0, 1.0, [])


def test_honest_windows_do_not_alarm() -> None:
    found = judged(FRUIT, krr(2100, 1000, 900, 1000), krr(2080, 1010, 890, 1020))
    assert {name: (each.judged, each.alarms) for name, each in found.items()} == {
        "impossible": (2, []),
        "change": (1, []),
    }
    assert all(not each.alarms for each in judged(PLACE, rappor(), rappor()).values())


HASHED = Collection("hashed", LocalHash.from_epsilon(2.0, 80), candidates=("a", "b"))


def hashed_reports(seed: int, forged: int = 0) -> WindowCounts:
    """40,000 honest reports of one value; `forged` more name one bucket of one function."""
    rng, functions = np.random.default_rng(seed), hash_functions_of(HASHED.mechanism, HASHED.fingerprint)
    drawn = rng.integers(80, size=40_000)
    true = functions.buckets(np.repeat(functions.words(["a"]), 40_000), drawn)
    lies = (true + rng.integers(1, 7, size=40_000)) % 7
    shown = np.where(rng.random(40_000) < HASHED.mechanism.hit, true, lies)
    counts = np.bincount(np.append(drawn * 7 + shown, np.full(forged, 17)), minlength=560)
    return WindowCounts(counts[None], np.array([40_000 + forged]), 1, 0)


TREE = Collection("tree", PrefixTree((1, 2), LocalHash.from_epsilon(2.0, 80)))


def test_a_tree_is_tested_by_level_function_and_bucket() -> None:
    """Half of the clients on each of two levels, whose reports are those of local hashing."""

    def of_two_levels(seed: int, forged: int = 0) -> WindowCounts:
        levels = [hashed_reports(seed), hashed_reports(seed + 10, forged)]
        counts = np.concatenate([each.counts for each in levels])
        sizes = np.concatenate([each.cohort_sizes for each in levels])
        return WindowCounts(counts, sizes, 1, 0)

    honest = judged(TREE, of_two_levels(1), of_two_levels(2))
    assert {name: (each.judged, each.alarms) for name, each in honest.items()} == {
        "cohorts": (2, []),
        "functions": (2, []),
        "impossible": (2, []),
        "change": (1, []),
    }
    forged = judged(TREE, of_two_levels(1), of_two_levels(2, forged=2000))
    assert [len(each.alarms) for each in forged.values()] == [1, 1, 1, 1]
    (alarm,) = forged["impossible"].alarms
    assert (alarm["level"], alarm["function"], alarm["bucket"]) == (2, 2, 3)


def test_local_hashing_is_tested_by_function_and_bucket() -> None:
    honest = judged(HASHED, hashed_reports(1), hashed_reports(2))
    assert {name: (each.judged, each.alarms) for name, each in honest.items()} == {
        "functions": (2, []),
        "impossible": (2, []),
        "change": (1, []),
    }
    forged = judged(HASHED, hashed_reports(1), hashed_reports(2, forged=1000))
    assert [len(each.alarms) for each in forged.values()] == [1, 1, 1]
    (alarm,) = forged["impossible"].alarms
    assert (alarm["window_start"], alarm["function"], alarm["bucket"]) == (T0 + 10, 2, 3)


def test_changed_windows_alarm() -> None:
    calm, forged = krr(2000, 1000, 1000, 1000), krr(2000, 1000, 1600, 1000)
    (alarm,) = judged(FRUIT, calm, calm, forged)["change"].alarms
    assert alarm["window_start"] == T0 + 20
    (alarm,) = judged(PLACE, rappor(), rappor(share=0.5))["change"].alarms
    assert alarm["window_start"] == T0 + 10


def test_counts_explained_by_no_values_are_named() -> None:
    (alarm,) = judged(FRUIT, krr(2000, 1000, 10, 1000))["impossible"].alarms
    assert (alarm["window_start"], alarm["value"]) == (T0, "kiwi")
    (alarm,) = judged(FRUIT, krr(2000, 1000, 1000, 10))["impossible"].alarms
    assert alarm["value"] == "other"
    window = rappor()
    window.counts[1, 3] = 20
    (alarm,) = judged(PLACE, window)["impossible"].alarms
    assert (alarm["cohort"], alarm["bit"]) == (1, 3)


def test_counts_explained_by_no_numbers_are_named() -> None:
    """At epsilon 1 a near cell is 2.7 times as likely as a far one, so no count may be 5 times another."""
    delay = Collection("delay", SquareWave.from_epsilon(0.0, 1.0, 16, 1.0))
    counts = [1000] * delay.width
    assert judged(delay, krr(*counts))["impossible"].alarms == []
    counts[7] = 5000
    (alarm,) = judged(delay, krr(*counts))["impossible"].alarms
    assert (alarm["window_start"], alarm["reported_cell"]) == (T0, 7)


def test_counts_explained_by_no_pairs_are_named() -> None:
    """At epsilon 1 of each field no pair is more than e^2 times as likely as another: not 20 times."""
    fields = Field("a", ("x", "y", "z"), False), Field("b", ("u", "v"), False)
    route = Collection("route", PairKRR.from_epsilons(3, 2, 1.0, 1.0), pair_labels(*fields), fields=fields)
    counts = [1000] * 6
    assert judged(route, krr(*counts))["impossible"].alarms == []
    counts[3] = 20_000
    (alarm,) = judged(route, krr(*counts))["impossible"].alarms
    assert (alarm["window_start"], alarm["value"]) == (T0, "y / v")


def test_uneven_cohorts_alarm() -> None:
    (alarm,) = judged(PLACE, rappor(), rappor((1000, 1000, 1400)))["cohorts"].alarms
    assert alarm["window_start"] == T0 + 10


def test_windows_with_few_reports_are_skipped() -> None:
    assert judged(FRUIT, krr(5, 0, 0, 0))["impossible"].judged == 0
    assert judged(FRUIT, krr(6, 0, 0, 0))["impossible"].judged == 1


@pytest.mark.slow
def test_packs_of_other_collections_are_skipped() -> None:
    assert judge_pack(FRUIT, pack_of(FRUIT)) is None
    assert judge_pack(PLACE, pack_of(FRUIT)) is None
    honest, full = pack_of(PLACE, reports=[0x5A35]), pack_of(PLACE, reports=[0xFFFF] * 20)
    assert judge_pack(PLACE, honest) == 1
    forged = judge_pack(PLACE, full)
    assert forged is not None
    assert forged < 1e-9


def read(*windows: tuple[int, WindowCounts]) -> EachWindow:
    reading = EachWindow(FRUIT, PERIOD)
    for start, counts in windows:
        for offset, (key, value) in enumerate(encode_pages(FinalWindow.of(FRUIT, start, counts))):
            reading.take(0, MemoryRecord(offset, T0 * 1000, key, value))
    return reading


def test_newest_revision_of_each_window_is_tested() -> None:
    reading = read(
        (T0 + 10, krr(1, 2, 3, 4, packs=2)), (T0, krr(5, 5, 5, 5)), (T0 + 10, krr(9, 9, 9, 9, packs=3))
    )
    assert {start: each.counts.tolist() for start, each in reading.windows().items()} == {
        T0: [[5, 5, 5, 5]],
        T0 + 10: [[9, 9, 9, 9]],
    }
    assert list(reading.windows()) == [T0, T0 + 10]
    assert reading.joined().reports == {T0: 20, T0 + 10: 36}


def test_window_with_missing_pages_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    from deniable.aggregator.records import final_window

    reading = read((T0, krr(1, 2, 3, 4, packs=2)))
    monkeypatch.setattr(final_window, "PAGE_COUNTERS", 2)
    first, _ = encode_pages(FinalWindow.of(FRUIT, T0, krr(5, 5, 5, 5, packs=3)))
    reading.take(0, MemoryRecord(7, T0 * 1000, *first))
    assert reading.windows() == {}
    assert reading.joined().incomplete == [T0]
