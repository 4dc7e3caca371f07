"""The record of the topic `estimates`: one JSON object, keyed by collection and window start."""

import msgspec

from deniable.protocol import wire

RECORD_VERSION = 1
SETTLE_SECONDS = 15  # at most, from a window's close to its final estimate, in normal operation


class Other(msgspec.Struct, frozen=True):
    """What is in none of the values: fractions of all reports. Records of older versions have no interval."""

    frequency: float
    std_error: float | None
    low: float | None = None
    high: float | None = None


class NumberMean(msgspec.Struct, frozen=True):
    """The estimated mean of a number, in its units, with its standard error and 95 % interval."""

    value: float
    std_error: float
    low: float
    high: float
    unbiased: float | None = None
    unbiased_error: float | None = None


class NumberQuantile(msgspec.Struct, frozen=True):
    """The number that a share `level` of the true ones is below, in its units, with its 95 % interval."""

    level: float
    value: float
    low: float
    high: float


class NumberDensity(msgspec.Struct, frozen=True):
    """Estimated shares of cells of one width from `minimum` to `maximum`, without intervals."""

    minimum: float
    maximum: float
    frequency: list[float]


class PairMargin(msgspec.Struct, frozen=True):
    """The estimate of one field of a pair alone: columns of equal length, an entry for each of its values."""

    name: str
    values: list[str]
    frequency: list[float]
    std_error: list[float | None]
    low: list[float]
    high: list[float]
    significant: list[bool]


class ConditionalShares(msgspec.Struct, frozen=True):
    """Shares among the reports with one value of a field: columns parallel to those of the record."""

    frequency: list[float]
    std_error: list[float | None]
    low: list[float]
    high: list[float]


class IndependenceTest(msgspec.Struct, frozen=True):
    """Pearson's chi-square test whether the two fields are independent."""

    statistic: float
    degrees: int
    p_value: float
    rejected: bool


class PairRecord(msgspec.Struct, frozen=True):
    """What the estimate of a pair of fields has beside the joint table, which is in the record's columns."""

    first: list[int]
    second: list[int]
    margins: list[PairMargin]
    given_first: ConditionalShares
    given_second: ConditionalShares
    independence: IndependenceTest


class Bit(msgspec.Struct, frozen=True):
    """A bit of Bloom RAPPOR in one cohort, both from 0."""

    cohort: int
    bit: int


class EstimateRecord(msgspec.Struct, frozen=True):
    """One estimate of one window, or one of its parts; `estimate_schema` documents the fields.

    Part 1 holds the largest estimates. Only final estimates have more parts, if the collection publishes all
    values. `omitted` and `other` cover the values in none of the parts up to this one.

    Raises
    ------
    ValueError if columns differ in length, `part` is not in [1, parts], or `window_start` is out of range.
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
    mean: NumberMean | None = None
    quantiles: list[NumberQuantile] = []
    pair: PairRecord | None = None
    misfit_error: list[float] = []
    unreliable: list[bool] = []
    unexplained_bits: list[Bit] = []
    low_all: list[float] = []
    high_all: list[float] = []
    unbiased: list[float] = []
    discovered_at: list[int | None] = []
    density: NumberDensity | None = None

    def __post_init__(self) -> None:
        columns = (self.frequency, self.count, self.std_error, self.low, self.high, self.significant)
        optional = (self.misfit_error, self.unreliable, self.low_all, self.high_all, self.unbiased)
        given = [column for column in (*optional, self.discovered_at) if column]
        if any(len(column) != len(self.values) for column in (*columns, *given)):
            raise ValueError("columns must have equal length")
        if len(self.low_all) != len(self.high_all):
            raise ValueError("low_all and high_all must be given together")
        if not 0 <= self.window_start <= wire.MAX_WINDOW_START:
            raise ValueError(f"window_start must be in [0, {wire.MAX_WINDOW_START}], got {self.window_start}")
        if not 1 <= self.part <= self.parts:
            raise ValueError(f"part must be in [1, {self.parts}], got {self.part}")

    @property
    def key(self) -> bytes:
        """Record key: a newer record of the same key replaces this one."""
        return self.first_key if self.part == 1 else self.first_key + b"/%d" % self.part

    @property
    def first_key(self) -> bytes:
        """Key of part 1."""
        return f"{self.collection}/{self.window_start}".encode()

    def supersedes(self, older: "EstimateRecord") -> bool:
        """Whether this replaces another estimate of the same window."""
        return (self.revision, self.final) >= (older.revision, older.final)


def encode_estimate(record: EstimateRecord) -> bytes:
    """JSON bytes."""
    return msgspec.json.encode(record)


def decode_estimate(data: bytes) -> EstimateRecord:
    """Inverse of `encode_estimate`; msgspec.DecodeError if the bytes are not an estimate of this version."""
    try:
        record = msgspec.json.decode(data, type=EstimateRecord)
    except (UnicodeDecodeError, RecursionError) as error:  # msgspec does not convert these
        raise msgspec.DecodeError("text that is not UTF-8, or nested too deep") from error
    if record.version != RECORD_VERSION:
        raise msgspec.DecodeError(f"version must be {RECORD_VERSION}, got {record.version}")
    return record
