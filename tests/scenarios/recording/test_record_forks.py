"""After a fork the child's buffer is empty: the parent sends its events once, the child its own."""

import pytest

from tests.support.producers.recording.scripts import each_once, left_in, run

pytestmark = pytest.mark.slow

#: Events stay in the buffer until something asks for them.
SLOW = """
recorder.INTERVAL_SECONDS = 30.0
def end(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

CLOSES = """
producer = Producer(config)
record(100)
child = os.fork()
if child == 0:
    record(50, 100)
    kafka = FakeKafka()
    try:
        producer.close(0.1)
    except Exception as error:
        assert str(error).startswith("not all was acknowledged within 0.1 s"), error
    assert producer.counters().stored == {"latency": 50}, producer.counters()
    record(1, 1000)
    assert producer.counters().dropped == {"latency": 1}
    os._exit(0)
record(50, 150)
end(child)
assert producer.counters().stored == {}
"""


def test_child_that_closes_sends_its_own_events(tmp_path, make, kafka):
    """And the parent those from before and after the fork, though nothing was taken yet."""
    done = run(SLOW + CLOSES, tmp_path)
    assert done.returncode == 0, done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(200)


IDLE = """
producer = Producer(config)
record(100)
for unused in range(3):
    child = os.fork()
    if child == 0:
        if unused == 1:
            producer.flush(0.1)
        elif unused == 2:
            producer.close(0.1)
            producer.record("latency", 5)
            assert producer.counters().dropped == {"latency": 1}
        assert producer.save(30)
        assert not producer.counters().stored
        os._exit(0)
    end(child)
"""


def test_child_that_records_nothing_sends_nothing(tmp_path, make, kafka):
    done = run(SLOW + IDLE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(100)


CLOSED = """
producer = Producer(config)
record(10)
producer.save(30)
try:
    producer.close(0.1)
except Exception as error:
    assert str(error).startswith("not all was acknowledged"), error
child = os.fork()
if child == 0:
    record(5, 10)
    assert producer.save(30)
    assert producer.counters().dropped == {"latency": 5}, producer.counters()
    assert not (folder / "lane-1.lock").exists()
    os._exit(0)
end(child)
"""


def test_child_of_a_closed_producer_drops_and_counts(tmp_path, make, kafka):
    done = run(SLOW + CLOSED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recorded events are dropped" in done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(10)


MULTIPROCESSING = """
import multiprocessing
fork = multiprocessing.get_context("fork")
producer = Producer(config)
record(100)

def work(number):
    record(100, 100 * number)
    if number % 2:
        assert producer.save(30)  # such a child runs no exit handlers of the interpreter
    else:
        try:
            producer.close(0.1)
        except Exception as error:
            assert str(error).startswith("not all was acknowledged"), error

children = [fork.Process(target=work, args=(number,)) for number in range(1, 5)]
for child in children:
    child.start()
for child in children:
    child.join()
    assert child.exitcode == 0
"""


def test_multiprocessing_children_send_their_events(tmp_path, make, kafka):
    done = run(SLOW + MULTIPROCESSING, tmp_path)
    assert done.returncode == 0, done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(500)


TERMINATED = """
import multiprocessing
fork = multiprocessing.get_context("fork")
producer = Producer(config)
record(100)
recorded = fork.Event()

def work():
    record(100, 100)
    recorded.set()
    time.sleep(60)

child = fork.Process(target=work)
child.start()
assert recorded.wait(30)
child.terminate()
child.join()
assert child.exitcode == -signal.SIGTERM, child.exitcode
"""


def test_terminated_child_loses_nothing(tmp_path, make, kafka):
    """It inherits the handler that its parent's producer has set."""
    done = run(SLOW + TERMINATED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(200)


BUSY = """
producer = Producer(config)
over, numbers, dropped = threading.Event(), iter(range(10**9)), 0

def work():
    while not over.wait(0.002):
        record(5, next(numbers) * 5)

thread = threading.Thread(target=work)
thread.start()
for number in range(8):
    child = os.fork()
    if child == 0:
        record(10, 150_000 + 10 * number)
        assert producer.save(60)
        counters = producer.counters()
        assert counters.stored.get("latency", 0) + counters.dropped.get("latency", 0) == 10, counters
        os._exit(counters.dropped.get("latency", 0))
    dropped += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
over.set()
thread.join()
assert producer.save(60)
print(next(numbers) * 5, dropped)
"""


def test_fork_while_events_are_recorded_doubles_nothing(tmp_path, make, kafka):
    """The fork falls into the middle of randomizing and storing.

    A child drops and counts if its parent's transaction took a second: it may not use a store that was open.
    """
    done = run(BUSY, tmp_path)
    assert done.returncode == 0, done.stderr
    events = left_in(tmp_path, make, kafka)
    of_parent, dropped = map(int, done.stdout.split())
    assert of_parent > 100
    assert {each: count for each, count in events.items() if each < 150_000} == each_once(of_parent)
    of_children = {each: count for each, count in events.items() if each >= 150_000}
    assert set(of_children.values()) == {1}
    assert len(of_children) == 80 - dropped > 0


HANDLER = """
from tests.support.producers.recording.steps import Steps, steps_of

producer = Producer(config)
number, children = 0, 0

def handler():
    global children
    child = os.fork()
    if child == 0:
        sys.settrace(None)
        record(1, 10_000 + children)
        os._exit(0 if producer.save(30) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    children += 1

def call():
    global number
    number += 1
    producer.record("latency", 5, None, 60 * (number - 1))

for at in range(1, steps_of(call), 5):
    with Steps(handler, at):
        call()
assert producer.save(30)
assert children > 10, children
print(number, children)
"""


def test_handler_forks_during_record(tmp_path, make, kafka):
    """The interrupted event is sent by the parent, once."""
    done = run(HANDLER, tmp_path)
    assert done.returncode == 0, done.stderr
    parent, children = map(int, done.stdout.split())
    expected = dict.fromkeys([*range(parent), *range(10_000, 10_000 + children)], 1)
    assert left_in(tmp_path, make, kafka) == expected
