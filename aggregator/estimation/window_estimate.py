"""From a window's counts to its estimate, and to its records."""

from collections.abc import Iterator, Sequence
from math import isfinite

import msgspec
import numpy as np
import numpy.typing as npt

from deniable.aggregator.estimation.empty_record import empty_record_of
from deniable.aggregator.estimation.pair_record import pair_record
from deniable.aggregator.records.estimate import (
    Bit,
    EstimateRecord,
    NumberDensity,
    NumberMean,
    NumberQuantile,
    Other,
)
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.decoding import bloom as rappor_decode
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.decoding.hashed.listed import decode_listed
from deniable.estimators.decoding.hot.decode import decode_hot
from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.detectors.fit import with_fit
from deniable.estimators.frequency import krr as krr_estimate
from deniable.estimators.frequency import remainder
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.intervals.unified import unified_interval
from deniable.estimators.frequency.number import estimate_number, unbiased_mean
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import bloom_of, pair_of
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.traits import ValueBits

VALUES_PER_RECORD = 2000  # the largest estimates of a larger domain
VALUE_BYTES = 900_000  # of a record's values and their numbers: it stays below Kafka's 1 MiB
MOST_BITS = 1000  # unexplained ones that a record names
NUMBER_BYTES = 232  # upper bound for the numbers of one value
PAIR_BYTES = 432  # the same for a pair of values, with its conditional shares

Places = npt.NDArray[np.intp]  # of values, in the order of the collection's labels


def estimate(collection: Collection, window: WindowCounts) -> Estimate:
    """Run the collection's default estimator and the test of fit on the counts of one window."""
    return with_fit(_estimate(collection, window), window.counts, window.cohort_sizes, collection.mechanism)


def _estimate(collection: Collection, window: WindowCounts) -> Estimate:
    match collection.mechanism:
        case Rappor() as mechanism:
            return rappor_decode.decode(window.counts, window.cohort_sizes, collection.candidates, mechanism)
        case FunctionPool() as mechanism:
            return decode_hashed(window.counts[0], collection.candidates, mechanism, collection.hash_key)
        case PrefixTree() as mechanism:
            found = collection.found
            return decode_listed(
                window.counts, collection.candidates, mechanism, collection.hash_key, found=found
            )
        case OneHotPair() as mechanism:
            return decode_pair(
                window.counts, window.cohort_sizes, mechanism, may_lack_bit=collection.may_lack_bit
            )
        case ValueBits() as mechanism:
            return decode_hot(window.counts, window.cohort_sizes, mechanism)
        case PairKRR() as mechanism:
            return estimate_pair(window.counts[0], mechanism)
        case SquareWave() as mechanism:
            return estimate_number(window.counts[0], mechanism)
        case mechanism:
            return krr_estimate.estimate(window.counts[0], mechanism)


def record_of(
    collection: Collection, window_start: int, window: WindowCounts, result: Estimate, *, final: bool
) -> EstimateRecord:
    """Put the largest estimates into a record, as many as fit."""
    places = next(_slices(collection, window, result), np.empty(0, np.intp))
    return _record(collection, window_start, window, result, final=final, parts=[places], part=1)


def whole_record_of(
    collection: Collection, window_start: int, window: WindowCounts, result: Estimate, *, final: bool
) -> EstimateRecord:
    """Put all estimates into one record, which may be too long for Kafka."""
    places = np.arange(collection.entries)
    return _record(collection, window_start, window, result, final=final, parts=[places], part=1)


def records_of(
    collection: Collection, window_start: int, window: WindowCounts, result: Estimate, *, final: bool
) -> list[EstimateRecord]:
    """Put all estimates into numbered parts; part 1 equals `record_of` except for `parts`."""
    parts = list(_slices(collection, window, result)) or [np.empty(0, np.intp)]
    return [
        _record(collection, window_start, window, result, final=final, parts=parts, part=part)
        for part in range(1, len(parts) + 1)
    ]


def published_records(
    collection: Collection, window_start: int, window: WindowCounts, *, final: bool
) -> list[EstimateRecord]:
    """Estimate a window; return what is published of it: all values only if final and `publish_all`.

    Raises
    ------
    ValueError, ArithmeticError or IndexError if no estimate fits the counts.
    """
    result = estimate(collection, window)
    if final and collection.publish_all:
        return records_of(collection, window_start, window, result, final=True)
    return [record_of(collection, window_start, window, result, final=final)]


