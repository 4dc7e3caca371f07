"""Write the table of all metrics: `python -m deniable.deploy.monitoring.metrics_table docs/metrics.md`."""

import sys
from collections.abc import Iterable
from pathlib import Path

from deniable.aggregator.metrics import definitions as of_workers
from deniable.edge.metrics import definitions as of_edges
from deniable.producers.metrics import definitions as of_producers
from deniable.protocol.metric import Metric, declared_in
from deniable.relay.service import definitions as of_relays

METRICS = tuple(
    metric for room in (of_workers, of_producers, of_edges, of_relays) for metric in declared_in(room)
)

BEGIN, END = "<!-- metrics: written by `make metrics` -->", "<!-- end of metrics -->"
HEADING = "| metric | kind | meaning | remedy |\n|---|---|---|---|\n"


def table(metrics: Iterable[Metric] = METRICS) -> str:
    """Return the table in Markdown, a row for each metric."""
    return HEADING + "".join(map(_row, metrics))


def with_table(text: str) -> str:
    """Return a text with the table between its markers; ValueError if it lacks them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the text must hold '{BEGIN}' and then '{END}'")
    return f"{before}{begin}\n{table()}{end}{after}"


def _row(metric: Metric) -> str:
    labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
    return f"| `{metric.exposed}{labels}` | {metric.kind} | {metric.meaning} | {metric.remedy} |\n"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
