"""What a client spends: no more than a budget without a number of reports, or than `maxBudget`."""

import json
import math
import random
from itertools import count

import pytest

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.edge.browser.expected import plain_entry, signing_key
from tests.support.edge.browser.node import BROWSER, Asked, JavaScriptError, asked, broken_sources, run
from tests.support.messages import PinMessages

KEY = signing_key()
HOUR, DAY = 3600, 86_400
WINDOW = {"window_seconds": HOUR, "grace_seconds": 600}
OFTEN = 65_535


@pytest.fixture(scope="module")
def javascript():
    with asked() as answers:
        yield answers


def body(revision, *entries):
    """Return a signed answer with these collections."""
    signed = json.dumps({"format": 1, "revision": revision, "collections": entries})
    signature = KEY.sign(b"deniable-collections-1\n" + signed.encode())
    return json.dumps({"signed": signed, "signature": signature})


def device(*phases, **options):
    return {"options": {"maxEpsilon": 20} | options, "phases": phases}


def on_devices(*devices, module=BROWSER / "deniable.min.js"):
    """Return, for each device, how often each outcome came in each phase, and how many uploads wait.

    See scripts/budget.mjs.
    """
    given = json.dumps({"publicKey": KEY.public_key, "devices": devices})
    answers = json.loads(run("budget.mjs", str(module), given=given))
    return [(answer["found"], answer["queued"]) for answer in answers]


def a_day(epsilon):
    return {"epsilon": epsilon, "periodSeconds": DAY}


def listed(mechanism, reports, epsilon, values=None, period=DAY, **fields):
    """An entry whose budget says this, whatever an accountant would."""
    memoize = isinstance(mechanism, Rappor | HotRappor)
    names = tuple(f"v{number}" for number in range(getattr(mechanism, "buckets", 0)))
    found = plain_entry(Collection("c", mechanism, names, memoize=memoize, **WINDOW), KEY)
    budget = {"epsilon": epsilon, "delta": 1e-6, "period_seconds": period, "reports": reports}
    if values is not None:
        budget["values"] = values
    return found | {"budget": budget, "reports_per_window": OFTEN} | fields


def limit(javascript, entry, allowed=None):
    """Return the reports in a period, or what the error says."""
    try:
        return javascript.ask("limit", entry=entry, maxBudget=allowed)
    except JavaScriptError as error:
        return error.args


HASH = LongitudinalHash.from_epsilons(10.0, 3.0)
TEXTS = [f"value {number}" for number in range(40)]


@pytest.mark.slow
def test_changing_values_stay_within_a_budget_with_changes():
    """40 values, 400 reports: a list without a number of reports is refused, one that has it is kept to."""
    cost = Allowance(Collection("c", HASH, memoize=True, **WINDOW), None).epsilon
    most = next(reports for reports in count() if cost(reports + 1) > 10)
    phase = {"name": "c", "values": TEXTS, "reports": 400}
    *without, with_number = on_devices(
        *(
            device(phase | {"body": body(1, listed(HASH, number, 10.0, values))})
            for number, values in ((None, None), (None, "any"), (most, "any"))
        )
    )
    refused = [{"budget: any number of reports to c exceeds its budget": 400}]
    assert without == [(refused, 0)] * 2
    assert with_number == ([{"queued": most, "over_budget": 400 - most}], most)
    assert most < 40


KRR_3 = LongitudinalKRR.from_epsilons(3, 2.0, 1.0)
BLOOM = Rappor.from_probabilities(8, 2, 1, 0.25, 0.35, 0.65)
HOT = HotRappor.from_probabilities(3, 1, 0.25, 0.35, 0.65)
SET = HotRappor.from_probabilities(3, 2, 0.25, 0.35, 0.65)
NO_NUMBER = [
    (KRR_3, 2.0, 6.0),
    (LongitudinalHash.from_epsilons(2.0, 1.0, None, 3), 2.0, 6.0),
    (BLOOM, BLOOM.epsilon_inf, math.inf),
    (HOT, HOT.epsilon_inf, 3 * HOT.epsilon_inf),
    (SET, SET.epsilon_inf, math.inf),
    (KRR.from_epsilon(3, 1.0), math.inf, math.inf),
]


