"""Collections of every mechanism, and values as bad as they come: nothing else may depend on them."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.concurrency.clock import Clock
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.sources import RepeatableWords

NOISE = (0.25, 0.35, 0.65)
EIGHT = tuple("abcdefgh")
PAIR = (Field("from", ("a", "b"), True), Field("to", ("a", "b", "c"), False))
COLLECTIONS = {
    each.name: replace(each, grace_seconds=10**10)
    for each in (
        Collection("listed", KRR.from_epsilon(9, 1.0), values=EIGHT, other=True),
        Collection("sized", KRR.from_epsilon(300, 1.0)),
        Collection("again", LongitudinalKRR.from_epsilons(8, 2.5, 1.5), values=EIGHT, memoize=True),
        Collection("bloom", Rappor.from_probabilities(64, 2, 8, *NOISE), memoize=True),
        Collection("one_hot", HotRappor.from_probabilities(8, 1, *NOISE), values=EIGHT),
        Collection("two_hot", HotRappor.from_probabilities(8, 2, *NOISE), values=EIGHT),
        Collection("number", SquareWave.from_epsilon(-1.0, 10.0, 8, 1.0)),
        Collection("hash", LocalHash.from_epsilon(2.0)),
        Collection("hash_again", LongitudinalHash.from_epsilons(2.0, 1.0), memoize=True),
        Collection("tree", PrefixTree.from_epsilon((2, 3), 4.0)),
        Collection("pair", PairKRR.from_epsilons(3, 3, 1.0, 1.0), pair_labels(*PAIR), fields=PAIR),
        Collection("hot_pair", OneHotPair.from_epsilon(3, 3, 2.0), pair_labels(*PAIR), fields=PAIR),
    )
}

TEXTS = st.sampled_from([
    "a", "", " ", "Frankfurt, Oder", '"', '"a', 'a"b', "a\rb", "a\nb\r\n", "\t\\x41\\", "\0", "\ufeffa",
    "\ud800", "\udcff,", "{", '{"c": "x"}', "null", "1e400", "-1", "7", "9" * 5000, "[" * 2000, "x" * 100_000,
]) | st.text(st.characters(codec=None), max_size=8)  # fmt: skip


def _missing() -> st.SearchStrategy[object]:
    import pandas as pd  # here, since to import it takes half a second

    return st.sampled_from([None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT])


MISSING = st.deferred(_missing)
NUMBERS = (
    st.sampled_from([np.int8(3), np.uint64(2**64 - 1), np.float32("inf"), np.longdouble("1e400"), -(10**400)])
    | st.integers()
    | st.floats()
)
TRUTH = st.sampled_from([True, False, np.bool_(True)])
ANY = TEXTS | NUMBERS | TRUTH | MISSING
SETS = st.lists(ANY, max_size=4).map(tuple) | st.frozensets(TEXTS, max_size=4)


def values_of(collection: Collection) -> st.SearchStrategy[object]:
    """What a program may report to a collection."""
    if collection.fields:
        return st.tuples(ANY, ANY)
    if collection.name == "two_hot":
        return SETS | MISSING
    return ANY


def randomization() -> Randomization:
    """A randomization with a known secret and known words."""
    allowances = {name: Allowance(each, None) for name, each in COLLECTIONS.items()}
    return Randomization(allowances, Secret(bytes(32)), RepeatableWords(1), Clock(unix=lambda: 1e9))


def seen(submissions: object) -> list[object]:
    """What leaves of submissions, but for the reports' bits: sizes, clients, windows and cohorts."""
    return [
        (
            each.windows.tolist(),
            each.cohorts.tolist(),
            each.rows.shape,
            None if each.clients is None else each.clients.tolist(),
        )
        for each in submissions
    ]
