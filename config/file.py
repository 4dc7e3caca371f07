"""The collection file, `deniable.yaml`: one file for producers, aggregator and tools.

YAML 1.2, so 1e-6 is a number and `no` is text; unknown fields are refused. Environment variables override the
sections `kafka`, `producer`, `edge` and `relay`: `DENIABLE_KAFKA__BOOTSTRAP_SERVERS` sets
`kafka.bootstrap_servers`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from deniable.cluster.cluster import Cluster, split_addresses
from deniable.cluster.logins.mechanisms import CredentialsError
from deniable.config.checks import MOST_BYTES, messages_of
from deniable.config.entries import Entry, allowance_of
from deniable.config.every_error import MOST_ERRORS, every_error
from deniable.config.problems import PlacedError, YamlPath, explain
from deniable.config.sections import (
    SECRETS,
    BudgetStoreSection,
    EdgeSection,
    File,
    KafkaSection,
    ProducerSection,
    RelaySection,
    SecuritySection,
)
from deniable.config.settings.allowance import Allowance
from deniable.config.settings.edge_address import EdgeAddress
from deniable.config.text_files import UnreadableFileError, text_at
from deniable.config.yaml_reader import line_of, parse
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError
from deniable.protocol.topic_names import Topics

DEFAULT_FILE = Path("deniable.yaml")
PREFIX = "DENIABLE_"
OPTION = "--bootstrap-servers"
#: Variables with a secret, of which the file must have none.
SECRET_VARIABLES = tuple(f"{PREFIX}KAFKA__SECURITY__{secret}".upper() for secret in SECRETS)
SECTIONS: Mapping[tuple[str, ...], type[msgspec.Struct]] = {
    ("kafka",): KafkaSection,
    ("kafka", "security"): SecuritySection,
    ("producer",): ProducerSection,
    ("producer", "budget_store"): BudgetStoreSection,
    ("edge",): EdgeSection,
    ("relay",): RelaySection,
}
OPTIONAL_SECTIONS = ("edge", "relay")  # there, even if empty, for deployments that take uploads


class CollectionFileError(DeniableError, ValueError):
    """The file cannot be used. The message names file, place, allowed range and value."""


class WrongUseError(CollectionFileError):
    """The command line is wrong: it names an absent file, no address, or what the file has not."""

    exit_status = 2


class _SeveralErrors(Exception):
    """Mistakes of the file, in the order found."""

    def __init__(self, errors: Sequence[PlacedError]) -> None:
        super().__init__(f"{len(errors)} mistakes")
        self.errors = errors


class _VariableError(ValueError):
    """An environment variable cannot be used; the file is not at fault."""


@dataclass(frozen=True)
class Configuration:
    """The checked content of the file.

    `connection` is an error message if credentials are missing, or if the file is of a machine that reaches
    no Kafka: then `is_without_kafka`. `edge` and `relay` are None without their section.
    """

    path: Path
    revision: int
    kafka: KafkaSection
    connection: Cluster | str
    producer: ProducerSection
    allowances: tuple[Allowance, ...]
    edge: EdgeSection | None = None
    relay: RelaySection | None = None
    is_without_kafka: bool = False

    @property
    def takes_uploads(self) -> bool:
        """Whether devices may upload: the file has a section for edges or relays."""
        return self.edge is not None or self.relay is not None

    @property
    def edge_address(self) -> EdgeAddress | None:
        """The edge that producers deliver to; None for Kafka."""
        return self.producer.edge(self.path.parent)

    @property
    def delivery_seconds(self) -> int:
        """What relays need to deliver packs: windows take uploads until that long before their grace ends."""
        return (self.relay or RelaySection()).delivery_seconds

    @property
    def cluster(self) -> Cluster:
        """Return addresses and credentials; CollectionFileError if there are none, or one is missing."""
        if isinstance(self.connection, str):
            raise CollectionFileError(self.connection)
        return self.connection

    @property
    def collections(self) -> tuple[Collection, ...]:
        """Return the collections, in the file's order."""
        return tuple(allowance.collection for allowance in self.allowances)

    @property
    def topics(self) -> Topics:
        """Names of this deployment's topics."""
        return Topics(self.kafka.topic_prefix, self.kafka.partitions, self.takes_uploads)

    def by_fingerprint(self) -> dict[int, Collection]:
        """Collections by fingerprint."""
        return {collection.fingerprint: collection for collection in self.collections}

    def collection(self, name: str) -> Collection:
        """Return the collection of this name; WrongUseError if there is none."""
        for collection in self.collections:
            if collection.name == name:
                return collection
        known = [collection.name for collection in self.collections]
        near = get_close_matches(name, known, 1)
        guess = f"did you mean '{near[0]}'? Known ones" if near else "known ones"
        raise WrongUseError(f"{self.path}: there is no collection '{name}'; {guess}: {', '.join(known)}")