@pytest.mark.parametrize(("mechanism", "one", "all_of_them"), NO_NUMBER, ids=str)
def test_any_number_of_reports_needs_a_budget_for_all_values(javascript, mechanism, one, all_of_them):
    """By the client's own figure. Without `values`, or with another word, as for values that change."""

    def is_accepted(epsilon, values):
        found = limit(javascript, listed(mechanism, None, epsilon, values))
        assert found == "inf" or found[:2] == ("DeniableError", "budget")
        return found == "inf"

    for values, least in (
        ("unchanged", one),
        ("any", all_of_them),
        (None, all_of_them),
        ("Unchanged", all_of_them),
    ):
        if math.isinf(least):
            assert not is_accepted(1e6, values)
        else:
            # Responses of hashing and RAPPOR are a little below their stated loss.
            assert is_accepted(least, values)
            assert not is_accepted(0.99 * least, values)
    assert javascript.ask("limit", entry=listed(mechanism, 5, 0.5, "any")) == 5


def test_spending_under_earlier_parameters_counts_values_that_changed(javascript):
    """10 reports of 2 + 2 + 2 for ever: 6 of 9 are spent, not the 2 of one value, so 2 of 1 are left."""
    before, after = listed(KRR_3, 100, 50.0, "unchanged"), listed(KRR.from_epsilon(3, 1.0), 9, 9.0)
    now = 1_767_225_600
    charges = [{"entry": each, "windowStart": now, "now": now} for each in [before] * 10 + [after] * 5]
    found = javascript.ask("charges", charges=charges)
    assert found == ["accepted"] * 12 + ["over_budget"] * 3


@pytest.mark.slow
def test_thief_of_the_key_gets_any_number_of_reports_without_max_budget(pin_messages: PinMessages) -> None:
    """And none with it: a list without a budget allows more."""
    stolen = plain_entry(Collection("c", KRR.from_epsilon(3, 2.0), **WINDOW), KEY) | {
        "reports_per_window": OFTEN
    }
    phase = {"body": body(1, stolen), "name": "c", "values": [1], "reports": 1000}
    bounds = [8, 1e6, {"c": 8}, a_day(8), {"c": {"epsilon": 8, "periodSeconds": 1}}]
    unbounded, *bounded = on_devices(
        device(phase, maxEpsilon=2), *(device(phase, maxEpsilon=2, maxBudget=each) for each in bounds)
    )
    assert unbounded == ([{"queued": 1000}], 1000)
    assert [queued for _, queued in bounded] == [0] * len(bounds)
    outcomes = {outcome for ((outcome,),), _ in bounded}
    pin_messages({"the list has no budget, or more than maxBudget": lambda: "\n".join(sorted(outcomes))})


NO_PERIOD = {"epsilon": 8, "periodSeconds": 0}


@pytest.mark.slow
def test_max_budget_that_is_no_number_allows_nothing():
    first = body(1, listed(KRR.from_epsilon(3, 2.0), 4, 8.0))
    phase = {"body": first, "name": "c", "values": [1], "reports": 2}
    bounds = [0, -1, "much", {}, {"other": 5}, [], True, {"c": NO_PERIOD}]
    found = on_devices(*(device(phase, maxBudget=each) for each in bounds))
    for bound, ((counts,), queued) in zip(bounds, found, strict=True):
        assert queued == 0, bound
        assert [each.split(":")[0] for each in counts] == ["budget"], bound


def test_max_budget_is_compared_with_what_the_list_allows(javascript):
    """3 reports of 1.0 in a day are exactly 3, without an error of rounding; what lasts costs all of it."""
    day, kept = listed(KRR.from_epsilon(3, 1.0), 3, 5.0), listed(KRR_3, 100, 50.0, "unchanged")

    def is_allowed(entry, allowed):
        found = limit(javascript, entry, allowed)
        return found == "inf" or isinstance(found, int)

    def each(epsilon, seconds):
        return {"epsilon": epsilon, "periodSeconds": seconds}

    assert [is_allowed(day, each(3, DAY)), is_allowed(day, each(2.999, DAY))] == [True, False]
    assert [is_allowed(day, each(3, HOUR)), is_allowed(day, each(3, DAY + 1)), is_allowed(day, 3)] == [
        True,
        False,
        False,
    ]
    assert [is_allowed(kept, 6), is_allowed(kept, 5.99)] == [True, False]
    assert [is_allowed(kept, each(6, 10 * DAY)), is_allowed(kept, each(100, DAY))] == [True, True]


