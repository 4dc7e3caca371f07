"""The mean over all windows so far in a real Chromium: that of the roll-up's sequence, at every look."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from aggregator.history import rollup
from aggregator.history.periods import Period
from aggregator.history.share_sequences import ShareSequence
from aggregator.history.window_reader import Joined
from aggregator.records.window_counts import WindowCounts
from aggregator.web import past_windows
from aggregator.web.past_windows import PastWindows
from aggregator.web.rollup_api import RollUps
from estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.browser import Watched, on_desk_and_phone, until, watched
from tests.support.aggregator.builders import DEPLOYMENT, T0
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.scene import AIR_TIME, SCENE, number_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WAVE = AIR_TIME.mechanism
COLLECTIONS = SCENE | {AIR_TIME.fingerprint: AIR_TIME}


def joined(others: int = 0) -> Joined:
    """Thirty windows of even counts, and windows of other parameters."""
    assert isinstance(WAVE, SquareWave)
    counts = np.full(WAVE.width, 100, np.int64)
    reports = int(counts.sum())
    starts = {T0 - 60 * each: reports // 30 for each in range(30, 0, -1)}
    passed_over = {0xAB: others} if others else {}
    return Joined(WindowCounts(counts[None], np.array([reports]), 30, 0), starts, [], passed_over, 0)


def sequence() -> ShareSequence:
    """What `/api/rollup` answers, and `deniable rollup --json` prints."""
    found = joined()
    coverage = rollup.coverage_of(AIR_TIME, Period(T0 - 86_400, T0), found)
    record = rollup.record_of(AIR_TIME, coverage, found, rollup.roll_up(AIR_TIME, found))
    assert record.sequence is not None
    return record.sequence


@pytest.fixture
def answers() -> list[Joined]:
    """What the topic of windows holds, one answer after the other; the last one stays."""
    return [joined(others=3)]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, answers: list[Joined]) -> Iterator[Served]:
    async def join(*_: object) -> Joined:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(past_windows, "join_windows", join)
    set_clock(monkeypatch, T0 + 30)
    served = Served(COLLECTIONS)
    served.server.routes = RollUps(PastWindows(DEPLOYMENT._replace(collections=COLLECTIONS))).routes()
    with served.serving() as serving:
        serving.take(*number_estimates())
        yield serving


def ask(shown: Watched) -> None:
    shown.section("air-time").get_by_text("What is the mean over all windows so far?").click()
    shown.section("air-time").locator(".mean-so-far").get_by_role("button", name="Show", exact=True).click()


@on_desk_and_phone
def test_mean_is_that_of_the_sequence(browser: "Browser", worker: Served, viewport: dict[str, int]) -> None:
    """In digits by which its ends differ; shares of steps have no such part."""
    expected = sequence()
    with watched(browser, worker.address, viewport=viewport) as shown:
        part = shown.section("air-time").locator(".mean-so-far")
        part.wait_for()
        assert shown.section("air-time").locator(".so-far").is_hidden()
        ask(shown)
        part.locator(".found", has_text="Mean").wait_for()
        figures = (f"{each[0]:.0f}" for each in (expected.share, expected.low, expected.high))
        assert part.locator(".found").inner_text() == "Mean {} ({} – {})".format(*figures)
        said = part.locator(".said").inner_text()
        assert said.startswith(f"{expected.reports:,} reports in 30 windows since ")
        assert "the interval holds the mean at every look." in said
        assert said.endswith(
            "3 windows of other parameters left out; deniable rollup --former joins their means with "
            "this one."
        )
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert violations(shown.page) == []
        shown.keep(f"mean-so-far-{viewport['width']}")


def test_link_shows_the_same_mean_again(browser: "Browser", worker: Served) -> None:
    """Of the period that was asked for."""
    with watched(browser, worker.address) as shown:
        shown.section("air-time").locator(".mean-so-far").wait_for()
        ask(shown)
        found = shown.section("air-time").locator(".mean-so-far .found", has_text="Mean")
        found.wait_for()
        expected = found.inner_text()
        until(shown.page, "/air-time.so_far=day,[0-9]+[/][0-9]+/.test(location.hash)")
        link = shown.page.url
        requests = [each for each in shown.requests if each.startswith("api/rollup")]
    with watched(browser, link) as again:
        found = again.section("air-time").locator(".mean-so-far .found", has_text="Mean")
        found.wait_for()
        assert found.inner_text() == expected
        assert [each for each in again.requests if each.startswith("api/rollup")] == requests


def test_worker_that_cannot_answer_says_why(
    browser: "Browser", worker: Served, answers: list[Joined]
) -> None:
    """An answer that follows replaces it."""
    few = np.zeros_like(joined().counts.counts)
    few[0, 0] = 2
    answers.insert(0, Joined(WindowCounts(few, np.array([2]), 1, 0), {T0 - 60: 2}, [], {}, 0))
    with watched(browser, f"{worker.address}#collections=air-time&air-time.so_far=week") as shown:
        part = shown.section("air-time").locator(".mean-so-far")
        part.wait_for()
        assert part.locator("select").input_value() == "week"
        part.get_by_role("button", name="Show", exact=True).click()
        part.locator(".said", has_text="No mean: there are too few reports since then.").wait_for()
        assert part.locator(".found").inner_text() == ""
        part.get_by_role("button", name="Show", exact=True).click()
        part.locator(".found", has_text="Mean").wait_for()
