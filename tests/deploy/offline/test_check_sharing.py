"""How many clients share a hash function, as `check` says it and as producers draw them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from deniable.deploy.offline.check import check
from deniable.deploy.offline.costs.sharing import sharing_facts, sharing_lines
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.responders.factory import responder_of
from deniable.protocol.secrets.secret import Secret


@pytest.mark.parametrize("epsilon_one", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_few_of_a_thousand_clients_have_a_default_function_alone(epsilon_one: float) -> None:
    """Catches a default with which a function is a pseudonym: at most 2.1 % are expected to be alone.

    Drawn under a fixed secret, so the test cannot fail by chance.
    """
    mechanism = LongitudinalHash.from_epsilons(2 * epsilon_one, epsilon_one)
    collection = Collection("words", mechanism, candidates=("a",), memoize=True)
    clients = [f"client {number}" for number in range(1000)]
    batch = responder_of(collection, Secret(bytes(32)), Keystream()).prepare(["a"] * 1000, clients)
    _, rows = batch.respond(slice(0, 1000))
    counters = rows.view(np.uint16 if rows.shape[1] == 2 else np.uint32)[:, 0]
    functions = counters // mechanism.hash_buckets
    assert np.unique(functions).size > 100
    drawn = (np.bincount(functions) == 1).sum() / 1000
    facts = sharing_facts(collection, 1000)
    assert facts is not None
    assert facts.alone < 0.021
    assert drawn < 0.03
    assert drawn == pytest.approx(facts.alone, abs=0.015)


def test_lone_reports_of_local_hashing_are_counted_by_counter() -> None:
    """What readers of counts see of 10,000 reports, by simulation: a seed is fixed, three digits hold."""
    collection = Collection("words", LocalHash.from_epsilon(1.0), candidates=("a",))
    facts = sharing_facts(collection, 10_000)
    assert facts is not None
    drawn = np.bincount(np.random.default_rng(1).integers(collection.width, size=10_000))
    assert facts.alone == pytest.approx((drawn == 1).sum() / 10_000, abs=0.01)
    assert facts.alone == pytest.approx(0.858, abs=0.001)
    fewer = sharing_facts(Collection("words", LocalHash.from_epsilon(1.0, 1365), candidates=("a",)), 10_000)
    assert fewer is not None
    assert fewer.alone == pytest.approx(0.085, abs=0.001)
    tree = sharing_facts(Collection("texts", PrefixTree.from_epsilon([1, 2], 1.0)), 10_000)
    assert tree is not None
    assert tree.places == 2 * 65_520
    assert sharing_facts(Collection("plan", KRR.from_epsilon(3, 1.0)), 10_000) is None
    assert sharing_lines(Collection("plan", KRR.from_epsilon(3, 1.0)), 10_000) == []


FILE = """\
kafka: {partitions: 1, bootstrap_servers: 127.0.0.1:9092}
collections:
  - {name: words, mechanism: local-hash-longitudinal, epsilon_inf: 2, epsilon_one: 1, candidates: [a],
     window_seconds: 86400, grace_seconds: 3600, budget: none}
  - {name: plain, mechanism: local-hash, epsilon: 1, candidates: [a],
     window_seconds: 86400, grace_seconds: 3600, budget: none}
"""


def test_check_says_it_for_the_clients_that_are_expected(tmp_path) -> None:
    config = tmp_path / "deniable.yaml"
    config.write_text(FILE)
    said = CliRunner().invoke(check, ["--config", str(config), "--clients", "10000"]).output
    assert "of 10,000 clients each shares its function, which never changes, with 43 others" in said
    assert "of 10,000 reports of a window each shares its counter with 0.15 others, and 85.85 % are" in said
    found = json.loads(CliRunner().invoke(check, ["--config", str(config), "--json"]).output)
    sharing = found["collections"][0]["sharing"]
    assert (sharing["clients"], sharing["places"], sharing["lasting"]) == (1000, 234, True)
