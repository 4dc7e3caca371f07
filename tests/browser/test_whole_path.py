"""A page in Chromium reports to a real edge, and its reports stand in the topic `uploads` of a real Kafka."""

import json
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from deniable.config.file import load
from deniable.deploy.broker.child_processes import deniable_command, spawn, stop
from deniable.protocol.uploads.upload import decode_upload
from tests.support.edge.browser.pages import app, open_client, report, status
from tests.support.edge.sending import begin, written
from tests.support.processes import new_port, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

PARTITIONS = 2
REPORTS, KINDS = 12, 5
FILE = """revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: {partitions}}}
edge: {{uploads_per_minute: 0, allow_origins: ["{origin}"]}}
collections:
  - {{name: airline, mechanism: k-rr, values: [AA, B6, UA], epsilon: 2.0, window_seconds: 3600,
     grace_seconds: 600, reports_per_window: 100, budget: none}}
  - {{name: destination, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35, q: 0.65,
     candidates: [JFK, LGA], window_seconds: 3600, grace_seconds: 600, reports_per_window: 100, budget: none}}
  - {{name: minutes, mechanism: number, minimum: 0, maximum: 600, epsilon: 2.0, window_seconds: 3600,
     grace_seconds: 600, reports_per_window: 100, budget: none}}
  - {{name: origin, mechanism: local-hash-longitudinal, epsilon_inf: 4.0, epsilon_one: 1.0,
     candidates: [JFK, LGA], window_seconds: 3600, grace_seconds: 600, reports_per_window: 100, budget: none}}
  - {{name: route, mechanism: k-rr-pair, epsilon: 2.0, window_seconds: 3600, grace_seconds: 600,
     reports_per_window: 100, budget: none,
     fields: [{{name: carrier, values: [AA, B6]}}, {{name: to, values: [JFK, LGA], other: false}}]}}
"""
FURTHER = {"minutes": 227.5, "origin": "JFK", "route": ["AA", "nobody's"]}


@pytest.fixture
def origin():
    with app() as found:
        yield found


@pytest.fixture
def scene(broker, topic_prefix, origin, tmp_path):
    """Yield the collection file as loaded, and functions that start and stop the edge on one port."""
    file = tmp_path / "deniable.yaml"
    given = {"servers": broker, "prefix": topic_prefix, "partitions": PARTITIONS, "origin": origin}
    file.write_text(FILE.format(**given))
    loaded, port = load(file, environment={}), new_port()
    begin(broker, loaded.topics.uploads, PARTITIONS)
    with ExitStack() as stack:

        def start():
            command = deniable_command("edge", "--config", str(file), "--listen", f"127.0.0.1:{port}")
            child = spawn(command, tmp_path / "edge.log")
            stack.callback(stop, [child])
            assert wait_until(lambda: is_ready(port), 30)
            return child

        yield loaded, port, start


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return True
    except OSError:
        return False


def key_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/collections", timeout=10) as answer:
        return json.loads(answer.read())["public_key"]


def test_reports_of_a_page_stand_in_the_topic(browser, broker, scene, origin):
    """The edge is away for the second half: those reports wait, and come when it is back; each once."""
    loaded, port, start = scene
    child = start()
    with browser.new_context() as context:
        page = context.new_page()
        open_client(page, origin, f"http://127.0.0.1:{port}", key_of(port), isFull=True)
        for number in range(REPORTS):
            assert report(page, "airline", ["AA", "B6", "other", "nobody's"][number % 4]) == "queued"
            for name, value in FURTHER.items():
                assert report(page, name, value) == "queued"
        assert wait_until(lambda: status(page)["queued"] == 0)
        stop([child])
        for _ in range(REPORTS):
            assert report(page, "destination", "JFK") == "queued"
        page.evaluate("client.flush()")
        assert status(page)["queued"] == REPORTS
        start()
        assert wait_until(lambda: status(page)["queued"] == 0, 60)
        assert status(page)["counts"] == {"sent": KINDS * REPORTS}
    uploads, _ = written(broker, loaded.topics.uploads, PARTITIONS)
    decoded = [decode_upload(each) for each in uploads]
    assert len(decoded) == len({each.upload_id for each in decoded}) == KINDS * REPORTS
    fingerprints = {each.name: each.fingerprint for each in loaded.collections}
    found = [upload.groups[0].fingerprint for upload in decoded]
    assert {name: found.count(number) for name, number in fingerprints.items()} == dict.fromkeys(
        fingerprints, REPORTS
    )
