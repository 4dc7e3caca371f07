"""The collection file: what is accepted, and what each refusal says."""

import re
from pathlib import Path

import pytest

from deploy.config.file import CollectionFileError, WrongUseError, load
from deploy.config.producer import producer_config
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.rappor import Rappor
from tests.support.deploy.collection_texts import WHOLE, read, refusal


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
    assert (loaded.kafka.replication_factor, loaded.kafka.allow_plaintext) == (1, False)
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


def test_no_more_values_are_published_than_one_transaction_holds(file: Path) -> None:
    sized = WHOLE.replace('values: [AA, B6, "9E"]', "size: 100001, publish: all")
    assert refusal(file, sized) == (
        "collections[0] (carrier): number of values with publish: all must be in [1, 100000], got 100001"
    )
    assert read(file, sized.replace("100001", "100000")).collection("carrier").publish_all
    assert refusal(file, WHOLE.replace("epsilon: 1.0986,", "epsilon: 1.0986, publish: some,")).endswith(
        ": must be one of top, all, got 'some'"
    )


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
    with pytest.raises(WrongUseError, match=r"^--bootstrap-servers must be HOST:PORT .*, got 'here'$"):
        load(file, "here", variables)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("KAFKA__PARTITIONS", "0", "partitions must be in [1, 1000], got 0"),
        ("KAFKA__PARTITIONS", "four", "partitions: must be an integer in [1, 1000], got 'four'"),
        (
            "KAFKA__PARTITION",
            "4",
            "unknown field `partition`; did you mean `partitions`? Known fields: bootstrap_servers, "
            "topic_prefix, partitions, replication_factor, allow_plaintext, security",
        ),
        ("KAFKA__ALLOW_PLAINTEXT", "maybe", "allow_plaintext: must be true or false, got 'maybe'"),
        ("PRODUCER__PACK_SECONDS", "nan", "pack_seconds must be in [0.001, 3600], got nan"),
    ],
)
def test_a_bad_variable_is_named(file: Path, variable: str, value: str, message: str) -> None:
    name = f"DENIABLE_{variable}"
    with pytest.raises(CollectionFileError) as caught:
        read(file, WHOLE, **{name: value})
    assert str(caught.value) == f"variable {name}: {message}"


def test_a_variable_of_no_section_is_refused(file: Path) -> None:
    with pytest.raises(CollectionFileError) as caught:
        read(file, WHOLE, DENIABLE_KAFKAS__PARTITIONS="4")
    assert str(caught.value) == (
        "variable DENIABLE_KAFKAS__PARTITIONS must begin with one of DENIABLE_KAFKA__, "
        "DENIABLE_KAFKA__SECURITY__, DENIABLE_PRODUCER__, DENIABLE_PRODUCER__BUDGET_STORE__, "
        "DENIABLE_EDGE__, DENIABLE_RELAY__ and name a field"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("revision: 1\nrevision: 2\n", "is not YAML: line 2, column 1: found duplicate key …"),
        ("collections: [1\n", "is not YAML: line 2, column 1: expected ',' or ']', but got '<stream end>'"),
        ("a: 1\n---\nb: 2\n", "is not YAML: line 2, column 1: but found another document"),
        ("a: \x00", "is not YAML: unacceptable character #x0000"),
        ("[" * 1000, "is not YAML: maximum recursion depth exceeded"),
        ("[1, [2]]: 3\n", "names of fields must be text, got a list or a mapping for one"),
        ("kafka: {}\n5: 3\n", "names of fields must be text, got 5"),
        ("revision: 2020-13-45\n", "is not YAML: a value is no date, or not what its tag "),
        (
            "",
            "must be a mapping with collections, and optionally kafka, producer, edge, relay and "
            "revision, but is empty",
        ),
        (
            "- 1\n",
            "must be a mapping with collections, and optionally kafka, producer, edge, relay and "
            "revision, got a list",
        ),
    ],
)
def test_invalid_yaml_is_refused(file: Path, text: str, message: str) -> None:
    assert refusal(file, text).startswith(message)


def test_non_text_bytes_are_refused(file: Path) -> None:
    file.write_bytes(WHOLE.encode() + b"# caf\xe9\n")
    with pytest.raises(CollectionFileError, match=r": must be text in UTF-8, byte [0-9]+ is not$"):
        load(file, environment={})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nowhere/deniable.yaml", "No such file or directory"),
        ("/", "Is a directory"),
        ("/proc/self/mem", "Input/output error"),  # unreadable even for root
    ],
)
def test_a_file_that_cannot_be_read_is_named(path: str, message: str) -> None:
    with pytest.raises(CollectionFileError) as caught:
        load(Path(path), environment={})
    assert str(caught.value) == f"{path}: cannot be read: {message}"


def test_non_mapping_section_is_refused_despite_the_option(file: Path) -> None:
    file.write_text("kafka: 5\n" + WHOLE)
    with pytest.raises(CollectionFileError, match=r"kafka: must be a mapping of fields: .*security$"):
        load(file, "127.0.0.1:1", environment={})


