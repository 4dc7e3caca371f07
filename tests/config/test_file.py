"""The collection file: what is accepted and what is refused."""

import re
from functools import partial
from pathlib import Path

import pytest

from deniable.config.file import CollectionFileError, WrongUseError, load
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.opening.from_file import producer_config
from tests.support.deploy.collection_texts import WHOLE, read
from tests.support.messages import PinMessages


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def test_file_is_loaded_as_written(file: Path) -> None:
    loaded = read(file, WHOLE)
    carrier, destination = loaded.collections
    assert (loaded.revision, loaded.path) == (1, file)
    assert carrier.mechanism == KRR.from_epsilon(3, 1.0986)
    assert (carrier.values, carrier.other) == (("AA", "B6", "9E"), False)
    assert (carrier.window_seconds, carrier.grace_seconds) == (60, 30)
    assert destination.mechanism == Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    assert (destination.candidates, destination.memoize) == (("JFK", "LAX"), True)
    assert loaded.by_fingerprint() == {carrier.fingerprint: carrier, destination.fingerprint: destination}


def test_defaults_are_those_of_the_design(file: Path) -> None:
    loaded = read(file, WHOLE)
    assert loaded.kafka.bootstrap_servers == "127.0.0.1:9092"
    assert (loaded.topics.prefix, loaded.topics.partitions) == ("deniable-", 4)
    assert (loaded.kafka.replication_factor, loaded.kafka.allow_plaintext) == (None, False)
    assert (loaded.producer.data_dir, loaded.producer.secret_file) == (".deniable", None)
    assert (loaded.producer.pack_reports, loaded.producer.pack_seconds) == (1000, 1.0)
    assert [c.retention_seconds for c in loaded.collections] == [3600, 3600]
    assert [c.minimum_reports for c in loaded.collections] == [100, 100]


def test_other_is_one_more_bucket_and_the_default(file: Path) -> None:
    listed = read(file, WHOLE.replace("other: false, ", "")).collection("carrier")
    sized = read(file, WHOLE.replace('values: [AA, B6, "9E"]', "size: 1000")).collection("carrier")
    assert (listed.width, listed.other) == (4, True)
    assert (sized.width, sized.takes_integers) == (1000, True)


def test_publish_all_keeps_the_fingerprint(file: Path) -> None:
    top, whole = (
        read(file, WHOLE),
        read(file, WHOLE.replace("epsilon: 1.0986,", "epsilon: 1.0986, publish: all,")),
    )
    assert [collection.publish_all for collection in top.collections] == [False, False]
    assert [collection.publish_all for collection in whole.collections] == [True, False]
    assert top.by_fingerprint().keys() == whole.by_fingerprint().keys()


def test_no_more_values_are_published_than_one_transaction_holds(
    file: Path, pin_messages: PinMessages
) -> None:
    sized = WHOLE.replace('values: [AA, B6, "9E"]', "size: 100001, publish: all")
    some = WHOLE.replace("epsilon: 1.0986,", "epsilon: 1.0986, publish: some,")
    pin_messages({"too many values": partial(read, file, sized), "another word": partial(read, file, some)})
    assert read(file, sized.replace("100001", "100000")).collection("carrier").publish_all


def test_yaml_is_version_1_2(file: Path) -> None:
    loaded = read(file, WHOLE.replace("1.0986", "1e-6").replace("[AA, B6,", "[no, on,"))
    assert loaded.collection("carrier").mechanism == KRR.from_epsilon(3, 1e-6)
    assert loaded.collection("carrier").values == ("no", "on", "9E")


def test_candidates_come_from_a_file_a_line_each(file: Path) -> None:
    lines = "JFK\r\n\nLos\x85 Angeles\n".encode()
    (file.parent / "airports.txt").write_bytes(b"\xef\xbb\xbf" + lines)
    loaded = read(file, WHOLE.replace("candidates: [JFK, LAX]", "candidates_file: airports.txt"))
    assert loaded.collection("destination").candidates == ("JFK", "Los\x85 Angeles")


def test_option_overrides_environment_overrides_file(file: Path) -> None:
    variables = {
        "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": "[::1]:1",
        "DENIABLE_KAFKA__PARTITIONS": "7",
        "DENIABLE_KAFKA__ALLOW_PLAINTEXT": "true",
        "DENIABLE_PRODUCER__PACK_SECONDS": "0.5",
        "DENIABLE_PRODUCER__SECRET_FILE": "7",
        "DENIABLE_CACHE": "not ours",
    }
    text = "kafka: {partitions: 2, replication_factor: 3}\n" + WHOLE
    loaded = read(file, text, **variables)
    assert loaded.kafka.bootstrap_servers == "[::1]:1"
    assert (loaded.kafka.partitions, loaded.kafka.replication_factor) == (7, 3)
    assert loaded.kafka.allow_plaintext is True
    assert (loaded.producer.pack_seconds, loaded.producer.secret_file) == (0.5, "7")
    assert load(file, "localhost:2", variables).kafka.bootstrap_servers == "localhost:2"
    with pytest.raises(WrongUseError, match="--bootstrap-servers"):
        load(file, "here", variables)


