"""The prefix tree beside the published method for unknown strings: pairs of n-grams and cliques.

Each client of the n-gram method reports two n-grams of its string and, to test what they suggest, the
string, with a third of epsilon each. An edge joins two n-grams of different places, frequent together;
cliques with an n-gram at each place are the candidates. Here each part is reported by the best mechanism of
ours, so that only the methods differ: a bit for each pair of n-grams with two thirds of epsilon, and local
hashing of the string. google/rappor joins n-grams above a share of 0.04; a second line joins those that are
significant.

Source: Fanti, Pihur, Erlingsson, "Building a RAPPOR with the unknown" (PoPETs 2016), section 4.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.estimators.growth.prefix_reports import tree_counts
from bench.estimators.populations import zipf_shares
from bench.sections import ResultRow, Section
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.decoding.hashed.growth.alphabet import Alphabet
from deniable.estimators.decoding.hashed.growth.grow import grow
from deniable.estimators.decoding.hot.decode import decode_hot
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair

ALPHABET, SIZE, PLACES = "abcdef", 6, 3
NGRAMS = tuple(one + other for one in ALPHABET for other in ALPHABET)
DIFFERENT, REPORTS, TOP = 2000, 300_000, 20
PUBLISHED_SHARE = 0.04
EPSILONS = (2.0, 4.0, 6.0)
RUNS = 5

#: By two places, whether their n-grams, by number, are joined: bool (36, 36).
Edges = Mapping[tuple[int, int], NDArray[np.bool_]]


class Finds(NamedTuple):
    """Strings found of the 20 most frequent ones, in all, and of those the ones that nobody has."""

    top: int
    found: int
    false: int


def cliques(edges: Edges, places: int) -> list[tuple[int, ...]]:
    """Return all tuples of n-grams, one at each place, of which any two are joined."""
    size = edges[0, 1].shape[0]
    found: list[tuple[int, ...]] = [(each,) for each in range(size)]
    for place in range(1, places):
        found = [
            (*begun, each)
            for begun in found
            for each in range(size)
            if all(edges[earlier, place][ngram, each] for earlier, ngram in enumerate(begun))
        ]
    return found


def joined_ngrams(
    rng: np.random.Generator, texts: list[str], clients: NDArray[np.int64], epsilon: float, *, published: bool
) -> Edges:
    """Estimate which n-grams are joined: a third of the clients reports each two places."""
    number = {ngram: place for place, ngram in enumerate(NGRAMS)}
    parts = np.array([[number[text[2 * each : 2 * each + 2]] for each in range(PLACES)] for text in texts])
    mechanism = OneHotPair.from_epsilon(len(NGRAMS), len(NGRAMS), 2 * epsilon / 3)
    thirds = rng.multinomial(clients, np.full(PLACES, 1 / PLACES))
    edges = {}
    for third, (first, second) in enumerate(combinations(range(PLACES), 2)):
        cells = parts[:, first] * len(NGRAMS) + parts[:, second]
        held = np.bincount(cells, thirds[:, third], mechanism.buckets).astype(np.int64)
        reports = int(held.sum())
        ones = rng.binomial(held, mechanism.q_star) + rng.binomial(reports - held, mechanism.p_star)
        padded = np.zeros((1, mechanism.bits), np.int64)
        padded[0, : mechanism.buckets] = ones
        result = decode_hot(padded, np.array([reports]), mechanism)
        is_joined = result.frequency > PUBLISHED_SHARE if published else result.significant
        edges[first, second] = is_joined.reshape(len(NGRAMS), len(NGRAMS))
    return edges


def by_ngrams(
    rng: np.random.Generator, texts: list[str], clients: NDArray[np.int64], epsilon: float, *, published: bool
) -> list[str]:
    """Return the strings that cliques suggest and that the reports of whole strings confirm."""
    edges = joined_ngrams(rng, texts, clients, epsilon, published=published)
    candidates = ["".join(NGRAMS[each] for each in clique) for clique in cliques(edges, PLACES)]
    if not candidates:
        return []
    mechanism = LocalHash.from_epsilon(epsilon / 3)
    functions = hash_functions_of(mechanism, 1)
    words = functions.words(texts).repeat(clients)
    function = rng.integers(0, mechanism.hash_functions, len(words))
    drawn = rng.integers(0, mechanism.hash_buckets, len(words))
    kept = rng.random(len(words)) < mechanism.response.contrast
    reported = np.where(kept, functions.buckets(words, function), drawn)
    counts = np.bincount(function * mechanism.hash_buckets + reported, minlength=mechanism.width)
    significant = decode_hashed(counts, candidates, mechanism, 1).significant
    return [text for text, is_found in zip(candidates, significant.tolist(), strict=True) if is_found]


def by_tree(
    rng: np.random.Generator, texts: list[str], clients: NDArray[np.int64], epsilon: float
) -> list[str]:
    """Return the strings that a prefix tree finds with the whole epsilon."""
    mechanism = PrefixTree.from_epsilon((3, 4, 5, 6), epsilon)
    counts = tree_counts(rng, [text.encode() for text in texts], clients, mechanism, 1)
    found = grow(counts, mechanism, 1, Alphabet.of_characters(ALPHABET))
    return [text.decode() for text in found.texts]


def searches(epsilon: float, run: int, reports: int = REPORTS) -> dict[str, Finds]:
    """Return what each method finds in one population."""
    rng = np.random.default_rng([int(10 * epsilon), run])
    drawn = rng.choice(len(ALPHABET) ** SIZE, DIFFERENT, replace=False)
    digits = drawn[:, np.newaxis] // len(ALPHABET) ** np.arange(SIZE) % len(ALPHABET)
    texts = ["".join(ALPHABET[each] for each in row) for row in digits.tolist()]
    clients = rng.multinomial(reports, zipf_shares(DIFFERENT, 1.0))
    top = {texts[each] for each in np.argsort(-clients, kind="stable")[:TOP]}
    held = {text for text, number in zip(texts, clients, strict=True) if number}
    found = {
        "n-grams, above 0.04": by_ngrams(rng, texts, clients, epsilon, published=True),
        "n-grams, significant": by_ngrams(rng, texts, clients, epsilon, published=False),
        "prefix tree": by_tree(rng, texts, clients, epsilon),
    }
    return {
        name: Finds(len(top & set(each)), len(each), len(set(each) - held)) for name, each in found.items()
    }


def ngrams(runs: int = RUNS) -> Section:
    """Compare the methods, means of the runs."""
    rows: list[ResultRow] = []
    for epsilon in EPSILONS:
        done = [searches(epsilon, run) for run in range(runs)]
        for name in done[0]:
            top, found, false = np.mean([each[name] for each in done], axis=0)
            row = {"of the top 20": f"{top:.1f}", "found": f"{found:.1f}", "false": f"{false:.1f}"}
            rows.append({"epsilon": epsilon, "method": name, **row})
    about = (
        f"{runs} runs: {REPORTS:,} reports of {DIFFERENT:,} strings of {SIZE} letters, shares as 1 / rank."
    )
    return Section(about, rows)


CASES = {"beside n-grams": ngrams}
