"""A demo some of whose reports came too late to be counted ends, and its verdict says so."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from deniable.deploy.demo import run
from deniable.deploy.demo.run import Demo
from tests.support.deploy.judged import judged


class Stalled(Demo):
    """Nine of ten reports are counted."""

    def __init__(self) -> None:
        flights: Any = SimpleNamespace(carriers=["AA"] * 10)
        configuration: Any = SimpleNamespace(collections=[judged(0, 0).collection])
        services: Any = SimpleNamespace(try_page=None)
        super().__init__(configuration, flights, {}, ["page"], services)

    def _counted(self) -> int:
        return 9


def test_reports_that_never_come_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(run, "STALLED_SECONDS", 0.0)
    stream: Any = SimpleNamespace(
        sent=10, finished=True, accepted=lambda: 10, check=lambda: None,
        sent_to=lambda _: 10, reports_of=lambda _: 10,
    )  # fmt: skip
    demo = Stalled()
    asyncio.run(demo._show(stream, []))
    counts: Any = SimpleNamespace(all_windows=lambda _: SimpleNamespace(reports=9))
    found: Any = SimpleNamespace(difference=0, counts=counts)
    faults = demo._count_faults(stream, found)
    assert faults == ["place: 10 reports sent, 10 acknowledged, 9 counted"]
    assert "9 reports counted" in capsys.readouterr().err