def test_messages_of_variables(file: Path, pin_messages: PinMessages) -> None:
    variables = {
        "too few partitions": ("KAFKA__PARTITIONS", "0"),
        "partitions are a word": ("KAFKA__PARTITIONS", "four"),
        "a field is misspelt": ("KAFKA__PARTITION", "4"),
        "neither true nor false": ("KAFKA__ALLOW_PLAINTEXT", "maybe"),
        "pack_seconds is NaN": ("PRODUCER__PACK_SECONDS", "nan"),
        "no section": ("KAFKAS__PARTITIONS", "4"),
    }
    pin_messages(
        {
            what: partial(read, file, WHOLE, **{f"DENIABLE_{name}": value})
            for what, (name, value) in variables.items()
        }
    )


@pytest.mark.slow
def test_messages_of_invalid_yaml(file: Path, pin_messages: PinMessages) -> None:
    texts = {
        "a field twice": "revision: 1\nrevision: 2\n",
        "a list without its end": "collections: [1\n",
        "two documents": "a: 1\n---\nb: 2\n",
        "a zero byte": "a: \x00",
        "a thousand lists in each other": "[" * 1000,
        "a list as the name of a field": "[1, [2]]: 3\n",
        "a number as the name of a field": "kafka: {}\n5: 3\n",
        "no day of the calendar": "revision: 2020-13-45\n",
        "empty": "",
        "a list": "- 1\n",
        "a tab before a list": "collections:\n\t- name: plan\n",
        "a tab after spaces": "collections:\n  - name: plan\n  \tepsilon: 2\n",
        "a tab before a field": "a:\n  b: 1\n\tc: 2\n",
    }
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})


def test_messages_of_unreadable_files(file: Path, pin_messages: PinMessages) -> None:
    file.write_bytes(WHOLE.encode() + b"# caf\xe9\n")
    paths = {
        "not UTF-8": file,
        "no such file": Path("/nowhere/deniable.yaml"),
        "a folder": Path("/"),
        "unreadable even for root": Path("/proc/self/mem"),
        "a file without an end": Path("/dev/zero"),
    }
    pin_messages({what: partial(load, path, environment={}) for what, path in paths.items()})


def test_non_mapping_section_is_refused_despite_the_option(file: Path) -> None:
    file.write_text("kafka: 5\n" + WHOLE)
    with pytest.raises(CollectionFileError, match="kafka: "):
        load(file, "127.0.0.1:1", environment={})


def test_messages_of_addresses(file: Path, pin_messages: PinMessages) -> None:
    """An address is checked wherever it comes from."""
    file.write_text(WHOLE)
    other = file.parent / "other.yaml"
    pin_messages(
        {
            "an option without a port": partial(load, file, "here", environment={}),
            "an option names another machine": partial(load, file, "kafka:9092", environment={}),
            "a variable names another machine": partial(
                read, other, WHOLE, DENIABLE_KAFKA__BOOTSTRAP_SERVERS="kafka:9092"
            ),
            "the file names another machine": partial(
                read, other, "kafka: {bootstrap_servers: 'kafka:9092'}\n" + WHOLE
            ),
        }
    )


def test_messages_of_unknown_collections(file: Path, pin_messages: PinMessages) -> None:
    loaded = read(file, WHOLE)
    assert loaded.collection("destination").name == "destination"
    pin_messages(
        {
            "no name is near": lambda: loaded.collection("nope"),
            "a name is near": lambda: loaded.collection("carier"),
        }
    )


MISTAKEN = """\
revison: 2
kafka: {partitions: 0, topicprefix: x}
collections:
  - name: Plan
    mechanism: k-rr
    values: [free, 5, business]
    epsilom: 2
    window_seconds: 30.5
    grace_seconds: 5
    budget: {epsilon: -8, delta: 1e-6}
  - name: plan
    mechanism: rapor
    window_seconds: 30
  - name: other
    mechanism: k-rr
    values: [a, b]
    epsilon: 2
    window_seconds: -30
    grace_seconds: 5
    budget: none
"""


