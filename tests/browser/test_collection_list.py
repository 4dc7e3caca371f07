"""The list of collections: its signature, its losses, and what a client refuses."""

import json
import math
from fractions import Fraction

import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.edge.collection_list import collection_list
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.directed_rounding import exp_below
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.edge.browser.expected import entry, plain_entry, signing_key
from tests.support.edge.browser.lists import allowances
from tests.support.edge.browser.node import Asked, JavaScriptError, asked, run
from tests.support.messages import PinMessages
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
    assert caught.value.args[:2] == ("DeniableError", "signature")


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
    assert caught.value.args[:2] == ("DeniableError", "unsupported")


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
    LocalHash.from_epsilon(1.0),
    LocalHash.from_epsilon(6.0),
    LongitudinalHash.from_epsilons(4.0, 1.0),
    LongitudinalHash.from_epsilons(3.0, 2.0, None, 53),
    SquareWave.from_epsilon(0, 1, 4, 0.1),
    SquareWave.from_epsilon(-0.5, 719.5, 256, 2.0),
    SquareWave.from_epsilon(0, 1, 512, 12.0),
    PairKRR.from_epsilons(3, 3, 1.0, 2.0),
    PairKRR.from_epsilons(3, 2, 0.1, 8.0),
    HotRappor.from_probabilities(3, 1, 0.25, 0.35, 0.65),
    HotRappor.from_probabilities(3, 2, 0.5, 0.25, 0.75),
    OneHotPair.from_epsilon(3, 3, 1.0),
    OneHotPair.from_epsilon(4, 2, 5.0),
]
LISTED = ("a", "b", "c")


def collection_of(mechanism, memoize=False):
    """A collection with the values that a mechanism needs."""
    if isinstance(mechanism, PairKRR | OneHotPair):
        fields = tuple(
            Field(name, LISTED[: k - 1], True) for name, k in zip("xy", mechanism.shape, strict=True)
        )
        return Collection("c", mechanism, pair_labels(*fields), fields=fields)
    values = LISTED if isinstance(mechanism, HotRappor) else ()
    return Collection("c", mechanism, values, memoize=memoize)


