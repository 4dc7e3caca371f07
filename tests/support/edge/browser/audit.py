"""Audit of the browser client's randomizers: lower bounds on epsilon from outputs in Node and in Chromium."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_positions
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
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
from tests.support.edge.browser.expected import plain_entry, signing_key
from tests.support.producers.audit.bounds import single_bounds

#: Probability that any bound of one run of the table, in both engines, exceeds the epsilon of a right client.
FALSE_ALARM = 1e-6
ENGINES = 2
SAMPLES = 200_000
#: Least share of epsilon that a right client must show if each report is of another text or device. Every
#: subject shows .92 to .97 on average, with a deviation of at most .012: less once in 3 million runs.
SHOWN = 0.86
#: Devices of longitudinal k-RR, each with responses of its own: deriving their keys takes a millisecond.
DEVICES = 20_000
#: Of longitudinal local hashing, where two texts have different buckets under two thirds of the functions.
HASHED_DEVICES = 50_000
MOST_TEXTS = 20_000

KEY = signing_key()
#: Of one cohort, so that every device has the same Bloom filters.
BLOOM_8 = Rappor.from_probabilities(8, 2, 1, 0.25, 0.35, 0.65)
BLOOM_128 = Rappor.from_probabilities(128, 2, 1, 0.25, 0.35, 0.65)
KEPT_HASH = LongitudinalHash.from_epsilons(4.0, 2.0, hash_buckets=3)
SETS = [[["a", "b"]], [["c", "d"]]]
LONGITUDINAL = LongitudinalKRR.from_epsilons(4, 2.5, 2.0)


@dataclass(frozen=True)
class Subject:
    """What is counted: see `count` in scripts/audit.js. `epsilon`: which no bound may exceed.

    `inputs`: or how they are found, which may take seconds. `shown`: its share that a right client must show.
    """

    name: str
    epsilon: float
    entry: dict[str, Any]
    inputs: list[list[Any]] | Callable[[], list[list[Any]]]
    outcomes: int
    samples: int = SAMPLES
    bits: list[int] | None = None
    devices: int = 0
    reports: int = 1
    groups: list[int] | None = None
    width: int = 0
    shown: float = SHOWN

    def given(self) -> dict[str, Any]:
        """What the script takes."""
        fields = ("entry", "outcomes", "samples", "bits", "devices", "reports", "groups", "width")
        inputs = self.inputs() if callable(self.inputs) else self.inputs
        return {name: getattr(self, name) for name in fields} | {"inputs": inputs}


def of_bloom(name: str, mechanism: Rappor, epsilon: float, memoize: bool, **changes: Any) -> Subject:
    """Two inputs of disjoint bits; many texts of each, whose permanent responses are independent."""
    first = bloom_positions("JFK", 0, mechanism)
    assert len(set(first)) == 2
    texts = (f"text {number}" for number in count())
    second = next(
        found
        for found in (bloom_positions(text, 0, mechanism) for text in texts)
        if len(set(found)) == 2 and not set(found) & set(first)
    )
    needed = MOST_TEXTS if memoize else 1
    inputs = partial(_texts_of, mechanism, frozenset(first), frozenset(second), needed=needed)
    bits = [*sorted(set(first)), *sorted(set(second))]
    entry = plain_entry(Collection("audited", mechanism, memoize=memoize), KEY)
    return replace(Subject(name, epsilon, entry, inputs, 16, bits=bits), **changes)


@cache
def _texts_of(mechanism: Rappor, *bits: frozenset[int], needed: int) -> list[list[Any]]:
    """Return, for each set of bits, texts that have these and no others."""
    found = []
    for each in bits:
        texts = (f"word {number}" for number in count())
        fit = (text for text in texts if set(bloom_positions(text, 0, mechanism)) == each)
        found.append([*islice(fit, needed)])
    return found


def of_values(name: str, mechanism: KRR | LongitudinalKRR, **changes: Any) -> Subject:
    entry = plain_entry(Collection("audited", mechanism), KEY)
    inputs = [[value] for value in range(mechanism.k)]
    return replace(Subject(name, mechanism.epsilon, entry, inputs, mechanism.k), **changes)


#: Outcomes that are likelier under the first input, under the second one, and all others.
GROUPS = 3


def of_hash(name: str, mechanism: LocalHash | LongitudinalHash, **changes: Any) -> Subject:
    """Two texts; grouped by which of them have the reported bucket under the reported function."""
    memoize = isinstance(mechanism, LongitudinalHash)
    collection = Collection("audited", mechanism, memoize=memoize)
    functions = hash_functions_of(mechanism, collection.hash_key)
    every = np.arange(mechanism.hash_functions)
    texts, shown = ["JFK", "LGA"], np.arange(mechanism.hash_buckets)
    buckets = [functions.buckets(word.repeat(len(every)), every) for word in functions.words(texts)]
    groups = _groups(*(shown == each[:, np.newaxis] for each in buckets))
    entry = plain_entry(collection, KEY)
    inputs = [[text] for text in texts]
    return replace(Subject(name, mechanism.epsilon, entry, inputs, GROUPS, groups=groups), **changes)


def of_tree(name: str, mechanism: PrefixTree, **changes: Any) -> Subject:
    """Two texts; grouped, on each level, by which of their prefixes have the reported bucket.

    A device keeps its level, so a group's probability differs between devices. Both texts are reported by the
    same devices, so the ratio of the mean probabilities is at most that on one level. Hits are sums of
    independent trials with these means, which deviate less than binomial ones (Hoeffding, 1956).
    """
    collection, groups = Collection("audited", mechanism), []
    functions = hash_functions_of(mechanism.oracle, collection.hash_key)
    every, shown = np.arange(mechanism.oracle.hash_functions), np.arange(mechanism.oracle.hash_buckets)
    texts = ["JFK", "LGA"]
    for level in range(mechanism.cohorts):
        prefixes = [mechanism.prefix(text.encode(), level) for text in texts]
        words = mechanism.words(prefixes, level, functions)
        buckets = [functions.buckets(word.repeat(len(every)), every) for word in words]
        groups += _groups(*(shown == each[:, np.newaxis] for each in buckets))
    subject = Subject(
        name,
        mechanism.epsilon,
        plain_entry(collection, KEY),
        [[text] for text in texts],
        GROUPS,
        groups=groups,
    )
    return replace(subject, width=mechanism.width, **changes)


def _groups(of_first: NDArray[np.bool_], of_second: NDArray[np.bool_]) -> list[int]:
    found = np.select([of_first & ~of_second, of_second & ~of_first], [0, 1], 2)
    return [int(group) for group in found.reshape(-1)]


def of_number(name: str, mechanism: SquareWave) -> Subject:
    """Both ends of the range; grouped by which of them the reported cell is near to."""
    cells = np.arange(mechanism.width)
    groups = _groups(cells < mechanism.near, cells >= mechanism.steps - 1)
    entry = plain_entry(Collection("audited", mechanism), KEY)
    inputs = [[mechanism.minimum], [mechanism.maximum]]
    return Subject(name, mechanism.epsilon, entry, inputs, GROUPS, groups=groups)


def of_pair(name: str, mechanism: PairKRR | OneHotPair, **changes: Any) -> Subject:
    fields = (Field("first", ("a", "b"), False), Field("second", ("c", "d"), False))
    collection = Collection("audited", mechanism, pair_labels(*fields), fields=fields)
    inputs = [[[one, other]] for one in "ab" for other in "cd"]
    subject = Subject(name, mechanism.epsilon, plain_entry(collection, KEY), inputs, mechanism.width)
    return replace(subject, **changes)


def of_hot(name: str, mechanism: HotRappor, inputs: list[list[Any]]) -> Subject:
    entry = plain_entry(Collection("audited", mechanism, tuple("abcd")), KEY)
    return Subject(name, mechanism.epsilon, entry, inputs, 16, bits=[0, 1, 2, 3])


def _of_majority(mechanism: Rappor, reports: int, samples: int) -> float:
    """Bound that the majority of some reports of a text shows: 3.3 of 7.8 here, so 0.9 is out of reach.

    A bit's majority differs from the permanent bit with probability w, from the true bit with
    e = f/2 + (1 - f) w. So even without end the event that is most revealing, all four bits as one text has
    them, would show 4 ln((1 - e) / e) = 3.9; 7.8 takes many more reports of each text, so that w is 0. Then
    only (f/2)^4 of the texts, 5 of 20,000, show the other text's bits, which bounds no more than 5.9.
    """
    half = mechanism.flip_threshold / 2**32
    w = float(bdtrc(reports // 2, reports, mechanism.p_threshold / 2**32))
    wrong = half + (1 - 2 * half) * w
    hits = np.array([[(1 - wrong) ** 4, wrong**4]]).round(9) * samples
    cells = np.stack([hits, hits[:, ::-1]], axis=1).round().astype(np.int64)
    rest = samples - cells.sum(axis=2, keepdims=True)
    error = FALSE_ALARM / (ENGINES * 15 * 2 * 2 * 16)
    return float(single_bounds(np.concatenate([cells, rest], axis=2), error).max())


SUBJECTS = [
    of_values("k-RR, k = 2", KRR.from_epsilon(2, 1.0)),
    of_values("k-RR, k = 10", KRR.from_epsilon(10, 2.0)),
    of_values("longitudinal k-RR, k = 4", LONGITUDINAL, samples=DEVICES, devices=1),
    of_bloom("Bloom RAPPOR, 8 bits", BLOOM_8, BLOOM_8.epsilon_one, False),
    of_bloom("Bloom RAPPOR, 128 bits", BLOOM_128, BLOOM_128.epsilon_one, False),
    of_bloom("Bloom RAPPOR, 8 bits, memoized", BLOOM_8, BLOOM_8.epsilon_one, True),
    of_bloom(
        "Bloom RAPPOR, 8 bits, 7 reports of a text",
        BLOOM_8,
        BLOOM_8.epsilon_inf,
        True,
        reports=7,
        samples=MOST_TEXTS,
        shown=0.9 * _of_majority(BLOOM_8, 7, MOST_TEXTS) / BLOOM_8.epsilon_inf,
    ),
    of_hash("local hashing", LocalHash.from_epsilon(1.0)),
    of_tree("prefix tree", PrefixTree.from_epsilon((1, 3), 1.0), devices=10, samples=100_000),
    of_hash("longitudinal local hashing", KEPT_HASH, samples=HASHED_DEVICES, devices=1),
    of_number("number, 16 steps", SquareWave.from_epsilon(0.0, 600.0, 16, 1.0)),
    of_pair("pair, 2 x 2 values", PairKRR.from_epsilons(2, 2, 1.0, 0.5)),
    of_hot("one-hot RAPPOR, 4 values", HotRappor.from_probabilities(4, 1, 0.25, 0.25, 0.75), [["a"], ["d"]]),
    of_pair("pair of bits, 2 x 2 values", OneHotPair.from_epsilon(2, 2, 1.0), outcomes=16, bits=[0, 1, 2, 3]),
    of_hot("k-hot RAPPOR, 2 of 4 values", HotRappor.from_probabilities(4, 2, 0.25, 0.35, 0.65), SETS),
]


def _with(subject: Subject, name: str, **parameters: str) -> Subject:
    mechanism = subject.entry["mechanism"] | parameters
    return replace(subject, name=name, entry=subject.entry | {"mechanism": mechanism})


_HASHED = KRR.from_epsilon(LocalHash.from_epsilon(1.0).hash_buckets, 1.1)
#: Of 20,000 reports.
_BUCKETS = KRR.from_epsilon(LocalHash.from_epsilon(1.0).hash_buckets, 1.6)
#: Its functions are others, since they depend on what is remembered. Without the permanent step a report
#: costs 1.49, so that 20,000 devices show more than 1 (1.32 on average, with a deviation of .02).
_OPEN_HASH = replace(LongitudinalHash.from_epsilons(2.0, 1.0), permanent_threshold=2**64 - 1)
_NUMBER = SquareWave.from_epsilon(0.0, 600.0, 16, 1.05)
_SECOND = KRR.from_epsilon(2, 0.6)
#: Wrong thresholds, audited against the epsilon of the right ones: the audit must find each. Each shows on
#: average 5 deviations more than that or further, so it is missed less than once in a million runs.
BROKEN = [
    _with(SUBJECTS[0], "k-RR of epsilon 1.05", threshold=str(KRR.from_epsilon(2, 1.05).threshold)),
    _with(SUBJECTS[3], "RAPPOR without its permanent step", flip_threshold="0"),
    _with(SUBJECTS[3], "RAPPOR with q 5 % too high", q_threshold=str(int(0.6825 * 2**32))),
    _with(SUBJECTS[2], "longitudinal k-RR without its permanent step", permanent_threshold=str(2**64 - 1)),
    _with(SUBJECTS[7], "local hashing of epsilon 1.1", threshold=str(_HASHED.threshold)),
    replace(
        _with(SUBJECTS[8], "prefix tree of epsilon 1.6", threshold=str(_BUCKETS.threshold)), samples=DEVICES
    ),
    of_hash("local hashing without its permanent step", _OPEN_HASH, epsilon=1.0, samples=DEVICES, devices=1),
    _with(SUBJECTS[10], "number of epsilon 1.05", threshold=str(_NUMBER.threshold)),
    _with(SUBJECTS[11], "pair whose second field has epsilon 0.6", second_threshold=str(_SECOND.threshold)),
    _with(SUBJECTS[14], "k-hot RAPPOR with q 5 % too high", q_threshold=str(int(0.6825 * 2**32))),
]

Engine = Callable[[dict[str, Any]], Any]


def bound(subject: Subject, engine: Engine) -> float:
    """Return the largest lower bound on epsilon; a right client exceeds it rarely: see FALSE_ALARM."""
    hits = np.array(engine(subject.given()), np.int64)[np.newaxis]
    assert (hits.sum(axis=2) == subject.samples).all()
    error = FALSE_ALARM / (ENGINES * len(SUBJECTS))
    return float(single_bounds(hits, error / (2 * hits.size)).max())