def errors_of(file: Path, text: str) -> list[tuple[int, str]]:
    """Line and message of each error."""
    file.write_text(text)
    with pytest.raises(CollectionFileError) as caught:
        load(file)
    found = [
        re.fullmatch(rf"{re.escape(str(file))}:(\d+): (.*)", line) for line in str(caught.value).splitlines()
    ]
    return [(int(match[1]), match[2]) for match in found if match]


CONTRADICTIONS = """\
collections:
  - {name: a, mechanism: k-rr, size: 3, epsilon: 99, window_seconds: 1, grace_seconds: 0, budget: none}
  - {name: b, mechanism: k-rr, size: 3, values: [x], epsilon: 1, window_seconds: 1, grace_seconds: 0,
     budget: none}
  - {name: c, mechanism: k-rr, size: 3, epsilon: 1, window_seconds: 1, grace_seconds: 0, budget: none}
  - {name: a, mechanism: k-rr, size: 3, epsilon: 1, window_seconds: 1, grace_seconds: 0, budget: none}
"""
INDEPENDENT = """\
kafka:
  bootstrap_servers: a
  partitions: 0
collections:
  - name: plan
    mechanism: k-rr
    values: [a, a]
    epsilon: -2
    window_seconds: 0
    grace_seconds: 5
    budget:
      epsilon: 8
      delta: 2
      period_seconds: 86400
  - name: plan
    mechanism: k-rr
    size: 3
    epsilon: 1
    window_seconds: 1
    grace_seconds: 0
    budget: none
    colour: red
    retention_seconds: 1
"""


def test_messages_of_several_mistakes(file: Path, pin_messages: PinMessages) -> None:
    """All are named at once, each with its line."""
    pin_messages(
        {
            "16 mistakes": partial(read, file, MISTAKEN),
            "contradictions of three collections": partial(read, file, CONTRADICTIONS),
            "mistakes of all kinds": partial(read, file, INDEPENDENT),
        }
    )


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("epsilon_inf: 4", "epsilon_inf: x", [8]),  # epsilon_one is compared with it
        ("epsilon_inf: 4", "epsilon_inf: 99", [8]),
        ("candidates: [Austria]", "candidates: [5]", [10]),
        ("candidates: [Austria]", "candidatse: [Austria]", [10]),
        ("mechanism: rappor", "mechansim: rappor", [4]),
        ("bits: 128", "bits: many", [5]),
        ("security: {}", "security:", [1]),
        ("security: {}", "security: {username: x, ca_fiel: y}", [1]),
        ("security: {}", "security: 5", [1]),
    ],
)
def test_what_follows_from_a_mistake_is_not_named(
    tmp_path: Path, old: str, new: str, lines: list[int]
) -> None:
    text = (
        'kafka: {bootstrap_servers: "kafka.example:9093", security: {}}\n'
        "collections:\n"
        "  - name: country\n"
        "    mechanism: rappor\n"
        "    bits: 128\n"
        "    hashes: 2\n"
        "    cohorts: 8\n"
        "    epsilon_inf: 4\n"
        "    epsilon_one: 3\n"
        "    candidates: [Austria]\n"
        "    window_seconds: 30\n"
        "    grace_seconds: 5\n"
        "    budget: none\n"
    )
    (tmp_path / "deniable.yaml").write_text(text)
    assert load(tmp_path / "deniable.yaml").collections
    assert [line for line, _ in errors_of(tmp_path / "deniable.yaml", text.replace(old, new))] == lines


@pytest.mark.slow
def test_no_more_than_twenty_mistakes_are_named(tmp_path: Path) -> None:
    text = MISTAKEN + "".join(f"wrong{number}: 1\n" for number in range(50))
    assert len(errors_of(tmp_path / "deniable.yaml", text)) == 20


def test_messages_name_no_stand_in_of_ours(tmp_path: Path) -> None:
    """A collection whose name cannot be used is set aside under another, which is not the user's."""
    collection = "  - {mechanism: k-rr, values: [a, b], epsilon: 99, window_seconds: 0, grace_seconds: 0}\n"
    found = errors_of(tmp_path / "deniable.yaml", f"collections:\n{collection}")
    assert len(found) >= 2
    assert not [message for _, message in found if "set-aside" in message]


def test_a_producer_of_one_collection_knows_the_others_of_the_file(file: Path) -> None:
    """By them it names packs that other producers have left in its folder."""
    loaded = read(file, WHOLE)
    carrier, destination = loaded.collections
    assert producer_config(loaded, [carrier]).others == (destination,)
    assert producer_config(loaded).others == ()
