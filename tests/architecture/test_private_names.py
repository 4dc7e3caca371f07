"""Names of Faust, aiokafka and kafka-python that are not public, and that we use: all of them, in one place.

An upgrade may move them without a word. Then the test of that name fails with a sentence that says which file
needs it, and what for.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

import pytest

from tests.architecture.imports import MODULES
from tests.support.paths import REPOSITORY as ROOT

FAUST, AIOKAFKA, KAFKA = "faust-streaming", "aiokafka", "kafka-python"
FETCHING = "aggregator/partition/fetching/run_fetching.py"
CONSUMER = "aggregator/partition/consumer.py"
CONNECTION = "producers/transport/connection.py"
FINDINGS = "deploy/cluster/permissions/findings.py"


class PrivateName(NamedTuple):
    """A name of a library that it may move without notice.

    Parameters
    ----------
    library : distribution.
    owner : module, or module:class.
    text : a member of the owner, or of its instances; or code that its source must contain.
    file : of ours that uses it.
    purpose : what it is used for.
    """

    library: str
    owner: str
    text: str
    file: str
    purpose: str


def _names(library: str, owner: str, file: str, **purposes: str) -> tuple[PrivateName, ...]:
    return tuple(PrivateName(library, owner, text, file, purpose) for text, purpose in purposes.items())


DRIVER, FAUST_CONSUMER = "faust.transport.drivers.aiokafka", "faust.transport.consumer"
FETCHER = "aiokafka.consumer.fetcher"
PRIVATE = (
    *_names(
        FAUST,
        f"{DRIVER}:AIOKafkaConsumerThread",
        CONSUMER,
        _create_worker_consumer="set up the client",
        _ensure_consumer="find the client",
    ),
    *_names(
        FAUST,
        f"{DRIVER}:Consumer",
        CONSUMER,
        _new_consumer_thread="run our thread",
        _new_topicpartition="name a partition",
        _to_message="wrap all runs of a fetch in one message",
        _getmany="fetch in an unbroken chain",
        _thread="seek between two fetches",
    ),
    *_names(
        FAUST,
        f"{FAUST_CONSUMER}:Consumer",
        CONSUMER,
        _commit="commit nothing",
        _read_offset="deliver what was rewound",
        perform_seek="hear that fetched records were dropped",
        on_buffer_full="keep fetching",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka:AIOKafkaConsumer",
        CONSUMER,
        _fetch_max_wait_ms="wait briefly for new records",
        _subscription="know the fetcher's position",
    ),
    *_names(AIOKAFKA, "aiokafka.conn", CONSUMER, READER_LIMIT="read an answer in one go"),
    PrivateName(
        AIOKAFKA,
        "aiokafka:AIOKafkaConsumer",
        "value_deserializer=self._value_deserializer",
        FETCHING,
        "tell a consumer that asks for runs from others",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:Fetcher",
        "records = MemoryRecords(part_data[-1])",
        FETCHING,
        "keep the bytes of a fetch",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:Fetcher",
        "PartitionRecords( tp, records, aborted_transactions, fetch_offset, self._key_deserializer, "
        "self._value_deserializer, self._check_crcs, self._isolation_level, )",
        FETCHING,
        "read them into runs",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:FetchResult",
        "for msg in self._partition_records:",
        FETCHING,
        "return runs where it returns records",
    ),
    PrivateName(
        AIOKAFKA,
        f"{FETCHER}:FetchResult",
        "state.consumed_to(self._partition_records.next_fetch_offset)",
        FETCHING,
        "keep the position behind the last run",
    ),
    *_names(
        AIOKAFKA,
        "aiokafka.conn:AIOKafkaConnection",
        "deploy/cluster/connection/handshakes.py",
        _writer="close a connection at once",
    ),
    *_names(
        KAFKA,
        "kafka:KafkaProducer",
        CONNECTION,
        _metadata="see which brokers are advertised",
        _wait_on_metadata="wait for a topic's partitions",
        _unregister_cleanup="close when we choose to",
    ),
    *_names(
        KAFKA,
        "kafka.cluster:ClusterMetadata",
        CONNECTION,
        _last_successful_refresh_ms="see whether a broker answered",
    ),
    *_names(KAFKA, "kafka.net.compat:KafkaNetClient", CONNECTION, _manager="watch its connections"),
    *_names(
        KAFKA,
        "kafka:KafkaAdminClient",
        FINDINGS,
        _manager="send requests of Kafka's protocol",
        _find_coordinator_id="find a coordinator",
    ),
)
#: Characters of a text that is code, not a name.
CODE = set(" .=(")
#: Names of the standard library, and those that are public in spite of their underscore.
PUBLIC = {"_exit", "_asdict"}


def moved(name: PrivateName) -> str | None:
    """A sentence if the library has moved the name; None if it is where it was."""
    module, _, owner = name.owner.partition(":")
    found = import_module(module)
    if owner:
        found = getattr(found, owner, None)
    if found is not None:
        source = _squeezed(inspect.getsource(found))
        is_member = re.search(rf"self\.{re.escape(name.text)}\b", source)
        if (
            hasattr(found, name.text)
            or is_member
            or (CODE & set(name.text) and _squeezed(name.text) in source)
        ):
            return None
    return (
        f"{name.library} {version(name.library)} no longer has {name.text} in {name.owner}; {name.file} "
        f"needs it to {name.purpose}: adapt that file, then this list"
    )


def _squeezed(source: str) -> str:
    return re.sub(r"\s", "", source)


@pytest.mark.parametrize("name", PRIVATE, ids=lambda name: f"{name.owner}.{name.text[:40]}")
def test_private_name_is_where_it_was(name: PrivateName) -> None:
    assert moved(name) is None, moved(name)


def test_name_that_was_moved_is_reported_in_a_sentence() -> None:
    name = PrivateName(AIOKAFKA, "aiokafka:AIOKafkaConsumer", "_gone", CONSUMER, "wait briefly")
    assert moved(name) == (
        f"aiokafka {version('aiokafka')} no longer has _gone in aiokafka:AIOKafkaConsumer; {CONSUMER} needs "
        f"it to wait briefly: adapt that file, then this list"
    )
    assert moved(name._replace(owner="aiokafka:NoClass")) is not None
    assert moved(name._replace(text="_fetch_max_wait")) is not None, "the beginning of a name is another name"


def defined(tree: ast.AST) -> Iterator[str]:
    """Names that a file of ours defines itself, or mentions as texts."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Constant(value=str(text)):
                yield text
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self")):
                yield node.attr


def test_list_is_complete() -> None:
    """Every attribute with an underscore that no file of ours defines is in the list, or public."""
    trees = {
        name: ast.parse(path.read_text()) for name, path in MODULES.items() if not name.startswith("bench")
    }
    ours = {name for tree in trees.values() for name in defined(tree)}
    used = {
        node.attr
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)
    }
    listed = {word for name in PRIVATE for word in re.findall(r"_\w+", name.text)}
    assert used - ours - PUBLIC <= listed


@pytest.mark.parametrize("name", PRIVATE, ids=lambda name: f"{name.owner}.{name.text[:40]}")
def test_listed_file_uses_the_name(name: PrivateName) -> None:
    """Otherwise it can leave the list."""
    source = (ROOT / name.file).read_text()
    assert any(word in source for word in re.findall(r"\w+", name.text))
