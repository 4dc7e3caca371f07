"""Estimates: what another program that can write to `estimates` shows to pages, `watch` and `inspect`."""

from contextlib import suppress
from types import SimpleNamespace

import msgspec
from prometheus_client import generate_latest
from rich.console import Console

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate, encode_estimate
from deniable.aggregator.views.backfill import Backfill
from deniable.aggregator.views.estimate_history import EstimateHistory, point_of
from deniable.aggregator.views.latest_estimates import LatestEstimates
from deniable.aggregator.web.page_events import PageFeed
from deniable.deploy.query.inspection.records import fields_of, line_of
from deniable.deploy.query.inspection.rows import Inspection
from deniable.deploy.query.watch import EveryEstimate, table_of
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, PLACE, T0, changed, estimate_of

INSPECTIONS = [Inspection(COLLECTIONS, payload=payload) for payload in (False, True)]
CONSOLE = Console(width=80, file=open("/dev/null", "w"))  # noqa: SIM115 - for the whole run
METRICS = WorkerMetrics(COLLECTIONS)
SEEDS = [
    *(encode_estimate(estimate_of(collection)) for collection in (FRUIT, PLACE)),
    encode_estimate(changed(estimate_of(), final=True, part=2, parts=2, revision=7)),
    b'{"version":1}',
    b"null",
]


def check(data: bytes) -> None:
    """DecodeError is all that comes of a record; what decodes can be shown everywhere."""
    history = EstimateHistory(COLLECTIONS.values())
    page = PageFeed(list(COLLECTIONS.values()), history, {}, dict)
    boards = (history, LatestEstimates(), EveryEstimate())
    for latest in boards:
        with suppress(msgspec.DecodeError):
            taken = latest.take(data)
            if taken is not None:
                _show(taken)
                if latest is history:
                    page.show(taken)
        latest.stale(COLLECTIONS.values(), T0)
    for collection in COLLECTIONS.values():
        history.record(collection)
    for record in history.newest.values():
        METRICS.estimates.show(record)
        generate_latest(METRICS.registry)
    for inspection in INSPECTIONS:
        record = SimpleNamespace(offset=0, timestamp=T0 * 1000, key=data[:20], value=data)
        line_of(fields_of("estimates", inspection, 0, record))
    Backfill(LatestEstimates(), ("fruit",), lambda _: None)._wants(SimpleNamespace(key=data))


def _show(record: EstimateRecord) -> None:
    again = decode_estimate(encode_estimate(record))
    assert again == record
    point_of(record)
    for since in (None, T0):
        CONSOLE.print(table_of(record, 3, since))
