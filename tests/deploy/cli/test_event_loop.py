"""Work in an event loop ends by a signal without a word of asyncio's, whatever it is at."""

import signal
import subprocess
import sys

WORK = """
import asyncio, gc, signal, sys
from contextlib import suppress
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.signals import end_in_good_order, handle

async def busy():
    print("begun", flush=True)
    while True:
        for _ in range(100_000):  # nearly always within a step, where an exit is an error of the task
            pass
        await asyncio.sleep(0)

async def work():
    client = asyncio.create_task(busy())
    try:
        await client
    finally:  # as a client of Kafka does
        client.cancel()
        with suppress(asyncio.CancelledError):
            await client

handle(15, end_in_good_order)
try:
    run_until_signalled(work())
except SystemExit as end:
    status = end.code
if signal.getsignal(15) is not end_in_good_order:
    status = "what comes after would end without `finally`"
gc.collect()  # asyncio then logs tasks whose errors were never retrieved
sys.exit(status)
"""


def test_it_ends_with_the_signal_and_without_a_word() -> None:
    started = [sys.executable, "-c", WORK]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            _, message = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, message) == (143, "")