def _record(
    collection: Collection,
    window_start: int,
    window: WindowCounts,
    result: Estimate,
    *,
    final: bool,
    parts: Sequence[Places],
    part: int,
) -> EstimateRecord:
    labels = collection.labels()
    misfit = result.misfit
    shown, so_far = np.sort(parts[part - 1]), np.concatenate(parts[:part])
    return msgspec.structs.replace(
        empty_record_of(collection, window_start, window),
        final=final,
        estimator=result.estimator,
        values=[labels[i] for i in shown],
        frequency=result.frequency[shown].tolist(),
        count=(result.frequency[shown] * window.reports).tolist(),
        std_error=[_finite(error) for error in result.std_error[shown].tolist()],
        low=result.low[shown].tolist(),
        high=result.high[shown].tolist(),
        significant=result.significant[shown].tolist(),
        omitted=len(labels) - len(so_far),
        other=_other(collection, window, result, so_far),
        diagnostics=result.diagnostics,
        part=part,
        parts=len(parts),
        mean=_mean(collection, window, result),
        quantiles=[NumberQuantile(each.level, each.value, each.low, each.high) for each in result.quantiles],
        pair=pair_record(collection, result, shown),
        misfit_error=misfit.std_error[shown].tolist() if misfit else [],
        unreliable=misfit.unreliable[shown].tolist() if misfit else [],
        low_all=result.for_all.low[shown].tolist() if result.for_all else [],
        high_all=result.for_all.high[shown].tolist() if result.for_all else [],
        unbiased=result.unbiased[shown].tolist() if result.unbiased is not None else [],
        unexplained_bits=[Bit(*place) for place in misfit.places()[:MOST_BITS]] if misfit else [],
        density=_density(collection, result),
    )


def _density(collection: Collection, result: Estimate) -> NumberDensity | None:
    number = collection.number
    if result.density is None or number is None:
        return None
    return NumberDensity(number.minimum, number.maximum, result.density.tolist())


def _mean(collection: Collection, window: WindowCounts, result: Estimate) -> NumberMean | None:
    mean, number = result.mean, collection.number
    if mean is None or number is None:
        return None
    unbiased = unbiased_mean(window.counts[0], number)
    return NumberMean(mean.value, mean.std_error, mean.low, mean.high, *unbiased)


def _slices(collection: Collection, window: WindowCounts, result: Estimate) -> Iterator[Places]:
    """Places of the values by descending estimate, in slices that fit into a record.

    The first slice is shorter: most readers need no more. A value too long for any record is omitted.
    """
    labels = collection.labels()
    number_bytes = PAIR_BYTES if collection.fields else NUMBER_BYTES
    order = _by_falling_estimate(collection, window, result)
    most = VALUES_PER_RECORD
    while len(order):
        candidates = order[: min(most, VALUE_BYTES // number_bytes)]
        sizes = np.array([number_bytes + len(msgspec.json.encode(labels[place])) for place in candidates])
        fits = sizes <= VALUE_BYTES
        room = int(np.searchsorted(np.cumsum(sizes * fits), VALUE_BYTES, side="right"))
        if fits[:room].any():
            yield candidates[:room][fits[:room]]
        order, most = order[room:], len(labels)


def _by_falling_estimate(collection: Collection, window: WindowCounts, result: Estimate) -> Places:
    """Places of the values by descending count, where each value has one: many estimates are 0."""
    ranked: npt.NDArray[np.float64 | np.int64] = window.counts[0]
    mechanism = collection.mechanism
    if collection.number or bloom_of(mechanism) or pair_of(mechanism):
        ranked = result.frequency
    elif result.supports is not None:
        ranked = result.supports
    order: Places = np.argsort(-ranked[: collection.entries], kind="stable")
    return order


def _other(collection: Collection, window: WindowCounts, result: Estimate, shown: Places) -> Other | None:
    """Share of the values not shown; None if none is left, or the collection has no `other`."""
    if len(shown) == collection.entries:
        return _other_of_all(collection, result)
    match collection.mechanism:
        case (
            OneHotPair() | PairKRR() | SquareWave()
        ):  # all cells fit into a record, unless texts are very long
            return None
        case Rappor():
            frequency, error = remainder.rest_of_candidates(result, shown)
        case FunctionPool() as mechanism:
            frequency, error = remainder.rest_of_hashed(result, shown, mechanism)
        case PrefixTree() as mechanism:
            frequency, error = remainder.rest_of_hashed(result, shown, mechanism.oracle)
        case ValueBits() as mechanism:
            ones = window.counts[0, : mechanism.buckets]
            return Other(*remainder.rest_of_bits(ones, window.reports, collection.entries, shown, mechanism))
        case mechanism:
            return Other(*remainder.rest_of_symmetric(window.counts[0], collection.entries, shown, mechanism))
    return _other_within(frequency, error)


def _other_of_all(collection: Collection, result: Estimate) -> Other | None:
    if result.other is not None:
        return _other_within(*result.other)
    if collection.other:
        columns = (result.frequency, result.std_error, result.low, result.high)
        frequency, error, low, high = (float(column[-1]) for column in columns)
        return Other(frequency, _finite(error), low, high)
    return None


def _other_within(frequency: float, error: float) -> Other:
    """Add the interval within [0, 1]; without an error, as where no value is shown, nothing is unknown."""
    if error == 0:
        return Other(frequency, error, frequency, frequency)
    low, high = unified_interval(np.array([frequency]), np.array([error]))
    return Other(frequency, _finite(error), float(low[0]), float(high[0]))


def _finite(error: float) -> float | None:
    return error if isfinite(error) else None
