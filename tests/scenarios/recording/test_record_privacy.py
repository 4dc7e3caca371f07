"""Recorded events are as private as reported ones: no traces, one permanent response, the audited epsilon."""

import logging
import sys
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.pipeline.queueing.submission_queue import SubmissionQueue
from deniable.producers.pipeline.recording.event_buffer import Events
from deniable.producers.pipeline.recording.recorder import Recorder
from deniable.protocol.wire import bit_rows, buckets, decode
from tests.scenarios.producers.test_canary import CLIENT, VALUE, traces
from tests.support.processes import wait_until
from tests.support.producers.audit.reports import report_bounds
from tests.support.producers.audit.subjects import texts_of_all_bits

pytestmark = pytest.mark.slow

FOREVER = 10**10
REPEATS = 600
CLIENTS = 30


def collection(mechanism, **options):
    return Collection("audited", mechanism, grace_seconds=FOREVER, **options)


def allowed(of):
    return Allowance(of, None, reports_per_window=65_535)


def packs(kafka):
    return [decode(record["value"]) for record in kafka.sent]


# traces


@pytest.mark.usefixtures("one_dies")
@pytest.mark.parametrize("where", ["in_time", "submissions", "put"])
def test_dying_thread_shows_no_value_or_client(make, kafka, monkeypatch, capfd, caplog, where):
    """Neither in its traceback, nor in logs, errors, or the repr of what it held."""
    caplog.set_level(logging.DEBUG)
    held, target = [], make()
    target.record("carrier", VALUE, CLIENT, 60)
    target.flush()

    def die(*given, **_):
        held.append(repr(given))
        raise KeyError

    place = {
        "in_time": (Events, "in_time"),
        "submissions": (target._recorder._randomization, "submissions"),
        "put": (target._pipeline, "put"),
    }[where]
    shown = threading.Event()

    def show(unraisable):
        sys.__unraisablehook__(unraisable)
        shown.set()

    hook = sys.unraisablehook
    monkeypatch.setattr(sys, "unraisablehook", lambda given: (show(given), hook(given)))
    with monkeypatch.context() as patch:
        patch.setattr(*place, die)
        target.record("destination", VALUE, CLIENT, 60)
        assert wait_until(shown.is_set, 60)
    found = {"repr": repr((target, vars(target), vars(target._recorder), vars(target._pipeline))).encode()}
    for number, call in enumerate((target.flush, target.close)):
        with pytest.raises(Exception, match="KeyError") as caught:
            call()
        found[f"error {number}"] = str(caught.value).encode()
    found |= {"output": "".join(capfd.readouterr()).encode(), "log": caplog.text.encode()}
    if where != "submissions":  # its arguments are the values
        found["held"] = "".join(held).encode()
    assert b"KeyError" in found["output"]
    assert held
    assert traces(found) == []


def test_waiting_values_are_in_no_file_and_no_repr(make, kafka, tmp_path, monkeypatch):
    """While they are in the buffer, and when single ones are in the queue."""
    going_on, serve = threading.Event(), Recorder._serve

    def wait(self, *given):
        going_on.wait(60)
        serve(self, *given)

    monkeypatch.setattr(Recorder, "_serve", wait)
    target = make()
    pause = target._pipeline.pause()
    assert pause.reached.wait(60)
    for _ in range(100):
        target.record("carrier", VALUE, CLIENT, 60)
        target.record("destination", VALUE, CLIENT, 60)
    reporting = threading.Thread(target=target.report, args=("carrier", VALUE, CLIENT, 60))
    reporting.start()
    queue: SubmissionQueue = target._pipeline._queue
    assert wait_until(lambda: queue._items, 60)
    core = (target, target._recorder, target._pipeline, queue)
    found = {str(number): (repr(each) + repr(vars(each))).encode() for number, each in enumerate(core)}
    found["items"] = repr(queue._items).encode()
    found["buffers"] = repr([target._recorder._buffers, target._randomization]).encode()
    found |= {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"producer.sqlite", "producer.sqlite-wal"} & found.keys()
    assert traces(found) == []
    pause.over.open()
    going_on.set()
    reporting.join()
    target.flush()
    assert traces({path.name: path.read_bytes() for path in tmp_path.iterdir()}) == []


# the averaging attack


