"""What a field of the collection file may hold, and what each refusal says."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields

from deploy.config.entries import Entry
from deploy.config.file import CollectionFileError
from estimators.collection import GrowthRule
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.rappor_parameters import choose_thresholds
from estimators.mechanisms.square_wave import SquareWave
from tests.support.deploy.collection_texts import HEAD, WHOLE, read, refusal

ENTRY_FIELDS = (
    "mechanism, name, window_seconds, grace_seconds, retention_seconds, minimum_reports, window_packs, "
    "publish, change_alarms_a_year, reports_per_window, budget"
)
KRR_FIELDS = f"{ENTRY_FIELDS}, values, size, other, canary, epsilon"
HOT_FIELDS = f"{ENTRY_FIELDS}, f, p, q, epsilon_inf, epsilon_one, memoize, values, hot"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "epsilon: 1.0986",
            "epsilom: 1",
            f"collections[0]: unknown field `epsilom`; did you mean `epsilon`? Known fields: {KRR_FIELDS}",
        ),
        (
            "epsilon: 1.0986,",
            "",
            "collections[0]: field `epsilon` is missing; it must be a number in (0, 16]",
        ),
        (
            "mechanism: k-rr,",
            "mechansim: k-rr,",
            "collections[0]: unknown field `mechansim`; did you mean `mechanism`?",
        ),
        ("1.0986", "-1", "collections[0] (carrier): epsilon must be in (0, 16], got -1.0"),
        ("1.0986", ".nan", "collections[0] (carrier): epsilon must be in (0, 16], got nan"),
        ("1.0986", ".inf", "collections[0] (carrier): epsilon must be in (0, 16], got inf"),
        ("1.0986", "true", "collections[0].epsilon: must be a number in (0, 16], got True"),
        ("1.0986", "high", "collections[0].epsilon: must be a number in (0, 16], got 'high'"),
        ("B6", "9E5", 'collections[0].values[1]: must be text, got 900000.0; quote it: "…"'),
        ("B6", "true", 'collections[0].values[1]: must be text, got True; quote it: "…"'),
        ("B6", "~", 'collections[0].values[1]: must be text, got nothing; quote it: "…"'),
        ("B6", "AA", "collections[0] (carrier): values must be distinct, got 'AA' twice"),
        (
            "values:",
            "size: 3, values:",
            "collections[0] (carrier): give either values, a list of text, or size, a number of values",
        ),
        (
            '[AA, B6, "9E"]',
            "[AA]",
            "collections[0] (carrier): number of values must be in [2, 1400000], got 1",
        ),
        (
            'values: [AA, B6, "9E"], other: false',
            "size: 0",
            "collections[0] (carrier): number of values must be in [1, 1400000], got 0",
        ),
        (
            "name: carrier",
            "name: Carrier",
            "collections[0].name: must be 1 to 63 lower-case letters, digits, _ and -, "
            "beginning with a letter, got 'Carrier'",
        ),
        (
            "name: destination",
            "name: carrier",
            "collections[1] (carrier): name must be distinct, got that of collections[0]",
        ),
        (
            "k-rr",
            "krr",
            "collections[0].mechanism: must be one of k-rr, k-rr-longitudinal, k-rr-pair, one-hot-pair, "
            "local-hash, local-hash-longitudinal, prefix-tree, rappor, rappor-one-hot, rappor-k-hot, number, "
            "got 'krr'; "
            "did you mean k-rr?",
        ),
        (
            "window_seconds: 60",
            "window_seconds: 0",
            "collections[0]: window_seconds must be in [1, 31622400], got 0",
        ),
        (
            "window_seconds: 60",
            "window_seconds: true",
            "collections[0].window_seconds: must be an integer in [1, 31622400], got True",
        ),
        (
            "grace_seconds: 30",
            "grace_seconds: -1",
            "collections[0]: grace_seconds must be in [0, 31622400], got -1",
        ),
        (
            "budget: none",
            "retention_seconds: -1, budget: none",
            "collections[0]: retention_seconds must be in [60, 316224000], got -1",
        ),
        (
            "budget: none",
            "reports_per_window: 0, budget: none",
            "collections[0]: reports_per_window must be in [1, 65535], got 0",
        ),
        (
            "f: 0.25",
            "epsilon_one: 1, f: 0.25",
            "collections[1] (destination): give either f, p and q, or epsilon_inf and epsilon_one",
        ),
        (
            "f: 0.25, p: 0.35, q: 0.65",
            "epsilon_inf: 2",
            "collections[1] (destination): give either f, p and q, or epsilon_inf and epsilon_one",
        ),
        (
            "f: 0.25, p: 0.35, q: 0.65",
            "epsilon_inf: 2, epsilon_one: 3",
            "collections[1] (destination): epsilon_one must be in [2e-06, epsilon_inf = 2.0], got 3.0",
        ),
        (
            "revision: 1",
            "revision: 1\nproducer: {outbox_bytes: 1}",
            "producer: outbox_bytes must be in [1048576, 1099511627776], got 1",
        ),
        (
            "revision: 1",
            "revision: 1\nproducer: {block_milliseconds: -1}",
            "producer: block_milliseconds must be in [0, 3600000], got -1",
        ),
        (
            "budget: none",
            "minimum_reports: 0, budget: none",
            "collections[0]: minimum_reports must be in [1, 1000000000000], got 0",
        ),
        (
            "budget: none",
            "change_alarms_a_year: 0, budget: none",
            "collections[0]: change_alarms_a_year must be in [0.001, 1000], got 0.0",
        ),
        ("f: 0.25", "f: .nan", "collections[1] (destination): f must be in [0, 1), got nan"),
        ("p: 0.35", "p: 0.7", "collections[1] (destination): p must be in (0, q = 0.65), got 0.7"),
        (
            "bits: 128",
            "bits: 12",
            "collections[1] (destination): bits must be a multiple of 8 in [8, 4096], got 12",
        ),
        ("LAX", "JFK", "collections[1] (destination): candidates must be distinct, got 'JFK' twice"),
        ("LAX", "7", 'collections[1].candidates[1]: must be text, got 7; quote it: "…"'),
        ("revision: 1", "revision: 0", "revision must be in [1, 9223372036854775807], got 0"),
        ("revision: 1", "revision: .nan", "revision: must be an integer of at least 1, got nan"),
        (
            "revision: 1",
            "colections: 1",
            "unknown field `colections`; did you mean `collections`? Known fields: collections, revision, "
            "kafka, producer, edge, relay",
        ),
        (
            "revision: 1",
            "revision: 1\nkafka:",
            "kafka: must be a mapping of fields: bootstrap_servers, topic_prefix, partitions, "
            "replication_factor, allow_plaintext, security",
        ),
        (
            "revision: 1",
            "revision: 1\nkafka: {partitions: 1001}",
            "kafka: partitions must be in [1, 1000], got 1001",
        ),
        (
            "revision: 1",
            "revision: 1\nkafka: {replication_factor: 0}",
            "kafka: replication_factor must be in [1, 100], got 0",
        ),
        (
            "revision: 1",
            "revision: 1\nproducer: {pack_reports: 0}",
            "producer: pack_reports must be in [1, 1000000], got 0",
        ),
        (
            "revision: 1",
            "revision: 1\nproducer: {outbox: 1}",
            "producer: unknown field `outbox`; did you mean `outbox_bytes`? Known fields: data_dir, "
            "secret_file, pack_reports, pack_seconds, outbox_bytes, block_milliseconds, deliver, "
            "edge_ca_file, edge_public_key, budget_store",
        ),
    ],
)
def test_bad_field_is_named_with_its_range_and_value(file: Path, old: str, new: str, message: str) -> None:
    assert old in WHOLE
    assert refusal(file, WHOLE.replace(old, new, 1)) == message


def test_fields_of_another_mechanism_are_all_named(file: Path) -> None:
    text = WHOLE.replace("k-rr, values", "rappor-k-hot, hot: 4, f: 0.5, p: 0.5, q: 0.75, values", 1)
    first, second = refusal(file, text).splitlines()
    assert first == f"collections[0]: unknown field `other`. Known fields: {HOT_FIELDS}"
    assert "collections[0]: unknown field `epsilon`; did you mean `epsilon_one`? " in second


def test_a_number_beyond_floats_is_refused(file: Path) -> None:
    message = refusal(file, WHOLE.replace("1.0986", "1" + "0" * 400))
    assert message.startswith("collections[0].epsilon: must be a number in (0, 16], got 1000000")


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("minimum_reports: 1", ": field `budget` is missing; it must be none, or a mapping"),
        ("budget: 8", ".budget: must be none, or a mapping, got 8"),
        ("budget: some", ".budget: must be none or a mapping, got 'some'"),
        (
            "budget: {epsilon: 8, period_seconds: 1}",
            ".budget: field `delta` is missing; it must be a number in (0, 1)",
        ),
        (
            "budget: {epsilon: 0, delta: 1e-6, period_seconds: 1}",
            ".budget: epsilon of a budget must be in (0, inf), got 0.0",
        ),
        (
            "budget: {epsilon: .nan, delta: 1e-6, period_seconds: 1}",
            ".budget: epsilon of a budget must be in (0, inf), got nan",
        ),
        (
            "budget: {epsilon: 1, delta: 1, period_seconds: 1}",
            ".budget: delta of a budget must be in (0, 1), got 1.0",
        ),
        (
            "budget: {epsilon: 1, delta: 1e-6, period_seconds: 0}",
            ".budget: period_seconds must be in [1, 4294967296), got 0",
        ),
    ],
)
def test_a_budget_is_asked_for_explicitly(file: Path, budget: str, message: str) -> None:
    assert refusal(file, WHOLE.replace("budget: none", budget, 1)) == (
        f"collections[0]{message}; write budget: {{epsilon: …, delta: …, period_seconds: …}}, with values: "
        "any or unchanged if it is memoized, "
        "or budget: none, which enforces nothing"
    )


@pytest.mark.parametrize("field", ["delta: 1e-6", "period_seconds: 60", "changes: 1"])
def test_field_of_a_budget_beside_it_is_told_its_place(file: Path, field: str) -> None:
    name = field.partition(":")[0]
    assert refusal(file, WHOLE.replace("budget: none", f"budget: none, {field}", 1)) == (
        f"collections[0]: unknown field `{name}`; it belongs in the mapping `budget`"
    )


@pytest.mark.parametrize(
    "candidates", ["", "candidates: [],", "candidates: [A], candidates_file: airports.txt,"]
)
def test_missing_candidates_are_refused(file: Path, candidates: str) -> None:
    assert refusal(file, WHOLE.replace("candidates: [JFK, LAX],", candidates)) == (
        "collections[1] (destination): give either candidates, a list of at least one text, "
        "or candidates_file, a path"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff", "must be text in UTF-8, byte 0 is not"),
        (b"\n\n", "must hold at least one line, got none"),
        (
            b"JFK\n\nLAX\nJFK\n",
            "must have distinct lines, line 4 repeats line 1; sort -u keeps one of each",
        ),
    ],
)
def test_candidates_file_that_cannot_be_used_is_named(
    file: Path, content: bytes | None, message: str
) -> None:
    airports = file.parent / "airports.txt"
    if content is not None:
        airports.write_bytes(content)
    text = WHOLE.replace("candidates: [JFK, LAX]", "candidates_file: airports.txt")
    assert refusal(file, text) == f"collections[1] (destination): candidates_file {airports} {message}"


@pytest.mark.parametrize(("other", "is_refused"), [("true", True), ("false", False)])
def test_no_value_has_the_name_of_all_others(file: Path, other: str, is_refused: bool) -> None:
    text = WHOLE.replace('[AA, B6, "9E"]', "[AA, B6, '(other)']").replace("other: false", f"other: {other}")
    assert text != WHOLE
    if is_refused:
        said = "collections[0] (carrier): values must not contain '(other)', which stands for all others"
        assert refusal(file, text) == said
    else:
        assert read(file, text).collections[0].values[-1] == "(other)"


def test_a_million_candidates_are_the_most(file: Path) -> None:
    (file.parent / "many.txt").write_text("\n".join(str(number) for number in range(1_000_001)))
    text = re.sub(r"candidates: \[[^]]*\]", "candidates_file: many.txt", WHOLE)
    assert refusal(file, text) == (
        "collections[1] (destination): number of candidates must be in [1, 1000000], got 1000001"
    )


def test_an_endless_candidates_file_is_refused(file: Path) -> None:
    text = WHOLE.replace("candidates: [JFK, LAX]", "candidates_file: /dev/zero")
    assert refusal(file, text) == (
        "collections[1] (destination): candidates_file /dev/zero must have at most 67108864 bytes, got more"
    )


NOISE = "f: 0.5, p: 0.5, q: 0.75"
TIMES = "window_seconds: 60, grace_seconds: 30, budget: none"


@pytest.mark.parametrize(
    ("fields", "mechanism"),
    [
        (
            "mechanism: k-rr-longitudinal, values: [A, B], epsilon_inf: 2, epsilon_one: 1",
            LongitudinalKRR.from_epsilons(3, 2.0, 1.0),
        ),
        (
            "mechanism: k-rr-longitudinal, size: 9, other: false, epsilon_inf: 2, epsilon_one: 1",
            LongitudinalKRR.from_epsilons(9, 2.0, 1.0),
        ),
        ("mechanism: local-hash, epsilon: 1, candidates: [A, B]", LocalHash.from_epsilon(1.0)),
        (
            "mechanism: local-hash, epsilon: 2, hash_functions: 1000, hash_buckets: 5, candidates: [A]",
            LocalHash.from_epsilon(2.0, 1000, 5),
        ),
        (
            "mechanism: local-hash-longitudinal, epsilon_inf: 2, epsilon_one: 1, candidates: [A, B]",
            LongitudinalHash.from_epsilons(2.0, 1.0),
        ),
        (
            "mechanism: local-hash-longitudinal, epsilon_inf: 4, epsilon_one: 1, hash_functions: 1000, "
            "hash_buckets: 5, candidates: [A]",
            LongitudinalHash.from_epsilons(4.0, 1.0, 1000, 5),
        ),
        ("mechanism: prefix-tree, epsilon: 4, lengths: [2, 3]", PrefixTree.from_epsilon((2, 3), 4.0)),
        (
            "mechanism: prefix-tree, epsilon: 4, lengths: [4, 8], alphabet: '0123456789.', "
            "hash_functions: 1000, hash_buckets: 5, candidates: ['1.1.1.1']",
            PrefixTree.from_epsilon((4, 8), 4.0, 1000, 5),
        ),
        (
            f"mechanism: rappor-one-hot, values: [A, B, C], {NOISE}",
            HotRappor.from_probabilities(3, 1, 0.5, 0.5, 0.75),
        ),
        (
            f"mechanism: rappor-k-hot, hot: 2, values: [A, B, C], {NOISE}",
            HotRappor.from_probabilities(3, 2, 0.5, 0.5, 0.75),
        ),
        (
            "mechanism: rappor, bits: 64, hashes: 2, cohorts: 4, candidates: [A], "
            "epsilon_inf: 4, epsilon_one: 2",
            Rappor(64, 2, 4, *choose_thresholds(2, 4.0, 2.0)),
        ),
    ],
)
def test_every_mechanism_can_be_asked_for(file: Path, fields: str, mechanism: Mechanism) -> None:
    (collection,) = read(file, f"{HEAD}  - {{name: a, {fields}, {TIMES}}}\n").collections
    assert collection.mechanism == mechanism
    assert collection.memoize == (not isinstance(mechanism, LocalHash | PrefixTree))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("lengths: [4, 2]", r"lengths must be ascending, in \[1, 255\], got \[4, 2\]"),
        ("lengths: [3]", "lengths must be 2 to 32 numbers, got 1"),
        (
            "lengths: [2, 5]",
            "lengths must have steps with at most 131072 prefixes, got more than 131072 from 2 to 5 bytes",
        ),
        ("lengths: [1, 200]", "got more than 131072 from 1 to 200 bytes; make the step shorter"),  # at once
        (
            "lengths: [1, 2], candidates: [abc, abd]",
            "candidates in their first 2 bytes must be distinct, got 'ab'",
        ),
        ('lengths: [1, 2], alphabet: "a\\ud800"', r"alphabet must be characters that UTF-8 has, got U\+D800"),
        ("lengths: [1, 2], candidates: []", "give either candidates, a list of at least one text"),
        ("lengths: [1, 2], grow: {windows: 0}", r"grow.windows must be in \[1, 512\], got 0"),
        ("lengths: [1, 2], grow: {windows: 2, rate: 1}", r"grow.rate must be in \(0, 1\), got 1"),
        ("lengths: [1, 2], grow: {window: 2}", "grow: unknown field `window`; did you mean `windows`?"),
        (
            "lengths: [1, 2], grow: {}",
            "field `windows` is missing; it must be an integer from 1 to 67108864 divided",
        ),
        ("lengths: [1, 2], grow: 5", "grow: must be a mapping"),
        ("", "field `lengths` is missing; it must be a list of 2 to 32 ascending integers in"),
    ],
)
def test_a_prefix_tree_that_cannot_be_searched_is_refused(file: Path, fields: str, message: str) -> None:
    entry = f"mechanism: prefix-tree, epsilon: 4, {fields}".rstrip(", ")
    with pytest.raises(CollectionFileError, match=message):
        read(file, f"{HEAD}  - {{name: a, {entry}, {TIMES}}}\n")


def test_a_wrong_field_of_growing_is_not_missing_too(file: Path) -> None:
    entry = "mechanism: prefix-tree, epsilon: 4, lengths: [1, 2], grow: {windows: 2.5}"
    with pytest.raises(CollectionFileError) as caught:
        read(file, f"{HEAD}  - {{name: a, {entry}, {TIMES}}}\n")
    message = (
        "grow.windows: must be an integer from 1 to 67108864 divided by the counters of a window, got 2.5"
    )
    assert message in str(caught.value)
    assert "missing" not in str(caught.value)


def test_growing_has_a_rate_unless_said(file: Path) -> None:
    entry = "mechanism: prefix-tree, epsilon: 4, lengths: [1, 2]"
    rules = [GrowthRule(24, 0.05), GrowthRule(24, 0.01), None]
    for grow, rule in zip(
        (", grow: {windows: 24}", ", grow: {windows: 24, rate: 0.01}", ""), rules, strict=True
    ):
        (collection,) = read(file, f"{HEAD}  - {{name: a, {entry}{grow}, {TIMES}}}\n").collections
        assert collection.growth == rule


def test_number_is_one_of_256_steps_unless_said(file: Path) -> None:
    entry = "mechanism: number, minimum: -60, maximum: 180.5, epsilon: 2"
    one, other = read(
        file, f"{HEAD}  - {{name: a, {entry}, {TIMES}}}\n  - {{name: b, {entry}, steps: 64, {TIMES}}}\n"
    ).collections
    assert one.mechanism == SquareWave.from_epsilon(-60.0, 180.5, 256, 2.0)
    assert other.mechanism == SquareWave.from_epsilon(-60.0, 180.5, 64, 2.0)
    assert (one.memoize, one.other, one.values) == (False, False, ())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("minimum: 1, maximum: 1, epsilon: 1", "minimum must be in [-1e+300, maximum) and maximum in "
         "(minimum, 1e+300], got 1.0 and 1.0"),
        ("minimum: 0, maximum: 1, steps: 513, epsilon: 1", "steps must be in [4, 512], got 513"),
        ("minimum: 0, maximum: 1, epsilon: 17", "epsilon must be in (0, 16], got 17.0"),
        ("minimum: 0, maximum: .inf, epsilon: 1", "minimum must be in [-1e+300, maximum) and maximum in "
         "(minimum, 1e+300], got 0.0 and inf"),
    ],
)  # fmt: skip
def test_range_of_a_number_is_checked(file: Path, fields: str, message: str) -> None:
    entry = f"{HEAD}  - {{name: a, mechanism: number, {fields}, {TIMES}}}\n"
    assert refusal(file, entry) == f"collections[0] (a): {message}"


def test_number_needs_both_ends(file: Path) -> None:
    entry = f"{HEAD}  - {{name: a, mechanism: number, minimum: 0, epsilon: 1, {TIMES}}}\n"
    assert refusal(file, entry) == (
        "collections[0]: field `maximum` is missing; it must be a number above minimum"
    )


def test_hot_buckets_are_those_that_are_listed(file: Path) -> None:
    assert refusal(
        file, f"{HEAD}  - {{name: a, mechanism: rappor-k-hot, values: [A, B], hot: 3, {NOISE}, {TIMES}}}\n"
    ) == ("collections[0] (a): hot must be in [1, buckets = 2], got 3")
    assert refusal(
        file, f"{HEAD}  - {{name: a, mechanism: rappor-one-hot, values: [A, A], {NOISE}, {TIMES}}}\n"
    ) == ("collections[0] (a): values must be distinct, got 'A' twice")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("collections: []", 1),
        ("kafka: {}", 1),
        ("kafka: {}\n\nproducer:\n  data_dir: x\n  pack_second: 1\n" + WHOLE, 5),
        (WHOLE + "kafka:\n  security:\n    pasword: hunter2\n", 9),
        (WHOLE.replace("budget: none", "budget: {epsilon: 1,\n delta: 2, period_seconds: 1}"), 5),
        (WHOLE.replace("hashes: 2", "hashes: two"), 5),
        (WHOLE.replace("hashes: 2, ", ""), 5),
        (WHOLE.replace("window_seconds: 60", "window_seconds: 0"), 4),
        (WHOLE.replace("[JFK, LAX]", "[\n      JFK,\n      5]"), 8),
        (WHOLE.replace("destination", "carrier"), 5),
    ],
)
def test_the_line_is_named(file: Path, text: str, line: int) -> None:
    with pytest.raises(CollectionFileError) as caught:
        read(file, text)
    assert str(caught.value).startswith(f"{file}:{line}: ")


def test_every_required_field_says_what_it_may_hold(file: Path) -> None:
    for entry in get_args(Entry):
        required = [each.name for each in fields(entry) if each.required]
        texts: dict[str, object] = {"mechanism": entry.__struct_config__.tag, "name": "a", "budget": "none"}
        texts["values"] = ["A", "B"]
        texts["fields"] = [{"name": name, "values": ["A", "B"]} for name in "ab"]
        texts["lengths"] = [1, 2]
        given = {name: texts.get(name, 1) for name in ["mechanism", *required]}
        for field in given:
            rest = {name: value for name, value in given.items() if name != field}
            message = refusal(file, json.dumps({"collections": [rest]}))
            assert message.startswith(f"collections[0]: field `{field}` is missing; it must be ")


def test_revision_is_1_unless_given(file: Path) -> None:
    assert read(file, WHOLE.replace("revision: 1\n", "")).revision == 1
    assert read(file, WHOLE.replace("revision: 1\n", "revision: 7\n")).revision == 7
