"""The sections of the collection file and their fields with their ranges."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from deniable.cluster.cluster import Cluster, split_addresses
from deniable.cluster.logins.mechanisms import CredentialsError
from deniable.cluster.security import Security, field_types
from deniable.config.checks import check_origins
from deniable.config.entries import Entry
from deniable.config.section import Section
from deniable.config.settings.budget_database import BudgetDatabase, WhenAway
from deniable.config.settings.edge_address import EdgeAddress

KAFKA = "kafka"  # in `deliver`

Prefix = Annotated[
    str, Meta(pattern="^[a-zA-Z0-9._-]{0,100}$", description="at most 100 letters, digits, dots, _ and -")
]
FileName = Annotated[
    str, Meta(min_length=1, description="a path", extra={"remedy": "leave it out for the default"})
]

#: Fields of `kafka.security` that the file must not have.
SECRETS = ("password", "client_secret")


def _security_fields() -> list[tuple[str, Any, None]]:
    text = Annotated[str, Meta(min_length=1, description="text that is not empty")]
    return [
        (name, text | None if kind == str | None and name not in SECRETS else kind, None)
        for name, kind in field_types().items()
    ]


_FIELDS: Any = msgspec.defstruct("_FIELDS", _security_fields(), bases=(Section,), frozen=True)


class SecuritySection(_FIELDS):  # type: ignore[misc] # mypy sees no fields
    """Section `kafka.security`; paths are relative to the file. Only the environment may set `SECRETS`."""

    shows_values: ClassVar[bool] = False
    only_environment: ClassVar[Sequence[str]] = SECRETS

    def check_login(self) -> None:
        """Fields must not contradict each other; credentials may come from the environment later."""
        with suppress(CredentialsError):
            self.within(Path())

    def within(self, folder: Path) -> Security:
        """Return the clients' settings; ValueError if fields are missing or contradict each other."""
        given = {field: getattr(self, field) for field in SecuritySection.__struct_fields__}
        paths = {field: folder / path for field, path in given.items() if path and field.endswith("_file")}
        return Security(**given | paths)

    def __repr__(self) -> str:
        return "SecuritySection(…)"


class KafkaSection(Section, frozen=True):
    """Section `kafka`; without a replication factor, `topics create` chooses one."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic_prefix: Prefix = "deniable-"
    partitions: Annotated[int, Meta(ge=1, le=1000)] = 4
    replication_factor: Annotated[int, Meta(ge=1, le=100)] | None = None
    checkpoint_seconds: Annotated[float, Meta(ge=0.05, le=5)] = 0.25
    allow_plaintext: bool = False
    security: SecuritySection | None = None

    def check_addresses(self) -> None:
        """Addresses must have ports."""
        split_addresses(self.bootstrap_servers)

    def check_plaintext(self) -> None:
        """Connections to other machines must be encrypted, unless that is allowed."""
        if self.security is None:
            Cluster(self.bootstrap_servers, None, self.allow_plaintext)


class BudgetStoreSection(Section, frozen=True):
    """Section `producer.budget_store`: the database with the budgets of all producers that share it."""

    shows_values: ClassVar[bool] = False
    not_fields: ClassVar[Mapping[str, str]] = {
        "password": "a password must not be in the file: set PGPASSWORD, or give passfile=FILE in the url"
    }

    url: Annotated[str, Meta(description="postgresql://USER@HOST:PORT/DATABASE, without a password")] = ""
    when_away: WhenAway = "wait"
    allow_plaintext: bool = False

    def database(self) -> BudgetDatabase:
        """Return the database; ValueError if a field is out of range."""
        return BudgetDatabase(self.url, self.when_away, self.allow_plaintext)

    def check_database(self) -> None:
        """The address must have no password, and be safe to use."""
        self.database()

    def __repr__(self) -> str:
        return "BudgetStoreSection(…)"


class ProducerSection(Section, frozen=True):
    """Section `producer`; paths are relative to the file."""

    data_dir: Annotated[
        str, Meta(min_length=1, description="a path", extra={"remedy": "'.' is this file's folder"})
    ] = ".deniable"
    secret_file: FileName | None = None
    pack_reports: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    pack_seconds: Annotated[float, Meta(ge=0.001, le=3600)] = 1.0
    outbox_bytes: Annotated[int, Meta(ge=2**20, le=2**40)] = 2**28
    block_milliseconds: Annotated[int, Meta(ge=0, le=3_600_000)] = 50
    deliver: Annotated[
        str,
        Meta(
            description="kafka, or the URL of an edge such as https://edge.example; http only to this machine"
        ),
    ] = KAFKA
    edge_ca_file: FileName | None = None
    edge_public_key: (
        Annotated[str, Meta(description="base64 of 32 bytes: public_key of the edge's /v1/collections")]
        | None
    ) = None
    budget_store: BudgetStoreSection | None = None

    def check_edge(self) -> None:
        """The edge must be one to deliver to safely."""
        self.edge(Path())

    def check_shared_secret(self) -> None:
        """Producers that share budgets share one secret."""
        if self.budget_store is not None and self.secret_file is None:
            raise ValueError("budget_store needs secret_file: the producers that share it share one secret")

    def edge(self, folder: Path) -> EdgeAddress | None:
        """Return the edge that producers deliver to, None for Kafka; ValueError if a field is wrong."""
        if self.deliver == KAFKA:
            for field in ("edge_ca_file", "edge_public_key"):
                if getattr(self, field) is not None:
                    raise ValueError(f"{field} needs deliver: the URL of an edge, got deliver: {KAFKA}")
            return None
        ca_file = None if self.edge_ca_file is None else folder / self.edge_ca_file
        return EdgeAddress(self.deliver, ca_file, self.edge_public_key)


class EdgeSection(Section, frozen=True):
    """Section `edge`; paths are relative to the file."""

    allow_origins: Annotated[
        list[str], Meta(description="a list of origins such as https://shop.example, or of '*' alone")
    ] = msgspec.field(default_factory=list)
    signing_key_file: FileName | None = None
    uploads_per_minute: Annotated[int, Meta(ge=0, le=10**9)] = 600
    trusted_proxies: Annotated[int, Meta(ge=0, le=100)] = 0
    max_age_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 300
    certificate_file: FileName | None = None
    key_file: FileName | None = None

    def check_origins(self) -> None:
        """Origins must be as browsers send them."""
        check_origins(self.allow_origins)

    def check_certificate(self) -> None:
        """A certificate is of use with its key alone."""
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together: give both or neither")


class RelaySection(Section, frozen=True):
    """Section `relay`; paths are relative to the file."""

    secret_file: FileName | None = None
    batch_reports: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_000
    shuffle_reports: Annotated[int, Meta(ge=0, le=1_000_000)] = 1000
    pack_reports: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    window_uploads: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 4_000_000
    idle_seconds: Annotated[float, Meta(ge=0.01, le=3600)] = 1.0
    delivery_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 20
    wait_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 900
    forged_share: Annotated[float, Meta(ge=0, le=1)] = 0.5


class File(Section, frozen=True):
    """The whole file."""

    collections: Annotated[list[Entry], Meta(min_length=1, description="a list of at least one collection")]
    revision: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 1
    kafka: KafkaSection = KafkaSection()
    producer: ProducerSection = ProducerSection()
    edge: EdgeSection | None = None
    relay: RelaySection | None = None
