"""What leaves together leaves in random order: rank statistics of each path, in Node and in Chromium.

FALSE_ALARM is that of each path; that of all in a run is below 1e-6. The order of 60 events has a chance
below 1e-80, and clients that send in that order, or by `due`, are found.
"""

import json

import pytest

from deniable.protocol.uploads.upload import decode_upload
from tests.support.edge.browser.lists import allowances, lists_for_scripts
from tests.support.edge.browser.node import BROWSER, broken_sources, run
from tests.support.edge.browser.pages import app, open_client, status
from tests.support.edge.browser.ranks import order_tail
from tests.support.edge.served import KEY, served
from tests.support.processes import wait_until

FALSE_ALARM = 5e-8
REPORTS = 60
WAITING, LEAVING = 150, 99
CUT, FULL = "a hidden page with more than may leave", "a queue that was full"


def orders(module):
    return json.loads(run("order.mjs", str(module), lists_for_scripts()))


@pytest.fixture(scope="module")
def found():
    return orders(BROWSER / "deniable.min.js")


def selection_tail(order):
    """How likely it is that so many, or so few, of those that left are of the first half of the events."""
    from scipy.stats import hypergeom  # here, since to import it takes half a second

    early = hypergeom(WAITING, WAITING // 2, LEAVING)
    number = sum(event < WAITING // 2 for event in order)
    return 2 * min(early.cdf(number), early.sf(number - 1))


@pytest.mark.slow
def test_order_on_each_path_is_random(found):
    assert len(found) == 8
    for path, order in found.items():
        assert len(order) == (LEAVING if path == CUT else REPORTS), path
        assert order_tail(order) > FALSE_ALARM, path
    assert selection_tail(found[CUT]) > FALSE_ALARM
    # Not the newest ones are left, but with probability (60/161)^60.
    assert min(found[FULL]) < 100


BROKEN = {
    "all in the order of events": (
        "randomization/words.js",
        "list.splice(uniform() * (list.length + 1), 0, each)",
        "list.push(each)",
        {"timer", "flush", "a hidden page", CUT, "retry", "a reload", "two tabs", FULL},
    ),
    "what a page holds in the order of events": (
        "delivery.js",
        "insert(last, upload)",
        "last.push(upload)",
        {"a hidden page", CUT},
    ),
    "in the order of their delays": (
        "delivery.js",
        "[...(state.queue ?? [])];",
        "[...(state.queue ?? [])].sort((one, other) => one.due - other.due);",
        {"timer", "flush", "retry", "a reload", "two tabs", FULL},
    ),
}


@pytest.mark.all
@pytest.mark.parametrize("name", BROKEN)
def test_broken_order_is_found(tmp_path, name):
    file, right, wrong, paths = BROKEN[name]
    copied = broken_sources(tmp_path, file, right, wrong)
    broken = orders(copied / "deniable.js")
    assert {path for path, order in broken.items() if order_tail(order) <= FALSE_ALARM} == paths
    if CUT in paths:
        assert selection_tail(broken[CUT]) <= FALSE_ALARM


STORED_IDS = """(name) => new Promise((resolve) => {
  const request = indexedDB.open(name);
  request.onsuccess = () => {
    const get = request.result.transaction("state").objectStore("state").get(0);
    get.onsuccess = () => resolve((get.result.queue ?? []).map(({ id }) => id));
  };
})"""
#: Reports that wait, and the ids of their uploads in the order of events.
WAIT = f"""async ([name, reports]) => {{
  const stored = {STORED_IDS}, ids = [];
  for (let event = 0; event < reports; event++) {{
    await client.report(...[["many", 1], ["texts", "a"], ["words", "JFK"]][event % 3]);
    ids.push((await stored(name)).find((id) => !ids.includes(id)));
  }}
  return ids;
}}"""


@pytest.mark.parametrize("path", ["hidden", "flush", "reload", "online"])
def test_order_in_chromium_is_random(tab, path):
    """Real requests of a real page, as they come to an edge: a hidden page, a flush, a reload, the timer."""
    page = tab
    with app() as origin, served(allow_origins=(origin,), allowances=allowances()) as edge:
        address = f"http://127.0.0.1:{edge.port}"
        kafka = edge.edge.kafka
        delay = {"hidden": 3600, "flush": 3600}.get(path, 0)
        options = {"maxDelaySeconds": delay, "sendOnLeave": path == "hidden"}
        open_client(page, origin, address, KEY.public_key, **options)
        page.evaluate("client.report('many', 1)")
        page.evaluate("client.flush()")
        page.evaluate("Object.defineProperty(navigator, 'onLine', { value: false, configurable: true })")
        events = page.evaluate(WAIT, [f"deniable {address}", REPORTS])
        assert len(kafka.uploads()) == 1
        if path == "hidden":
            page.goto("about:blank")
        elif path == "flush":
            page.evaluate("delete navigator.onLine; client.flush()")
        elif path == "reload":
            open_client(page, origin, address, KEY.public_key, maxDelaySeconds=0)
        else:
            page.evaluate("delete navigator.onLine; dispatchEvent(new Event('online'))")
        assert wait_until(lambda: len(kafka.uploads()) > REPORTS)
        if path in ("reload", "online"):
            assert wait_until(lambda: status(page)["queued"] == 0)
        page.goto("about:blank")
    left = [",".join(map(str, decode_upload(each).upload_id)) for each in kafka.uploads()[1:]]
    order = [events.index(each) for each in dict.fromkeys(left)]
    assert len(order) == REPORTS
    assert order_tail(order) > FALSE_ALARM
