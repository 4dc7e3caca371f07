"""What a field of the collection file may hold."""

import json
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields

from deniable.config.entries import Entry
from deniable.estimators.collection import GrowthRule
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import choose_thresholds
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.deploy.collection_texts import HEAD, WHOLE, read, refusal
from tests.support.messages import PinMessages


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


CHANGES = {
    "a field is misspelt": ("epsilon: 1.0986", "epsilom: 1"),
    "the mechanism's field is misspelt": ("mechanism: k-rr,", "mechansim: k-rr,"),
    "epsilon is negative": ("1.0986", "-1"),
    "epsilon is NaN": ("1.0986", ".nan"),
    "epsilon is infinite": ("1.0986", ".inf"),
    "epsilon is true": ("1.0986", "true"),
    "epsilon is a word": ("1.0986", "high"),
    "a value is a number": ("B6", "9E5"),
    "a value is true": ("B6", "true"),
    "a value is null": ("B6", "~"),
    "a value is listed twice": ("B6", "AA"),
    "values beside size": ("values:", "size: 3, values:"),
    "one value, and no others": ('[AA, B6, "9E"]', "[AA]"),
    "size is 0": ('values: [AA, B6, "9E"], other: false', "size: 0"),
    "a name has a capital letter": ("name: carrier", "name: Carrier"),
    "two collections have the same name": ("name: destination", "name: carrier"),
    "the mechanism is unknown": ("k-rr", "krr"),
    "fields are those of another mechanism": (
        "k-rr, values",
        "rappor-k-hot, hot: 4, f: 0.5, p: 0.5, q: 0.75, values",
    ),
    "window_seconds is 0": ("window_seconds: 60", "window_seconds: 0"),
    "window_seconds is true": ("window_seconds: 60", "window_seconds: true"),
    "grace_seconds is negative": ("grace_seconds: 30", "grace_seconds: -1"),
    "retention_seconds is negative": ("budget: none", "retention_seconds: -1, budget: none"),
    "reports_per_window is 0": ("budget: none", "reports_per_window: 0, budget: none"),
    "epsilon_one beside f": ("f: 0.25", "epsilon_one: 1, f: 0.25"),
    "epsilon_inf without epsilon_one": ("f: 0.25, p: 0.35, q: 0.65", "epsilon_inf: 2"),
    "epsilon_one exceeds epsilon_inf": ("f: 0.25, p: 0.35, q: 0.65", "epsilon_inf: 2, epsilon_one: 3"),
    "minimum_reports is 0": ("budget: none", "minimum_reports: 0, budget: none"),
    "change_alarms_a_year is 0": ("budget: none", "change_alarms_a_year: 0, budget: none"),
    "f is NaN": ("f: 0.25", "f: .nan"),
    "p exceeds q": ("p: 0.35", "p: 0.7"),
    "bits are no bytes": ("bits: 128", "bits: 12"),
    "bits are a word": ("bits: 128", "bits: many"),
    "a candidate is listed twice": ("LAX", "JFK"),
    "a candidate on a line of its own is a number": ("[JFK, LAX]", "[\n      JFK,\n      7]"),
    "no candidates": ("candidates: [JFK, LAX],", ""),
    "an empty list of candidates": ("candidates: [JFK, LAX],", "candidates: [],"),
    "candidates beside a file of them": (
        "candidates: [JFK, LAX],",
        "candidates: [A], candidates_file: airports.txt,",
    ),
    "a value has the name of all others": (
        '[AA, B6, "9E"], other: false',
        "[AA, B6, '(other)'], other: true",
    ),
    "revision is 0": ("revision: 1", "revision: 0"),
    "revision is NaN": ("revision: 1", "revision: .nan"),
    "a section is misspelt": ("revision: 1", "colections: 1"),
    "section kafka is null": ("revision: 1", "revision: 1\nkafka:"),
    "too many partitions": ("revision: 1", "revision: 1\nkafka: {partitions: 1001}"),
    "no replicas": ("revision: 1", "revision: 1\nkafka: {replication_factor: 0}"),
    "a misspelt field of kafka.security": (
        "revision: 1",
        "revision: 1\nkafka:\n  security:\n    pasword: hunter2",
    ),
    "packs without reports": ("revision: 1", "revision: 1\nproducer: {pack_reports: 0}"),
    "the outbox holds 1 byte": ("revision: 1", "revision: 1\nproducer: {outbox_bytes: 1}"),
    "block_milliseconds is negative": ("revision: 1", "revision: 1\nproducer: {block_milliseconds: -1}"),
    "a misspelt field on line 6": (
        "revision: 1",
        "revision: 1\nkafka: {}\n\nproducer:\n  data_dir: x\n  pack_second: 1",
    ),
}


@pytest.mark.slow
def test_messages_of_fields(file: Path, pin_messages: PinMessages) -> None:
    assert [old for old, _ in CHANGES.values() if old not in WHOLE] == []
    changed = {what: WHOLE.replace(old, new, 1) for what, (old, new) in CHANGES.items()}
    no_list = {"an empty list of collections": "collections: []", "no collections": "kafka: {}"}
    pin_messages({what: partial(read, file, text) for what, text in (changed | no_list).items()})


def test_a_number_beyond_floats_is_refused(file: Path) -> None:
    message = refusal(file, WHOLE.replace("1.0986", "1" + "0" * 400))
    assert message.startswith("collections[0].epsilon: ")


