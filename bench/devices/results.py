"""Results of these benchmarks: `bench/results/devices.json`, and tables generated from it."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from bench.aggregator.results import ResultRow, machine, table

FILE = Path(__file__).parents[1] / "results" / "devices.json"

#: Results of each part, in the order of the tables. Each is replaced when its benchmark runs again.
PARTS = {
    "relay": "One relay, a topic `uploads` that is full before it starts; processor time of the "
    "relay alone, and "
    "the clock, with the broker on the same machine; `bench.devices.relay`.",
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
