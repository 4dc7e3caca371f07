"""Results of these benchmarks: `bench/results/devices.json`, and tables generated from it."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from bench.aggregator.results import ResultRow, machine, table

FILE = Path(__file__).parents[1] / "results" / "devices.json"

#: Results of each part, in the order of the tables. Each is replaced when its benchmark runs again.
PARTS = {
    "edge": "Uploads of one report over 256 keep-alive connections, each answered once Kafka has it "
    "(acks=all): an edge, and plain handlers that await `send_and_wait` for each. Processor time of the "
    "server alone, pinned to a core; load and broker share the other. Latency at a fixed rate; medians of "
    "interleaved rounds; `bench.devices.edge`.",
    "relay": "One relay, a topic `uploads` that is full before it starts; processor time of the "
    "relay alone, and "
    "the clock, with the broker on the same machine; `bench.devices.relay`.",
    "browser": "The browser client, from a value to a stored upload: charged, randomized, encoded and "
    "queued; nothing is sent. In IndexedDB at most 20 uploads wait. Distinct values; RAPPOR of 128 bits, "
    "memoized; pairs of 17 x 3 values. Medians of rounds; `bench.devices.browser`.",
}


def keep(part: str, rows: Sequence[ResultRow], file: Path = FILE) -> None:
    """Replace a part's earlier rows by these, and print them.

    Parameters
    ----------
    part : one of PARTS.
    rows : figures by column, the same columns in each; the unit is in the column's name.
    file : to write, and a table beside it.
    """
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    found[part] = {"machine": machine(), "rows": [dict(row) for row in rows]}
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sections = [
        f"## {name}\n\n{PARTS[name]}\nOn {found[name]['machine']}.\n\n{table(found[name]['rows'])}"
        for name in PARTS
        if name in found
    ]
    file.with_suffix(".md").write_text("\n".join(sections), encoding="utf-8")
    click.echo(table(rows), nl=False)
