"""The page /try: what it shows, what it sends, and that it loads nothing from elsewhere."""

import re

import pytest

from deploy.services.edge.try_files import try_files
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers.budget.allowance import Allowance
from producers.transport.uploads.upload import decode_upload
from tests.support.aggregator.browser import PICTURES, Watched
from tests.support.edge.browser.lists import SITES, allowances, further_allowances
from tests.support.edge.served import served
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

OTHER_SITES = ("example.org", "example.net", "example.com", "localhost")
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 800}


@pytest.fixture(scope="module")
def edge():
    with served(allowances=(*allowances(), *further_allowances()), try_files=try_files()) as found:
        yield found


def opened(context, edge):
    address = f"http://127.0.0.1:{edge.port}"
    shown = Watched(context.new_page(), address)
    shown.page.goto(f"{address}/try")
    shown.page.locator("#status[data-state=ready]").wait_for()
    return shown


@pytest.fixture
def shown(browser, edge):
    with browser.new_context(viewport=DESK) as context:
        found = opened(context, edge)
        yield found
        assert found.wrong == []


def text(shown, selector):
    return shown.page.locator(selector).inner_text()


def test_listed_value(shown):
    """Beliefs sum to 1, the report is one of the values, and the shown bytes decode to it."""
    shown.page.select_option("#collection", "tariff")
    shown.page.select_option("#choice", "b")
    assert text(shown, "#truth") == "b"
    permanent = text(shown, "#permanent")
    for _ in range(5):
        shown.page.click("#again")
        assert text(shown, "#permanent") == permanent
        beliefs = [float(each.removeprefix("< ").removesuffix(" %")) for each in shares(shown)]
        assert abs(sum(beliefs) - 100) < 0.2
        upload = decode_upload(bytes.fromhex(text(shown, "#bytes")))
        (group,) = upload.groups
        assert (group.mechanism, group.width, group.reports) == (3, 3, 1)
        assert "abc"[group.rows[0]] == text(shown, "#report")


def shares(shown):
    return shown.page.locator("#beliefs .belief").all_inner_texts()


def test_text_shows_bits_and_ratios_within_epsilon(shown):
    shown.page.select_option("#collection", "remembered")
    shown.page.fill("#text", "example.org")
    assert shown.page.locator("#report .bits i").count() == 128
    assert shown.page.locator("#truth .bits .one").count() in (1, 2)
    for _ in range(5):
        shown.page.click("#again")
        said = text(shown, "#learns")
        ratio = 1.0 if "equally often" in said else float(re.search(r"would give it ([\d.]+) times", said)[1])
        epsilon = next(
            each.collection.mechanism.epsilon for each in allowances() if each.collection.name == "remembered"
        )
        assert 1 <= ratio <= 2.7183**epsilon + 0.05
    shown.page.click("#hundred")
    assert text(shown, "#made").startswith("106 reports so far")


#: What is given for each further collection, and what its true value is called.
GIVEN = {
    "hashed": ("text", "JFK", r"bucket \d of function [\d,]+"),
    "kept": ("text", "JFK", r"bucket \d of function [\d,]+"),
    "search": ("text", "JFK", r"bucket \d of function [\d,]+"),
    "minutes": ("text", "50", "46.9 to 56.3"),
    "route": ("choice", "B6 / LGA", "B6 / LGA"),
    "routes": ("choice", ["B6 / LGA"], None),
    "plan": ("choice", "b", None),
    "plans": ("choice", ["a", "c"], None),
}


@pytest.mark.parametrize("allowance", further_allowances(), ids=lambda each: each.collection.name)
def test_further_mechanisms(shown, allowance):
    """The shown bytes decode to a report; no ratio of two values exceeds e^epsilon."""
    collection = allowance.collection
    field, given, truth = GIVEN[collection.name]
    shown.page.select_option("#collection", collection.name)
    if field == "text":
        shown.page.fill("#text", given)
    else:
        shown.page.select_option("#choice", given)
    if truth is None:
        assert shown.page.locator("#truth .bits .one").count() == len(given)
    else:
        assert re.fullmatch(truth, text(shown, "#truth"))
    for _ in range(5):
        shown.page.click("#again")
        beliefs = [float(each.removeprefix("< ").removesuffix(" %")) for each in shares(shown)]
        assert len(beliefs) >= 4
        assert abs(sum(beliefs) - 100) < 0.1 * len(beliefs)
        said = text(shown, "#learns")
        ratio = 1.0 if "equally often" in said else float(re.search(r"would give it ([\d.]+) times", said)[1])
        assert ratio <= 2.7183**collection.mechanism.epsilon + 0.05
        (group,) = decode_upload(bytes.fromhex(text(shown, "#bytes"))).groups
        assert (group.fingerprint, group.width, group.reports) == (
            collection.fingerprint,
            collection.width,
            1,
        )
    shown.page.click("#hundred")
    assert text(shown, "#made").startswith("106 reports so far")


