"""Every error of the project is printed by commands in one line, or caught internally."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

from deniable.estimators.errors import DeniableError
from tests.architecture.imports import MODULES

#: Errors that are caught internally, and where.
CAUGHT_INSIDE = {
    "aggregator.ledger.acceptance.Rejection": "the ledger, which counts it by reason",
    "aggregator.partition.failures.RecordNotCountedError": "the owner, which opens the ledger again",
    "aggregator.partition.fetching.offset_chain.BrokenChainError": "the consumer, which rewinds",
    "aggregator.partition.fetching.record_batches.DamagedBatchError": "PartitionRuns, and aiokafka says why",
    "cluster.connection.causes.LoginWanted": "cause_of, which says the cause and the remedy",
    "cluster.connection.causes.NotKafka": "cause_of",
    "cluster.connection.causes.PlaintextPort": "cause_of",
    "cluster.connection.causes.TlsPort": "cause_of",
    "deploy.cluster.doctor.case.NotUsedError": "the examination, which skips the step",
    "config.text_files.UnreadableFileError": "load, as wrong use, and whoever else names the file",
    "deploy.produce.input.lines.BrokenLineError": "InputBatches, which adds the line's number",
    "edge.sending.kafka_session.SessionError": "the upload writer, which shows it as a reason of /readyz",
    "producers.transport.edge.collection_list.CollectionListError": "whoever compares parameters",
    "producers.transport.edge.collection_list.WrongKeyError": "whoever compares parameters",
    "protocol.publication.PublicationError": "readable, which skips the record",
    "cluster.reading.publication_reader.LacksError": "whoever compares parameters, and works on",
    "cluster.reading.publication_reader.UnreadableError": "whoever compares parameters, and works on",
}
OTHERS = ("bench", "deniable.deploy.monitoring.dashboards")
STATUSES = {1, 2, 3, 4}


@cache
def errors() -> dict[str, type[BaseException]]:
    """Return public exceptions by dotted name, of all modules that a command can load."""
    found: dict[str, type[BaseException]] = {}
    for name in MODULES:
        if not name.startswith(OTHERS) and not name.endswith("__main__"):
            for value in vars(import_module(name)).values():
                if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == name:
                    found[f"{name}.{value.__qualname__}".removeprefix("deniable.")] = value
    return {name: kind for name, kind in found.items() if not kind.__name__.startswith("_")}


def test_errors_are_deniable_errors_or_caught() -> None:
    others = {name for name, kind in errors().items() if not issubclass(kind, DeniableError)}
    assert others
    unexpected = sorted(others ^ CAUGHT_INSIDE.keys())
    assert unexpected == [], "\n".join(unexpected)


def test_errors_have_an_exit_status() -> None:
    ours = {name: kind.exit_status for name, kind in errors().items() if issubclass(kind, DeniableError)}
    assert ours
    wrong = [f"{name}: {status}" for name, status in ours.items() if status not in STATUSES]
    assert wrong == [], "\n".join(wrong)


def test_pinned_messages_belong_to_tests() -> None:
    """A section of a test that is gone or has another name would never be compared."""
    tests = Path(__file__).parents[1]
    sections = {
        file: re.findall(r"^## (.*)::(\w+)", file.read_text(), re.MULTILINE)
        for file in tests.glob("*/messages.txt")
    }
    assert all(sections.values())
    stale = [
        f"{file.parent.name}/{path}::{name}"
        for file, titles in sections.items()
        for path, name in titles
        if f"def {name}(" not in (file.parent / path).read_text()
    ]
    assert stale == []
