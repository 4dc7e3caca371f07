"""What may stand in the collection file: its sections, its fields with their ranges, and what they build."""

from collections.abc import Iterable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from estimators.collection import Collection
from estimators.krr import KRR
from estimators.rappor import Rappor

YEAR_SECONDS = 366 * 86_400
LARGEST_SIZE = 1_400_000
MOST_CANDIDATES = 1_000_000
MOST_BYTES = 1 << 26  # of a file; a million candidates of 64 bytes

Name = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,62}$")]
Prefix = Annotated[str, Meta(pattern="^[a-zA-Z0-9._-]{0,100}$")]


def _check(field: str, value: float, lowest: float, highest: float) -> None:
    if not lowest <= value <= highest:
        raise ValueError(f"{field} must be in [{lowest}, {highest}], got {value}")


class KafkaSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `kafka`."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic_prefix: Prefix = "deniable-"
    partitions: int = 4
    replication_factor: int = 1
    allow_plaintext: bool = False

    def __post_init__(self) -> None:
        _check("partitions", self.partitions, 1, 1000)
        _check("replication_factor", self.replication_factor, 1, 100)


class ProducerSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `producer`; paths are relative to the file."""

    data_dir: str = ".deniable"
    secret_file: str | None = None
    pack_reports: int = 1000
    pack_seconds: float = 1.0

    def __post_init__(self) -> None:
        _check("pack_reports", self.pack_reports, 1, 1_000_000)
        _check("pack_seconds", self.pack_seconds, 0.001, 3600)


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="mechanism", kw_only=True):
    name: Name
    window_seconds: int
    grace_seconds: int
    retention_seconds: int = 3600
    minimum_reports: int = 100
    budget: Literal["none"]

    def __post_init__(self) -> None:
        _check("window_seconds", self.window_seconds, 1, YEAR_SECONDS)
        _check("grace_seconds", self.grace_seconds, 0, YEAR_SECONDS)
        # Shorter, and a window could die before all partitions have closed it: it would never become final.
        _check("retention_seconds", self.retention_seconds, 60, 10 * YEAR_SECONDS)
        _check("minimum_reports", self.minimum_reports, 1, 10**12)


class KRREntry(_Entry, frozen=True, forbid_unknown_fields=True, tag="k-rr", kw_only=True):
    """A k-RR collection, with a list of values or a number of them."""

    epsilon: float
    values: list[str] | None = None
    size: int | None = None
    other: bool = True

    def collection(self) -> Collection:
        """What the entry stands for; ValueError when its fields do not go together."""
        if (self.values is None) == (self.size is None):
            raise ValueError("give either values, a list of text, or size, a number of values")
        values = tuple(self.values or ())
        _check_distinct("values", values)
        size = len(values) if self.size is None else self.size
        _check("number of values", size, 1 if self.other else 2, LARGEST_SIZE)
        return Collection(
            name=self.name,
            mechanism=KRR.from_epsilon(size + self.other, self.epsilon),
            values=values,
            other=self.other,
            window_seconds=self.window_seconds,
            grace_seconds=self.grace_seconds,
            retention_seconds=self.retention_seconds,
            minimum_reports=self.minimum_reports,
        )


class RapporEntry(_Entry, frozen=True, forbid_unknown_fields=True, tag="rappor", kw_only=True):
    """A Bloom-filter RAPPOR collection."""

    bits: int
    hashes: int
    cohorts: int
    f: float
    p: float
    q: float
    memoize: bool = True
    candidates: list[str] | None = None
    candidates_file: str | None = None

    def collection(self, folder: Path) -> Collection:
        """What the entry stands for; ValueError when its fields do not go together.

        Parameters
        ----------
        folder : what `candidates_file` is relative to.
        """
        mechanism = Rappor.from_probabilities(self.bits, self.hashes, self.cohorts, self.f, self.p, self.q)
        candidates = tuple(self._candidates(folder))
        _check_distinct("candidates", candidates)
        _check("number of candidates", len(candidates), 1, MOST_CANDIDATES)
        return Collection(
            name=self.name,
            mechanism=mechanism,
            candidates=candidates,
            memoize=self.memoize,
            window_seconds=self.window_seconds,
            grace_seconds=self.grace_seconds,
            retention_seconds=self.retention_seconds,
            minimum_reports=self.minimum_reports,
        )

    def _candidates(self, folder: Path) -> list[str]:
        if self.candidates and self.candidates_file is None:
            return self.candidates
        if self.candidates is not None or self.candidates_file is None:
            raise ValueError(
                "give either candidates, a list of at least one text, or candidates_file, a path"
            )
        file = folder / self.candidates_file
        try:
            # Not splitlines(): it takes characters for line ends that may stand within a candidate.
            candidates = [line for line in read_text(file).split("\n") if line]
        except OSError as error:
            raise ValueError(f"candidates_file {file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"candidates_file {file} must be UTF-8: {error.reason}") from error
        except ValueError as error:
            raise ValueError(f"candidates_file {file}: {error}") from error
        if not candidates:
            raise ValueError(f"candidates_file {file} must hold at least one line, got none")
        return candidates


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    revision: int
    collections: Annotated[list[KRREntry | RapporEntry], Meta(min_length=1)]
    kafka: KafkaSection = KafkaSection()
    producer: ProducerSection = ProducerSection()

    def __post_init__(self) -> None:
        _check("revision", self.revision, 1, 2**63 - 1)


def read_text(file: Path) -> str:
    """A file in UTF-8, with or without a byte order mark, whatever its line ends.

    Raises
    ------
    ValueError when it is longer than MOST_BYTES, without reading on; OSError and UnicodeDecodeError.
    """
    with file.open("rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"a file must hold at most {MOST_BYTES} bytes, got more")
    return TextIOWrapper(BytesIO(data), encoding="utf-8-sig").read()


def _check_distinct(field: str, texts: Iterable[str]) -> None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise ValueError(f"{field} must be distinct, got '{text}' twice")
        seen.add(text)
