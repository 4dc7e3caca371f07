"""A real Chromium that opens a worker's page and records console errors and foreign requests."""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pytest

from tests.support.needed import missing
from tests.support.paths import REPOSITORY

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

DESK: "ViewportSize" = {"width": 1280, "height": 800}
PHONE: "ViewportSize" = {"width": 360, "height": 800}
ENGLISH: Any = {"locale": "en-GB", "timezone_id": "UTC"}
on_desk_and_phone = pytest.mark.parametrize(
    "viewport", [pytest.param(DESK, id="desk"), pytest.param(PHONE, id="phone", marks=pytest.mark.nightly)]
)
PICTURES = REPOSITORY / "build" / "pictures"
SEEN_MILLISECONDS = 60_000
WORKER_IS_AWAY = (
    "net::ERR_CONNECTION_REFUSED",
    "net::ERR_INCOMPLETE_CHUNKED_ENCODING",
    "net::ERR_CONNECTION_RESET",
)


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Return the installed browser; none is downloaded."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        missing("Chromium is not installed")
    if find_spec("playwright") is None:
        missing("playwright is not installed")
    from playwright.sync_api import sync_playwright  # here, so that tests without a browser do not need it

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


#: The heading and the cells of each row, at once: to ask the browser for each cell takes half a minute.
CELLS = """rows => rows.map((row) => [
  row.querySelector("th").innerText.trim(),
  Array.from(row.querySelectorAll("td"), (cell) => cell.innerText.replaceAll("\\n", "").trim()),
])"""


class Watched:
    """A page, with its console errors and its requests to other hosts."""

    def __init__(self, page: "Page", origin: str) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self._listeners = {
            "console": lambda message: self.wrong.append(f"console: {message.text}"),
            "pageerror": lambda error: self.wrong.append(f"error: {error}"),
            "dialog": lambda dialog: self.wrong.append(f"dialog: {dialog.message}"),
            "request": lambda request: self._note(request.url, origin),
        }
        page.set_default_timeout(SEEN_MILLISECONDS)
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def leave(self) -> None:
        """Go to an empty page, and watch no more: another visit may use the same tab."""
        self.page.goto("about:blank")
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def _note(self, url: str, origin: str) -> None:
        self.requests.append(url.removeprefix(origin))
        if not url.startswith((origin, "data:")):
            self.wrong.append(f"request: {url}")

    def refusal(self, status: int) -> None:
        """Wait until the browser has said that an answer has this status."""
        deadline = time.monotonic() + SEEN_MILLISECONDS / 1000
        while not any(f"a status of {status} " in line for line in self.wrong):
            assert time.monotonic() < deadline, f"no answer has the status {status}"
            self.page.wait_for_timeout(20)

    def status(self, text: str) -> None:
        """Wait until the head of the page shows this text."""
        self.page.locator("#status", has_text=text).wait_for()

    def streams(self) -> int:
        """Return how often the page has asked for events: again if other collections are shown."""
        return sum(each.startswith("api/events") for each in self.requests)

    def rows(self, name: str = "fruit") -> dict[str, list[str]]:
        """Return the cells of every row by value: remark, share, interval."""
        rows = self.section(name).locator(".estimate tr[data-value]")
        return dict(rows.evaluate_all(CELLS))

    def section(self, name: str = "fruit") -> Any:
        """Return the section of one collection."""
        return self.page.get_by_role("region", name=name, exact=True)

    def keep(self, picture: str) -> None:
        """Save a picture of the whole page in a folder that is not committed."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=PICTURES / f"{picture}.png", full_page=True)


def until(page: "Page", expression: str) -> None:
    """Wait until an expression is true; the page's policy forbids `wait_for_function`."""
    deadline = time.monotonic() + SEEN_MILLISECONDS / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        time.sleep(0.02)


@contextmanager
def visit(
    tab: "Page",
    address: str,
    *,
    worker_goes: bool = False,
    refused: Sequence[int] = (),
    viewport: "ViewportSize" = DESK,
    color_scheme: Literal["light", "dark"] = "light",
    reduced_motion: Literal["reduce", "no-preference"] = "no-preference",
) -> Iterator[Watched]:
    """Open a worker's page in a tab; at the end leave it, and fail the test if it had errors.

    `worker_goes`: the worker stops meanwhile, so errors about a missing answer are allowed.
    `refused`: statuses that answers have, of each of which the browser has a line in its console.
    """
    tab.set_viewport_size(viewport)
    tab.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
    shown = Watched(tab, "{0.scheme}://{0.netloc}/".format(urlsplit(address)))
    tab.goto(address)
    try:
        yield shown
        for status in refused:
            shown.refusal(status)
    finally:
        shown.leave()
    allowed = [f"a status of {status} " for status in refused] + [*WORKER_IS_AWAY] * worker_goes
    wrong = [each for each in shown.wrong if not any(line in each for line in allowed)]
    assert wrong == [], wrong


@contextmanager
def watched(
    browser: "Browser", address: str, *, worker_goes: bool = False, **context: Any
) -> Iterator[Watched]:
    """Visit a page in a context of its own; `context`: what that context has beside English and UTC."""
    with (
        browser.new_context(**ENGLISH, **context) as opened,
        visit(opened.new_page(), address, worker_goes=worker_goes) as shown,
    ):
        yield shown
