"""The collection file, `deniable.yaml`: one file for producers, aggregator and tools.

YAML 1.2, so 1e-6 is a number and `no` is text; unknown fields are refused. Environment variables override the
sections `kafka`, `producer`, `edge` and `relay`: `DENIABLE_KAFKA__BOOTSTRAP_SERVERS` sets
`kafka.bootstrap_servers`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from deniable.cluster.cluster import Cluster, split_addresses
from deniable.cluster.logins.mechanisms import CredentialsError
from deniable.config.checks import MOST_BYTES
from deniable.config.entries import Entry, allowance_of
from deniable.config.section import Section, may_be_shown, sections_in
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
from deniable.config.walk import WRONG, Problem, Walk
from deniable.config.words import refusal, unknown_field
from deniable.config.yaml_reader import line_finder, parse
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError
from deniable.protocol.topic_names import Topics

DEFAULT_FILE = Path("deniable.yaml")
PREFIX = "DENIABLE_"
OPTION = "--bootstrap-servers"
#: Variables with a secret, of which the file must have none.
SECRET_VARIABLES = tuple(f"{PREFIX}KAFKA__SECURITY__{secret}".upper() for secret in SECRETS)
SECTIONS: Mapping[tuple[str, ...], type[Section]] = {
    ("kafka",): KafkaSection,
    ("kafka", "security"): SecuritySection,
    ("producer",): ProducerSection,
    ("producer", "budget_store"): BudgetStoreSection,
    ("edge",): EdgeSection,
    ("relay",): RelaySection,
}
MAX_PROBLEMS = 20  # that are named at once
OPTIONAL_SECTIONS = ("edge", "relay")  # there, even if empty, for deployments that take uploads


class CollectionFileError(DeniableError, ValueError):
    """The file cannot be used. The message names file, place, allowed range and value."""


class WrongUseError(CollectionFileError):
    """The command line is wrong: it names an absent file, no address, or what the file has not."""

    exit_status = 2


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
    except UnreadableFileError as error:
        raise WrongUseError(f"{path}: {error}") from error
    except ValueError as error:
        raise CollectionFileError(f"{path}: {error}") from error
    problems = _take_secrets(document)
    variables = _override(document, os.environ if environment is None else environment)
    of_security = _blame(variables.get("kafka", ()))
    if bootstrap_servers is not None:
        _check_option(bootstrap_servers)
        _set(document, ("kafka",), "bootstrap_servers", bootstrap_servers)
        variables["kafka"] = [*variables.get("kafka", ()), OPTION]
    walk = Walk(File, {section: _blame(names) for section, names in variables.items()})
    problems += _empty_security(document)
    document.update({name: {} for name in OPTIONAL_SECTIONS if document.get(name, {}) is None})
    file, allowances = _read_file(document, path.parent, walk)
    problems += walk.problems
    if problems:
        raise CollectionFileError(_located(path, text, problems))
    is_without_kafka = _is_without_kafka(document, file)
    if is_without_kafka:
        connection: Cluster | str = (
            f"{path}: this needs Kafka, and there is no section kafka: producers deliver to "
            f"{file.producer.deliver}. Do it where Kafka is reached, or name its kafka.bootstrap_servers"
        )
    else:
        connection = _connection(file.kafka, path, of_security)
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


def _read_file(document: dict[str, Any], folder: Path, walk: Walk) -> tuple[File, tuple[Allowance, ...]]:
    """Read what the document defines; it is whole only if the walk finds no problems."""
    file = walk.read(File, document)
    allowances: list[Allowance] = []
    names: dict[str, int] = {}

    def check(entry: Entry, index: int) -> None:
        attempt = partial(walk.attempt, ("collections", index), entry)
        attempt(lambda: _check_name(names, entry.name, index))
        attempt(_check_grace, file, entry)
        allowance = attempt(allowance_of, entry, folder)
        if allowance is WRONG:  # name, too, what the first mistake hides
            attempt(lambda: entry.mechanism())
            attempt(lambda: entry.details(folder))
        allowances.append(allowance)

    entries = walk.attempt((), file, lambda: file.collections)
    for index, entry in enumerate(() if entries is WRONG else entries):
        check(entry, index)
    return file, tuple(allowances)


def _check_name(names: dict[str, int], name: str, index: int) -> None:
    """Names must be distinct."""
    if (first := names.setdefault(name, index)) != index:
        raise ValueError(f"name must be distinct, got that of collections[{first}]")


def _check_grace(file: File, entry: Entry) -> None:
    """Relays must be able to deliver within the grace."""
    if file.relay is None and file.edge is None:
        return
    least = (file.relay or RelaySection()).delivery_seconds
    if entry.grace_seconds <= least:
        raise ValueError(
            f"grace_seconds must be more than delivery_seconds of relay, {least}, got {entry.grace_seconds}: "
            "raise it, or lower relay.delivery_seconds"
        )


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> dict[str, list[str]]:
    """Replace fields by environment variables; return those used, by section of the file."""
    used: dict[str, list[str]] = {}
    wrong = []
    for secret, replacing in zip(SECRETS, SECRET_VARIABLES, strict=True):
        if any(variable.upper() == replacing for variable in environment):
            for source in ("file", "command"):  # the variable replaces them
                _security(document).pop(f"{secret}_{source}", None)
    for variable, text in environment.items():
        *sections, field = variable.removeprefix(PREFIX).lower().split("__")
        section = tuple(sections)
        is_meant = section or field.startswith(("kafka", "producer", *OPTIONAL_SECTIONS))
        if not variable.startswith(PREFIX) or not is_meant:
            continue
        try:
            value = _value_of(section, field, text)
        except ValueError as error:
            wrong.append(f"variable {variable}{error}")
            continue
        _set(document, section, field, value)
        used.setdefault(section[0], []).append(variable)
    if wrong:  # the file may be right
        raise CollectionFileError("\n".join(wrong))
    return used


def _value_of(section: tuple[str, ...], field: str, text: str) -> Any:
    """Return a variable's value as that of its field; ValueError that completes a sentence."""
    if section not in SECTIONS:
        allowed = ", ".join("__".join((PREFIX + name[0], *name[1:], "")).upper() for name in SECTIONS)
        raise ValueError(f" must begin with one of {allowed} and name a field")
    kind = SECTIONS[section]
    types = {each.name: each.type for each in msgspec.structs.fields(kind)}
    if field not in types:
        raise ValueError(f": {unknown_field(field, kind, tuple(types), (), File)[0]}")
    try:
        return msgspec.convert(text, types[field], strict=False)
    except msgspec.ValidationError:
        is_shown = kind.shows_values and all(map(may_be_shown, sections_in(types[field])))
        said = refusal(types[field], text, is_shown=is_shown)
        raise ValueError(f": {field}: {said}") from None


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


