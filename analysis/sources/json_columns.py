"""From JSON records of estimates to columns, many records at a time and without a Python number each.

Rule 1: a batch of records is converted by Arrow's CSV reader, which reads the same text to the same double as
a JSON reader, on all cores, and without holding the interpreter's lock.
Rule 2: whatever is unusual in a batch (columns of unequal length, other types, other spaces) sends all its
records through `decode_estimate`, which decides what is an estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.records.estimate import RECORD_VERSION, Other, decode_estimate, encode_estimate
from analysis.errors import arrow

LATEST_SECONDS = 253_402_300_799  # a timestamp column holds no more

_EMPTY = msgspec.Raw(b"[]")
ColumnNumbers = npt.NDArray[np.float64]
ValueCounts = npt.NDArray[np.int64]


class EstimateHead(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An estimate without its columns, or one of its parts."""

    version: int
    collection: str
    fingerprint: str
    window_start: int
    window_end: int
    revision: int
    final: bool
    reports: int
    mechanism: str
    estimator: str
    epsilon: float
    other: Other | None
    part: int = 1
    parts: int = 1


class RawEstimate(EstimateHead, frozen=True, gc=False, kw_only=True):
    """An estimate whose columns are still text. It keeps the whole record in memory."""

    values: msgspec.Raw
    frequency: msgspec.Raw
    count: msgspec.Raw
    std_error: msgspec.Raw
    low: msgspec.Raw
    high: msgspec.Raw
    significant: msgspec.Raw
    misfit_error: msgspec.Raw = _EMPTY
    unreliable: msgspec.Raw = _EMPTY


class _UnusualError(ValueError):
    """Not what a worker writes; it may be an estimate all the same."""


@dataclass(frozen=True, eq=False)
class EstimateBatch:
    """Estimates of several records, one after the other.

    Parameters
    ----------
    records : one for each record, without its columns.
    texts : the JSON of those records that are parts, by place.
    lengths : int64 (records,), values of each.
    values : int32 (n,), places of the values in `Labels.texts`; n the sum of lengths.
    numbers : frequency, low, high, std_error, count and misfit_error, float64 (n,); NaN for null.
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
        """Return the places of a JSON list of texts, int32 (n,); ValidationError if it is none."""
        found = self._lists.get(values)
        if found is None:
            texts = msgspec.json.decode(values, type=list[str])
            found = np.array([self.texts.setdefault(text, len(self.texts)) for text in texts], np.int32)
            if len(self._lists) < 1000:
                self._lists[values] = found
        return found


HEAD_FIELDS = EstimateHead.__struct_fields__
_RAW = msgspec.json.Decoder(RawEstimate)


def batch_of(records: Sequence[bytes], labels: Labels) -> tuple[EstimateBatch, int]:
    """Convert records; return them, and the number of those that are no estimates of this version.

    Parameters
    ----------
    records : JSON.
    labels : of all batches; gets new texts.
    """
    try:
        return _converted(records, labels), 0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _UnusualError):
        kept = []
        for each in records:
            try:
                record = decode_estimate(each)
            except msgspec.DecodeError:
                continue
            if record.window_end <= LATEST_SECONDS:
                kept.append(encode_estimate(record))
        return _converted(kept, labels), len(records) - len(kept)


def _converted(records: Sequence[bytes], labels: Labels) -> EstimateBatch:
    raw = [_RAW.decode(each) for each in records]
    if any(
        each.version != RECORD_VERSION
        or not 0 <= each.window_start < each.window_end <= LATEST_SECONDS
        or not 1 <= each.part <= each.parts
        for each in raw
    ):
        raise _UnusualError("fields out of range")
    places = [labels.places(bytes(each.values)) for each in raw]
    lengths = np.array([len(each) for each in places], np.int64)
    values = np.concatenate(places) if places else np.empty(0, np.int32)
    numbers = {
        name: _column([getattr(each, name) for each in raw], lengths, name in ("std_error",))
        for name in ("frequency", "low", "high", "std_error", "count")
    }
    numbers["misfit_error"] = _optional_column([each.misfit_error for each in raw], lengths, is_flag=False)
    flags = {
        "significant": _column([each.significant for each in raw], lengths, False, is_flag=True),
        "unreliable": _optional_column([each.unreliable for each in raw], lengths, is_flag=True),
    }
    heads = [EstimateHead(**{name: getattr(each, name) for name in HEAD_FIELDS}) for each in raw]
    texts = {place: records[place] for place, each in enumerate(raw) if each.parts > 1}
    return EstimateBatch(heads, texts, lengths, values, numbers, flags)


def _optional_column(raws: Sequence[msgspec.Raw], lengths: ValueCounts, *, is_flag: bool) -> ColumnNumbers:
    """A column that is empty for most mechanisms: NaN there."""
    present = np.array([len(bytes(each)) > 2 for each in raws], bool)
    column = np.full(int(lengths.sum()), np.nan)
    if present.any():
        rows = np.repeat(present, lengths)
        kept = [each for each, is_there in zip(raws, present.tolist(), strict=True) if is_there]
        column[rows] = _column(kept, lengths[present], False, is_flag=is_flag)
    return column


def _column(
    raws: Sequence[msgspec.Raw], lengths: ValueCounts, is_nullable: bool, *, is_flag: bool = False
) -> ColumnNumbers:
    """Join JSON lists to one array; _UnusualError if a length differs, or an entry is of another type."""
    pa, csv = arrow("a table of estimates"), import_module("pyarrow.csv")
    bodies = [memoryview(each)[1:-1] for each in raws if len(memoryview(each)) > 2]
    text = b",".join(bodies)
    found = [0 if len(memoryview(each)) <= 2 else bytes(each).count(b",") + 1 for each in raws]
    if found != lengths.tolist():
        raise _UnusualError("columns of unequal length")
    if not text:
        return np.empty(0)
    kind = pa.bool_() if is_flag else pa.float64()
    try:
        table = csv.read_csv(
            pa.BufferReader(text.replace(b",", b"\n")),
            csv.ReadOptions(column_names=["x"], block_size=max(1 << 20, min(len(text) + 1, 1 << 24) // 4)),
            csv.ParseOptions(quote_char=False, ignore_empty_lines=False, delimiter="\x1f"),
            csv.ConvertOptions(
                column_types={"x": kind},
                null_values=["null"],
                strings_can_be_null=True,
                true_values=["true"],
                false_values=["false"],
            ),
        )
    except pa.ArrowInvalid as error:
        raise _UnusualError("an entry of another type") from error
    column = table["x"]
    if len(column) != int(lengths.sum()) or (column.null_count and not is_nullable):
        raise _UnusualError("an entry that is null")
    if is_flag:
        column = column.cast(pa.uint8()).cast(pa.float64())
    found_numbers: ColumnNumbers = column.to_numpy()
    return found_numbers
