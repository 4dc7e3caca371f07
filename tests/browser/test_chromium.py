"""The module in a real Chromium: its storage, two tabs, a hidden page, no network, a full disk."""

import pytest

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol.uploads.upload import decode_upload
from tests.support.edge.browser.lists import OFTEN, allowances
from tests.support.edge.browser.pages import app, open_client, report, status
from tests.support.edge.served import KEY, served
from tests.support.processes import wait_until

#: Whether the stored key says that it can be extracted, and what trying it ends with.
STORED_SECRET = """(name) => new Promise((resolve) => {
  const request = indexedDB.open(name);
  request.onsuccess = () => {
    const get = request.result.transaction("state").objectStore("state").get(0);
    get.onsuccess = async () => {
      const [epoch, key] = get.result.secret;
      const tried = crypto.subtle.exportKey("raw", key);
      resolve([key.extractable, await tried.then(() => "exported", (error) => error.name), epoch]);
    };
  };
})"""
LATER = {"maxDelaySeconds": 3600, "sendOnLeave": False}
REASON = "client.report('many', 1).catch((error) => [error.name, error.reason])"


@pytest.fixture
def origin():
    """An app of each test's own: what it stores is seen by no other."""
    with app() as found:
        yield found


@pytest.fixture
def edge(origin):
    with served(allow_origins=(origin,), allowances=allowances()) as found:
        yield found


@pytest.fixture
def page(tab):
    """The file's tab, which has left every app at the end."""
    yield tab
    tab.goto("about:blank")


@pytest.fixture
def other_page(page):
    """Another tab of the same browser context."""
    opened = page.context.new_page()
    yield opened
    opened.close()


def begin(page, origin, edge, **options):
    open_client(page, origin, f"http://127.0.0.1:{edge.port}", KEY.public_key, **options)


def decoded(edge):
    return [decode_upload(each) for each in edge.edge.kafka.uploads()]


def test_page_reports_to_an_edge_of_another_origin(other_page, origin, edge):
    page, heads = other_page, []
    page.on("request", lambda request: heads.append((request.url, request.method, request.all_headers())))
    begin(page, origin, edge)
    for name, value in (("many", 3), ("once", "a"), ("tariff", "b"), ("words", "JFK"), ("remembered", "JFK")):
        assert report(page, name, value) == "queued"
    assert page.evaluate("client.flush()") == 0
    assert status(page) == {"optedOut": False, "queued": 0, "counts": {"sent": 5}}
    fingerprints = {each.collection.name: each.collection.fingerprint for each in allowances()}
    assert {upload.groups[0].fingerprint for upload in decoded(edge)} == set(fingerprints.values()) - {
        fingerprints["texts"]
    }
    to_edge = [each for each in heads if f":{edge.port}/" in each[0]]
    assert len(to_edge) >= 6
    for _, method, headers in to_edge:
        assert method in ("GET", "POST")  # no preflight
        assert "cookie" not in headers
        assert headers.get("referer", "") == ""


def test_secret_cannot_be_extracted_and_permanent_responses_survive(page, other_page, origin, edge):
    begin(page, origin, edge)
    for _ in range(3):
        report(page, "remembered", "JFK")
    assert page.evaluate("client.flush()") == 0
    state = page.evaluate(STORED_SECRET, f"deniable http://127.0.0.1:{edge.port}")
    assert state[:2] == [False, "InvalidAccessError"]
    page.goto("about:blank")
    again = other_page
    begin(again, origin, edge)
    report(again, "remembered", "JFK")
    assert again.evaluate("client.flush()") == 0
    assert len({upload.groups[0].cohort for upload in decoded(edge)}) == 1
    assert again.evaluate(STORED_SECRET, f"deniable http://127.0.0.1:{edge.port}") == state


def test_two_tabs_are_one_client(page, other_page, origin, edge):
    """Limits, budget and queue are shared: each upload is sent once by one of them."""
    tabs = [page, other_page]
    for tab in tabs:
        begin(tab, origin, edge, **LATER)
    outcomes = [report(tab, "once", "a") for _ in range(2) for tab in tabs]
    assert outcomes == ["queued", "over_window", "over_window", "over_window"]
    for tab in tabs:
        tab.evaluate("Promise.all(Array.from({ length: 20 }, (_, i) => client.report('many', i % 5)))")
    assert [status(tab)["queued"] for tab in tabs] == [41, 41]
    # At once, so that the lock matters.
    for tab in tabs:
        tab.evaluate("void (window.flushed = client.flush())")
    assert [tab.evaluate("window.flushed") for tab in tabs] == [0, 0]
    assert len(edge.edge.kafka.uploads()) == 41
    assert sum(status(tab)["counts"].get("sent", 0) for tab in tabs) == 41


