"""The published method for unknown strings: its cliques, and that the prefix tree finds more."""

import numpy as np
import pytest

from bench.estimators.growth import ngrams

pytestmark = pytest.mark.slow

#: Of google/rappor, analysis/cpp/testdata: edges of n-grams at two places, and the strings that are cliques.
#: Its find_cliques names two more in the first, xxcdefzz and abcdefzz, whose ends lack edges: it reads
#: a number before it is set.
GRAPHS = {
    "graph1": (
        4,
        "0.ab 1.cd, 0.xx 1.cd, 0.ij 1.kl, 0.qr 1.st, 0.ab 1.le, 0.qr 2.uv, 0.ab 2.ef, 0.ij 2.mn, 0.ij 3.op, "
        "0.qr 3.wx, 0.ab 3.gh, 1.cd 2.ef, 1.kl 2.mn, 1.st 2.uv, 1.kl 3.op, 1.cd 3.gh, 1.st 3.wx, 2.uv 3.wx, "
        "2.ef 3.gh, 2.ef 3.zz, 2.mn 3.op",
        {"abcdefgh", "ijklmnop", "qrstuvwx"},
    ),
    "graph3": (3, "0.ab 1.cd, 1.cd 2.ef, 0.ab 2.ef, 0.AB 1.CD, 1.CD 2.EF", {"abcdef"}),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_cliques_are_those_of_the_published_graphs(name):
    places, text, strings = GRAPHS[name]
    pairs = [[each.split(".") for each in edge.split()] for edge in text.split(", ")]
    names = sorted({ngram for pair in pairs for _, ngram in pair})
    edges = {(a, b): np.zeros((len(names), len(names)), bool) for b in range(places) for a in range(b)}
    for (first, one), (second, other) in pairs:
        edges[int(first), int(second)][names.index(one), names.index(other)] = True
    found = {"".join(names[each] for each in clique) for clique in ngrams.cliques(edges, places)}
    assert found == strings


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_the_tree_finds_more_at_the_same_epsilon(epsilon):
    """True strings: 13 and 41 on average, 6 and 17 by significant n-grams, 2 by the published threshold."""
    true = {name: each.found - each.false for name, each in ngrams.searches(epsilon, 0).items()}
    assert true["prefix tree"] > 1.4 * true["n-grams, significant"] > 1.4 * true["n-grams, above 0.04"]


def test_table_has_a_line_for_each_method(monkeypatch):
    monkeypatch.setattr(ngrams, "EPSILONS", (6.0,))
    assert [row["method"] for row in ngrams.ngrams(1).rows] == [*ngrams.searches(6.0, 0)]
