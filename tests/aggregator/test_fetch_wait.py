"""How long a broker may keep a worker waiting for new records."""

import asyncio

from aggregator.consumer import FETCH_WAIT_MILLISECONDS
from aggregator.engine import build_app
from tests.aggregator.builders import DEPLOYMENT


async def _ignore(message):
    pass


def test_the_client_that_faust_makes_waits_as_briefly_as_ours_says():
    """Faust's own would wait 1.5 s, and records of other partitions with it."""

    async def fetch_wait():
        app = build_app(DEPLOYMENT, None)
        thread = app.transport.create_consumer(
            _ignore, on_partitions_revoked=_ignore, on_partitions_assigned=_ignore
        )._thread
        client = thread._create_worker_consumer(app.transport)
        try:
            return client._fetch_max_wait_ms
        finally:
            await client.stop()
            thread.thread_loop.close()

    assert asyncio.run(fetch_wait()) == FETCH_WAIT_MILLISECONDS < 1500
