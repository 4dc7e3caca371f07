"""Fixtures of the page's tests: one browser, a tab for the tests of a file, and a worker's page."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from deniable.aggregator.deployment import ClientLimits
from tests.support.aggregator.browser import ENGLISH, SEEN_MILLISECONDS, chromium
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class _SharedBrowser:
    """A Chromium for all tests of a process that follow one another."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._launched: Browser | None = None

    def launched(self) -> "Browser":
        if self._launched is None:
            self._launched = self._stack.enter_context(chromium())
        return self._launched

    def close(self) -> None:
        self._launched = None
        self._stack.close()


_SHARED = pytest.StashKey[_SharedBrowser]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SHARED] = _SharedBrowser()
    config.add_cleanup(config.stash[_SHARED].close)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the browser before a file that begins without it: while it runs, asyncio.run refuses to run."""
    if nextitem is not None and (nextitem.path == item.path or "browser" in _fixtures_of(nextitem)):
        return
    item.config.stash[_SHARED].close()


def _fixtures_of(item: pytest.Item) -> list[str]:
    names: list[str] = getattr(item, "fixturenames", [])
    return names


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> "Browser":
    """A real Chromium."""
    return request.config.stash[_SHARED].launched()


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> Iterator["Page"]:
    """A tab of that browser for the tests of one file, which visit pages in turn."""
    with browser.new_context(**ENGLISH) as context:
        context.set_default_timeout(SEEN_MILLISECONDS)
        yield context.new_page()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A worker without estimates, with a clock at which the builders' estimates are fresh."""
    set_clock(monkeypatch)
    limits = {
        "fruit": ClientLimits(1, None, lambda: None),
        "place": ClientLimits(2, (8.0, 1e-6, 86400), lambda: 3, values="unchanged"),
    }
    with Served(limits=limits).serving() as worker:
        yield worker
