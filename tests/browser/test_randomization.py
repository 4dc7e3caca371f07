"""The same secret, client, value and words give the same permanent response and report as in Python."""

import json

import pytest

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from tests.support.edge.browser.expected import (
    CLIENT,
    SECRET,
    javascript,
    plain_entry,
    reports,
    signing_key,
)
from tests.support.edge.browser.node import JavaScriptError, asked
from tests.support.edge.browser.vectors import FILE, vectors

KEY = signing_key()
TEXTS = ["JFK", "", "naïve café", "日本", "\U0001f600", "x" * 1000, "LGA", "\ud800 alone", "JFK"]
LISTED = ("JFK", "LGA", "naïve café", "\U0001f600")
INTEGERS = [0, 1, 5, -1, 2**31, 2**70, -(2**70), 3]


def bloom(bits, hashes, cohorts, f, p, q, memoize):
    return Collection("words", Rappor.from_probabilities(bits, hashes, cohorts, f, p, q), memoize=memoize)


COLLECTIONS = {
    "k-RR of a list": (Collection("c", KRR.from_epsilon(4, 1.0), LISTED), TEXTS),
    "k-RR with other": (Collection("c", KRR.from_epsilon(5, 1.0), LISTED, other=True), TEXTS),
    "k-RR of integers": (Collection("c", KRR.from_epsilon(300, 2.5)), INTEGERS),
    "k-RR of 2^31": (Collection("c", KRR.from_epsilon(2**31, 16.0)), INTEGERS),
    "k-RR of two": (Collection("c", KRR.from_epsilon(2, 0.01)), INTEGERS),
    "longitudinal": (Collection("c", LongitudinalKRR.from_epsilons(4, 4.0, 1.0), LISTED), TEXTS),
    "longitudinal with other": (
        Collection("c", LongitudinalKRR.from_epsilons(70_001, 9.0, 2.0), other=True),
        INTEGERS,
    ),
    "Bloom": (bloom(128, 2, 8, 0.25, 0.35, 0.65, False), TEXTS),
    "Bloom, memoized": (bloom(128, 2, 8, 0.25, 0.35, 0.65, True), TEXTS),
    "Bloom, odd thresholds": (bloom(128, 2, 65535, 0.3, 0.3141, 0.77, True), TEXTS),
    "Bloom, 8 bits": (bloom(8, 1, 1, 0.5, 0.25, 0.75, True), TEXTS),
    "Bloom, 72 bits": (bloom(72, 16, 3, 0.1, 0.2, 0.9, True), TEXTS),
    "Bloom, 256 bits": (bloom(256, 16, 300, 0.1, 0.2, 0.9, True), TEXTS),
    "Bloom, 264 bits": (bloom(264, 8, 2, 0.1, 0.2, 0.9, True), TEXTS),
    "Bloom, 4096 bits": (bloom(4096, 8, 2, 0.7, 0.01, 0.02, True), TEXTS[:3]),
    "Bloom without permanent noise": (bloom(64, 2, 4, 0.0, 0.25, 0.75, False), TEXTS),
}


@pytest.fixture(scope="module")
def javascript_sources():
    with asked() as answers:
        yield answers


@pytest.mark.parametrize("name", COLLECTIONS)
def test_same_words_give_the_same_reports(javascript_sources, name):
    """Every word that Python draws is drawn, and no other; each value is reported twice by two devices."""
    collection, values = COLLECTIONS[name]
    for client in (CLIENT, "ann"):
        expected = reports(collection, values * 2, seed=7, client=client)
        given = [
            {"truth": javascript(value), "words": each["words"]}
            for value, each in zip(values * 2, expected, strict=True)
        ]
        entry = plain_entry(collection, KEY)
        found = javascript_sources.ask(
            "respond", entry=entry, secret=SECRET.hex(), client=client, reports=given
        )
        assert [(each["cohort"], each["rows"][0], each["used"]) for each in found] == [
            (each["cohort"], each["report"], len(each["words"])) for each in expected
        ]


def test_another_secret_or_client_gives_another_permanent_response(javascript_sources):
    """The comparison above can fail: the permanent response depends on secret, client and value."""
    collection, _ = COLLECTIONS["Bloom, memoized"]
    entry = plain_entry(collection, KEY)
    words = reports(collection, ["JFK"], seed=7)[0]["words"]

    def permanent(secret, client, truth):
        given = [{"truth": truth, "words": words}]
        (found,) = javascript_sources.ask(
            "respond", entry=entry, secret=secret.hex(), client=client, reports=given
        )
        return found["rows"][1]

    own = permanent(SECRET, CLIENT, "JFK")
    assert own == permanent(SECRET, CLIENT, "JFK")
    others = [
        permanent(bytes(32), CLIENT, "JFK"),
        permanent(SECRET, "bob", "JFK"),
        permanent(SECRET, CLIENT, "LGA"),
    ]
    assert own not in others


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("k-RR of a list", 5, "a value of c must be text, got number"),
        ("k-RR of a list", None, "a value of c must be text, got object"),
        ("k-RR of integers", "5", "a value of c must be an integer, got string"),
        ("k-RR of integers", 0.5, "a value of c must be an integer, got number"),
        ("k-RR of integers", True, "a value of c must be an integer, got boolean"),
        ("longitudinal", ["JFK"], "a value of c must be text, got object"),
        ("Bloom", 9, "a value of words must be text, got number"),
    ],
)
def test_value_of_the_wrong_type_is_refused_without_naming_it(javascript_sources, name, value, message):
    entry = plain_entry(COLLECTIONS[name][0], KEY)
    given = [{"truth": value, "words": []}]
    with pytest.raises(JavaScriptError) as caught:
        javascript_sources.ask("respond", entry=entry, secret=SECRET.hex(), client=CLIENT, reports=given)
    assert caught.value.args == ("DeniableError", "type", message)


VECTOR = json.loads(FILE.read_text())


def test_vectors_are_those_of_python():
    """The file is for clients in other languages: it changes only with Python's randomizers."""
    assert json.loads(json.dumps(vectors())) == VECTOR


@pytest.mark.parametrize("number", range(len(VECTOR["collections"])))
def test_vectors_hold_in_javascript(javascript_sources, number):
    vector = VECTOR["collections"][number]
    given = [{"truth": each["value"], "words": each["words"]} for each in vector["reports"]]
    fields = {"entry": vector["entry"], "secret": VECTOR["secret"], "client": VECTOR["client"]}
    found = javascript_sources.ask("respond", reports=given, **fields)
    assert [(each["cohort"], each["rows"][0]) for each in found] == [
        (each["cohort"], each["report"]) for each in vector["reports"]
    ]