def stolen_lists(seed, epsilon):
    """Lists of a thief, one after another, that each ask for as much as `maxBudget` lets pass.

    Other mechanisms, thresholds, windows, periods and revisions; some under one fingerprint.
    """
    draw, lists = random.Random(seed), []
    for revision in range(1, 25):
        cost = draw.choice([0.1, 0.5, 1.0, 2.0])
        if draw.random() < 0.5:
            mechanism, reports = KRR.from_epsilon(3, cost), math.floor(epsilon / cost)
        else:
            mechanism, reports = (
                LongitudinalKRR.from_epsilons(3, draw.choice([1.5, 2.0, epsilon / 3]), cost / 2),
                None,
            )
        window = draw.choice([60, HOUR, DAY])
        stolen = listed(mechanism, reports, 50.0, "any", draw.choice([DAY, 30 * DAY, 3000 * DAY]))
        changes = {"window_seconds": window, "grace_seconds": draw.choice([1, HOUR])}
        if draw.random() < 0.5:
            changes["fingerprint"] = "00000000000000ff"
        lists.append((mechanism, body(revision, stolen | changes)))
    return lists


def spent_on(phases):
    """What reports cost at delta = 0: fresh ones each, remembered ones at most all their responses."""
    counts = {}
    for mechanism, queued in phases:
        counts[mechanism] = counts.get(mechanism, 0) + queued
    return sum(
        min(number * each.instantaneous.epsilon, each.k * each.epsilon_inf)
        if isinstance(each, LongitudinalKRR)
        else number * each.epsilon
        for each, number in counts.items()
    )


def spent_by_thieves(module=BROWSER / "deniable.min.js"):
    """The cost of each thief's lists under a maxBudget of 8, within one period."""
    lists = [stolen_lists(seed, 8.0) for seed in range(THIEVES)]
    phase = {"name": "c", "values": [0, 1, 2], "reports": 40, "seconds": 7}
    allowed = {"c": {"epsilon": 8, "periodSeconds": 3000 * DAY}}
    devices = [device(*(phase | {"body": each} for _, each in own), maxBudget=allowed) for own in lists]
    spent = []
    for own, (found, _) in zip(lists, on_devices(*devices, module=module), strict=True):
        queued = [counts.get("queued", 0) for counts in found]
        spent.append(spent_on(zip((mechanism for mechanism, _ in own), queued, strict=True)))
    return spent


THIEVES = 4


@pytest.mark.slow
def test_no_lists_spend_more_than_max_budget():
    spent = spent_by_thieves()
    assert max(spent) <= 8
    assert max(spent) > 4  # and something is reported


@pytest.mark.all
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("client.js", "[balance, own].find(isText)", "[balance].find(isText)"),
        ("collections.js", "_id: `${[fingerprint, parameters, perReport, lifetime]}`", "_id: fingerprint"),
        ("limits.js", "carried += min(reports * old[2], old[3]);", ""),
    ],
    ids=["not counted", "counted by fingerprint", "not carried over"],
)
def test_spending_more_than_max_budget_is_found(tmp_path, file, right, wrong):
    copied = broken_sources(tmp_path, file, right, wrong)
    assert max(spent_by_thieves(copied / "deniable.js")) > 8


@pytest.mark.slow
def test_max_budget_counts_what_was_reported_before_it_was_set():
    first = listed(KRR.from_epsilon(3, 1.0), 8, 8.0)
    phase = {"body": body(1, first), "name": "c", "values": [1], "reports": 5}
    bounded = phase | {"options": {"maxBudget": {"epsilon": 8, "periodSeconds": DAY}}}
    # The thief has a list of its own as soon as the app is newer.
    stolen = bounded | {
        "body": body(2, listed(KRR.from_epsilon(3, 1.1), 7, 50.0, period=30 * DAY)),
        "reports": 9,
    }
    found = [counts for counts, _ in on_devices(device(phase, bounded), device(phase, stolen))]
    assert found == [
        [{"queued": 5}, {"queued": 3, "over_budget": 2}],
        [{"queued": 5}, {"queued": 2, "over_budget": 7}],
    ]


def test_messages(javascript: Asked, pin_messages: PinMessages) -> None:
    unaffordable = listed(KRR_3, None, 0.5, "any")
    pin_messages(
        {"any number of reports is above the budget": lambda: javascript.ask("limit", entry=unaffordable)}
    )
