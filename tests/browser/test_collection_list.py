"""The list of collections: its signature, its losses, and what a client refuses."""

import json
import math
from fractions import Fraction

import pytest

from estimators.collection import Collection
from estimators.mechanisms.directed_rounding import exp_below
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from producers.budget.allowance import Allowance, Budget
from tests.support.edge.browser.expected import entry, plain_entry, signing_key
from tests.support.edge.browser.node import JavaScriptError, asked, run
from tests.support.paths import VECTORS

KEY = signing_key()
LIST = json.loads((VECTORS / "collection_list.json").read_text())


@pytest.fixture(scope="module")
def javascript():
    with asked() as answers:
        yield answers


def body():
    """The answer of the vector, as text."""
    return LIST["body"]


def test_list_of_the_vector_is_read(javascript):
    names = javascript.ask("list", body=body(), publicKey=LIST["public_key"])
    assert names == [each["name"] for each in json.loads(json.loads(body())["signed"])["collections"]]
    assert len(names) >= 4


@pytest.mark.parametrize("change", ["text", "signature", "key", "no key", "no list"])
def test_list_that_is_not_signed_by_the_pinned_key_is_refused(javascript, change):
    answer, key = json.loads(body()), LIST["public_key"]
    if change == "text":
        answer["signed"] = answer["signed"].replace('"revision":7', '"revision":8')
    elif change == "signature":
        answer["signature"] = signing_key().sign(b"something else")
    elif change == "key":
        key = "A" * 43 + "="
    elif change == "no key":
        key = ""
    else:
        answer = ["<h1>Please log in</h1>"]
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("list", body=json.dumps(answer), publicKey=key)
    message = "list not signed by publicKey, base64 of 32 bytes: deniable edge --show-key"
    assert caught.value.args == ("DeniableError", "signature", message)


def signed(text):
    """Return a signed answer with this list."""
    signature = KEY.sign(b"deniable-collections-1\n" + text.encode())
    return json.dumps({"signed": text, "signature": signature})


@pytest.mark.parametrize(
    "text",
    [
        '{"format":2,"revision":7,"collections":[]}',
        '{"revision":7,"collections":[]}',
        '{"format":1,"collections":[]}',
        '{"format":1,"revision":"7","collections":[]}',
        '{"format":1,"revision":0,"collections":[]}',
        '{"format":1,"revision":7}',
        '{"format":1,"revision":7,"collections":{}}',
        "[]",
        "5",
    ],
)
def test_signed_list_of_another_format_is_refused(javascript, text):
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("list", body=signed(text), publicKey=KEY.public_key)
    assert caught.value.args == ("DeniableError", "unsupported", "the list is not supported")


MECHANISMS = [
    KRR.from_epsilon(2, 0.01),
    KRR.from_epsilon(5, 1.0),
    KRR.from_epsilon(2**31, 16.0),
    KRR.from_probability(2, 0.75),
    LongitudinalKRR.from_epsilons(5, 4.0, 1.0),
    LongitudinalKRR.from_epsilons(100_000, 9.0, 2.0),
    Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65),
    Rappor.from_probabilities(4096, 8, 2, 0.7, 0.01, 0.02),
    Rappor.from_probabilities(128, 16, 8, 0.0, 0.25, 0.75),
]


