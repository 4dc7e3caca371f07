"""Bounds on epsilon from outputs of the browser client, in Node and in Chromium; printed with -s."""

import json

import pytest

from tests.support.edge.browser.audit import BROKEN, SUBJECTS, bound
from tests.support.edge.browser.node import run
from tests.support.edge.browser.pages import app
from tests.support.needed import but_for

pytestmark = pytest.mark.all


def in_node(given):
    return json.loads(run("audit.mjs", given=json.dumps(given), seconds=250))


@pytest.fixture(scope="module")
def page(browser):
    with app() as origin, browser.new_context() as context:
        context.set_default_timeout(250_000)
        found = context.new_page()
        found.goto(origin)
        yield found


def in_chromium(page, given):
    return page.evaluate(
        "async (given) => (await import('/audit.js')).count(given, await import('/parts.js'))", given
    )


def judge(subject, engine, found):
    """Print a row of the table."""
    print(f"\n| {subject.name} | {subject.epsilon:.4f} | {engine} | {found:.4f} | {subject.samples:,} |")  # noqa: T201
    assert found <= subject.epsilon
    assert found >= subject.shown * subject.epsilon


@pytest.mark.parametrize(
    "subject",
    but_for(SUBJECTS[:1], SUBJECTS, pytest.mark.nightly),
    ids=lambda subject: subject.name,
)
def test_bounds_in_node(subject):
    found = bound(subject, in_node)
    judge(subject, "Node", found)


@pytest.mark.nightly
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_bounds_in_chromium(page, subject):
    found = bound(subject, lambda given: in_chromium(page, given))
    judge(subject, "Chromium", found)


@pytest.mark.parametrize(
    "subject",
    but_for(BROKEN[:1], BROKEN, pytest.mark.nightly),
    ids=lambda subject: subject.name,
)
def test_wrong_threshold_is_found(subject):
    assert bound(subject, in_node) > subject.epsilon
