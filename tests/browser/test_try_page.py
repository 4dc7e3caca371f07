"""The page /try: what it shows, what it sends, and that it loads nothing from elsewhere."""

import re
from contextlib import contextmanager

import pytest

from deniable.deploy.services.edge.command import try_files
from deniable.protocol.uploads.upload import decode_upload
from tests.support.aggregator.browser import PHONE, PICTURES, visit
from tests.support.edge.browser.lists import SITES, allowances, further_allowances
from tests.support.edge.served import served
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

OTHER_SITES = ("example.org", "example.net", "example.com", "localhost")
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def edge():
    with served(allowances=(*allowances(), *further_allowances()), try_files=try_files()) as found:
        yield found


@contextmanager
def visit_edge(tab, edge, **look):
    with visit(tab, f"http://127.0.0.1:{edge.port}/try", **{"viewport": DESK} | look) as shown:
        shown.page.locator("#status[data-state=ready]").wait_for()
        yield shown


def text(shown, selector):
    return shown.page.locator(selector).inner_text()


def shares(shown):
    """What an observer believes of each value, in percent; below a tenth, the bound."""
    found = shown.page.locator("#beliefs .belief").all_inner_texts()
    return [float(each.removeprefix("< ").removesuffix(" %")) for each in found]


def ratio(shown):
    """How much likelier the report is under one of the values than under another."""
    said = text(shown, "#learns")
    return 1.0 if "equally often" in said else float(re.search(r"would give it ([\d.]+) times", said)[1])


#: What is given for each collection, and what its true value is called; None for one bit of each value given.
GIVEN = {
    "tariff": ("choice", "b", "b"),
    "remembered": ("text", "example.org", None),
    "hashed": ("text", "JFK", r"bucket \d of function [\d,]+"),
    "kept": ("text", "JFK", r"bucket \d of function [\d,]+"),
    "search": ("text", "JFK", r"bucket \d of function [\d,]+"),
    "minutes": ("text", "50", "46.9 to 56.3"),
    "route": ("choice", "B6 / LGA", "B6 / LGA"),
    "routes": ("choice", ["B6 / LGA"], None),
    "plan": ("choice", "b", None),
    "plans": ("choice", ["a", "c"], None),
}


@pytest.mark.parametrize("part", [("tariff", "remembered"), [*GIVEN][2:]], ids=["first", "further"])
def test_every_mechanism(tab, edge, part):
    """The shown bytes decode to a report; beliefs sum to 1, and no ratio of two values exceeds e^epsilon."""
    collections = {each.collection.name: each.collection for each in edge.edge.settings.allowances}
    assert {*GIVEN} == {*collections} - {"many", "once", "texts", "words"}
    with visit_edge(tab, edge) as shown:
        for name in part:
            check_mechanism(shown, collections[name])


def check_mechanism(shown, collection):
    name = collection.name
    field, given, truth = GIVEN[name]
    shown.page.select_option("#collection", name)
    if field == "text":
        shown.page.fill("#text", given)
    else:
        shown.page.select_option("#choice", given)
    if name == "remembered":
        assert shown.page.locator("#report .bits i").count() == 128
        assert shown.page.locator("#truth .bits .one").count() in (1, 2)
    elif truth is None:
        assert shown.page.locator("#truth .bits .one").count() == len(given), name
    else:
        assert re.fullmatch(truth, text(shown, "#truth")), name
    permanent = text(shown, "#permanent") if name == "tariff" else None
    for _ in range(5):
        shown.page.click("#again")
        beliefs = shares(shown)
        assert len(beliefs) >= (3 if name == "tariff" else 4), name
        assert abs(sum(beliefs) - 100) < (0.2 if name == "tariff" else 0.1 * len(beliefs)), name
        assert 1 <= ratio(shown) <= 2.7183**collection.mechanism.epsilon + 0.05, name
        (group,) = decode_upload(bytes.fromhex(text(shown, "#bytes"))).groups
        expected = (collection.fingerprint, collection.width, 1)
        assert (group.fingerprint, group.width, group.reports) == expected, name
        if permanent is not None:
            assert text(shown, "#permanent") == permanent
            assert "abc"[group.rows[0]] == text(shown, "#report")
    shown.page.click("#hundred")
    assert text(shown, "#made").startswith("106 reports so far"), name


def test_report_is_sent_once_when_asked(tab, edge):
    """One whose window has passed is explained, and made afresh."""
    with visit_edge(tab, edge, refused=[400]) as shown:
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

        shown.page.evaluate("window.now = Date.now; Date.now = () => window.now() - 86_400_000; undefined")
        shown.page.click("#again")
        shown.page.evaluate("Date.now = window.now; undefined")
        shown.page.click("#send")
        refused = shown.page.locator("#answer[data-state=refused]")
        refused.filter(has_text="The window of this report has passed").wait_for()
        assert "{" not in text(shown, "#answer")
        assert shown.page.locator("#send").is_disabled()
        shown.page.click("#fresh")
        assert text(shown, "#answer") == ""
        shown.page.click("#send")
        shown.page.locator("#answer[data-state=taken]").wait_for()
        assert len(edge.edge.kafka.uploads()) == before + 2


def test_examples_are_those_of_the_collection(tab, edge):
    with visit_edge(tab, edge) as shown:
        for name, examples in (("remembered", SITES), ("words", OTHER_SITES)):
            shown.page.select_option("#collection", name)
            value, others = (shown.page.input_value(each) for each in ("#text", "#others"))
            assert (value, *others.split(", ")) == examples
        shown.page.fill("#others", "")
        assert text(shown, "#learns") == "Name other values to compare yours with."
        assert "of 1 hour, began" in text(shown, "#legend")


@pytest.mark.all
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_and_picture_is_saved(tab, edge, scheme):
    with visit_edge(tab, edge, color_scheme=scheme) as shown:
        shown.page.select_option("#collection", "remembered")
        shown.page.click("#hundred")
        labels = shown.page.locator("select:visible, input:visible").evaluate_all(
            "all => all.map((each) => each.labels.length)"
        )
        assert labels
        assert all(labels)
        for viewport in (DESK, PHONE):
            shown.page.set_viewport_size(viewport)
            assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            shown.keep(f"try-{viewport['width']}-{scheme}")


@pytest.mark.pictures
def test_picture_of_the_documentation(browser, edge):
    with (
        browser.new_context(device_scale_factor=2) as context,
        visit_edge(context.new_page(), edge) as shown,
    ):
        shown.page.select_option("#collection", "remembered")
        shown.page.click("#hundred")
        shown.page.click("#send")
        shown.page.locator("#answer[data-state=taken]").wait_for()
        shown.page.evaluate("document.activeElement.blur()")
        shown.page.screenshot(path=REPOSITORY / "docs" / "try.png", full_page=True)
        assert PICTURES.name == "pictures"
