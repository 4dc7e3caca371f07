"""The producer in coroutines: nothing blocks the event loop, and a cancelled call leaves nothing hanging."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Event

import pytest

from deniable.producers.errors import ClosedError, DeliveryError
from deniable.protocol.wire import decode
from tests.support.brokers.log_lines import messages

pytestmark = pytest.mark.slow

TICK_SECONDS = 0.01
#: How long a thread of this machine may wait for the interpreter; far less than the calls under test wait.
LONGEST_GAP_SECONDS = 2.0


@asynccontextmanager
async def ticking():
    """A task that must get its turn all the time while the context is open."""
    gaps = []

    async def tick():
        before = time.monotonic()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            gaps.append(time.monotonic() - before)
            before = time.monotonic()

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()
    assert len(gaps) > 10
    assert max(gaps) < LONGEST_GAP_SECONDS


async def cancelled(call, is_begun):
    """Cancel a call once it has begun to wait; return how long that took."""
    task = asyncio.create_task(call)
    deadline = time.monotonic() + 10
    while not is_begun():
        assert time.monotonic() < deadline
        await asyncio.sleep(TICK_SECONDS)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - began


def sent(kafka):
    return sum(decode(record["value"]).reports for record in kafka.sent)


def test_coroutines_record_and_aflush_sends(make, kafka):
    target = make()

    async def record(number):
        for _ in range(number):
            target.record("carrier", "AA")
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(record(number) for number in range(50)))
        await target.aflush()

    asyncio.run(main())
    assert target.counters().acknowledged == {"carrier": sum(range(50))}
    assert sent(kafka) == sum(range(50))


@pytest.mark.parametrize("wait", ["aflush", "aclose"])
def test_loop_runs_while_kafka_is_away(make, kafka, tmp_path, wait):
    kafka.acknowledges = False
    target = make()

    async def main():
        target.record("carrier", "AA")
        async with ticking():
            with pytest.raises(DeliveryError, match=str(tmp_path)):
                await getattr(target, wait)(timeout=2.5)

    asyncio.run(main())
    assert target.counters().stored == {"carrier": 1}


def test_async_with_closes_while_the_loop_runs(make, kafka):
    kafka.acknowledges = False
    target = make()

    async def main():
        async with ticking():
            async with target as entered:
                assert entered is target
                target.record("carrier", "AA")
                kafka_returns = asyncio.get_running_loop().call_later(2.5, return_of, kafka)
            assert kafka_returns.when() <= asyncio.get_running_loop().time()
        target.record("carrier", "AA")
        with pytest.raises(ClosedError):
            target.report("carrier", "AA", None)
        await target.aclose()

    asyncio.run(main())
    assert target.counters().acknowledged == {"carrier": 1}
    assert target.counters().dropped == {"carrier": 1}


def return_of(kafka):
    kafka.acknowledges = True
    kafka.acknowledge()


def test_error_in_async_with_is_not_hidden(make, kafka, monkeypatch, caplog):
    kafka.acknowledges = False
    target = make()
    monkeypatch.setattr(type(target), "close", lambda self, inner=target.close: inner(timeout=2.5))

    async def main():
        async with target:
            target.record("carrier", "AA")
            raise KeyError("of the application")

    with pytest.raises(KeyError, match="of the application"):
        asyncio.run(main())
    assert "KeyError" in messages(caplog)[-1]


def test_cancelled_aflush_leaves_the_producer_usable(make, kafka):
    kafka.acknowledges = False
    target = make()

    async def main():
        target.record("carrier", "AA")
        assert await cancelled(target.aflush(timeout=20), lambda: kafka.sent) < LONGEST_GAP_SECONDS
        target.record("carrier", "B6")
        return_of(kafka)
        await target.aflush()

    asyncio.run(main())
    assert target.counters().acknowledged == {"carrier": 2}


def test_cancelled_aclose_closes(make, kafka):
    """Its thread goes on, for at most its timeout; the end of the loop waits for it."""
    kafka.acknowledges = False
    target = make()

    async def main():
        target.record("carrier", "AA")
        assert await cancelled(target.aclose(timeout=2.5), lambda: kafka.sent) < LONGEST_GAP_SECONDS
        with pytest.raises(ClosedError):
            await target.aflush()
        await target.aclose()  # nothing to do

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 20
    assert target.counters().stored == {"carrier": 1}
    assert target.counters().backlog.packs == 1


def test_body_of_async_with_is_cancelled_and_the_producer_closes(make, kafka):
    target = make()

    async def body():
        async with target:
            target.record("carrier", "AA")
            await asyncio.Event().wait()

    async def main():
        await cancelled(body(), lambda: target.counters().stored)

    asyncio.run(main())
    assert target.counters().acknowledged == {"carrier": 1}
    with pytest.raises(ClosedError):
        target.flush()


def test_aclose_cancelled_before_it_began_leaves_the_producer_open(make, kafka):
    """All threads of the loop are busy elsewhere."""
    target, is_over = make(), Event()

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, is_over.wait)
        await cancelled(target.aclose(), lambda: True)
        is_over.set()
        await busy
        target.record("carrier", "AA")
        await target.aclose()

    asyncio.run(main())
    assert target.counters().acknowledged == {"carrier": 1}