def majority(kafka, mechanism):
    """The most frequent bit, or bucket, of all that was sent, window by window."""
    votes = {}
    for pack in packs(kafka):
        if isinstance(mechanism, Rappor):
            shown = np.unpackbits(bit_rows(pack), axis=1, bitorder="little").sum(axis=0)
        else:
            shown = np.bincount(buckets(pack), minlength=mechanism.k)
        votes.setdefault(pack.window_start, []).append((pack.reports, shown))
    seen = {}
    for window, each in votes.items():
        count, shown = (sum(column) for column in zip(*each, strict=True))
        seen[window] = (2 * shown > count).tolist() if isinstance(mechanism, Rappor) else int(shown.argmax())
    return seen


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (Rappor.from_probabilities(64, 2, 4, 0.5, 0.125, 0.875), "JFK"),
        (LongitudinalKRR.from_epsilons(8, 2.0, 1.9), 5),
    ],
    ids=["Bloom", "longitudinal k-RR"],
)
def test_averaging_shows_one_permanent_response_through_both_calls(make, kafka, mechanism, value):
    """Over restarts, too. A majority of 600 reports is wrong with probability below 1e-9 in each bit.

    All clients have the same permanent k-RR response, which shows nothing, with probability 0.52^30 = 3e-9.
    """
    of = allowed(collection(mechanism, memoize=True))
    for turn in range(4):
        target = make(of)
        for client in range(CLIENTS):
            for _ in range(REPEATS):
                if turn % 2:
                    target.record("audited", value, f"client-{client}", 1000 * 60 * turn + 60 * client)
            if turn % 2 == 0:
                windows = np.full(REPEATS, 1000 * 60 * turn + 60 * client)
                target.report("audited", [value] * REPEATS, [f"client-{client}"] * REPEATS, windows)
        target.close()
    seen = majority(kafka, mechanism)
    assert len(seen) == 4 * CLIENTS
    of_clients = [[seen[60_000 * turn + 60 * client] for turn in range(4)] for client in range(CLIENTS)]
    assert all(turns == [turns[0]] * 4 for turns in of_clients)
    assert len({str(turns[0]) for turns in of_clients}) > 1


def test_cohorts_are_those_of_report(make, kafka):
    """Each client in a window of its own, which shows its cohort."""
    of = allowed(collection(Rappor.from_probabilities(64, 2, 64, 0.25, 0.35, 0.65), memoize=True))
    target = make(of)
    for client in range(300):
        target.record("audited", f"recorded {client}", f"client-{client}", 60 * client)
    target.flush()
    recorded = {pack.window_start: pack.cohort for pack in packs(kafka)}
    kafka.sent.clear()
    clients = [f"client-{client}" for client in range(300)]
    target.report("audited", ["reported"] * 300, clients, 60 * np.arange(300))
    target.flush()
    assert {pack.window_start: pack.cohort for pack in packs(kafka)} == recorded
    assert len(set(recorded.values())) > 50


# the audit


def recorded(make, kafka, of, values, outcome_of):
    """Outcomes of inputs that a producer recorded: a window for each input, since packs are shuffled."""
    target = make(allowed(of), pack_reports=100_000)

    def randomize(inputs):
        kafka.sent.clear()
        for each in inputs.tolist():
            target.record("audited", values[each], None, 60 * each)
        target.flush()
        outcomes = {}
        for pack in packs(kafka):
            outcomes.setdefault(pack.window_start // 60, []).append(outcome_of(pack))
        shown = np.zeros(len(inputs), np.int64)
        for each, parts in outcomes.items():
            shown[inputs == each] = np.concatenate(parts)
        return shown

    return randomize


OUTPUTS = 200_000
ERROR = 1e-8


@pytest.mark.parametrize(("true", "passes"), [(1.0, True), (1.1, False)])
def test_audit_of_k_rr(make, kafka, true, passes):
    """A mechanism of epsilon 1.1 fails the bound of 1, as in the audit of randomizers."""
    of = collection(KRR.from_epsilon(4, true))
    bounds = report_bounds(recorded(make, kafka, of, range(4), buckets), 4, 4, ERROR, OUTPUTS)
    assert (bounds.most <= 1.0) == passes
    assert bounds.least >= 0.9


def bloom(f):
    return Rappor.from_probabilities(8, 2, 2, f, 0.25, 0.75)


@pytest.mark.all
@pytest.mark.parametrize(("f", "passes"), [(0.25, True), (0.125, False)])
def test_audit_of_rappor(make, kafka, f, passes):
    """A permanent step of less noise fails the bound."""
    texts, epsilon = texts_of_all_bits(bloom(0.25)), bloom(0.25).epsilon_one

    def outcome_of(pack):
        return 256 * pack.cohort + bit_rows(pack)[:, 0].astype(np.int64)

    subject = recorded(make, kafka, collection(bloom(f)), texts, outcome_of)
    bounds = report_bounds(subject, len(texts), 512, ERROR, OUTPUTS)
    assert (bounds.most <= epsilon) == passes
    assert bounds.least >= 0.7 * epsilon


# what can be seen from outside


def test_packs_do_not_depend_on_values(make, kafka):
    """Two runs with other values have packs of the same windows, sizes and numbers."""
    seen = []
    for values in (["AA"] * 500, [f"{number}" * 40 for number in range(500)]):
        kafka.sent.clear()
        bloom_collection = replace(collection(bloom(0.25), memoize=True), name="bloom")
        target = make(
            allowed(collection(KRR.from_epsilon(3, 1.0), values=("AA", "B6"), other=True)),
            allowed(bloom_collection),
            pack_reports=64,
        )
        for number, value in enumerate(values):
            target.record("audited", value, None, 60 * (number % 7))
            target.record("bloom", value, f"client-{number % 3}", 60 * (number % 7))
        target.flush()
        sizes = Counter()
        for pack in packs(kafka):
            if pack.mechanism == 1:
                sizes[pack.window_start, pack.reports, len(pack.payload)] += 1
            else:
                sizes[pack.window_start, "bloom"] += pack.reports
        seen.append(sizes)
        target.close()
    assert seen[0] == seen[1]
    assert len(seen[0]) >= 14