@pytest.mark.parametrize("memoize", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_loss_is_computed_from_the_thresholds(javascript, mechanism, memoize):
    """Never below the exact loss, and above it by less than a part in 10^8."""
    if memoize and getattr(mechanism, "flip_threshold", 1) == 0:
        memoize = False
    collection = collection_of(mechanism, memoize)
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
    kept, lifetime = kept_losses(mechanism, memoize)
    for name, expected in (("inf", kept), ("lifetime", lifetime)):
        stated = float(found[name])
        assert stated == expected or expected <= stated <= expected * (1 + 1e-8)


def kept_losses(mechanism, memoize):
    """Return the loss of one permanent response, and of all that values can show."""
    if isinstance(mechanism, LongitudinalKRR):
        return mechanism.epsilon_inf, mechanism.k * mechanism.epsilon_inf
    if isinstance(mechanism, LongitudinalHash):
        return mechanism.epsilon_inf, mechanism.hash_buckets * mechanism.epsilon_inf
    if not memoize or not isinstance(mechanism, Rappor | HotRappor):
        return math.inf, math.inf
    one_hot = isinstance(mechanism, HotRappor) and mechanism.hot == 1
    return mechanism.epsilon_inf, mechanism.buckets * mechanism.epsilon_inf if one_hot else math.inf


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


@pytest.mark.parametrize(
    "mechanism",
    [
        SquareWave.from_epsilon(0, 1, 64, 1.0),
        SquareWave.from_epsilon(0, 1, 300, 1.0),
        LocalHash.from_epsilon(1.0),
        LocalHash.from_epsilon(1.0, None, 7),
    ],
    ids=str,
)
def test_further_limits_are_compared_without_an_error_of_rounding(javascript, mechanism):
    """The threshold is the largest that keeps epsilon 1 within 1; the next one is above."""
    for number, expected in ((mechanism.threshold, True), (mechanism.threshold + 1, False)):
        entry = plain_entry(collection_of(mechanism), KEY)
        entry["mechanism"]["threshold"] = str(number)
        assert javascript.ask("epsilon", entry=entry, limits=[1.0])["within"] == [expected]


def changed(mechanism, memoize=False, values=(), **parameters):
    entry = plain_entry(collection_of(mechanism, memoize), KEY)
    entry["mechanism"] |= parameters
    return entry | ({"values": list(values)} if values else {})


def of_field(values=("a", "b"), other=True):
    return {"values": list(values), "other": other}


KRR_5, BLOOM = KRR.from_epsilon(5, 1.0), MECHANISMS[6]
LONGITUDINAL = MECHANISMS[4]
HASH, KEPT_HASH, NUMBER, PAIR, HOT, BIT_PAIR = (MECHANISMS[place] for place in (9, 11, 14, 16, 18, 20))


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
        changed(BLOOM, bits=127),
        changed(Rappor.from_probabilities(8, 1, 1, 0.5, 0.2, 0.8), kind="rappor-hot"),
        changed(HASH, threshold=str(2**64 // HASH.hash_buckets)),
        changed(HASH, threshold=str(2**64)),
        changed(HASH, hash_buckets=1),
        changed(HASH, hash_buckets=257),
        changed(HASH, hash_functions=0),
        changed(HASH, hash_functions=HASH.hash_functions + 1),
        changed(HASH, hash_functions=HASH.hash_functions * 2**10),
        changed(HASH, kind="local-hash-longitudinal"),
        changed(KEPT_HASH, permanent_threshold=str(2**64)),
        changed(KEPT_HASH, permanent_threshold="0"),
        changed(KEPT_HASH, instantaneous_threshold="1"),
        changed(NUMBER, threshold="1"),
        changed(NUMBER, threshold=str(2**64)),
        changed(NUMBER, threshold="-1"),
        changed(NUMBER, steps=3),
        changed(NUMBER, steps=513),
        changed(NUMBER, steps=255.5),
        changed(NUMBER, half_width=-1),
        changed(NUMBER, half_width=257),
        changed(NUMBER, minimum="719.5"),
        changed(NUMBER, minimum="NaN"),
        changed(NUMBER, maximum="Infinity"),
        changed(PAIR, first_threshold=str(2**64)),
        changed(PAIR, second_threshold=str(2**64 // 3)),
        changed(PAIR, first_threshold=None),
        changed(PAIR, first_k=4),
        changed(PAIR) | {"fields": []},
        changed(PAIR) | {"fields": [of_field(other=1), of_field()]},
        changed(PAIR) | {"fields": [of_field(values=["a", 5]), of_field()]},
        changed(BIT_PAIR, second_k=4),
        changed(BIT_PAIR, p_threshold=str(BIT_PAIR.q_threshold)),
        changed(BIT_PAIR, q_threshold=str(2**32)),
        changed(HOT, flip_threshold=str(2**31)),
        changed(HOT, p_threshold="0"),
        changed(HOT, q_threshold=str(2**32)),
        changed(HOT, hot=0),
        changed(HOT, hot=4),
        changed(HOT, buckets=4),
        changed(HOT, values=["a", "b"]),
    ],
    ids=lambda entry: f"{entry['mechanism']}",
)
def test_parameter_that_would_reveal_more_is_not_supported(javascript, entry):
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("epsilon", entry=entry, limits=[math.pi])
    assert caught.value.args[:2] == ("DeniableError", "unsupported")


LIMITED = Allowance(Collection("c", KRR_5, ("a", "b", "c", "d", "e")), Budget(3.5, 1e-6, 86400), 2)
WRONG = [None, "2", 0, -1, 1.5, [], {}, True]


def without(entry, name):
    return {field: value for field, value in entry.items() if field != name}


def unsupported(javascript, entry):
    with pytest.raises(JavaScriptError) as caught:
        javascript.ask("epsilon", entry=entry, limits=[1.0])
    assert caught.value.args[:2] == ("DeniableError", "unsupported")


def test_messages(javascript: Asked, pin_messages: PinMessages) -> None:
    unlimited = without(entry(LIMITED, KEY), "window_seconds")
    pin_messages(
        {
            "the list is signed by another key": lambda: javascript.ask("list", body=body(), publicKey=""),
            "the list has no format": lambda: javascript.ask(
                "list", body=signed("{}"), publicKey=KEY.public_key
            ),
            "a collection has no window": lambda: javascript.ask("epsilon", entry=unlimited, limits=[1.0]),
        }
    )


@pytest.mark.parametrize("name", ["window_seconds", "grace_seconds", "reports_per_window"])
def test_limit_that_is_no_number_is_never_no_limit(javascript, name):
    limited = entry(LIMITED, KEY)
    javascript.ask("epsilon", entry=limited, limits=[1.0])
    unsupported(javascript, without(limited, name))
    for value in WRONG:
        unsupported(javascript, limited | {name: value})


@pytest.mark.slow
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
@pytest.mark.parametrize("number", [200, pytest.param(1000, marks=pytest.mark.nightly)])
def test_mutated_lists_are_refused_by_the_clients_own_error_alone(number):
    """Signed lists of all mechanisms, with fields that are missing, or of other types and ranges.

    The script fails on any other error, and if a collection is accepted whose limits are none.
    """
    asked = [Allowance(collection_of(each), None) for each in (HASH, KEPT_HASH, NUMBER, PAIR, HOT, BIT_PAIR)]
    mutated = collection_list(7, [*allowances(), LIMITED, *asked], 10, KEY).body.decode()
    counts = json.loads(run("fuzz_list.mjs", mutated, str(number)))
    assert counts["read"] > number // 4
    assert counts["signature"] > number // 20
    assert counts["unsupported"] > number // 4
    assert counts["collections"] > number // 4
