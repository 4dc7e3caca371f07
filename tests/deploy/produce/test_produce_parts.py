"""The parts of a run of `produce`: what it makes of receipts, when it ends, what it reads."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.produce.input.batches import InputBatch
from deploy.produce.input.inputs import is_file
from deploy.produce.run import ProduceRun
from deploy.produce.timing import RunTiming
from deploy.produce.view import WaitView
from producers.errors import DeliveryError
from producers.metrics.counters import Receipt
from producers.storage.input_progress import InputProgress

STORE_BUSY = r"^the store did not take 2 lines within 0\.3 s; clients cannot be charged: the disk is full$"


@pytest.mark.parametrize(
    ("receipts", "progress", "message"),
    [
        (
            [Receipt(dropped=2), Receipt(dropped=2, why_dropped="the disk is full")],
            None,
            r"^2 lines could not be kept: the disk is full$",
        ),
        (
            [Receipt(dropped=2), Receipt(dropped=2, why_dropped="the disk is full")],
            InputProgress(1, 2, 3, b""),
            r"^2 lines not taken yet: the disk is full; the same command resumes there$",
        ),
        ([Receipt(pending=2)], None, STORE_BUSY),
        ([Receipt(dropped=2), Receipt(pending=2)], None, STORE_BUSY),
        ([Receipt(stored=1, dropped=1, why_dropped="no room")], None, r"^1 line could not be kept: no room$"),
    ],
)
def test_outcome_of_a_batch_is_certain(
    receipts: list[Receipt], progress: InputProgress | None, message: str
) -> None:
    """Lines are lost only where they cannot be read again."""

    class Stub:
        key = "input"

        def report_lines(self, *_: object, progress: object) -> Receipt:
            return receipts.pop(0)

        def reasons_not_ready(self) -> list[str]:
            return ["clients cannot be charged: the disk is full"]

        def flush(self, timeout: float) -> None:
            raise DeliveryError("2 reports were dropped since the last flush")

    stub: Any = Stub()
    run = ProduceRun(stub, "carrier", stub, stub, WaitView(), stub, RunTiming(wait=0.3))
    with pytest.raises(DeliveryError, match=message):
        run._send(InputBatch(["AA", "B6"], None, progress))
    assert receipts == []


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
        ProduceRun(stub, "carrier", stub, stub, WaitView(), stub).drain()
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
