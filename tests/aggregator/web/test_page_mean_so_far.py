"""The mean over all windows so far in a real Chromium: that of the roll-up's sequence, at every look."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deniable.aggregator.history import rollup
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.share_sequences import ShareSequence
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.web import past_windows
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from tests.support.aggregator.browser import on_desk_and_phone, until, visit
from tests.support.aggregator.builders import COLLECTIONS, DEPLOYMENT, T0
from tests.support.aggregator.page.axe import violations
from tests.support.aggregator.scene import DELAY, delay_estimates
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

NUMBERS = COLLECTIONS | {DELAY.fingerprint: DELAY}


def joined(others: int = 0) -> Joined:
    """Thirty windows of even counts, and windows of other parameters."""
    counts = np.full(DELAY.width, 100, np.int64)
    reports = int(counts.sum())
    starts = {T0 - 60 * each: reports // 30 for each in range(30, 0, -1)}
    passed_over = {0xAB: others} if others else {}
    return Joined(WindowCounts(counts[None], np.array([reports]), 30, 0), starts, [], passed_over, 0)


def sequence() -> ShareSequence:
    """What `/api/rollup` answers, and `deniable rollup --json` prints."""
    found = joined()
    coverage = rollup.coverage_of(DELAY, Period(T0 - 86_400, T0), found)
    record = rollup.record_of(DELAY, coverage, found, rollup.roll_up(DELAY, found))
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
    served = Served(NUMBERS)
    served.server.routes = RollUps(PastWindows(DEPLOYMENT._replace(collections=NUMBERS))).routes()
    with served.serving() as serving:
        serving.take(*delay_estimates())
        yield serving


def box(element: "Locator") -> Any:
    return element.bounding_box()


def below(upper: "Locator", lower: "Locator") -> bool:
    return bool(box(upper)["y"] + box(upper)["height"] <= box(lower)["y"])


@pytest.mark.all
@on_desk_and_phone
def test_mean_is_that_of_the_sequence(
    tab: "Page", worker: Served, answers: list[Joined], viewport: Any
) -> None:
    """In digits by which its ends differ; shares of steps have no such part.

    A worker that cannot answer says why, until it can; a link shows the same mean of the same period.
    """
    expected = sequence()
    few = np.zeros_like(joined().counts.counts)
    few[0, 0] = 2
    answers.insert(0, Joined(WindowCounts(few, np.array([2]), 1, 0), {T0 - 60: 2}, [], {}, 0))
    with visit(tab, f"{worker.address}#collections=delay&delay.so_far=week", viewport=viewport) as shown:
        part = shown.section("delay").locator(".mean-so-far")
        part.wait_for()
        assert shown.section("delay").locator(".so-far").is_hidden()
        assert part.locator("select").input_value() == "week"
        button = part.get_by_role("button", name="Show", exact=True)
        button.click()
        part.locator(".said", has_text="No mean: there are too few reports since then.").wait_for()
        assert part.locator(".found").inner_text() == ""
        part.locator("select").select_option("day")
        button.click()
        part.locator(".found", has_text="Mean").wait_for()
        figures = (f"{each[0]:.1f}" for each in (expected.share, expected.low, expected.high))
        mean = part.locator(".found").inner_text()
        assert mean == "Mean {} ({} – {})".format(*figures)
        said = part.locator(".said").inner_text()
        assert said.startswith(f"{expected.reports:,} reports in 30 windows since ")
        assert "the interval holds the mean at every look." in said
        assert said.endswith(
            "3 windows of other parameters left out; deniable rollup --former joins their means with "
            "this one."
        )
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        section = shown.section("delay")
        assert below(section.locator(".estimate"), part)  # whose summary would look like the table's heading
        last, chart = (section.locator(f".density {each}").last for each in (".numbers > *", ".framed"))
        assert box(last)["x"] + box(last)["width"] <= box(chart)["x"] + box(chart)["width"]
        assert violations(shown.page) == []
        shown.keep(f"mean-so-far-{viewport['width']}")
        until(shown.page, "/delay.so_far=day,[0-9]+[/][0-9]+/.test(location.hash)")
        link = shown.page.url
        requested = [each for each in shown.requests if each.startswith("api/rollup")][-1:]
    with visit(tab, link, viewport=viewport) as again:
        found = again.section("delay").locator(".mean-so-far .found", has_text="Mean")
        found.wait_for()
        assert found.inner_text() == mean
        assert [each for each in again.requests if each.startswith("api/rollup")] == requested