def test_messages_of_budgets(file: Path, pin_messages: PinMessages) -> None:
    """A budget is asked for explicitly, and its fields are in the mapping."""
    budgets = {
        "budget is a number": "budget: 8",
        "budget is a word": "budget: some",
        "no delta": "budget: {epsilon: 8, period_seconds: 1}",
        "epsilon is 0": "budget: {epsilon: 0, delta: 1e-6, period_seconds: 1}",
        "epsilon is NaN": "budget: {epsilon: .nan, delta: 1e-6, period_seconds: 1}",
        "delta is 1": "budget: {epsilon: 1, delta: 1, period_seconds: 1}",
        "delta on the next line is 2": "budget: {epsilon: 1,\n delta: 2, period_seconds: 1}",
        "period_seconds is 0": "budget: {epsilon: 1, delta: 1e-6, period_seconds: 0}",
        "delta is beside the budget": "budget: none, delta: 1e-6",
        "period_seconds is beside the budget": "budget: none, period_seconds: 60",
        "changes is beside the budget": "budget: none, changes: 1",
    }
    texts = {what: WHOLE.replace("budget: none", budget, 1) for what, budget in budgets.items()}
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})


@pytest.mark.all
def test_messages_of_files_of_candidates(file: Path, pin_messages: PinMessages) -> None:
    contents = {
        "not UTF-8": b"\xff",
        "only empty lines": b"\n\n",
        "a line is repeated": b"JFK\n\nLAX\nJFK\n",
        "more than a million candidates": b"\n".join(b"%d" % number for number in range(1_000_001)),
    }
    texts = {}
    for number, (what, content) in enumerate(contents.items()):
        (file.parent / f"{number}.txt").write_bytes(content)
        texts[what] = f"candidates_file: {number}.txt"
    texts["a file without an end"] = "candidates_file: /dev/zero"
    texts["no such file"] = "candidates_file: airports.txt"
    pin_messages(
        {
            what: partial(read, file, WHOLE.replace("candidates: [JFK, LAX]", text))
            for what, text in texts.items()
        }
    )


def test_a_value_may_have_the_name_of_all_others_where_there_are_none(file: Path) -> None:
    text = WHOLE.replace('[AA, B6, "9E"]', "[AA, B6, '(other)']")
    assert text != WHOLE
    assert read(file, text).collections[0].values[-1] == "(other)"


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


@pytest.mark.slow
def test_messages_of_prefix_trees(file: Path, pin_messages: PinMessages) -> None:
    fields = {
        "descending lengths": "lengths: [4, 2]",
        "one length": "lengths: [3]",
        "a step has too many prefixes": "lengths: [2, 5]",
        "a step has too many prefixes to count": "lengths: [1, 200]",  # refused at once
        "candidates with equal beginnings": "lengths: [1, 2], candidates: [abc, abd]",
        "half a character in the alphabet": 'lengths: [1, 2], alphabet: "a\\ud800"',
        "an empty list of candidates": "lengths: [1, 2], candidates: []",
        "no windows to grow": "lengths: [1, 2], grow: {windows: 0}",
        "half a window to grow": "lengths: [1, 2], grow: {windows: 2.5}",
        "rate is 1": "lengths: [1, 2], grow: {windows: 2, rate: 1}",
        "a field of grow is misspelt": "lengths: [1, 2], grow: {window: 2}",
        "grow is empty": "lengths: [1, 2], grow: {}",
        "grow is a number": "lengths: [1, 2], grow: 5",
    }
    entry = "mechanism: prefix-tree, epsilon: 4"
    texts = {what: f"{HEAD}  - {{name: a, {entry}, {field}, {TIMES}}}\n" for what, field in fields.items()}
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})


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


def test_messages_of_numbers(file: Path, pin_messages: PinMessages) -> None:
    fields = {
        "minimum is maximum": "minimum: 1, maximum: 1, epsilon: 1",
        "too many steps": "minimum: 0, maximum: 1, steps: 513, epsilon: 1",
        "epsilon is too large": "minimum: 0, maximum: 1, epsilon: 17",
        "maximum is infinite": "minimum: 0, maximum: .inf, epsilon: 1",
    }
    texts = {
        what: f"{HEAD}  - {{name: a, mechanism: number, {field}, {TIMES}}}\n"
        for what, field in fields.items()
    }
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})


def test_messages_of_hot_buckets(file: Path, pin_messages: PinMessages) -> None:
    fields = {
        "more hot buckets than values": "mechanism: rappor-k-hot, values: [A, B], hot: 3",
        "a value is listed twice": "mechanism: rappor-one-hot, values: [A, A]",
    }
    texts = {what: f"{HEAD}  - {{name: a, {field}, {NOISE}, {TIMES}}}\n" for what, field in fields.items()}
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})


@pytest.mark.slow
def test_messages_of_missing_fields(file: Path, pin_messages: PinMessages) -> None:
    """Those of a field are the same in each mechanism that needs it."""
    missing = {}
    for entry in get_args(Entry):
        required = [each.name for each in fields(entry) if each.required]
        texts: dict[str, object] = {"mechanism": entry.__struct_config__.tag, "name": "a", "budget": "none"}
        texts["values"] = ["A", "B"]
        texts["fields"] = [{"name": name, "values": ["A", "B"]} for name in "ab"]
        texts |= {"lengths": [1, 2], "bits": 8}
        given = {name: texts.get(name, 1) for name in ["mechanism", *required]}
        for field in given:
            rest = {name: value for name, value in given.items() if name != field}
            text = json.dumps({"collections": [rest]})
            assert refusal(file, text).startswith(f"collections[0]: field `{field}` ")
            missing.setdefault(f"{field} is missing", partial(read, file, text))
    pin_messages(missing)


def test_revision_is_1_unless_given(file: Path) -> None:
    assert read(file, WHOLE.replace("revision: 1\n", "")).revision == 1
    assert read(file, WHOLE.replace("revision: 1\n", "revision: 7\n")).revision == 7
