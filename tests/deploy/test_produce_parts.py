"""The parts of a run of `produce`: what it makes of receipts, when it ends, what it serves and reads."""

import os
import re
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from prometheus_client import CollectorRegistry

from deploy import produce
from deploy.feed import Batch
from deploy.inputs import is_file
from deploy.produce import Run, served
from deploy.produce_view import WaitView
from producers.connection import DeliveryError
from producers.counters import Receipt
from producers.progress import Progress


@pytest.mark.parametrize(
    ("receipts", "progress", "said"),
    [
        (
            [Receipt(dropped=2), Receipt(dropped=2, why_dropped="the disk is full")],
            None,
            r"^2 lines could not be kept: the disk is full$",
        ),
        (
            [Receipt(dropped=2), Receipt(dropped=2, why_dropped="the disk is full")],
            Progress(1, 2, 3, b""),
            r"^2 lines not taken yet: the disk is full; the same command resumes there$",
        ),
        ([Receipt(pending=2)], None, r"^the store did not take 2 lines within 0\.3 s$"),
        ([Receipt(dropped=2), Receipt(pending=2)], None, r"^the store did not take 2 lines within 0\.3 s$"),
        ([Receipt(stored=1, dropped=1, why_dropped="no room")], None, r"^1 line could not be kept: no room$"),
    ],
)
def test_what_became_of_a_batch_is_no_guess(
    receipts: list[Receipt], progress: Progress | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are lost only where they cannot be read again."""
    monkeypatch.setattr(produce, "WAIT_SECONDS", 0.3)

    class Stub:
        key = "input"

        def report(self, *_: object, progress: object) -> Receipt:
            return receipts.pop(0)

        def flush(self, timeout: float) -> None:
            raise DeliveryError("2 reports were dropped since the last flush")

    stub: Any = Stub()
    run = Run(stub, "carrier", stub, stub, WaitView())
    with pytest.raises(DeliveryError, match=said):
        run._send(Batch(["AA", "B6"], None, progress))
    assert receipts == []


def test_the_end_is_waited_for_as_long_as_packs_go() -> None:
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
        Run(stub, "carrier", stub, stub, WaitView()).drain()
    assert stub.flushes == 3


def test_metrics_are_served_on_loopback(capsys: pytest.CaptureFixture[str]) -> None:
    with served(0, CollectorRegistry()):
        said = capsys.readouterr().out
        assert re.fullmatch(r"metrics: http://127\.0\.0\.1:\d+/metrics\n", said)
        port = int(said.split(":")[3].split("/")[0])
        with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200
        with pytest.raises(click.ClickException) as caught, served(port, CollectorRegistry()):
            pass
        assert caught.value.message == (
            f"port {port} cannot be used: Address already in use; give another --metrics-port (0: a free one)"
        )


def test_where_metrics_are_is_said_on_stderr_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with served(0, CollectorRegistry(), err=True):
        said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"metrics: http://127\.0\.0\.1:\d+/metrics\n", said.err)


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
