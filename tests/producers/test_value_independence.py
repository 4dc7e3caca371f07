"""Whatever values a program reports or records, the same leaves but for the noisy bits of the reports."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.config.settings.allowance import Allowance
from deniable.edge.intake.acceptance import check_upload, group_terms
from deniable.producers.pipeline.recording.event_buffer import Events
from deniable.producers.responders.single_value import value_rule
from deniable.producers.responders.validation import integers, numbers, texts
from deniable.producers.transport.edge.upload_of_pack import upload_of
from deniable.protocol.secrets.secret import load_secret
from deniable.protocol.wire import decode
from tests.support.messages import PinMessages
from tests.support.producers.recording.any_values import (
    ANY,
    COLLECTIONS,
    randomization,
    seen,
    values_of,
)

COUNT = 4
CLIENTS = ["ann", "ben", "ann", "\ud800"]
TIMES = [0, 60.5, 3600, 1e9]
FORMS = [list, tuple, lambda values: np.fromiter(values, object, COUNT)]

# Derandomized, so a failure is no chance. A branch that raises, warns, or leaves out one of the listed values
# fails with the first example that has it.
bounded = settings(max_examples=10, derandomize=True, deadline=None, database=None)


def several(collection):
    return st.lists(values_of(collection), min_size=COUNT, max_size=COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("clients", [None, CLIENTS])
@bounded
@given(data=st.data())
def test_a_batch_leaves_the_same_whatever_its_values(name, clients, data):
    one, other = (data.draw(several(COLLECTIONS[name])) for _ in range(2))
    form = data.draw(st.sampled_from(FORMS))
    left, also = (
        seen(randomization().submissions(name, form(values), clients, TIMES)) for values in (one, other)
    )
    assert left == also
    assert sum(len(each[0]) for each in left) == COUNT


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIONS)
@bounded
@given(data=st.data())
def test_recorded_values_leave_the_same_whatever_they_are(name, data):
    rule, left = value_rule(COLLECTIONS[name]), []
    for values in (data.draw(several(COLLECTIONS[name])) for _ in range(2)):
        kept = [value if type(value) is rule.exact else rule.checked(value) for value in values]
        events = Events(kept, CLIENTS, TIMES)
        left.append(seen(randomization().submissions(name, events.values, CLIENTS, events.times)))
    assert left[0] == left[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COLLECTIONS.keys() - {"two_hot"}))  # a list or tuple is several sets
@bounded
@given(data=st.data())
def test_one_value_is_one_report_whatever_it_is(name, data):
    one, other = (data.draw(values_of(COLLECTIONS[name])) for _ in range(2))
    left, also = (seen(randomization().submissions(name, value, None, 0)) for value in (one, other))
    assert left == also
    assert len(left[0][0]) == 1


VALUES = {
    "listed": (["a"] * COUNT, [None, "?" * 10_000, "\ud800", "\0"]),
    "bloom": (["a", "b", "a", "b"], [None, "?" * 10_000, "\ud800", np.nan]),
    "sized": ([1] * COUNT, [None, 2.5, -(10**400), np.uint64(2**64 - 1)]),
    "number": ([0.5] * COUNT, [None, np.nan, np.inf, 10**400]),
}


def test_packs_and_receipts_are_the_same_whatever_the_values(make, kafka, tmp_path, caplog):
    """Reported and recorded: sizes, cohorts and windows of packs and uploads, counters and log lines."""
    load_secret(tmp_path / "secret")
    caplog.clear()
    now, found = time.time(), []
    asked = [replace(COLLECTIONS[name], grace_seconds=3600) for name in VALUES]
    terms = group_terms(asked, 0.0)
    for which in (0, 1):
        allowances = [Allowance(each, None, reports_per_window=5) for each in asked]
        target = make(*allowances, data_dir=tmp_path / str(which), secret_file=tmp_path / "secret")
        receipts = [target.report(name, both[which], CLIENTS, now) for name, both in VALUES.items()]
        for name, both in VALUES.items():
            for value, client in zip(both[which], CLIENTS, strict=True):
                target.record(name, value, client, at=now)
        target.flush()
        packs = [decode(record["value"]) for record in kafka.sent]
        assert not any(check_upload(upload_of(pack), terms, now).rejected for pack in packs)
        sizes = sorted(
            (pack.fingerprint, pack.cohort, pack.window_start, pack.reports, len(upload_of(pack)))
            for pack in packs
        )
        counters = replace(target.counters(), backlog=None)
        found.append((receipts, sizes, counters, list(caplog.messages)))
        kafka.sent.clear()
        caplog.clear()
    assert found[0] == found[1]
    assert sum(pack[3] for pack in found[0][1]) == 2 * COUNT * len(VALUES)


@bounded
@given(st.lists(ANY, min_size=1, max_size=5))
def test_a_number_does_not_depend_on_those_beside_it(values):
    for convert in (integers, numbers):
        alone = np.concatenate([convert("values", [value]) for value in values])
        assert np.array_equal(convert("values", values), alone, equal_nan=True)


@bounded
@given(st.lists(ANY, min_size=1, max_size=5))
def test_a_text_does_not_depend_on_those_beside_it(values):
    assert texts("values", values) == [text for value in values for text in texts("values", [value])]


def test_what_stands_for_a_missing_value_is_unknown():
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert integers("values", masked).tolist() == [1, -1, 3]
    assert np.isnan(numbers("values", masked)).tolist() == [False, True, False]
    assert integers("values", np.array([3.0, np.nan, 2.5, np.inf, -0.0])).tolist() == [3, -1, -1, -1, 0]
    assert texts("values", np.ma.array(["a", "b"], mask=[True, False])) == ["\ufffd", "b"]


def test_values_are_not_their_own_clients(pin_messages: PinMessages) -> None:
    """Three values would be three cohorts, in clear. Equal texts may be one object: not refused."""
    one_list, array = ["a"], np.array(["a"])
    pin_messages(
        {
            "values are clients": lambda: randomization().submissions("bloom", one_list, one_list),
            "an array is values and clients": lambda: randomization().submissions("bloom", array, array),
        }
    )
    assert len(list(randomization().submissions("bloom", "a", "a"))) == 1
