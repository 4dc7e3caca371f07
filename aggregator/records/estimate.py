"""The record of the topic `estimates`: one JSON object, keyed by collection and window start."""

import msgspec

from producers import wire

RECORD_VERSION = 1
SETTLE_SECONDS = 15  # from a window's close to its final estimate, when all is well and partitions idle


class Other(msgspec.Struct, frozen=True):
    """What is in none of the values: fractions of all reports."""

    frequency: float
    std_error: float | None


class EstimateRecord(msgspec.Struct, frozen=True):
    """One estimate of one window (DESIGN section 5), or one of its parts: `estimate_schema` tells the fields.

    Part 1 holds the largest estimates. There are more parts only of final estimates, where the collection
    asks for all values. `omitted` and `other` are of what is in none of the parts up to this one.

    Raises
    ------
    ValueError if columns differ in length, `part` is not in [1, parts], or the window starts at no time that
    there is.
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
    part: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        columns = (self.frequency, self.count, self.std_error, self.low, self.high, self.significant)
        if any(len(column) != len(self.values) for column in columns):
            raise ValueError("columns must have equal length")
        if not 0 <= self.window_start <= wire.MAX_WINDOW_START:
            raise ValueError(f"window_start must be in [0, {wire.MAX_WINDOW_START}], got {self.window_start}")
        if not 1 <= self.part <= self.parts:
            raise ValueError(f"part must be in [1, {self.parts}], got {self.part}")

    @property
    def key(self) -> bytes:
        """Record key: what a newer record replaces."""
        return self.first_key if self.part == 1 else self.first_key + b"/%d" % self.part

    @property
    def first_key(self) -> bytes:
        """Key of part 1."""
        return f"{self.collection}/{self.window_start}".encode()

    def supersedes(self, older: "EstimateRecord") -> bool:
        """Whether this one is to be shown instead of an older one of the same window."""
        return (self.revision, self.final) >= (older.revision, older.final)


def encode_estimate(record: EstimateRecord) -> bytes:
    """JSON bytes."""
    return msgspec.json.encode(record)


def decode_estimate(data: bytes) -> EstimateRecord:
    """Inverse of `encode_estimate`; msgspec.DecodeError when the bytes are no estimate of this version."""
    try:
        record = msgspec.json.decode(data, type=EstimateRecord)
    except (UnicodeDecodeError, RecursionError) as error:  # which msgspec lets through
        raise msgspec.DecodeError("text that is not UTF-8, or nested too deep") from error
    if record.version != RECORD_VERSION:
        raise msgspec.DecodeError(f"version must be {RECORD_VERSION}, got {record.version}")
    return record