@pytest.mark.parametrize("memoize", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_loss_is_computed_from_the_thresholds(javascript, mechanism, memoize):
    """Never below the exact loss, and above it by less than a part in 10^8."""
    if memoize and getattr(mechanism, "flip_threshold", 1) == 0:
        memoize = False
    collection = Collection("c", mechanism, memoize=memoize)
    allowance = Allowance(collection, None)
    epsilon = mechanism.epsilon
    limits = [epsilon, epsilon * (1 - 1e-12), epsilon / 2, epsilon + 1]
    entry = plain_entry(collection, KEY) | {
        "epsilon": 0.001,
        "epsilon_per_report": 0.001,
    }  # stated ones are ignored
    found = javascript.ask("epsilon", entry=entry, limits=limits)
    assert found["within"] == [True, False, False, True]
    exact = allowance.epsilon_per_report
    assert exact <= found["perReport"] <= exact * (1 + 1e-8)
    inf = float(found["inf"])
    assert inf == allowance.epsilon_inf or allowance.epsilon_inf <= inf <= allowance.epsilon_inf * (1 + 1e-8)


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
def test_limit_is_compared_without_an_error_of_rounding(javascript, k):
    """At the two thresholds around epsilon 1, exactly one is within it."""
    threshold = KRR.from_epsilon(k, 1.0).threshold
    for number, expected in ((threshold, True), (threshold + 1, False)):
        truth = Fraction(number, 2**64)
        assert (truth / ((1 - truth) * Fraction(2**64 // (k - 1), 2**64)) <= exp_below(1.0)) is expected
        entry = plain_entry(Collection("c", KRR(k, threshold)), KEY)
        entry["mechanism"]["threshold"] = str(number)
        assert javascript.ask("epsilon", entry=entry, limits=[1.0])["within"] == [expected]


def changed(mechanism, memoize=False, values=(), **parameters):
    entry = plain_entry(Collection("c", mechanism, memoize=memoize), KEY)
    entry["mechanism"] |= parameters
    return entry | ({"values": list(values)} if values else {})


KRR_5, BLOOM = KRR.from_epsilon(5, 1.0), MECHANISMS[6]
LONGITUDINAL = MECHANISMS[4]


@pytest.mark.parametrize(
    "entry",
    [
        changed(KRR_5, kind="another"),
        changed(KRR_5, threshold="0"),
        changed(KRR_5, threshold=str(2**64)),
        changed(KRR_5, threshold=str(2**64 // 5)),
        changed(KRR_5, k=1),
        changed(KRR_5, values=["a", "b", "c", "d", "e", "f"]),
        changed(LONGITUDINAL, permanent_threshold="0"),
        changed(LONGITUDINAL, permanent_threshold=str(2**64)),
        changed(LONGITUDINAL, instantaneous_threshold="1"),
        changed(BLOOM, flip_threshold=str(2**31)),
        changed(BLOOM, flip_threshold="-1"),
        changed(BLOOM, p_threshold="0"),
        changed(BLOOM, p_threshold=str(BLOOM.q_threshold)),
        changed(BLOOM, q_threshold=str(2**32)),
        changed(Rappor.from_probabilities(8, 1, 1, 0.5, 0.2, 0.8), kind="rappor-hot"),
    ],
    ids=lambda entry: f"{entry['mechanism']}",
)
def test_parameter_that_would_reveal_more_is_not_supported(javascript, entry):
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("epsilon", entry=entry, limits=[math.pi])
    assert caught.value.args == ("DeniableError", "unsupported", "collection c is not supported")


LIMITED = Allowance(Collection("c", KRR_5, ("a", "b", "c", "d", "e")), Budget(3.5, 1e-6, 86400), 2)
WRONG = [None, "2", 0, -1, 1.5, [], {}, True]


def without(entry, name):
    return {field: value for field, value in entry.items() if field != name}


def unsupported(javascript, entry):
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("epsilon", entry=entry, limits=[1.0])
    assert caught.value.args == ("DeniableError", "unsupported", "collection c is not supported")


@pytest.mark.parametrize("name", ["window_seconds", "grace_seconds", "reports_per_window"])
def test_limit_that_is_no_number_is_never_no_limit(javascript, name):
    limited = entry(LIMITED, KEY)
    javascript.ask("epsilon", entry=limited, limits=[1.0])
    unsupported(javascript, without(limited, name))
    for value in WRONG:
        unsupported(javascript, limited | {name: value})


@pytest.mark.parametrize("name", ["epsilon", "period_seconds", "reports"])
def test_budget_that_is_not_whole_is_never_no_budget(javascript, name):
    limited = entry(LIMITED, KEY)
    unsupported(javascript, without(limited, "budget"))
    unsupported(javascript, limited | {"budget": without(limited["budget"], name)})
    for value in WRONG:
        if (name, value) in [("epsilon", 1.5), ("reports", None)]:
            continue
        unsupported(javascript, limited | {"budget": limited["budget"] | {name: value}})


@pytest.mark.all
def test_mutated_lists_are_refused_by_the_clients_own_error_alone():
    """4,000 signed lists with fields that are missing, or of other types and ranges.

    The script fails on any other error, and if a collection is accepted whose limits are none.
    """
    counts = json.loads(run("fuzz_list.mjs", body(), "4000"))
    assert counts["read"] > 1000
    assert counts["signature"] > 200
    assert counts["unsupported"] > 1000
    assert counts["collections"] > 1000
