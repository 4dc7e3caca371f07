"""Fixtures of the page's tests: one browser, and a worker's page."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from aggregator.deployment import ClientLimits
from tests.support.aggregator.browser import chromium
from tests.support.aggregator.served import Served, set_clock

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A real Chromium, for one module: while it runs, asyncio.run refuses to run."""
    with chromium() as launched:
        yield launched


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
