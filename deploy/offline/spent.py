"""`deniable spent`."""

import math
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from deniable.config.describe import condition_for_ever, most_changes
from deniable.config.file import load
from deniable.config.settings.allowance import Allowance
from deniable.deploy.cli.options import Folder, config_option
from deniable.deploy.offline.costs.spent_facts import SpentFacts, client_spent, covered_epsilon
from deniable.estimators.mechanisms.directed_rounding import rounded_up
from deniable.producers.budget.statement import Spent, Statements, total
from deniable.producers.config import ProducerConfig
from deniable.producers.opening.from_file import producer_config

MAX_LINE_BYTES = 2**20
HEADINGS = (
    "collection",
    "reports",
    "epsilon unchanged",
    "epsilon any",
    "budget",
    "share",
    "delta",
    "lifetime reports",
    "lifetime unchanged",
    "lifetime any",
)
MEANING = "unchanged: epsilon while the client's value stays the same; any: whatever its values do"
CONDITION = (
    "if it is known when these change: any bounds what reports reveal beyond that, and they may show it"
)


@click.command()
@config_option
@click.option(
    "--data-dir",
    type=Folder(),
    help="Folder of the producers; overrides the collection file.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def spent(config: Path, data_dir: Path | None, as_json: bool) -> None:
    """Show how much of their budgets clients have spent, in the present period and in all.

    Reads client ids from stdin, one a line, because other users can see a command line; the answer names
    clients by their line numbers. Bytes that are not UTF-8 become U+FFFD, as in produce. Each epsilon is
    stated twice: while the client's value stays the same, and whatever its values do. Producers may run
    meanwhile. Connects to nothing but the budget_store, if the collection file has one.

    Example: echo user-1 | deniable spent
    """
    settings = producer_config(load(config), data_dir=data_dir, connects=False)
    allowances = {each.collection.name: each for each in settings.allowances}
    if settings.budget_store and data_dir:
        raise click.UsageError("--data-dir cannot be used: producer.budget_store has the budgets")
    stream = click.get_binary_stream("stdin")
    with _statements(settings) as statements:
        if stream.isatty():
            click.echo("client ids, one a line, then Ctrl-D", err=True)
        spendings = ((number, statements.of(client, time.time())) for number, client in _clients(stream))
        if as_json:
            found = SpentFacts(1, [client_spent(*each, allowances) for each in spendings])
            click.echo(msgspec.json.format(msgspec.json.encode(found)))
            return
        for number, spending in spendings:
            click.echo(f"client of line {number}\n{_table(spending, allowances)}")


def _statements(settings: ProducerConfig) -> Statements:
    if settings.budget_store:
        return Statements.in_database(settings.budget_store, settings.secret_path, settings.allowances)
    return Statements.in_folder(settings.data_dir, settings.secret_path, settings.allowances)


def _clients(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield line numbers, from 1, and client ids; an empty line is the client ''."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise click.ClickException(f"line {number} of stdin: longer than {MAX_LINE_BYTES} bytes")
        yield number, line.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")


def _table(spending: Mapping[str, Spent], allowances: Mapping[str, Allowance]) -> str:
    rows: list[tuple[str, ...]] = [HEADINGS]
    for name, spent in spending.items():
        budget, share = _budget(spent, allowances.get(name))
        rows.append(_row(name, spent, budget, share))
    rows.append(_row("total", total(spending.values()), "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    notes = [note for name in spending if name in allowances if (note := _note(allowances[name]))]
    meanings = [MEANING, CONDITION] if any("any holds" in note for note in notes) else [MEANING]
    return "\n".join(f"  {line}" for line in [*lines, *meanings, *notes])


def _note(allowance: Allowance) -> str:
    """Return the conditions of what memoized reports cost whatever the values do; "" without any."""
    if not allowance.memoized:
        return ""
    mechanism, changes = allowance.collection.mechanism, allowance.changes
    condition = condition_for_ever(mechanism, changes)
    notes = [f"any holds {condition}"] if condition else []
    notes += [] if allowance.budget is None else [f"its budget holds for values {allowance.values}"]
    notes += [] if changes is None else [f"a client shows {most_changes(changes)}"]
    return f"{allowance.collection.name}: {'; '.join(notes)}"


def _row(name: str, spent: Spent, budget: str, share: str) -> tuple[str, ...]:
    return (
        name,
        f"{spent.reports}",
        rounded_up(spent.epsilon),
        _any(spent.any_epsilon),
        budget,
        share,
        f"{spent.delta:g}",
        f"{spent.lifetime_reports}",
        rounded_up(spent.lifetime_epsilon),
        _any(spent.lifetime_any_epsilon),
    )


def _any(epsilon: float) -> str:
    """Write a figure; what was carried over from earlier parameters may have been counted for one value."""
    return rounded_up(epsilon) if math.isfinite(epsilon) else "unknown"


def _budget(spent: Spent, allowance: Allowance | None) -> tuple[str, str]:
    """Return the budget and the spent share of it, about the values that it covers, rounded up, in words."""
    if allowance is None:
        return "not in the file", ""
    if allowance.budget is None:
        return "none", ""
    epsilon = covered_epsilon(spent, allowance)
    if math.isinf(epsilon):
        return f"{allowance.budget.epsilon:g}", "unknown"
    share = math.ceil(100 * Fraction(epsilon) / Fraction(allowance.budget.epsilon))
    return f"{allowance.budget.epsilon:g}", f"{share} %"
