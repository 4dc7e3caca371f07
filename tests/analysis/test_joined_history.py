"""A history over changes: what is joined, what is marked, and what is not comparable."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import decode_estimate, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views.changed_parameters import why_not_comparable
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.analysis.changes.comparability import change_between, sentence_of
from deniable.analysis.changes.joined_history import Definition, JoinedHistoryRecord, join_history
from deniable.deploy.query.rollup import lines_of_parts
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import contradicts
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of
from tests.support.messages import PinMessages

DAY = Period(T0, T0 + 86_400)
REPORTS = 100_000
SHARES = {"apple": 0.5, "fig": 0.2, "kiwi": 0.1, "lime": 0.05, "(other)": 0.2}
CLOSER = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))
LONGER = replace(FRUIT, mechanism=KRR.from_epsilon(5, 1.0), values=("apple", "fig", "kiwi", "lime"))
STRICT = replace(FRUIT, mechanism=KRR.from_epsilon(3, 2.0), other=False)
STRICT_LONGER = replace(STRICT, mechanism=KRR.from_epsilon(4, 2.0), values=("apple", "fig", "kiwi", "lime"))
HASHED = replace(PLACE, mechanism=LocalHash.from_epsilon(2.0, 64))
LASTING = replace(PLACE, mechanism=LongitudinalHash.from_epsilons(4.0, 2.0, 64))
NUMBER = replace(FRUIT, mechanism=SquareWave.from_epsilon(0, 10, 20, 2.0), values=(), other=False)


def definition(
    collection: Collection, start: int = T0, reports: int = REPORTS, others: dict[int, int] | None = None
) -> Definition:
    """One window with the counts that reports of SHARES are expected to give, to a report."""
    mechanism = collection.mechanism
    assert isinstance(mechanism, KRR)
    labels = [*collection.labels(), *(["(other)"] if collection.other else [])]
    shares = [SHARES[each] for each in labels[:-1]]
    inversion = Inversion.of_symmetric(mechanism)
    expected = np.array([*shares, 1 - sum(shares)]) * inversion.contrast + inversion.miss
    counts = np.round(expected * reports).astype(np.int64)
    total = WindowCounts(counts[None], np.array([counts.sum()]), packs=1, rejected=0)
    return Definition(collection, Joined(total, {start: int(counts.sum())}, [], others or {}, 0))


def number_definition(collection: Collection, start: int) -> Definition:
    """One window with reports that lean to the lower cells."""
    counts = np.linspace(300, 100, collection.width).astype(np.int64)
    total = WindowCounts(counts[None], np.array([counts.sum()]), packs=1, rejected=0)
    return Definition(collection, Joined(total, {start: int(counts.sum())}, [], {}, 0))


def by_value(record: JoinedHistoryRecord) -> dict[str, tuple[float, int]]:
    return dict(zip(record.values, zip(record.share, record.parts_of_value, strict=True), strict=True))


def test_another_epsilon_is_joined_and_marked() -> None:
    """Expected counts give back the shares, whatever the weights; errors shrink by inverse variance."""
    before, after = definition(CLOSER), definition(FRUIT, T0 + 100)
    record = join_history(after, [before], DAY)
    for value, (share, parts) in by_value(record).items():
        assert (share, parts) == (pytest.approx(SHARES[value], abs=1e-4), 2)
    alone = [join_history(each, [], DAY).std_error for each in (before, after)]
    for joined, *errors in zip(record.std_error, *alone, strict=True):
        weights = [each**-2 for each in errors if each]
        assert joined == pytest.approx(sum(weights) ** -0.5)
    assert [each.change for each in record.parts] == ["epsilon 1 to 2", ""]
    assert [each.not_joined for each in record.parts] == ["", ""]
    assert [(each.start, each.end) for each in record.parts] == [(T0, T0 + 10), (T0 + 100, T0 + 110)]
    assert record.reports == sum(each.reports for each in record.parts)
    assert record.differs == [False] * 4


def table_of(record: JoinedHistoryRecord) -> dict[str, tuple[float, ...]]:
    columns = (np.clip(record.share, 0, 1).tolist(), record.low, record.high)
    return dict(zip(record.values, zip(*columns, strict=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("former", "present"),
    [
        (CLOSER, FRUIT),
        (LONGER, FRUIT),
        (replace(HASHED, mechanism=LocalHash.from_epsilon(1.0, 64)), HASHED),
        (replace(LASTING, mechanism=LongitudinalHash.from_epsilons(3.0, 1.0, 64)), LASTING),
        (replace(PLACE, mechanism=Rappor.from_probabilities(16, 2, 3, 0.5, 0.35, 0.65)), PLACE),
    ],
    ids=["k-rr", "k-rr of a longer list", "local-hash", "local-hash-longitudinal", "rappor"],
)
def test_page_shows_the_figures_of_the_roll_up(former: Collection, present: Collection) -> None:
    """To the last digit, of a window that was counted before and after a change of epsilon."""
    history = EstimateHistory([present])
    sides = []
    for number, each in enumerate((former, present)):
        counts = np.random.default_rng(number).integers(100, 200, (each.cohorts, each.width))
        sizes = np.full(each.cohorts, 400) if isinstance(each.mechanism, Rappor) else counts.sum(axis=1)
        window = WindowCounts(counts, sizes, packs=1, rejected=0)
        result = window_estimate.estimate(each, window)
        record = window_estimate.record_of(each, T0, window, result, final=True)
        assert history.take_estimate(decode_estimate(encode_estimate(record)))
        sides.append(Definition(each, Joined(window, {T0: window.reports}, [], {}, 0)))
    point: dict[str, Any] = history.point(present, record)
    expected = table_of(join_history(sides[1], [sides[0]], DAY))
    assert point["reports"] == sum(each.joined.counts.reports for each in sides)
    assert sorted(point["values"]) == sorted({*former.labels(), *present.labels()})
    for value, *figures in zip(point["values"], point["frequency"], point["low"], point["high"], strict=True):
        assert tuple(figures) == expected[value]


def test_values_of_one_list_are_estimated_from_its_part() -> None:
    """With `other` every client reports, so shares of values in both lists mean the same."""
    record = join_history(definition(LONGER, T0 + 100), [definition(FRUIT)], DAY)
    found = by_value(record)
    assert {value: parts for value, (_, parts) in found.items()} == {
        "apple": 2,
        "fig": 2,
        "kiwi": 2,
        "lime": 1,
    }
    assert found["lime"][0] == pytest.approx(0.05, abs=1e-4)
    assert record.parts[0].change == "epsilon 2 to 1; only since: lime"


def test_counts_of_a_part_that_no_true_values_explain_are_told() -> None:
    """Fewer reports of a value than false responses alone give, before the change."""
    before, after = definition(CLOSER), definition(FRUIT, T0 + 100)
    assert all(contradicts(each.diagnostics) is False for each in join_history(after, [before], DAY).parts)
    counts = before.joined.counts
    few = WindowCounts(counts.counts * [1, 1, 0, 1], counts.cohort_sizes, packs=1, rejected=0)
    record = join_history(after, [before._replace(joined=replace(before.joined, counts=few))], DAY)
    assert [contradicts(each.diagnostics) for each in record.parts] == [True, False]
    fits = [each.fit_p_value for each in record.parts]
    assert fits[0] == 0
    assert fits[1] == pytest.approx(1, abs=0.99)


def test_lists_without_other_are_not_joined() -> None:
    record = join_history(definition(STRICT_LONGER, T0 + 100), [definition(STRICT)], DAY)
    assert set(record.parts_of_value) == {1}
    assert record.parts[0].not_joined == (
        "the lists differ, and without `other` a share is one of listed values alone"
    )
    assert record.reports == record.parts[1].reports
    lines = lines_of_parts(record)
    assert lines[2:4] == [
        "  changed since: only since: lime",
        "  not comparable, not joined: the lists differ, and without `other` a share is one of listed values "
        "alone",
    ]


def test_only_former_windows_are_an_answer_too() -> None:
    """Directly after a change: all windows of the period are of before it."""
    nothing = definition(FRUIT)._replace(
        joined=Joined(WindowCounts(np.zeros((1, 4), np.int64), np.zeros(1, np.int64), 0, 0), {}, [], {}, 0)
    )
    record = join_history(nothing, [definition(CLOSER)], DAY)
    assert (len(record.parts), record.parts_of_value) == (1, [1, 1, 1, 1])


def test_windows_of_definitions_not_given_are_named() -> None:
    others = {CLOSER.fingerprint: 3, 0xAB: 2}
    record = join_history(definition(FRUIT, others=others), [definition(CLOSER)], DAY)
    assert record.passed_over == {"00000000000000ab": 2}
    assert lines_of_parts(record)[-1].startswith(
        "2 windows with other parameters (fingerprint 00000000000000ab)"
    )


def test_too_few_reports_are_not_published() -> None:
    few = definition(CLOSER, reports=5)
    record = join_history(definition(FRUIT, T0 + 100), [few], DAY)
    assert "minimum_reports" in record.parts[0].not_joined
    assert set(record.parts_of_value) == {1}


@pytest.mark.slow
def test_table_has_a_row_for_each_value() -> None:
    pytest.importorskip("pyarrow", reason="the extra analysis is not installed")
    record = join_history(definition(FRUIT, T0 + 100), [definition(CLOSER)], DAY)
    table = record.table()
    assert table["value"].to_pylist() == record.values
    assert table["shared_high"].to_pylist() == record.shared_high
    assert [each["change"] for each in table.about["parts"]] == ["epsilon 1 to 2", ""]
    assert "values" not in table.about
    assert "share" not in table.about


@pytest.mark.parametrize(
    ("former", "reason"),
    [
        (CLOSER, ""),
        (LONGER, ""),
        (
            replace(
                LONGER, mechanism=LocalHash.from_epsilon(2.0), values=(), other=False, candidates=("fig",)
            ),
            "",
        ),
        (
            replace(
                FRUIT, mechanism=LocalHash.from_epsilon(2.0), values=(), other=False, candidates=FRUIT.values
            ),
            "",
        ),
        (replace(FRUIT, canary=True), "reports of a canary are no person's"),
        (NUMBER, "only one of them has steps of a number"),
        (
            replace(FRUIT, mechanism=KRR.from_epsilon(3, 2.0), other=False),
            "one takes values that are not listed, the other refuses them",
        ),
    ],
    ids=["epsilon", "list", "text", "the same list as text", "canary", "number", "other"],
)
def test_what_is_comparable(former: Collection, reason: str) -> None:
    assert change_between(former, FRUIT).reason == reason


def test_text_before_a_list_without_other_is_not_comparable() -> None:
    """Although the lists agree: only of the text every client could report. The page says the same."""
    text = replace(
        FRUIT, mechanism=LocalHash.from_epsilon(2.0), values=(), other=False, candidates=FRUIT.values
    )
    strict = replace(FRUIT, mechanism=KRR.from_epsilon(3, 2.0), other=False)
    reason = "one takes values that are not listed, the other refuses them"
    assert change_between(text, strict).reason == change_between(strict, text).reason == reason
    record = changed(estimate_of(strict), mechanism="local-hash")
    assert why_not_comparable(record, strict) == reason


@pytest.mark.slow
def test_numbers_of_one_range_have_a_joined_mean() -> None:
    wider = replace(NUMBER, mechanism=SquareWave.from_epsilon(0, 20, 20, 2.0))
    finer = replace(NUMBER, mechanism=SquareWave.from_epsilon(0, 10, 40, 1.0))
    assert change_between(wider, NUMBER).reason == "the range of the number differs"
    assert change_between(finer, NUMBER) == (("epsilon 1 to 2",), (), (), "")
    before, after = (number_definition(finer, T0), number_definition(NUMBER, T0 + 100))
    means = [join_history(each, [], DAY).mean for each in (before, after)]
    record = join_history(after, [before], DAY)
    assert record.mean is not None
    weights = [each.std_error**-2 for each in means if each]
    assert record.mean.std_error == pytest.approx(sum(weights) ** -0.5)
    values = [each.value for each in means if each]
    assert record.mean.value == pytest.approx(np.average(values, weights=weights))
    assert (record.values, len(record.parts), len(values)) == ([], 2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1e-290, 1e-160, 1e160, 1e300])
def test_the_joined_mean_is_the_same_fraction_of_any_range(width: float) -> None:
    """Squares of its errors would be 0 or overflow."""

    def mean_of(maximum: float) -> list[float]:
        parts = [
            number_definition(
                replace(NUMBER, mechanism=SquareWave.from_epsilon(0, maximum, steps, epsilon)), start
            )
            for steps, epsilon, start in [(40, 1.0, T0), (20, 2.0, T0 + 100)]
        ]
        mean = join_history(parts[1], parts[:1], DAY).mean
        assert mean is not None
        return [each / maximum for each in (mean.value, mean.std_error, mean.low, mean.high)]

    assert mean_of(width) == pytest.approx(mean_of(1.0), rel=1e-9)


def test_changes_without_a_name_are_said() -> None:
    other = replace(PLACE, mechanism=replace(PLACE.mechanism, cohorts=5))
    assert sentence_of(change_between(other, PLACE)) == "other parameters of the mechanism"


def test_coverage_is_of_all_definitions() -> None:
    """What one counted is not missing, though the other did not; lengths of windows may differ."""
    longer = replace(CLOSER, window_seconds=4 * FRUIT.window_seconds)
    seconds = FRUIT.window_seconds
    present, former = definition(FRUIT, T0 + 6 * seconds), definition(longer, T0 + seconds)
    present = present._replace(joined=replace(present.joined, incomplete=[T0 + 8 * seconds], foreign=1))
    period = Period(T0, T0 + 10 * seconds)
    coverage = join_history(present, [former], period).coverage
    assert (coverage.expected, coverage.windows, coverage.foreign) == (10, 2, 1)
    spans = [((each.start - T0) // seconds, (each.end - T0) // seconds) for each in coverage.missing]
    assert spans == [(0, 1), (5, 6), (7, 8), (9, 10)]
    assert coverage.incomplete == [Period(T0 + 8 * seconds, T0 + 9 * seconds)]


def test_one_definition_is_no_plural() -> None:
    assert lines_of_parts(join_history(definition(FRUIT), [], DAY))[0].startswith("fruit: 1 definition, 20")


def test_messages(pin_messages: PinMessages) -> None:

    few = definition(CLOSER, reports=5)
    pin_messages({"too few reports": lambda: join_history(few, [], DAY)})
