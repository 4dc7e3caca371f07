"""After so many changes of its bucket a client's reports show the last one, whoever stores that."""

import sqlite3
import time
from contextlib import suppress
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.producers.budget.charging import SHOWN, hold_buckets
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.responders.factory import responder_of
from deniable.producers.storage.store import StoreError
from deniable.protocol.secrets.secret import STORE_NAME, Secret, load_secret
from deniable.protocol.wire import buckets as reported
from deniable.protocol.wire import decode
from tests.support.producers.charges import DAY, NOON, Charges, PostgresCharges, clients_of, window_of

MECHANISM = LongitudinalHash.from_epsilons(2.0, 1.0, None, 7)
#: Each step keeps the truth, but with probability 2^-44.
NOISELESS = LongitudinalHash(96, 7, 2**64 - 2**20, 2**64 - 2**20)
TEXTS = [f"text {number}" for number in range(200)]


def limited(changes, mechanism=MECHANISM, period_seconds=DAY, epsilon=40.0, **options):
    budget = Budget(epsilon, 1e-6, period_seconds, changes, "any")
    return Allowance(Collection("answers", mechanism, memoize=True, **options), budget, 65_535)


def held_one_by_one(buckets, limit, last=0, count=0):
    """The rule in words: a change beyond the limit shows the last bucket again."""
    shown = []
    for bucket in buckets:
        if last and bucket != last and count == limit:
            bucket = last
        count += bool(last) and bucket != last
        last = bucket
        shown.append(bucket)
    return shown, last, count


@pytest.mark.slow
@given(
    st.lists(st.lists(st.integers(1, 4), max_size=9), min_size=1, max_size=4),
    st.integers(0, 5),
    st.data(),
)
def test_held_buckets_are_those_of_one_report_after_another(given_buckets, limit, data):
    """Of several clients in one call, each with what earlier calls stored."""
    shown = np.zeros(len(given_buckets), SHOWN)
    for client in range(len(shown)):
        if data.draw(st.booleans()):
            shown[client] = (data.draw(st.integers(1, 4)), data.draw(st.integers(0, limit)))
    owners = np.repeat(np.arange(len(shown)), [len(each) for each in given_buckets])
    held, after = hold_buckets(shown, owners, np.array(list(chain(*given_buckets)), np.int64), limit)
    for client, buckets in enumerate(given_buckets):
        expected, *state = held_one_by_one(buckets, limit, *shown[client].tolist())
        assert held[owners == client].tolist() == expected
        assert after[client].tolist() == tuple(state)


@pytest.fixture(params=["folder", pytest.param("database", marks=pytest.mark.slow)])
def open_charges(request, tmp_path):
    """Opens charges in one store, as each of several processes does."""
    opened = []
    if request.param == "database":
        database = request.getfixturevalue("database")

    def open_one(*allowances):
        if request.param == "folder":
            opened.append(Charges(tmp_path, *allowances))
        else:
            opened.append(PostgresCharges(database, Secret(bytes(32)), *allowances))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def shown_by(charges, numbers, buckets, now=NOON, windows=None):
    """Charge reports of clients with these numbers; return the bucket that each shows, 0 if refused."""
    result = charges.charge(numbers, now, windows, buckets=np.array(buckets, np.int64))
    return np.where(result.accepted, result.buckets, 0).tolist()


@pytest.mark.slow
def test_changes_are_counted_over_batches_connections_and_periods(open_charges):
    """Two stores that are open at once, and days: one client shows what a single loop shows."""
    ours, theirs = open_charges(limited(3)), open_charges(limited(3))
    draw = np.random.default_rng(5)
    buckets = draw.integers(1, 8, 60).tolist()
    expected, _, _ = held_one_by_one(buckets, 3)
    assert len(set(expected)) > 2
    assert expected != buckets
    shown = []
    for number in range(12):
        part, charges = buckets[5 * number : 5 * number + 5], (ours, theirs)[number % 2]
        others = [8] * len(part)  # another client between
        mixed = shown_by(
            charges,
            [1, 2] * len(part),
            np.column_stack([part, others]).ravel().tolist(),
            NOON + number * DAY // 2,
        )
        assert mixed[1::2] == others
        shown += mixed[0::2]
    assert shown == expected


def test_refused_reports_use_up_no_change(open_charges):
    charges = open_charges(limited(1))
    old = window_of(NOON) - 10 * DAY
    windows = [window_of(NOON), old, old, window_of(NOON), window_of(NOON)]
    assert shown_by(charges, [1] * 5, [4, 5, 6, 7, 3], windows=windows) == [4, 0, 0, 7, 7]


def test_rolled_back_change_is_not_counted(open_charges):
    charges = open_charges(limited(1))
    shown_by(charges, [1], [4])
    with suppress(KeyError), charges.store.transaction():
        charges.spending.charge("answers", clients_of([1]), np.array([window_of(NOON)]), NOON, np.array([5]))
        raise KeyError
    assert shown_by(charges, [1, 1], [6, 5]) == [6, 6]


@pytest.mark.parametrize(
    "other",
    [limited(2), limited(None), limited(1, LongitudinalHash.from_epsilons(2.1, 1.0, None, 7))],
    ids=["more changes", "any number", "parameters"],
)
def test_other_terms_count_anew_and_carry_what_was_spent(open_charges, other):
    """Nothing is refunded: what was reported costs what it did, beside what is reported now."""
    charges = open_charges(limited(1))
    shown_by(charges, [1, 1, 1], [4, 5, 6])
    before = charges.spending.spent(clients_of([1])[0], NOON)["answers"].lifetime_epsilon
    charges.open(other)
    carried = charges.spending.spent(clients_of([1])[0], NOON)["answers"]
    assert carried.lifetime_reports == 0
    assert carried.lifetime_epsilon >= before
    assert shown_by(charges, [1, 1], [6, 7]) == [6, 7]
    charges.open(limited(1))
    assert shown_by(charges, [1, 1, 1], [1, 2, 3]) == [1, 2, 2]
    again = charges.spending.spent(clients_of([1])[0], NOON)["answers"]
    assert again.lifetime_epsilon > carried.lifetime_epsilon


