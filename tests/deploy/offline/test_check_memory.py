"""What `check` says of the memory of collections with many counters."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.config.entries import MOST_GROWN_COUNTERS
from deniable.deploy.offline.check import check
from deniable.deploy.offline.costs.memory import COUNTER_BYTES, memory_facts, memory_lines
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR

TREE = PrefixTree.from_epsilon((2, 3, 4, 5, 6), 4.0)
HOURLY = {"window_seconds": 3600, "grace_seconds": 600, "retention_seconds": 3600}
COUNTERS = TREE.cohorts * TREE.width


def test_a_growing_tree_says_what_windows_history_and_search_take() -> None:
    """Those of docs/finding.md: 0.3 to 1.3 MB a window of growing at 5 levels, and 145 MiB for a search."""
    growing = Collection("search", TREE, growth=GrowthRule(24, 0.05), **HOURLY)
    facts = memory_facts(growing)
    assert (facts.counters, facts.stored_windows, facts.growing_windows) == (COUNTERS, 3, 24)
    assert facts.stored_bytes == 3 * COUNTERS * COUNTER_BYTES
    assert facts.growing_bytes is not None
    assert [each / 24e6 for each in facts.growing_bytes] == pytest.approx([0.3, 1.3], abs=0.05)
    assert facts.search_bytes == 145 << 20
    assert memory_lines(growing) == [
        f"memory of a worker: {COUNTERS:,} counters a window, 3 windows at a time: 7.5 MiB for each "
        "partition that it owns, and as much for each of all partitions where it estimates the collection",
        "growing keeps 24 windows, 7.5 MiB to 30 MiB; a search takes about 145 MiB while it runs",
    ]


def test_growing_takes_at_most_512_mebibytes() -> None:
    """The collection file limits `windows`, whatever a counter takes."""
    most = MOST_GROWN_COUNTERS // COUNTERS
    facts = memory_facts(Collection("search", TREE, growth=GrowthRule(most, 0.05), **HOURLY))
    assert facts.growing_bytes is not None
    assert facts.growing_bytes[1] <= most * COUNTERS * COUNTER_BYTES <= 512 << 20


def test_a_tree_that_does_not_grow_is_searched_by_the_command() -> None:
    lines = memory_lines(Collection("search", TREE, **HOURLY))
    assert lines[1:] == ["deniable decode --grow: a search takes about 145 MiB while it runs"]
    assert memory_facts(Collection("search", TREE, **HOURLY)).growing_bytes is None


@pytest.mark.parametrize(
    "mechanism", [LocalHash.from_epsilon(1.0), LongitudinalHash.from_epsilons(2.0, 1.0)], ids=["hash", "long"]
)
def test_local_hashing_says_what_its_windows_take(mechanism: LocalHash | LongitudinalHash) -> None:
    """With the default retention of an hour, many windows of a minute are stored."""
    words = Collection("words", mechanism, candidates=("a", "b"), window_seconds=60, grace_seconds=30)
    windows = memory_facts(words).stored_windows
    assert (windows - 1) * 60 < 60 + 30 + words.retention_seconds <= windows * 60
    [line] = memory_lines(words)
    assert line.startswith(
        f"memory of a worker: {mechanism.width:,} counters a window, {windows} windows at a time: "
    )
    assert memory_facts(words).search_bytes is None


def test_few_counters_have_no_sentence() -> None:
    assert memory_lines(Collection("carrier", KRR.from_epsilon(3, 1.0), values=("a", "b", "c"))) == []


def test_command_says_it_in_both_forms(tmp_path: Path) -> None:
    file = tmp_path / "deniable.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: localhost:9092}\n"
        "collections:\n"
        "  - {name: search, mechanism: prefix-tree, epsilon: 4, lengths: [2, 3], grow: {windows: 6},\n"
        "     window_seconds: 3600, grace_seconds: 600, budget: none}\n"
    )
    text = CliRunner().invoke(check, ["--config", str(file)]).stdout
    [found] = json.loads(CliRunner().invoke(check, ["--config", str(file), "--json"]).stdout)["collections"]
    assert f"  memory of a worker: {found['memory']['counters']:,} counters a window, " in text
    assert "  growing keeps 6 windows, " in text
    assert found["memory"]["growing_windows"] == 6
    assert found["memory"]["search_bytes"] == 145 << 20
