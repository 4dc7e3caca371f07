"""The sections of the collection file and their fields with their ranges."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from deniable.cluster.security import Security, field_types
from deniable.config.checks import check_origins, check_range
from deniable.config.entries import Entry
from deniable.config.settings.budget_database import BudgetDatabase, WhenAway
from deniable.config.settings.edge_address import EdgeAddress

KAFKA = "kafka"  # in `deliver`

Prefix = Annotated[str, Meta(pattern="^[a-zA-Z0-9._-]{0,100}$")]


#: Fields of `kafka.security` that the file must not have.
SECRETS = ("password", "client_secret")


_FIELDS: Any = msgspec.defstruct(
    "_FIELDS", [(*field, None) for field in field_types().items()], frozen=True, forbid_unknown_fields=True
)


class SecuritySection(_FIELDS):  # type: ignore[misc] # mypy sees no fields
    """Section `kafka.security`; paths are relative to the file. Only the environment may set `SECRETS`."""

    def within(self, folder: Path) -> Security:
        """Return the clients' settings; ValueError if fields are missing or contradict each other."""
        given = msgspec.structs.asdict(self)
        for field, value in given.items():
            if value == "" and field not in SECRETS:
                raise ValueError(f"{field} must not be empty: leave it out")
        paths = {field: folder / path for field, path in given.items() if path and field.endswith("_file")}
        return Security(**given | paths)

    def __repr__(self) -> str:
        return "SecuritySection(…)"


class KafkaSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `kafka`; without a replication factor, `topics create` chooses one."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic_prefix: Prefix = "deniable-"
    partitions: int = 4
    replication_factor: int | None = None
    checkpoint_seconds: float = 0.25
    allow_plaintext: bool = False
    security: SecuritySection | None = None

    def __post_init__(self) -> None:
        check_range("partitions", self.partitions, 1, 1000)
        if self.replication_factor is not None:
            check_range("replication_factor", self.replication_factor, 1, 100)
        check_range("checkpoint_seconds", self.checkpoint_seconds, 0.05, 5)


class BudgetStoreSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `producer.budget_store`: the database with the budgets of all producers that share it."""

    url: str = ""
    when_away: WhenAway = "wait"
    allow_plaintext: bool = False

    def database(self) -> BudgetDatabase:
        """Return the database; ValueError if a field is out of range."""
        try:
            return BudgetDatabase(self.url, self.when_away, self.allow_plaintext)
        except ValueError as error:
            raise ValueError(f"budget_store.{error}") from None

    def __repr__(self) -> str:
        return "BudgetStoreSection(…)"


class ProducerSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `producer`; paths are relative to the file."""

    data_dir: str = ".deniable"
    secret_file: str | None = None
    pack_reports: int = 1000
    pack_seconds: float = 1.0
    outbox_bytes: int = 2**28
    block_milliseconds: int = 50
    deliver: str = KAFKA
    edge_ca_file: str | None = None
    edge_public_key: str | None = None
    budget_store: BudgetStoreSection | None = None

    def __post_init__(self) -> None:
        self.edge(Path())
        if not self.data_dir:
            raise ValueError("data_dir must not be empty; '.' is this file's folder")
        if self.secret_file == "":
            raise ValueError("secret_file must not be empty; leave it out for the one in data_dir")
        check_range("pack_reports", self.pack_reports, 1, 1_000_000)
        check_range("pack_seconds", self.pack_seconds, 0.001, 3600)
        check_range("outbox_bytes", self.outbox_bytes, 2**20, 2**40)
        check_range("block_milliseconds", self.block_milliseconds, 0, 3_600_000)
        if self.budget_store is not None:
            self.budget_store.database()
            if self.secret_file is None:
                raise ValueError(
                    "budget_store needs secret_file: the producers that share it share one secret"
                )

    def edge(self, folder: Path) -> EdgeAddress | None:
        """Return the edge that producers deliver to, None for Kafka; ValueError if a field is wrong."""
        if self.deliver == KAFKA:
            for field in ("edge_ca_file", "edge_public_key"):
                if getattr(self, field) is not None:
                    raise ValueError(f"{field} needs deliver: the URL of an edge, got deliver: {KAFKA}")
            return None
        if self.edge_ca_file == "":
            raise ValueError("edge_ca_file must not be empty; leave it out for this system's authorities")
        ca_file = None if self.edge_ca_file is None else folder / self.edge_ca_file
        return EdgeAddress(self.deliver, ca_file, self.edge_public_key)


class EdgeSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `edge`; paths are relative to the file."""

    allow_origins: list[str] = msgspec.field(default_factory=list)
    signing_key_file: str | None = None
    uploads_per_minute: int = 600
    trusted_proxies: int = 0
    max_age_seconds: int = 300
    certificate_file: str | None = None
    key_file: str | None = None

    def __post_init__(self) -> None:
        check_origins(self.allow_origins)
        for field in ("signing_key_file", "certificate_file", "key_file"):
            if getattr(self, field) == "":
                raise ValueError(f"{field} must not be empty: leave it out")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together: give both or neither")
        check_range("uploads_per_minute", self.uploads_per_minute, 0, 10**9)
        check_range("trusted_proxies", self.trusted_proxies, 0, 100)
        check_range("max_age_seconds", self.max_age_seconds, 0, 86_400)


class RelaySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section `relay`; paths are relative to the file."""

    secret_file: str | None = None
    batch_reports: int = 10_000
    shuffle_reports: int = 1000
    pack_reports: int = 1000
    window_uploads: int = 4_000_000
    idle_seconds: float = 1.0
    delivery_seconds: int = 20
    wait_seconds: int = 900
    forged_share: float = 0.5

    def __post_init__(self) -> None:
        if self.secret_file == "":
            raise ValueError("secret_file must not be empty; leave it out for .deniable/relay-secret")
        check_range("batch_reports", self.batch_reports, 1, 10_000_000)
        check_range("shuffle_reports", self.shuffle_reports, 0, 1_000_000)
        check_range("pack_reports", self.pack_reports, 1, 1_000_000)
        check_range("window_uploads", self.window_uploads, 1, 1_000_000_000)
        check_range("idle_seconds", self.idle_seconds, 0.01, 3600)
        check_range("delivery_seconds", self.delivery_seconds, 1, 86_400)
        check_range("wait_seconds", self.wait_seconds, 0, 86_400)
        check_range("forged_share", self.forged_share, 0, 1)


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    collections: Annotated[list[Entry], Meta(min_length=1)]
    revision: int = 1
    kafka: KafkaSection = KafkaSection()
    producer: ProducerSection = ProducerSection()
    edge: EdgeSection | None = None
    relay: RelaySection | None = None

    def __post_init__(self) -> None:
        check_range("revision", self.revision, 1, 2**63 - 1)
