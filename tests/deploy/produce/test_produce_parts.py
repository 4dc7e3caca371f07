"""The parts of a run of `produce`: what it makes of receipts, when it ends, what it reads."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deniable.deploy.produce.input.batches import InputBatch
from deniable.deploy.produce.input.inputs import is_file
from deniable.deploy.produce.run import ProduceRun
from deniable.deploy.produce.timing import RunTiming
from deniable.deploy.produce.view import WaitView
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.storage.input_progress import InputProgress
from tests.support.messages import PinMessages


class Refusing:
    """A client that answers with these receipts, then drops the rest."""

    key = "input"
    note = None

    def __init__(self, *receipts: Receipt) -> None:
        self.receipts = list(receipts)

    def report_lines(self, *_: object, progress: object, seen: object) -> Receipt:
        return self.receipts.pop(0)

    def reasons_not_ready(self) -> list[str]:
        return ["clients cannot be charged: the disk is full"]

    def flush(self, timeout: float) -> None:
        raise DeliveryError("2 reports were dropped since the last flush")


def send(receipts: Sequence[Receipt], progress: InputProgress | None = None) -> None:
    stub: Any = Refusing(*receipts)
    run = ProduceRun(stub, "carrier", stub, stub, WaitView(), stub, stub, RunTiming(wait=0.3))
    try:
        run._send(InputBatch(["AA", "B6"], None, progress))
    finally:
        assert stub.receipts == []


def test_messages_of_lines_without_a_report(pin_messages: PinMessages) -> None:
    """Lines are lost only where they cannot be read again."""
    full = [Receipt(dropped=2), Receipt(dropped=2, why_dropped="the disk is full")]
    part = [Receipt(stored=1, dropped=1, why_dropped="no room")]
    pin_messages(
        {
            "dropped, from a pipe": partial(send, full),
            "dropped, from a file": partial(send, full, InputProgress(1, 2, 3, b"")),
            "one of two dropped": partial(send, part),
            "pending": partial(send, [Receipt(pending=2)]),
            "dropped, then pending": partial(send, [Receipt(dropped=2), Receipt(pending=2)]),
        }
    )


def test_end_is_waited_for_as_long_as_packs_go() -> None:
    packs = iter([0, 1, 1, 2, 2, 2])

    class Stub:
        flushes = 0

        def counters(self) -> Any:
            return type("", (), {"packs": next(packs)})

        def flush(self, timeout: float) -> None:
            self.flushes += 1
            raise DeliveryError("not all")

    stub: Any = Stub()
    with pytest.raises(DeliveryError, match=r"^not all$"):
        ProduceRun(stub, "carrier", stub, stub, WaitView(), stub, stub).drain()
    assert stub.flushes == 3


def test_stdin_is_never_taken_for_a_file(tmp_path: Path) -> None:
    """Not even where a shell redirects it from one."""
    path = tmp_path / "lines"
    path.touch()
    with path.open("rb") as stream:
        assert is_file(stream)
        redirected = SimpleNamespace(fileno=lambda: 0, name="<stdin>")
        assert not is_file(redirected)
    reader, writer = os.pipe()
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert not is_file(pipe)
