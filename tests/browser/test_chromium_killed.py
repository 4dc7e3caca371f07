"""A Chromium that is killed with uploads under way sends them again under the same ids and bytes."""

import os
import signal

import pytest

from deniable.protocol.uploads.upload import decode_upload
from tests.support.edge.browser.lists import allowances
from tests.support.edge.browser.pages import app, open_client, report, status
from tests.support.edge.browser.profiles import main_process, profile
from tests.support.edge.served import KEY, served
from tests.support.processes import wait_until

pytestmark = [pytest.mark.all, pytest.mark.browser]

REPORTS = 10
LATER = {"maxDelaySeconds": 3600, "sendOnLeave": False}


def has_settled(edge):
    """Whether the edge has nothing more of a browser that is gone."""
    writer, kafka = edge.edge.writer, edge.edge.kafka
    return edge.edge.counters.connections == 0 and edge.call(lambda: writer._bytes + kafka.in_flight) == 0


def test_killed_browser_sends_the_same_uploads_again(tmp_path):
    """Killed while an answer is held back: Kafka has an upload, the page has none. No id has two bodies."""
    with app() as origin, served(allow_origins=(origin,), allowances=allowances()) as edge:
        kafka, address = edge.edge.kafka, f"http://127.0.0.1:{edge.port}"
        edge.call(kafka.gate.clear)
        with profile(tmp_path) as context:
            page = context.new_page()
            open_client(page, origin, address, KEY.public_key, **LATER)
            for number in range(REPORTS):
                report(page, "many", number % 5)
            page.evaluate("void client.flush().catch(() => {})")
            assert wait_until(lambda: kafka.in_flight > 0)
            # All its processes, as those for pages and the network live on for a moment.
            os.killpg(main_process(tmp_path), signal.SIGKILL)
            edge.call(kafka.gate.set)
            assert wait_until(lambda: len(kafka.uploads()) > 0)
        assert wait_until(lambda: has_settled(edge))
        taken = len(kafka.uploads())
        with profile(tmp_path) as context:
            page = context.new_page()
            open_client(page, origin, address, KEY.public_key, **LATER)
            assert status(page)["queued"] == REPORTS
            assert page.evaluate("client.flush()") == 0
            context.close()
        uploads = kafka.uploads()
        assert len(uploads) == taken + REPORTS  # those that were taken came again
        assert len(set(uploads)) == REPORTS
        assert len({decode_upload(each).upload_id for each in uploads}) == REPORTS