def test_report_is_sent_once_when_asked(shown, edge):
    before = len(edge.edge.kafka.uploads())
    shown.page.select_option("#collection", "many")
    shown.page.fill("#text", "3")
    shown.page.click("#hundred")
    assert len(edge.edge.kafka.uploads()) == before
    sent = text(shown, "#bytes")
    shown.page.click("#send")
    shown.page.locator("#answer[data-state=taken]", has_text="204").wait_for()
    assert shown.page.locator("#send").is_disabled()
    assert wait_until(lambda: len(edge.edge.kafka.uploads()) == before + 1)
    assert edge.edge.kafka.uploads()[-1] == bytes.fromhex(sent)


def test_examples_are_those_of_the_collection(shown):
    for name, examples in (("remembered", SITES), ("words", OTHER_SITES)):
        shown.page.select_option("#collection", name)
        value, others = (shown.page.input_value(each) for each in ("#text", "#others"))
        assert (value, *others.split(", ")) == examples
    shown.page.fill("#others", "")
    assert text(shown, "#learns") == "Name other values to compare yours with."
    assert "of 1 hour, began" in text(shown, "#legend")


def test_report_of_a_passed_window_is_explained_and_made_afresh(browser):
    """A window of a second: it has passed before the visitor presses Send."""
    quick = Collection("quick", KRR.from_epsilon(3, 1.0), ("a", "b", "c"), window_seconds=1, grace_seconds=2)
    allowed = (Allowance(quick, None),)
    with (
        served(allowances=allowed, delivery_seconds=1, try_files=try_files()) as edge,
        browser.new_context(viewport=DESK) as context,
    ):
        shown = opened(context, edge)
        assert "of 1 second, began" in text(shown, "#legend")
        shown.page.wait_for_timeout(3_000)
        shown.page.click("#send")
        shown.page.locator(
            "#answer[data-state=refused]", has_text="The window of this report has passed"
        ).wait_for()
        assert "{" not in text(shown, "#answer")
        assert shown.page.locator("#send").is_disabled()
        shown.page.click("#fresh")
        assert text(shown, "#answer") == ""
        shown.page.click("#send")
        shown.page.locator("#answer[data-state=taken]").wait_for()
        assert len(edge.edge.kafka.uploads()) == 1
        assert shown.wrong == [
            "console: Failed to load resource: the server responded with a status of 400 (Bad Request)"
        ]


@pytest.mark.all
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_and_picture_is_saved(browser, edge, viewport, scheme):
    with browser.new_context(viewport=viewport, color_scheme=scheme) as context:
        shown = opened(context, edge)
        shown.page.select_option("#collection", "remembered")
        shown.page.click("#hundred")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        labels = shown.page.locator("select:visible, input:visible").evaluate_all(
            "all => all.map((each) => each.labels.length)"
        )
        assert labels
        assert all(labels)
        shown.keep(f"try-{viewport['width']}-{scheme}")
        assert shown.wrong == []


@pytest.mark.pictures
def test_picture_of_the_documentation(browser, edge):
    with browser.new_context(viewport=DESK, color_scheme="light", device_scale_factor=2) as context:
        shown = opened(context, edge)
        shown.page.select_option("#collection", "remembered")
        shown.page.click("#hundred")
        shown.page.click("#send")
        shown.page.locator("#answer[data-state=taken]").wait_for()
        shown.page.evaluate("document.activeElement.blur()")
        shown.page.screenshot(path=REPOSITORY / "docs" / "try.png", full_page=True)
        assert PICTURES.name == "pictures"
