"""The client's database in a real Chromium: closed by the browser, deleted by the app, full, or hanging."""

import pytest

from deniable.protocol.uploads.upload import decode_upload
from tests.support.edge.browser.lists import allowances
from tests.support.edge.browser.pages import app, open_client, report, status
from tests.support.edge.served import KEY, served
from tests.support.processes import wait_until

LATER = {"maxDelaySeconds": 3600}
#: What a call of the client ends with: its result, or the reason of its error.
END = "(call) => eval(call).then((value) => value ?? 'done', ({ reason }) => reason)"
DELETE = """(name) => new Promise((resolve) => {
  const request = indexedDB.deleteDatabase(name);
  request.onsuccess = () => resolve("deleted");
  request.onblocked = () => resolve("blocked");
})"""
#: A flush ends after 1 s, not 30; what waits 5 s for the database does so `haste` times as fast. `waits` has
#: the seconds of both.
FAST_TIMERS = """() => {
  const { setTimeout } = window;
  Object.assign(window, { waits: [], haste: 1 });
  window.setTimeout = (work, milliseconds, ...rest) => {
    if (![5000, 30000].includes(milliseconds)) return setTimeout(work, milliseconds, ...rest);
    waits.push(milliseconds / 1000);
    return setTimeout(work, milliseconds / (milliseconds > 5000 ? 30 : haste), ...rest);
  };
}"""
#: Ways in which another tab keeps the database from answering; `release()` ends each.
HOLDS = {
    "deletion": """(name) => new Promise((resolve) => {
      const request = indexedDB.open(name, 1);
      request.onsuccess = () => {
        const asked = indexedDB.deleteDatabase(name);
        asked.onblocked = () => resolve();
        window.release = () => new Promise((end) => {
          asked.onsuccess = () => end();
          request.result.close();
        });
      };
    })""",
    "transaction": """(name) => new Promise((resolve) => {
      const request = indexedDB.open(name, 1);
      request.onsuccess = () => {
        let isOver = false;
        const transaction = request.result.transaction("state", "readwrite");
        const table = transaction.objectStore("state");
        const again = () => {
          resolve();
          if (!isOver) table.get(0).onsuccess = again;
        };
        again();
        window.release = () => new Promise((end) => {
          transaction.oncomplete = () => end(request.result.close());
          isOver = true;
        });
      };
    })""",
}
#: How a change fails once it was made: undone; or stored, while the page is told otherwise, or nothing.
LATE_FAILURES = {
    "undone": "this.transaction.abort();",
    "stored": """this.transaction.addEventListener("complete", (event) => {
      event.stopImmediatePropagation();
      event.target.dispatchEvent(new Event("abort"));
    });""",
    "unanswered": """this.transaction.addEventListener("complete", (event) => {
      event.stopImmediatePropagation();
    });""",
}
FAIL_LATE = """([how, before]) => {
  const { prototype } = IDBObjectStore, { put } = prototype;
  prototype.put = function (...given) {
    if (before--) return put.apply(this, given);
    prototype.put = put;
    const request = put.apply(this, given);
    eval(`(function () { ${how} })`).call(this);
    return request;
  };
}"""


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
    """A page of its own, so that what a test changes in it ends with it."""
    opened = tab.context.new_page()
    yield opened
    opened.close()


@pytest.fixture
def other_page(tab, origin):
    """Another page of the app, without a client."""
    tab.goto(origin)
    yield tab
    tab.goto("about:blank")


def begin(page, origin, edge, before=None, **options):
    """Open a client in the page, once `before` has run there; return the name of its database."""
    address = f"http://127.0.0.1:{edge.port}"
    if before is not None:
        page.add_init_script(f"({before})()")
    open_client(page, origin, address, KEY.public_key, **(LATER | options))
    return f"deniable {address}"


def end(page, call):
    """Return what a call ends with, or the reason of its error."""
    return page.evaluate(END, call)


def uploads(edge):
    return [decode_upload(each) for each in edge.edge.kafka.uploads()]


def test_database_that_the_browser_closes_is_opened_anew(page, origin, edge):
    """Site data are cleared before each call: the connection is dead, and every call works at once."""
    begin(page, origin, edge)
    report(page, "many", 1)
    devtools = page.context.new_cdp_session(page)
    calls = {
        "client.report('many', 1)": "queued",
        "client.flush()": 0,
        "client.optIn()": "done",
        "client.optOut()": "done",
        "client.status().then(({ optedOut }) => optedOut)": False,
    }
    for call, expected in calls.items():
        devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "indexeddb"})
        assert end(page, call) == expected, call
    assert uploads(edge) == []


@pytest.mark.parametrize("where", ["page", "other page"])
def test_app_that_deletes_its_databases_is_not_blocked(page, other_page, origin, edge, where):
    name = begin(page, origin, edge)
    report(page, "once", "a")
    deleting = page if where == "page" else other_page
    assert deleting.evaluate(DELETE, name) == "deleted"
    assert [report(page, "once", "a") for _ in range(2)] == ["queued", "over_window"]  # a new device
    assert end(page, "client.flush()") == 0
    assert len(uploads(edge)) == 1