def test_other_periods_go_on_counting(open_charges):
    charges = open_charges(limited(1))
    shown_by(charges, [1, 1], [4, 5])
    charges.open(limited(1, period_seconds=7 * DAY))
    assert shown_by(charges, [1], [6]) == [5]
    assert charges.spending.spent(clients_of([1])[0], NOON)["answers"].lifetime_reports == 3


def test_row_of_a_length_between_is_refused(tmp_path):
    charges = Charges(tmp_path, limited(1))
    shown_by(charges, [1], [4])
    charges.close()
    file = sqlite3.connect(tmp_path / STORE_NAME)
    file.execute("UPDATE spending_1 SET spent = substr(spent, 1, length(spent) - 1)")
    file.commit()
    file.close()
    with pytest.raises(StoreError, match="producer"):
        charges.open(limited(1))
    charges.close()


def sent_by(kafka):
    """The function and the bucket of each report, in no order."""
    numbers = np.concatenate([reported(decode(record["value"])) for record in kafka.sent])
    return np.divmod(numbers, NOISELESS.hash_buckets)


@pytest.mark.all
@pytest.mark.parametrize(
    ("way", "changes"),
    [
        ("report", 2),
        ("single", 0),
        ("record", 2),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (("report", 0), ("single", 2), ("record", 0))
        ),
    ],
)
def test_producer_shows_the_buckets_before_the_last_change(make, kafka, way, changes):
    """With noiseless steps: the reports are the buckets of the texts, until the changes are used up."""
    free = limited(None, NOISELESS, epsilon=1000.0)
    allowance = limited(changes, NOISELESS, epsilon=1000.0)
    producer = make(free)
    for text in TEXTS:
        producer.report("answers", [text], ["ann"])
        producer.flush()
    functions, true = sent_by(kafka)
    assert set(true.tolist()) == set(range(7))
    kafka.sent.clear()
    producer.close()

    # Under other terms nothing of what was shown before counts.
    producer = make(allowance)
    if way == "report":
        producer.report("answers", TEXTS * 2, ["ann"] * 400)
    for text in TEXTS * 2 if way != "report" else []:
        (producer.record if way == "record" else producer.report)("answers", text, "ann")
    producer.flush()
    expected, _, _ = held_one_by_one((true + 1).tolist() * 2, changes)
    assert len(set(expected)) <= changes + 1
    shown_functions, shown = sent_by(kafka)
    assert sorted((shown + 1).tolist()) == sorted(expected)
    assert set(shown_functions.tolist()) == set(functions.tolist())


def test_reports_without_clients_show_their_buckets(make, kafka):
    """Each is from a different client, which has shown nothing before."""
    producer = make(limited(0, NOISELESS, epsilon=1000.0))
    producer.report("answers", TEXTS, None)
    producer.flush()
    _, shown = sent_by(kafka)
    assert set(shown.tolist()) == set(range(7))


def test_store_has_no_bucket_in_clear(make, tmp_path):
    """What is stored of clients with one bucket is spread over all of them."""
    producer = make(limited(1, NOISELESS, epsilon=1000.0))
    # One text has another bucket under another function: those of one function have the same one.
    clients = [f"client {number}" for number in range(4000)]
    producer.report("answers", ["text"] * 4000, clients)
    producer.close()
    file = sqlite3.connect(tmp_path / STORE_NAME)
    rows = [spent for (spent,) in file.execute("SELECT spent FROM spending_1")]
    file.close()
    stored = np.array([np.frombuffer(spent[-SHOWN.itemsize :], SHOWN)["bucket"][0] for spent in rows])
    counts = np.bincount(stored, minlength=8)
    assert counts[0] == 0
    # Of 4000 with probability 1/7: 6.5 standard deviations of 22 are passed with probability below 1e-9.
    assert np.abs(counts[1:] - 4000 / 7).max() < 6.5 * 22.2


def test_refused_reports_leave_the_others_their_clients(make, kafka, tmp_path):
    """Two clients in turns, of whose reports only the first three in a window are accepted."""
    allowance = limited(1, NOISELESS, epsilon=1000.0)
    producer = make(Allowance(allowance.collection, allowance.budget, reports_per_window=3))
    receipt = producer.report("answers", TEXTS, ["ann", "bob"] * 100, at=time.time())
    assert (receipt.stored, receipt.refused) == (6, 194)
    producer.flush()
    functions, shown = sent_by(kafka)
    responder = responder_of(allowance.collection, load_secret(tmp_path / "secret"), Keystream())
    _, rows = responder.prepare(TEXTS[:6], ["ann", "bob"] * 3).respond(slice(0, 6))
    expected = []
    for client in range(2):
        function, true = np.divmod(rows.view("<u2").ravel()[client::2].astype(int), 7)
        held, _, _ = held_one_by_one((true + 1).tolist(), 1)
        expected += [(each, bucket - 1) for each, bucket in zip(function.tolist(), held, strict=True)]
    assert sorted(zip(functions.tolist(), shown.tolist(), strict=True)) == sorted(expected)