def test_page_that_is_hidden_sends_what_waits(page, origin, edge):
    begin(page, origin, edge, maxDelaySeconds=3600, sendOnLeave=True)
    report(page, "many", 3)
    assert edge.edge.kafka.uploads() == []
    page.goto("about:blank")
    assert wait_until(lambda: len(edge.edge.kafka.uploads()) == 1)


def test_hidden_page_keeps_waiting_by_default(page, origin):
    """Waits are uniform up to an hour: 6 of 10 end within a minute with a probability below 1e-8."""
    many = Collection("many", KRR.from_epsilon(5, 2.0), window_seconds=3600, grace_seconds=7200)
    with served(allow_origins=(origin,), allowances=(Allowance(many, None, OFTEN),)) as edge:
        begin(page, origin, edge, maxDelaySeconds=3600)
        for _ in range(10):
            report(page, "many", 3)
        page.goto("about:blank")
        begin(page, origin, edge, maxDelaySeconds=3600)
        assert status(page)["queued"] > 4
        assert len(edge.edge.kafka.uploads()) < 6


def test_reports_wait_while_offline(page, origin, edge):
    begin(page, origin, edge)
    report(page, "many", 1)
    assert wait_until(lambda: len(edge.edge.kafka.uploads()) == 1)
    page.context.set_offline(True)
    assert [report(page, "many", 2) for _ in range(3)] == ["queued"] * 3
    assert page.evaluate("client.flush()") == 3
    page.context.set_offline(False)
    assert wait_until(lambda: len(edge.edge.kafka.uploads()) == 4)
    assert wait_until(lambda: status(page)["queued"] == 0)


def test_opting_out_empties_the_storage(page, origin, edge):
    begin(page, origin, edge, **LATER)
    report(page, "many", 1)
    page.evaluate("client.optOut()")
    assert report(page, "many", 1) == "opted_out"
    page.reload()
    begin(page, origin, edge)
    assert report(page, "many", 1) == "opted_out"
    assert edge.edge.kafka.uploads() == []
    page.evaluate("client.optIn()")
    assert report(page, "many", 1) == "queued"


def test_opting_out_in_one_tab_cuts_off_another(page, other_page, origin, edge):
    """Tab B holds uploads in memory and one under way, whose answer the edge holds back; then A opts out.

    Without the channel between tabs, B would send what it holds when it is left.
    """
    kafka, tab_a, tab_b = edge.edge.kafka, page, other_page
    begin(tab_a, origin, edge)
    begin(tab_b, origin, edge, maxDelaySeconds=1800, sendOnLeave=True)
    for number in range(5):
        assert report(tab_b, "many", number) == "queued"
    failed = []
    tab_b.on("requestfailed", lambda request: failed.append(request.url))
    edge.call(kafka.gate.clear)
    tab_b.evaluate("void client.flush()")
    assert wait_until(lambda: kafka.in_flight > 0)
    tab_a.evaluate("client.optOut()")
    tab_b.goto("about:blank")
    tab_b.close()
    edge.call(kafka.gate.set)
    assert wait_until(lambda: len(kafka.uploads()) > 0)
    tab_a.evaluate("client.optIn()")
    report(tab_a, "many", 1)
    assert tab_a.evaluate("client.flush()") == 0
    assert len(kafka.uploads()) == 2  # the one that was under way, and the last one
    assert failed == [f"http://127.0.0.1:{edge.port}/v1/reports"]


def test_origin_that_is_not_listed_is_told_apart_from_an_edge_that_is_away(page, origin):
    """A browser hides the answer in both cases."""
    found = []
    with served(allow_origins=("https://other.example",), allowances=allowances()) as edge:
        begin(page, origin, edge)
        found.append(page.evaluate(REASON))
        address = f"http://127.0.0.1:{edge.port}"
    open_client(page, origin, address, KEY.public_key)
    found.append(page.evaluate(REASON))
    assert found == [["DeniableError", "origin"], ["DeniableError", "unreachable"]]


@pytest.mark.parametrize("how", ["full", "refused"])
def test_nothing_is_reported_where_nothing_can_be_stored(page, origin, edge, how):
    """A full disk, or a private window that refuses IndexedDB: a budget could not be kept."""
    broken, error = {
        "full": ("IDBObjectStore.prototype.put", "QuotaExceededError"),
        "refused": ("IDBFactory.prototype.open", "SecurityError"),
    }[how]
    page.goto(origin)
    page.evaluate(f"void ({broken} = () => {{ throw new DOMException('no', '{error}'); }})")
    found = page.evaluate(
        """async (options) => {
          const { open } = await import('/deniable.min.js');
          const client = await open(options).catch((error) => ({ report: () => Promise.reject(error) }));
          return client.report('many', 1).catch((error) => [error.reason, error.message]);
        }""",
        {"edge": f"http://127.0.0.1:{edge.port}", "publicKey": KEY.public_key, "maxEpsilon": 10},
    )
    assert found[0] == "storage"
    assert "cannot store: " in found[1]
    assert edge.edge.kafka.uploads() == []
