"""The configuration of a producer: collections and limits, destination, sizes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from deniable.cluster.cluster import Cluster
from deniable.cluster.security import Security
from deniable.config.settings.allowance import Allowance
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.config.settings.edge_address import EdgeAddress
from deniable.estimators.collection import Collection
from deniable.producers.concurrency.timing import DEFAULT, ProducerTiming
from deniable.protocol.wire import MAX_RECORD_BYTES

MAX_PARTITIONS = 1000
MAX_PACK_REPORTS = 1_000_000
MAX_SECONDS = 3600


@dataclass(frozen=True, kw_only=True)
class ProducerConfig:
    """The configuration of a producer.

    Parameters
    ----------
    allowances : one for each collection, with its budget and reports per window; names distinct.
    others : collections that are not reported to, but whose packs other producers may have left in data_dir:
        these are sent, and counted by name.
    console : that packs are printed to, as JSON lines, instead of being sent; None: they are sent.
    edge : that reports go to over HTTP; None: they go to Kafka, and the next three must be given.
    bootstrap_servers : "host:port", or several with commas.
    topic : name of the topic `reports`, prefix included.
    partitions : of that topic, in [1, 1000]; must be its real number, which is checked once Kafka answers.
    collections_topic : name of the topic `collections`, prefix included, in which workers publish what they
        count; None: parameters are not compared with theirs.
    data_dir : folder of secret, budgets and outbox, created if absent; processes may share it.
    secret_file : default `secret` in data_dir, created if absent; needed if there is a budget_store.
    budget_store : PostgreSQL database with the budgets of any number of producers; None: they are in
        data_dir.
    pack_reports : reports of a full pack, in [1, 1000000]; fewer if a record would exceed MAX_RECORD_BYTES,
        or an upload to an edge MAX_UPLOAD_BYTES.
    pack_seconds : age at which a pack is sent although it is not full, in (0, 3600].
    outbox_bytes : that may wait in data_dir for acknowledgement, in [1000000, inf).
    block_milliseconds : how long a call to `report` may wait in all, in [0, 3600000].
    connect_seconds : how long one attempt to reach Kafka or the edge may take, in (0, 3600].
    security : of the connections; None for plaintext connections.
    allow_plaintext : True if plaintext connections to other machines are allowed.
    timing : of the producer's threads; the default suits applications.

    Raises
    ------
    ValueError if a name is not distinct, an address is invalid, or a number is out of range; PlaintextError,
    a ValueError, if reports would leave this machine unencrypted and nothing allows it.
    """

    allowances: tuple[Allowance, ...]
    others: tuple[Collection, ...] = ()
    console: TextIO | None = None
    edge: EdgeAddress | None = None
    bootstrap_servers: str = ""
    topic: str = ""
    partitions: int = 0
    data_dir: Path
    collections_topic: str | None = None
    secret_file: Path | None = None
    budget_store: BudgetDatabase | None = None
    pack_reports: int = 1000
    pack_seconds: float = 1.0
    outbox_bytes: int = 2**28
    block_milliseconds: float = 50.0
    connect_seconds: float = 10.0
    security: Security | None = None
    allow_plaintext: bool = False
    timing: ProducerTiming = DEFAULT

    def __post_init__(self) -> None:
        names = [allowance.collection.name for allowance in self.allowances]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"names of collections must be distinct, got {name} twice")
        if self.edge is None and self.console is None:
            _ = self.cluster  # checks the addresses
            if not self.topic:
                raise ValueError("topic must be the name of the topic of reports, got ''")
            self._check("partitions", 1, MAX_PARTITIONS)
        if self.budget_store is not None and self.secret_file is None:
            raise ValueError(
                "secret_file must be given with budget_store: the producers that share it share one secret"
            )
        self._check("pack_reports", 1, MAX_PACK_REPORTS)
        self._check("pack_seconds", 0, MAX_SECONDS, open_below=True)
        self._check("outbox_bytes", MAX_RECORD_BYTES, None)
        self._check("block_milliseconds", 0, 1000 * MAX_SECONDS)
        self._check("connect_seconds", 0, MAX_SECONDS, open_below=True)

    @property
    def secret_path(self) -> Path:
        """Path of the secret: `secret_file`, else `secret` in data_dir."""
        return self.secret_file or self.data_dir / "secret"

    @property
    def receiver(self) -> str:
        """Who takes the reports, in words."""
        if self.console is not None:
            return "the console"
        return "Kafka" if self.edge is None else "the edge"

    @property
    def destination(self) -> str:
        """Address that the reports go to: of an edge, or of brokers; in words, if they are printed."""
        if self.console is not None:
            return self.receiver
        return self.bootstrap_servers if self.edge is None else self.edge.url

    @property
    def cluster(self) -> Cluster:
        """The Kafka cluster, and how to connect to it."""
        return Cluster(self.bootstrap_servers, self.security, self.allow_plaintext)

    def _check(self, field: str, lowest: int, highest: int | None, *, open_below: bool = False) -> None:
        value = getattr(self, field)
        low_enough = highest is None or value <= highest
        if not ((lowest < value if open_below else lowest <= value) and low_enough):
            upper = "inf)" if highest is None else f"{highest}]"
            raise ValueError(f"{field} must be in {'(' if open_below else '['}{lowest}, {upper}, got {value}")