def _take_secrets(document: dict[str, Any]) -> list[Problem]:
    """Take secrets out: the file is copied, committed and mailed. The environment may hold them."""
    security = _security(document)
    wrong = []
    for secret, variable in zip(SECRETS, SECRET_VARIABLES, strict=True):
        if secret in security:
            security.pop(secret)
            said = f"must not be in the file: name a {secret}_file, or set the variable {variable}"
            wrong.append(Problem(("kafka", "security", secret), f"kafka.security.{secret} {said}"))
    return wrong


def _empty_security(document: dict[str, Any]) -> list[Problem]:
    """Refuse an empty kafka.security: a section that lost its lines must not mean plaintext connections."""
    kafka = document.get("kafka")
    if not isinstance(kafka, dict) or kafka.get("security", {}) is not None:
        return []
    kafka["security"] = {}
    said = (
        "kafka.security must not be empty: name its fields, or write {} for TLS with the authorities that "
        "this system trusts; leave it out for plaintext connections"
    )
    return [Problem(("kafka", "security"), said)]


def _security(document: dict[str, Any]) -> dict[str, Any]:
    kafka = document.get("kafka")
    security = kafka.get("security") if isinstance(kafka, dict) else None
    return security if isinstance(security, dict) else {}


def _blame(variables: Sequence[str]) -> str:
    return f" (set by {', '.join(variables)})" if variables else ""


def _connection(kafka: KafkaSection, path: Path, blame: str) -> Cluster | str:
    """Return addresses and credentials, or what to say if a credential is missing."""
    try:
        security = None if kafka.security is None else kafka.security.within(path.parent)
    except CredentialsError as error:
        return f"{path}: kafka.security: {error}{blame}"
    return Cluster(kafka.bootstrap_servers, security, kafka.allow_plaintext)


def _located(path: Path, text: str, problems: Sequence[Problem]) -> str:
    """Return a line for each of the first problems, in the order of the file's lines."""
    lines = line_finder(text)
    placed = sorted(((lines(problem.path), problem) for problem in problems), key=lambda each: each[0] or 0)
    named = [f"{path}{f':{line}' if line else ''}: {problem.message}" for line, problem in placed]
    more = len(named) - MAX_PROBLEMS
    return "\n".join([*named[:MAX_PROBLEMS], *([f"{path}: and {more} more"] if more > 0 else [])])
