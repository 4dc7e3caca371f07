"""The page in a real Chromium: what it says of a worker's status and draws of an estimate."""

import asyncio
import os
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path

import msgspec
import pytest
from builders import COLLECTIONS, FRUIT, PLACE, T0, estimate_of
from needed import missing

from aggregator import web
from aggregator.board import Board, successor_due
from aggregator.estimate_record import EstimateRecord, Other
from aggregator.metrics import WorkerMetrics
from aggregator.web import WebServer

PAGE_SECONDS = 60
FRESH = successor_due(estimate_of(), FRUIT)


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        missing("Chromium is not installed")
    return found


class Shown:
    """The page as the browser leaves it; templates, which are never seen, are left out."""

    def __init__(self, markup: str) -> None:
        self.markup = re.sub(r"<template.*?</template>", "", markup, flags=re.DOTALL)

    def text(self, pattern: str) -> str:
        """Text of the first element whose start tag matches, without the tags in it."""
        found = re.search(rf"<(\w+)[^>]*{pattern}[^>]*>(.*?)</\1>", self.markup, re.DOTALL)
        return unescape(re.sub(r"<[^>]*>", "", found[2])).strip() if found else ""

    def rows(self) -> dict[str, list[str]]:
        """Cells of every row by value: remark, share, interval."""
        found = {}
        for row in re.findall(r"<tr[^>]*data-value.*?</tr>", self.markup, re.DOTALL):
            head, *cells = re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)
            cells = [re.sub(r"<span[^>]*hidden.*?</span>", "", cell) for cell in cells]
            found[_plain(head)] = [_plain(cell) for cell in cells]
        return found


def _plain(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup)).strip()


def show(
    monkeypatch: pytest.MonkeyPatch,
    chromium: str,
    folder: Path,
    *records: EstimateRecord,
    now: float = FRESH,
    reasons: tuple[str, ...] = (),
    strays: Counter[str] | None = None,
) -> Shown:
    """Serve these, and let Chromium show them; a console message fails the test."""
    board, metrics = Board(), WorkerMetrics(COLLECTIONS)
    board.newest = {record.collection: record for record in records}
    metrics.strays.add(strays or Counter())
    monkeypatch.setattr(web.time, "time", lambda: now)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--lang=en"]
    options += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=1500", "--dump-dom"]

    async def run() -> tuple[bytes, bytes]:
        server = WebServer(COLLECTIONS, board, metrics, lambda: list(reasons))
        port = await server.start(0)
        pipe = asyncio.subprocess.PIPE
        browser = await asyncio.create_subprocess_exec(
            chromium,
            *options,
            f"http://127.0.0.1:{port}/",
            stdout=pipe,
            stderr=pipe,
            env={**os.environ, "TZ": "UTC"},
        )
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return await browser.communicate()
        finally:
            if browser.returncode is None:
                browser.kill()
                await browser.wait()
            await server.stop()

    markup, said = asyncio.run(run())
    assert b"CONSOLE" not in said, said.decode()
    return Shown(markup.decode())


def changed(record: EstimateRecord, **fields: object) -> EstimateRecord:
    return msgspec.structs.replace(record, **fields)


def test_a_fresh_estimate_is_live(monkeypatch: pytest.MonkeyPatch, chromium: str, tmp_path: Path) -> None:
    """Each interval as it is, of one that noise took below zero only that; markup in a value is text."""
    record = changed(
        estimate_of(),
        values=["<b onclick=alert(1)>x</b>", "fig", "kiwi"],
        frequency=[0.5, 0.2, 0.0],
        low=[0.4, 0.0, 0.0],
        high=[0.7, 0.31, 0.0],
        std_error=[0.05, 0.05, None],
        significant=[True, True, True],
        other=Other(0.3, 0.4),
        reports=1234,
    )
    page = show(monkeypatch, chromium, tmp_path, record)
    assert page.text('id="status"') == "Live"
    assert page.text('id="notices"') == ""
    assert page.rows() == {
        "<b onclick=alert(1)>x</b>": ["", "50.0", "40.0 – 70.0"],
        "fig": ["", "20.0", "0.0 – 31.0"],
        "kiwi": ["", "0.0", "below 0"],
        "other": ["not distinguishable from zero▸", "30.0", "0.0 – 100.0"],
    }
    assert not re.search(r"<b[ >]", re.sub(r'"[^"]*"', "", page.markup))
    assert page.text('class="reports"') == "1,234"
    assert page.text('class="badge"') == "Provisional"
    assert page.text('class="window"').endswith("00:00:00 – 00:00:10 UTC")
    assert re.match(r"Provisional: .* until .*00:00:15 UTC\.$", page.text('class="finality"'))
    assert re.findall(r"<span style[^>]*>([\d.]+)</span>", page.markup)[-1] == "80"  # not 100, for `other`
    assert "maximum likelihood" in page.markup
    assert "(ε = 2)" in page.markup


def test_an_overdue_estimate_is_stale(monkeypatch: pytest.MonkeyPatch, chromium: str, tmp_path: Path) -> None:
    records = [changed(estimate_of(), final=True), changed(estimate_of(PLACE), window_start=T0 + 30)]
    page = show(monkeypatch, chromium, tmp_path, *records, now=FRESH + 11)
    assert re.fullmatch(r"Stale since .*00:00:40 UTC", page.text('id="status"'))
    assert re.match(r"Stale: a newer estimate was due at .*00:00:40 UTC\.", page.text('class="overdue"'))
    assert len(re.findall(r"collection[^\"]* stale\"", page.markup)) == 1
    assert page.text('class="badge"') == "Final"


def test_a_worker_that_is_not_ready_is_not_live(
    monkeypatch: pytest.MonkeyPatch, chromium: str, tmp_path: Path
) -> None:
    page = show(
        monkeypatch,
        chromium,
        tmp_path,
        estimate_of(),
        reasons=("partition 1: opening <b>the</b> ledger",),
        strays=Counter(unknown_collection=7, malformed=3),
    )
    assert page.text('id="status"') == "Not ready"
    told = page.text('id="notices"')
    assert "Not ready: partition 1: opening <b>the</b> ledger." in told
    assert "in no collection’s window: 10 packs (malformed 3, unknown collection 7)." in told


def test_without_an_estimate_the_page_waits(
    monkeypatch: pytest.MonkeyPatch, chromium: str, tmp_path: Path
) -> None:
    page = show(monkeypatch, chromium, tmp_path)
    assert page.text('id="status"') == "Waiting for the first estimate"
    assert "a window is published once it has 6 reports" in page.markup
