"""The collection file, `deniable.yaml`: one file for producers, aggregator and tools.

YAML 1.2, so that 1e-6 is a number and `no` is text; unknown fields are refused. The environment wins over the
sections `kafka` and `producer`: `DENIABLE_KAFKA__BOOTSTRAP_SERVERS` sets `kafka.bootstrap_servers`.
"""

import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from aggregator.topics import Topics
from deploy.addresses import check_addresses
from deploy.collection_entries import Entry, allowance_of
from deploy.collection_fields import MOST_BYTES
from deploy.collection_schema import File, KafkaSection, ProducerSection
from deploy.text_file import text_at
from estimators.collection import Collection
from producers.budget import Allowance

DEFAULT_FILE = Path("deniable.yaml")
VARIABLE = re.compile(r"DENIABLE_(\w+?)__(\w+)")
SECTIONS = {"kafka": KafkaSection, "producer": ProducerSection}

MECHANISMS = [entry.__struct_config__.tag for entry in get_args(Entry)]
BUDGET_ADVICE = "budget: {epsilon: …, delta: …, period_seconds: …}, or budget: none, which enforces nothing"

#: Remedies, by what msgspec's message and its path look like.
ADVICE = (
    (re.compile(r"\.(values|candidates)\[\d+\]`$"), 'quote it: "…"'),
    (re.compile(r"`budget`|\.budget`$"), f"write {BUDGET_ADVICE}"),
    (re.compile(r"unknown field `canary`"), "a canary is of mechanism k-rr or k-rr-longitudinal"),
    (re.compile(r"\.publish`$"), "it must be top or all"),
    (re.compile(r"\.mechanism`$"), f"it must be one of {', '.join(MECHANISMS)}"),
)


class CollectionFileError(ValueError):
    """The file cannot be used. The message names file, place, allowed range and value."""


@dataclass(frozen=True)
class Configuration:
    """What the file says, checked."""

    path: Path
    revision: int
    kafka: KafkaSection
    producer: ProducerSection
    allowances: tuple[Allowance, ...]

    @property
    def collections(self) -> tuple[Collection, ...]:
        """What is asked, in the file's order."""
        return tuple(allowance.collection for allowance in self.allowances)

    @property
    def topics(self) -> Topics:
        """Names of this deployment's topics."""
        return Topics(self.kafka.topic_prefix, self.kafka.partitions)

    def by_fingerprint(self) -> dict[int, Collection]:
        """Collections by fingerprint."""
        return {collection.fingerprint: collection for collection in self.collections}

    def collection(self, name: str) -> Collection:
        """The collection of this name; CollectionFileError when there is none."""
        for collection in self.collections:
            if collection.name == name:
                return collection
        known = ", ".join(collection.name for collection in self.collections)
        raise CollectionFileError(f"{self.path}: there is no collection '{name}'; there are: {known}")


def load(
    path: Path, bootstrap_servers: str | None = None, environment: Mapping[str, str] | None = None
) -> Configuration:
    """Read and check a collection file; nothing connects.

    Parameters
    ----------
    path : the file.
    bootstrap_servers : wins over the file and the environment when given.
    environment : variables that win over the file; os.environ when None.

    Raises
    ------
    CollectionFileError with file, place, allowed range and value.
    """
    try:
        document = _read(path)
        _override(document, os.environ if environment is None else environment)
        if bootstrap_servers is not None:
            _set(document, "kafka", "bootstrap_servers", bootstrap_servers)
        file = _convert(document)
        check_addresses(file.kafka.bootstrap_servers, allow_plaintext=file.kafka.allow_plaintext)
        allowances = _allowances(file.collections, path.parent)
    except (YAMLError, RecursionError) as error:
        raise CollectionFileError(f"{path}: is not YAML: {_yaml_problem(error)}") from error
    except ValueError as error:
        raise CollectionFileError(f"{path}: {error}") from error
    return Configuration(path, file.revision, file.kafka, file.producer, allowances)


def _read(path: Path) -> dict[str, Any]:
    document = YAML(typ="safe", pure=True).load(text_at(path, MOST_BYTES))
    if not isinstance(document, dict):
        raise ValueError(
            f"must be a mapping with revision, collections, kafka and producer, got {type(document).__name__}"
        )
    return document


def _yaml_problem(error: YAMLError | RecursionError) -> str:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error)


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable, text in environment.items():
        match = VARIABLE.fullmatch(variable)
        if match is None:
            continue
        section, field = match[1].lower(), match[2].lower()
        if section not in SECTIONS:
            raise ValueError(f"variable {variable} must begin with DENIABLE_KAFKA__ or DENIABLE_PRODUCER__")
        given = {field: text}
        try:
            converted = msgspec.convert(given, SECTIONS[section], strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(f"variable {variable}: {_explain(error, given)}") from error
        _set(document, section, field, getattr(converted, field))


def _set(document: dict[str, Any], section: str, field: str, value: object) -> None:
    fields = document.setdefault(section, {})
    if isinstance(fields, dict):  # what it is instead, is refused with its place
        fields[field] = value


def _convert(document: dict[str, Any]) -> File:
    try:
        return msgspec.convert(document, File)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(error, document)) from error


def _explain(error: msgspec.ValidationError, document: object) -> str:
    """Put msgspec's message in our order: place, what is expected, the value, a remedy."""
    what, _, path = str(error).partition(" - at `$")
    place = path.rstrip("`").removeprefix(".")
    if path and what.startswith(("Expected", "Number out of range")):
        what = f"{what.partition(', got ')[0]}, got {reprlib.repr(_value_at(document, place))}"
    remedies = [remedy for pattern, remedy in ADVICE if pattern.search(str(error))]
    return "; ".join([f"{place}: {what}" if place else what, *remedies])


def _value_at(document: Any, place: str) -> Any:
    for step in re.findall(r"[^.\[\]]+", place):
        document = document[int(step) if isinstance(document, Sequence) else step]
    return document


def _allowances(entries: Sequence[Entry], folder: Path) -> tuple[Allowance, ...]:
    allowances: dict[str, Allowance] = {}
    for i, entry in enumerate(entries):
        place = f"collections[{i}] ({entry.name})"
        if entry.name in allowances:
            first = list(allowances).index(entry.name)
            raise ValueError(f"{place}: name must be distinct, got that of collections[{first}]")
        try:
            made = allowance_of(entry, folder)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        allowances[entry.name] = made
    return tuple(allowances.values())