def load(
    path: str | os.PathLike[str],
    bootstrap_servers: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """Read and check a collection file; does not connect, so credentials may be missing.

    Parameters
    ----------
    path : the file.
    bootstrap_servers : overrides the file and the environment, unless None.
    environment : variables that override the file; os.environ if None.

    Raises
    ------
    CollectionFileError with file, place, allowed range and value; WrongUseError if it cannot be read, or for
    `bootstrap_servers`.
    """
    path = Path(path)
    if path == DEFAULT_FILE and not path.exists():
        raise WrongUseError(
            f"there is no {path} in this folder: cd to the one that has it, name it with --config FILE, or "
            "write one with deniable init"
        )
    try:
        text = text_at(path, MOST_BYTES)
        document = _read(text)
        wrong = _passwords(document)
        variables = _override(document, os.environ if environment is None else environment)
        if bootstrap_servers is not None:
            _check_option(bootstrap_servers)
            _set(document, ("kafka",), "bootstrap_servers", bootstrap_servers)
            variables.append(OPTION)
        wrong += _empty_security(document)
        document.update({name: {} for name in OPTIONAL_SECTIONS if document.get(name, {}) is None})
        file, connection, allowances = _built(document, path, variables, wrong)
    except WrongUseError:
        raise
    except UnreadableFileError as error:
        raise WrongUseError(f"{path}: {error}") from error
    except _VariableError as error:  # nothing is wrong with the file
        raise CollectionFileError(str(error)) from error
    except _SeveralErrors as several:
        raise CollectionFileError(_located(path, text, several.errors)) from None
    except ValueError as error:
        raise CollectionFileError(f"{path}: {error}") from error
    is_without_kafka = _is_without_kafka(document, file)
    if is_without_kafka:
        connection = (
            f"{path}: this needs Kafka, and there is no section kafka: producers deliver to "
            f"{file.producer.deliver}. Do it where Kafka is reached, or name its kafka.bootstrap_servers"
        )
    return Configuration(
        path,
        file.revision,
        file.kafka,
        connection,
        file.producer,
        allowances,
        file.edge,
        file.relay,
        is_without_kafka,
    )


def _is_without_kafka(document: Mapping[str, Any], file: File) -> bool:
    """Whether the file is of a machine that delivers to an edge elsewhere and names no Kafka.

    Beside an edge on this machine, Kafka is expected where it is by default.
    """
    edge = file.producer.edge(Path())
    is_elsewhere = edge is not None and not edge.is_on_this_machine
    return is_elsewhere and "kafka" not in document and file.edge is None


def _read(text: str) -> dict[str, Any]:
    document = parse(text)
    if not isinstance(document, dict):
        kind = "a list" if isinstance(document, list) else "one value"
        found = "but is empty" if document is None else f"got {kind}"
        raise ValueError(
            "must be a mapping with collections, and optionally kafka, producer, edge, relay and revision, "
            f"{found}"
        )
    return document


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Replace fields by environment variables; return those variables that set fields of `kafka`."""
    used = []
    for secret, replacing in zip(SECRETS, SECRET_VARIABLES, strict=True):
        if any(variable.upper() == replacing for variable in environment):
            for source in ("file", "command"):  # the variable replaces them
                _security(document).pop(f"{secret}_{source}", None)
    # `deliver` before the fields that need it.
    for variable, text in sorted(environment.items(), key=lambda each: not each[0].endswith("__DELIVER")):
        *sections, field = variable.removeprefix(PREFIX).lower().split("__")
        section = tuple(sections)
        is_meant = section or field.startswith(("kafka", "producer", *OPTIONAL_SECTIONS))
        if not variable.startswith(PREFIX) or not is_meant:
            continue
        if section not in SECTIONS:
            allowed = ", ".join("__".join((PREFIX + name[0], *name[1:], "")).upper() for name in SECTIONS)
            raise _VariableError(f"variable {variable} must begin with one of {allowed} and name a field")
        given = {field: text} | _needed(document, section, field)
        try:
            converted = msgspec.convert(given, SECTIONS[section], strict=False)
        except msgspec.ValidationError as error:
            raise _VariableError(f"variable {variable}: {explain(error, given, section)}") from error
        _set(document, section, field, getattr(converted, field))
        if section[0] == "kafka":
            used.append(variable)
    return used


def _needed(document: dict[str, Any], section: tuple[str, ...], field: str) -> dict[str, str]:
    """Return the field without which this one of the same section is refused."""
    producer = document.get("producer")
    if section != ("producer",) or not field.startswith("edge_") or not isinstance(producer, dict):
        return {}
    return {"deliver": producer["deliver"]} if isinstance(producer.get("deliver"), str) else {}


def _set(document: dict[str, Any], section: tuple[str, ...], field: str, value: object) -> None:
    fields = document
    for name in section:
        fields = fields.setdefault(name, {})
        if not isinstance(fields, dict):  # refused later, with its place
            return
    fields[field] = value


def _check_option(bootstrap_servers: str) -> None:
    try:
        split_addresses(bootstrap_servers)
    except ValueError as error:
        raise WrongUseError(f"--{error}".replace("_", "-", 1)) from error


def _passwords(document: dict[str, Any]) -> list[PlacedError]:
    """Take secrets out: the file is copied, committed and mailed. The environment may hold them."""
    security = _security(document)
    wrong = []
    for secret, variable in zip(SECRETS, SECRET_VARIABLES, strict=True):
        if secret in security:
            security.pop(secret)
            said = f"name a {secret}_file, or set the variable {variable}"
            place = ("kafka", "security", secret)
            wrong.append(PlacedError(place, f"{'.'.join(place)} must not be in the file: {said}"))
    return wrong


def _empty_security(document: dict[str, Any]) -> list[PlacedError]:
    """Refuse an empty kafka.security: a section that lost its lines must not mean plaintext connections."""
    kafka = document.get("kafka")
    if not isinstance(kafka, dict) or kafka.get("security", {}) is not None:
        return []
    kafka["security"] = {}
    said = (
        "kafka.security must not be empty: name its fields, or write {} for TLS with the authorities "
        "that this system trusts; leave it out for plaintext connections"
    )
    return [PlacedError(("kafka", "security"), said)]


def _security(document: dict[str, Any]) -> dict[str, Any]:
    kafka = document.get("kafka")
    security = kafka.get("security") if isinstance(kafka, dict) else None
    return security if isinstance(security, dict) else {}


def _connection(kafka: KafkaSection, path: Path, variables: Sequence[str]) -> Cluster | str:
    try:
        return _cluster(kafka, path.parent, variables)
    except CredentialsError as error:
        return f"{path}: {error}"


def _cluster(kafka: KafkaSection, folder: Path, variables: Sequence[str]) -> Cluster:
    blamed, blamed_of_security = _blamed(variables), _blamed([each for each in variables if each != OPTION])
    try:
        split_addresses(kafka.bootstrap_servers)  # wrong addresses are refused without credentials, too
    except ValueError as error:
        raise PlacedError(("kafka", "bootstrap_servers"), f"kafka.{error}{blamed}") from error
    try:
        security = None if kafka.security is None else kafka.security.within(folder)
    except CredentialsError as error:
        raise CredentialsError(f"kafka.security: {error}{blamed_of_security}") from error
    except ValueError as error:
        raise PlacedError(("kafka", "security"), f"kafka.security: {error}{blamed_of_security}") from error
    try:
        return Cluster(kafka.bootstrap_servers, security, kafka.allow_plaintext)
    except ValueError as error:
        raise PlacedError(("kafka",), f"kafka.{error}{blamed}") from error


def _blamed(variables: Sequence[str]) -> str:
    return f" (set by {', '.join(variables)})" if variables else ""


def _located(path: Path, text: str, errors: Sequence[PlacedError]) -> str:
    """Return a line for each error, in the order of the file's lines."""
    placed = [(line_of(text, each.place, each.field), each) for each in errors]
    placed.sort(key=lambda each: each[0] or 0)
    return "\n".join(f"{path}{f':{line}' if line else ''}: {error}" for line, error in placed)


def _built(
    document: dict[str, Any], path: Path, variables: Sequence[str], wrong: Sequence[PlacedError]
) -> tuple[File, Cluster | str, tuple[Allowance, ...]]:
    """Build what the document defines; _SeveralErrors if it has mistakes, or `wrong` names some."""
    allowances: list[Allowance] = []

    def check(file: File) -> list[PlacedError]:
        allowances.clear()
        found = []
        try:
            _connection(file.kafka, path, variables)
        except PlacedError as error:
            found.append(error)
        found += _add_allowances(allowances, file.collections, path.parent)
        return found + _too_short_graces(file)

    try:
        file = msgspec.convert(document, File)
    except msgspec.ValidationError:
        file = None
    if file is None or wrong or check(file):
        raise _SeveralErrors([*wrong, *every_error(document, check)][:MOST_ERRORS])
    return file, _connection(file.kafka, path, variables), tuple(allowances)


def _too_short_graces(file: File) -> list[PlacedError]:
    """Refuse graces in which relays could not deliver."""
    if file.relay is None and file.edge is None:
        return []
    least = (file.relay or RelaySection()).delivery_seconds
    return [
        PlacedError(
            ("collections", i),
            f"collections[{i}] ({entry.name}): grace_seconds must be more than delivery_seconds of relay, "
            f"{least}, got {entry.grace_seconds}: raise it, or lower relay.delivery_seconds",
            "grace_seconds",
        )
        for i, entry in enumerate(file.collections)
        if entry.grace_seconds <= least
    ]


def _add_allowances(allowances: list[Allowance], entries: Sequence[Entry], folder: Path) -> list[PlacedError]:
    """Append the allowance of each entry; return what is wrong."""
    wrong: list[PlacedError] = []
    places: dict[str, int] = {}
    for i, entry in enumerate(entries):
        place: YamlPath = ("collections", i)
        shown = f"collections[{i}] ({entry.name})"
        if (first := places.setdefault(entry.name, i)) != i:
            said = f"{shown}: name must be distinct, got that of collections[{first}]"
            wrong.append(PlacedError(place, said, "name"))
            continue
        try:
            allowances.append(allowance_of(entry, folder))
        except ValueError as error:
            for said in messages_of(error):
                field = said.removeprefix("number of ").split(" ", 1)[0]
                wrong.append(PlacedError(place, f"{shown}: {said}", field))
    return wrong
