"""From JSON records of estimates to columns: each record is decoded once, its types checked as it is read.

Rule 1: of a record only the fields of a table are decoded; of all others, that they are JSON.
Rule 2: a record with a field of another type, or columns of unequal length, is no estimate, as for
`decode_estimate`.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from deniable.aggregator.records.estimate import RECORD_VERSION, Other

LARGEST_INTEGER = 2**63 - 1
LATEST_SECONDS = 253_402_300_799  # a timestamp column holds no more

Int64 = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
ColumnNumbers = npt.NDArray[np.float64]
ValueCounts = npt.NDArray[np.int64]


class EstimateHead(msgspec.Struct, frozen=True, gc=False):
    """An estimate without its columns, or one of its parts."""

    version: int
    collection: str
    fingerprint: str
    window_start: int
    window_end: int
    revision: Int64
    final: bool
    reports: Int64
    mechanism: str
    estimator: str
    epsilon: float
    other: Other | None
    diagnostics: dict[str, float] = {}
    part: int = 1
    parts: int = 1


class RowsEnd(msgspec.Struct, frozen=True, gc=False):
    """What rows of a number need of its density: where the last one ends."""

    maximum: float


class DecodedEstimate(EstimateHead, frozen=True, gc=False, kw_only=True):
    """An estimate with its columns; `values` is still text, see `Labels`."""

    values: msgspec.Raw
    frequency: list[float]
    count: list[float]
    std_error: list[float | None]
    low: list[float]
    high: list[float]
    significant: list[bool]
    misfit_error: list[float] = []
    unreliable: list[bool] = []
    low_all: list[float] = []
    high_all: list[float] = []
    unbiased: list[float] = []
    discovered_at: list[Annotated[int, Meta(ge=0, le=LATEST_SECONDS)] | None] = []
    density: RowsEnd | None = None


@dataclass(frozen=True, eq=False)
class EstimateBatch:
    """Estimates of several records, one after the other.

    Parameters
    ----------
    records : one for each record, without its columns.
    texts : the JSON of those records that are parts, by place.
    lengths : int64 (records,), values of each.
    values : int32 (n,), places of the values in `Labels.texts`; n the sum of lengths.
    numbers : frequency, low, high, std_error, count, misfit_error, low_all, high_all, unbiased,
        discovered_at and upper, float64 (n,); NaN for null.
    flags : significant and unreliable, float64 (n,): 1, 0, or NaN for null.
    """

    records: list[EstimateHead]
    texts: dict[int, bytes]
    lengths: ValueCounts
    values: npt.NDArray[np.int32]
    numbers: dict[str, ColumnNumbers]
    flags: dict[str, ColumnNumbers]


class Labels:
    """Texts of values, each once. Lists repeat from window to window, so each is decoded once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self._lists: dict[bytes, npt.NDArray[np.int32]] = {}

    def places(self, values: bytes) -> npt.NDArray[np.int32]:
        """Return the places of a JSON list of texts, int32 (n,); DecodeError if it is none."""
        found = self._lists.get(values)
        if found is None:
            texts = msgspec.json.decode(values, type=list[str])
            found = np.array([self.texts.setdefault(text, len(self.texts)) for text in texts], np.int32)
            if len(self._lists) < 1000:
                self._lists[values] = found
        return found


NUMBERS = ("frequency", "low", "high", "std_error", "count")
OPTIONAL = ("misfit_error", "unreliable", "low_all", "high_all", "unbiased", "discovered_at")
COLUMNS = (*NUMBERS, "significant")
UPPER = "upper"  # edges of a number's rows
UNKNOWN = struct.pack("d", nan)

_DECODER = msgspec.json.Decoder(DecodedEstimate)
_head_of = attrgetter(*EstimateHead.__struct_fields__)
_columns_of = attrgetter(*COLUMNS, *OPTIONAL)


def batch_of(records: Sequence[bytes], labels: Labels) -> tuple[EstimateBatch, int]:
    """Convert records; return them, and the number of those that are no estimates of this version.

    Parameters
    ----------
    records : JSON.
    labels : of all batches; gets new texts.
    """
    heads: list[EstimateHead] = []
    texts: dict[int, bytes] = {}
    places: list[npt.NDArray[np.int32]] = []
    columns: dict[str, list[bytes]] = {name: [] for name in (*COLUMNS, *OPTIONAL, UPPER)}
    for each in records:
        try:
            record = _DECODER.decode(each)
            found, upper = labels.places(bytes(record.values)), _upper_edges(record)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if not _is_whole(record, len(found)):
            continue
        if record.parts > 1:
            texts[len(heads)] = each
        heads.append(EstimateHead(*_head_of(record)))
        places.append(found)
        for column, entries in zip(columns.values(), (*_columns_of(record), upper), strict=True):
            column.append(_packed(entries) if entries else UNKNOWN * len(found))
    arrays = {name: np.frombuffer(b"".join(parts), np.float64) for name, parts in columns.items()}
    flags = {name: arrays.pop(name) for name in ("significant", "unreliable")}
    lengths = np.array([len(each) for each in places], np.int64)
    values = np.concatenate(places) if places else np.empty(0, np.int32)
    return EstimateBatch(heads, texts, lengths, values, arrays, flags), len(records) - len(heads)


def _is_whole(record: DecodedEstimate, values: int) -> bool:
    """Whether the columns have an entry for each value, and the fields are in their ranges."""
    return (
        all(len(getattr(record, name)) == values for name in COLUMNS)
        and all(len(getattr(record, name)) in (0, values) for name in OPTIONAL)
        and record.version == RECORD_VERSION
        and 0 <= record.window_start < record.window_end <= LATEST_SECONDS
        and 1 <= record.part <= record.parts
    )


def _upper_edges(record: DecodedEstimate) -> list[float]:
    """Return where each row of a number ends, whose values are lower edges, ascending; empty for others.

    Raises
    ------
    DecodeError if the values are no numbers.
    """
    if record.density is None:
        return []
    lower = msgspec.json.decode(record.values, type=list[float], strict=False)
    return [*lower[1:], record.density.maximum][: len(lower)]


def _packed(entries: list[Any]) -> bytes:
    """Return numbers or flags as float64 one after the other; NaN for null."""
    form = f"{len(entries)}d"
    try:
        return struct.pack(form, *entries)
    except struct.error:
        return struct.pack(form, *[nan if entry is None else entry for entry in entries])
