"""Workers that are killed, fenced and refused, in any order: stored counts equal a plain count of the log.

Here Kafka is a list (the log) and two dictionaries (`state`, `counts`), with the one guarantee that the
design needs: a transaction of the newest owner is applied completely or not at all, and others' never are.
"""

from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger import pack_ids, row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.checkpoint import compose, take
from deniable.protocol import wire
from deniable.protocol.marker import RelaysSent
from tests.support.aggregator.builders import (
    FRUIT,
    PLACE,
    T0,
    TOPICS,
    LogRecord,
    new_estimator,
    pack_of,
    waiting_ledger,
)
from tests.support.aggregator.ledger_model import Event, Model, check_equal

COLLECTION = st.sampled_from([FRUIT, PLACE])
WORKER = st.integers(0, 2)
MANY = st.integers(1, 4)
LATE = st.sampled_from([10, 20, 40, 400])


@pytest.fixture(autouse=True, scope="module")
def ids_are_merged_soon() -> Iterator[None]:
    """Small, so rows of ids are merged within a run."""
    with mock.patch.object(pack_ids, "MERGED_ROWS", 3):
        yield


class Machine(RuleBasedStateMachine):
    """One partition, several workers, and a broker that may fail."""

    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = T0 * 1000
        self.log: list[Event] = []
        self.state: dict[bytes, bytes] = {}
        self.merged = MergedCounts()
        self.epoch = 0
        self.owners: dict[int, tuple[int, Ledger]] = {}  # epoch and ledger, by worker
        self.packs = 0
        self.is_fencing = True

    @rule(target=sent, collection=COLLECTION, cohort=st.integers(0, 2), good=st.integers(0, 4), packs=MANY)
    def send(self, collection: object, cohort: int, good: int, packs: int = 1) -> wire.Pack:
        """Packs of the current window; one in five has a bad value."""
        own = FRUIT if collection is FRUIT else PLACE
        reports = [0, 3, 4 if good == 0 else 1]
        for _ in range(packs):
            self.packs += 1
            pack = pack_of(
                own, own.window_start(self.now_ms // 1000), self.packs, reports, cohort % own.cohorts
            )
            self.append(pack)
        return pack

    @rule(pack=sent)
    def resend(self, pack: wire.Pack) -> None:
        """Late or in time."""
        self.append(pack)

    @rule(collection=COLLECTION, seconds=LATE)
    def late(self, collection: object, seconds: int) -> None:
        self.packs += 1
        own = FRUIT if collection is FRUIT else PLACE
        self.append(pack_of(own, own.window_start(self.now_ms // 1000 - seconds), self.packs))

    @rule()
    def stranger(self) -> None:
        self.log.append(Event(self.now_ms, None))

    @rule(milliseconds=st.sampled_from([-3000, 1, 4999, 10_000, 15_001]))
    def wait(self, milliseconds: int) -> None:
        """Clocks of brokers may differ slightly."""
        self.now_ms += milliseconds

    @rule(number=st.integers(1, 20), behind_ms=st.sampled_from([0, 5000, 60_000]), waits=st.booleans())
    def relays(self, number: int, behind_ms: int, waits: bool) -> None:
        """An owner says how far relays have sent; or a former one, or a copy, what was true before."""
        sent = RelaysSent(number, self.now_ms - behind_ms, 30_000 * waits)
        self.log.append(Event(self.now_ms, None, relays=sent))

    @rule()
    def close_window(self) -> None:
        """Every window so far has expired by the next record."""
        self.now_ms += (10 + 5 + 20) * 1000 + 1

    @rule(worker=WORKER)
    def rebalance(self, worker: int) -> None:
        """A worker opens the ledger; the previous owner does not notice."""
        self.epoch += 1
        ledger = waiting_ledger([(row_keys.decode_key(key), self.state[key]) for key in reversed(self.state)])
        self.owners[worker] = (self.epoch, ledger)

    @rule(worker=WORKER)
    def kill(self, worker: int) -> None:
        self.owners.pop(worker, None)

    @rule(worker=WORKER, back=st.integers(0, 9), records=st.integers(1, 30), at_once=st.booleans())
    def deliver(self, worker: int, back: int, records: int, at_once: bool = True) -> None:
        """Faust delivers some records, repeating the last ones; the gate passes those after the position.

        They are counted as one run, or one by one.
        """
        ledger = self.owners[self.serving(worker)][1]
        start = max(0, ledger.position - back)
        found = [
            LogRecord(offset, event.append_ms, event.record)
            for offset, event in enumerate(self.log[start : ledger.position + records], start)
            if offset >= ledger.position
        ]
        if found and at_once:
            ledger.apply_run(Run.of(found))
        for each in [] if at_once else found:
            ledger.apply(each.offset, each.timestamp, each.value or b"")

    @rule(worker=WORKER, packs=MANY, publishes=st.booleans())
    def go_on(self, worker: int, packs: int, publishes: bool) -> None:
        """The most frequent step."""
        self.send(FRUIT, 0, 1, packs)
        self.deliver(worker, 0, 30)
        self.commit(worker, publishes)

    @rule(worker=WORKER, publishes=st.booleans())
    def commit(self, worker: int, publishes: bool) -> None:
        """It fails for a zombie, whose ledger and changes are then discarded."""
        self.transact(worker, publishes, is_applied=True, is_heard=True)

    @rule(worker=WORKER, publishes=st.booleans())
    def failed_commit(self, worker: int, publishes: bool) -> None:
        self.transact(worker, publishes, is_applied=False, is_heard=False)

    @rule(worker=WORKER, publishes=st.booleans())
    def commit_without_an_answer(self, worker: int, publishes: bool) -> None:
        self.transact(worker, publishes, is_applied=True, is_heard=False)

    @invariant()
    def what_is_stored_is_what_the_log_says(self) -> None:
        ledger = waiting_ledger([(row_keys.decode_key(key), value) for key, value in self.state.items()])
        check_equal(ledger, self.model(ledger.position))

    @invariant()
    def no_row_of_ids_outlives_its_window(self) -> None:
        closed_ms = self.model(self.position()).closed_ms
        for key in map(row_keys.decode_key, self.state):
            if isinstance(key, row_keys.IdsKey):
                assert closed_ms <= (key.window_start + 10 + 5) * 1000

    @invariant()
    def what_is_published_is_what_the_log_said(self) -> None:
        """`counts` may be behind `state`, but agrees with the log at its own position."""
        progress = self.merged.progress.get(0)
        model = self.model(progress.position if progress else 0)
        stored_until = self.model(self.position())
        for collection in (FRUIT, PLACE):
            for start in {key[1] for key in model.tallies if key[0] == collection.fingerprint}:
                if not stored_until.lives(start):
                    continue
                totals = self.merged.totals((collection.fingerprint, start), collection)
                for cohort in range(collection.cohorts):
                    expected = model.tallies.get((collection.fingerprint, start, cohort))
                    counts = expected[0] if expected else [0] * collection.width
                    assert totals.counts[cohort].tolist() == counts

    def serving(self, worker: int) -> int:
        """A worker with a ledger: this one if it has one or no worker has; then it opens one."""
        if not self.owners:
            self.rebalance(worker)
        return worker if worker in self.owners else min(self.owners)

    def append(self, pack: wire.Pack) -> None:
        self.log.append(Event(self.now_ms, pack))

    def model(self, position: int) -> Model:
        model = Model()
        for event in self.log[:position]:
            model.apply(event)
        return model

    def position(self) -> int:
        value = self.state.get(b"P")
        return row_values.decode_progress(value).position if value else 0

    def transact(self, worker: int, publishes: bool, *, is_applied: bool, is_heard: bool) -> None:
        worker = self.serving(worker)
        epoch, ledger = self.owners[worker]
        records = compose(take(ledger, new_estimator(), publishes=publishes or ledger.has_dead()), TOPICS)
        is_owner = epoch == self.epoch or not self.is_fencing
        if is_applied and is_owner:
            for topic, _, key, value in records:
                self.take(topic, key or b"", value)
        if not (is_heard and is_owner):
            del self.owners[worker]

    def take(self, topic: str, key: bytes, value: bytes | None) -> None:
        if topic == TOPICS.counts:
            self.merged.apply(key, value)
        elif topic == TOPICS.state and value is None:
            self.state.pop(key, None)
        elif topic == TOPICS.state and value is not None:
            self.state[key] = value


Machine.TestCase.settings = settings(max_examples=25, stateful_step_count=80, deadline=None)
TestMachine = pytest.mark.slow(Machine.TestCase)


@pytest.mark.nightly
def test_more_runs_of_the_machine() -> None:
    longer = settings(max_examples=500, stateful_step_count=80, deadline=None)
    run_state_machine_as_test(Machine, settings=longer)


def test_writing_zombie_is_detected() -> None:
    machine = Machine()
    machine.is_fencing = False
    machine.rebalance(0)
    machine.send(FRUIT, 0, 1)
    machine.deliver(0, 0, 1)
    machine.rebalance(1)
    machine.wait(10_000)
    machine.send(FRUIT, 0, 1)
    machine.deliver(1, 0, 2)
    machine.commit(1, True)
    machine.what_is_stored_is_what_the_log_says()
    machine.commit(0, True)
    with pytest.raises(AssertionError):
        machine.what_is_stored_is_what_the_log_says()


def test_ledger_continuing_after_a_failure_is_detected() -> None:
    machine = Machine()
    machine.rebalance(0)
    machine.send(FRUIT, 0, 1)
    machine.deliver(0, 0, 1)
    owner = machine.owners[0]
    machine.failed_commit(0, True)
    machine.owners[0] = owner
    machine.commit(0, True)
    with pytest.raises(AssertionError):
        machine.what_is_stored_is_what_the_log_says()


def test_gate_passing_a_record_twice_is_detected() -> None:
    machine = Machine()
    machine.rebalance(0)
    machine.send(PLACE, 1, 1)
    machine.deliver(0, 0, 1)
    ledger = machine.owners[0][1]
    ledger.apply(0, machine.log[0].append_ms, machine.log[0].record)
    machine.commit(0, True)
    with pytest.raises(AssertionError):
        machine.what_is_stored_is_what_the_log_says()