def test_an_address_is_checked_wherever_it_comes_from(file: Path) -> None:
    for where in ({"DENIABLE_KAFKA__BOOTSTRAP_SERVERS": "kafka:9092"}, {}):
        text = WHOLE if where else "kafka: {bootstrap_servers: 'kafka:9092'}\n" + WHOLE
        assert "another machine (kafka)" in refusal(file, text, **where)
    file.write_text(WHOLE)
    with pytest.raises(CollectionFileError, match="another machine"):
        load(file, "kafka:9092", environment={})


def test_unknown_collection_is_refused_with_known_names(file: Path) -> None:
    loaded = read(file, WHOLE)
    assert loaded.collection("destination").name == "destination"
    with pytest.raises(CollectionFileError) as caught:
        loaded.collection("nope")
    assert str(caught.value) == f"{file}: there is no collection 'nope'; known ones: carrier, destination"


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(CollectionFileError) as caught:
        load(Path("/dev/zero"), environment={})
    assert str(caught.value) == "/dev/zero: must have at most 67108864 bytes, got more"


def test_misspelt_collection_is_refused_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "deniable.yaml"
    file.write_text(WHOLE)
    loaded = load(file)
    with pytest.raises(
        CollectionFileError, match=r"there is no collection 'carier'; did you mean 'carrier'\? Known"
    ):
        loaded.collection("carier")


@pytest.mark.parametrize(
    "text",
    [
        "collections:\n\t- name: plan\n",
        "collections:\n  - name: plan\n  \tepsilon: 2\n",
        "a:\n  b: 1\n\tc: 2\n",
    ],
)
def test_tab_is_named_as_one(tmp_path: Path, text: str) -> None:
    file = tmp_path / "deniable.yaml"
    file.write_text(text)
    line = text[: text.index("\t")].count("\n") + 1
    with pytest.raises(
        CollectionFileError, match=rf"is not YAML: line {line} has a tab where YAML needs spaces"
    ):
        load(file)


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


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    found = errors_of(tmp_path / "deniable.yaml", MISTAKEN)
    expected = [
        (1, "unknown field `revison`"),
        (2, "kafka: unknown field `topicprefix`"),
        (2, "kafka: partitions must be in"),
        (4, "collections[0].name: must be"),
        (6, "collections[0].values[1]: must be text"),
        (7, "collections[0]: unknown field `epsilom`"),
        (8, "collections[0].window_seconds: must be an integer"),
        (10, "collections[0].budget: field `period_seconds` is missing"),
        (10, "collections[0].budget: epsilon of a budget must be in"),
        (11, "collections[1]: field `grace_seconds` is missing"),
        (11, "collections[1]: field `budget` is missing"),
        (11, "collections[1]: field `bits` is missing"),
        (11, "collections[1]: field `hashes` is missing"),
        (11, "collections[1]: field `cohorts` is missing"),
        (12, "collections[1].mechanism: must be one of"),
        (18, "collections[2]: window_seconds must be in"),
    ]
    assert [line for line, _ in found] == [line for line, _ in expected]
    assert [said for _, said in found if not any(said.startswith(begin) for _, begin in expected)] == []


def test_contradictions_of_all_collections_are_named_at_once(tmp_path: Path) -> None:
    entry = "  - {{name: {}, mechanism: k-rr, {}, epsilon: {}, "
    entry += "window_seconds: 1, grace_seconds: 0, budget: none}}\n"
    entries = [
        ("a", "size: 3", 99),
        ("b", "size: 3, values: [x]", 1),
        ("c", "size: 3", 1),
        ("a", "size: 3", 1),
    ]
    text = "collections:\n" + "".join(entry.format(*each) for each in entries)
    found = errors_of(tmp_path / "deniable.yaml", text)
    assert [line for line, _ in found] == [2, 3, 5]
    assert "epsilon must be in" in found[0][1]
    assert "give either values" in found[1][1]
    assert "name must be distinct" in found[2][1]


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


def test_independent_mistakes_of_all_kinds_come_together(tmp_path: Path) -> None:
    found = errors_of(tmp_path / "deniable.yaml", INDEPENDENT)
    expected = [
        (2, "kafka.bootstrap_servers must be HOST:PORT"),
        (3, "kafka: partitions must be in [1, 1000], got 0"),
        (7, "collections[0] (plan): values must be distinct, got 'a' twice"),
        (8, "collections[0] (plan): epsilon must be in (0, 16], got -2"),
        (9, "collections[0]: window_seconds must be in [1, 31622400], got 0"),
        (13, "collections[0].budget: delta of a budget must be in (0, 1), got 2"),
        (15, "collections[1] (plan): name must be distinct, got that of collections[0]"),
        (22, "collections[1]: unknown field `colour`"),
        (23, "collections[1]: retention_seconds must be in [60, "),
    ]
    assert [line for line, _ in found] == [line for line, _ in expected]
    assert all(said.startswith(begin) for (_, said), (_, begin) in zip(found, expected, strict=True)), found


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