def test_full_disk_ends_no_client(page, origin, edge):
    """By the browser's own quota: calls say so, and work once there is room again."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 1})
    begin(page, origin, edge)
    for call in ("client.report('once', 'a')", "client.flush()", "client.optOut()"):
        assert end(page, call) == "storage", call
    devtools.send("Storage.overrideQuotaForOrigin", {"origin": origin})
    assert report(page, "once", "a") == "opted_out"
    assert end(page, "client.optIn()") == "done"
    assert report(page, "once", "a") == "queued"


@pytest.mark.parametrize("how", LATE_FAILURES)
def test_report_is_randomized_once_whatever_becomes_of_its_commit(page, origin, edge, how):
    """Tried again, a report that was stored would leave twice, with another id and fresh noise."""
    begin(page, origin, edge)
    report(page, "many", 2)
    page.evaluate(FAIL_LATE, [LATE_FAILURES[how], 1])  # once it was asked for the secret
    assert end(page, "client.report('once', 'a')") == "storage"
    # Stored and charged, or neither.
    left, outcome = (1, "queued") if how == "undone" else (2, "over_window")
    assert status(page)["queued"] == left
    assert report(page, "once", "a") == outcome
    assert end(page, "client.flush()") == 0
    assert len({each.upload_id for each in uploads(edge)}) == 2


@pytest.mark.parametrize("how", LATE_FAILURES)
def test_opt_out_is_tried_again(page, origin, edge, how):
    begin(page, origin, edge)
    report(page, "many", 1)
    page.evaluate(FAIL_LATE, [LATE_FAILURES[how], 0])
    assert end(page, "client.optOut()") == "done"
    assert status(page) == {"optedOut": True, "queued": 0, "counts": {}}


def test_opt_out_that_cannot_be_stored_throws_and_holds_in_the_page(page, origin, edge):
    """Nothing leaves from this page; the next one does not know of it, as documented."""
    begin(page, origin, edge, sendOnLeave=True)
    report(page, "many", 1)
    page.evaluate(
        "() => { window.put = IDBObjectStore.prototype.put;"
        " IDBObjectStore.prototype.put = () => { throw new DOMException('no', 'QuotaExceededError'); }; }"
    )
    assert end(page, "client.optOut()") == "storage"
    page.evaluate("() => { IDBObjectStore.prototype.put = put; }")
    assert status(page) == {"optedOut": True, "queued": 1, "counts": {}}
    assert report(page, "many", 1) == "opted_out"
    assert end(page, "client.flush()") == 1
    begin(page, origin, edge)
    assert uploads(edge) == []
    assert status(page)["optedOut"] is False
    assert end(page, "client.flush()") == 0
    assert len(uploads(edge)) == 1


@pytest.mark.parametrize("how", HOLDS)
def test_every_promise_settles_while_the_database_hangs(page, other_page, origin, edge, how):
    """Another tab waits for a deletion that it blocks itself, or holds a transaction open; then it ends."""
    name = begin(page, origin, edge, FAST_TIMERS)
    report(page, "many", 1)
    assert end(page, "client.flush()") == 0  # nothing waits, so no timer calls anything meanwhile
    other_page.evaluate(HOLDS[how], name)
    for call, seconds in {
        "client.report('many', 1)": [5, 5],
        "client.status()": [5, 5],
        "client.flush()": [30, 5, 5],
        "client.optIn()": [5, 5],
        "client.optOut()": [5, 5, 5, 5],
    }.items():
        page.evaluate("() => { waits.length = 0; haste = 50; }")
        assert end(page, call) == "storage", call
        assert page.evaluate("waits") == seconds, call
    other_page.evaluate("release()")
    page.evaluate("haste = 1")
    assert status(page) == {"optedOut": True, "queued": 0, "counts": {"sent": 1}}
    assert end(page, "client.optIn()") == "done"
    assert report(page, "many", 1) == "queued"


@pytest.mark.parametrize("how", HOLDS)
def test_what_was_given_up_is_not_done_later(page, other_page, origin, edge, how):
    """A report that threw would be charged and stored by a transaction, or an opening, that comes to life."""
    name = begin(page, origin, edge, FAST_TIMERS)
    report(page, "many", 1)
    assert end(page, "client.flush()") == 0
    other_page.evaluate(HOLDS[how], name)
    page.evaluate("haste = 50")
    assert end(page, "client.report('many', 1)") == "storage"
    other_page.evaluate("release()")
    page.evaluate("haste = 1")
    assert status(page)["queued"] == 0
    assert report(page, "many", 1) == "queued"
    assert status(page)["queued"] == 1


def test_flush_ends_while_another_tab_sends_for_ever(page, other_page, origin, edge):
    name = begin(page, origin, edge, FAST_TIMERS)
    report(page, "many", 1)
    other_page.evaluate(
        "(name) => new Promise((begun) => navigator.locks.request(name, () => new Promise(begun)))", name
    )
    assert end(page, "client.flush()") == 1
    assert 30 in page.evaluate("waits")


def test_page_from_the_back_forward_cache_forgets_what_it_held(page, other_page, origin, edge):
    """It heard of no opt-out meanwhile: without `pageshow` it would send what it holds when it is left."""
    deaf = "() => { BroadcastChannel.prototype.addEventListener = () => {}; }"
    begin(page, origin, edge, deaf, sendOnLeave=True)
    report(page, "many", 1)
    begin(other_page, origin, edge)
    other_page.evaluate("client.optOut()")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert status(page)["optedOut"] is True
    page.goto("about:blank")
    other_page.evaluate("client.optIn()")
    report(other_page, "many", 1)
    assert end(other_page, "client.flush()") == 0
    assert wait_until(lambda: len(uploads(edge)) > 0)
    assert len(uploads(edge)) == 1
