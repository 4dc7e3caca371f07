"""The record of the topic `estimates`: one JSON object, keyed by collection and window start."""

from collections.abc import Sequence
from math import isfinite

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.merge import WindowCounts
from estimators import krr_estimate, rappor_decode
from estimators.collection import Collection
from estimators.estimate import Estimate
from estimators.rappor import Rappor
from estimators.rappor_hot import HotRappor
from estimators.rappor_hot_decode import decode_hot

RECORD_VERSION = 1
VALUES_PER_RECORD = 2000  # the largest estimates of a larger domain
VALUE_BYTES = 900_000  # of all values of a record and their numbers: it stays below Kafka's 1 MiB
NUMBER_BYTES = 160  # of the numbers of one value, at most


class Other(msgspec.Struct, frozen=True):
    """What no candidate explains: fractions of all reports."""

    frequency: float
    std_error: float | None


class EstimateRecord(msgspec.Struct, frozen=True):
    """One estimate of one window (DESIGN section 5). Columns have equal length.

    Times are unix seconds; frequency, std_error, low and high are fractions of all reports, count is
    frequency times reports; a std_error is null where the counts tell nothing about the value. `revision` is
    the number of packs merged: the higher one wins, at equal revision the final one. `omitted` counts the
    values left out because they are estimated lower than all shown.
    """

    version: int
    collection: str
    fingerprint: str
    window_start: int
    window_end: int
    revision: int
    final: bool
    reports: int
    packs: int
    rejected: int
    mechanism: str
    estimator: str
    epsilon: float
    values: list[str]
    frequency: list[float]
    count: list[float]
    std_error: list[float | None]
    low: list[float]
    high: list[float]
    significant: list[bool]
    omitted: int
    other: Other | None
    diagnostics: dict[str, float]

    @property
    def key(self) -> bytes:
        """Record key: what a newer record replaces."""
        return f"{self.collection}/{self.window_start}".encode()

    def supersedes(self, older: "EstimateRecord") -> bool:
        """Whether this one is to be shown instead of an older one of the same window."""
        return (self.revision, self.final) >= (older.revision, older.final)


def encode(record: EstimateRecord) -> bytes:
    """JSON bytes."""
    return msgspec.json.encode(record)


def decode(data: bytes) -> EstimateRecord:
    """Inverse of `encode`; msgspec.DecodeError when the bytes are no estimate of this version."""
    try:
        record = msgspec.json.decode(data, type=EstimateRecord)
    except (UnicodeDecodeError, RecursionError) as error:  # which msgspec lets through
        raise msgspec.DecodeError("text that is not UTF-8, or nested too deep") from error
    if record.version != RECORD_VERSION:
        raise msgspec.DecodeError(f"version must be {RECORD_VERSION}, got {record.version}")
    return record


def estimate(collection: Collection, window: WindowCounts) -> Estimate:
    """Run the collection's default estimator on the counts of a window, or of several added up."""
    match collection.mechanism:
        case Rappor() as mechanism:
            return rappor_decode.decode(window.counts, window.cohort_sizes, collection.candidates, mechanism)
        case HotRappor() as mechanism:
            return decode_hot(window.counts, window.cohort_sizes, mechanism)
        case mechanism:
            return krr_estimate.estimate(window.counts[0], mechanism)


def record_of(
    collection: Collection, window_start: int, window: WindowCounts, result: Estimate, *, final: bool
) -> EstimateRecord:
    """Put an estimate into its record, the bucket `other` apart."""
    labels = collection.labels()
    shown = _shown(labels, result.frequency[: len(labels)])
    return EstimateRecord(
        version=RECORD_VERSION,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        window_start=window_start,
        window_end=collection.window_end(window_start),
        revision=window.packs,
        final=final,
        reports=window.reports,
        packs=window.packs,
        rejected=window.rejected,
        mechanism=collection.mechanism.name,
        estimator=result.estimator,
        epsilon=collection.mechanism.epsilon,
        values=[labels[i] for i in shown],
        frequency=result.frequency[shown].tolist(),
        count=(result.frequency[shown] * window.reports).tolist(),
        std_error=[_finite(error) for error in result.std_error[shown].tolist()],
        low=result.low[shown].tolist(),
        high=result.high[shown].tolist(),
        significant=result.significant[shown].tolist(),
        omitted=len(labels) - len(shown),
        other=_other(collection, result),
        diagnostics=result.diagnostics,
    )


def _other(collection: Collection, result: Estimate) -> Other | None:
    if result.other is not None:
        return Other(result.other[0], _finite(result.other[1]))
    if collection.other:
        return Other(float(result.frequency[-1]), _finite(float(result.std_error[-1])))
    return None


def _shown(labels: Sequence[str], frequency: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Places of the values that a record has room for: the largest estimates."""
    largest = np.argsort(-frequency, kind="stable")[:VALUES_PER_RECORD]
    sizes = [NUMBER_BYTES + len(msgspec.json.encode(labels[place])) for place in largest]
    return np.sort(largest[: np.searchsorted(np.cumsum(sizes), VALUE_BYTES, side="right")])


def _finite(error: float) -> float | None:
    return error if isfinite(error) else None
