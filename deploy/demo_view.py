"""What the demo shows in a terminal: truth, estimate and interval of every value."""

from collections.abc import Set

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deploy.demo_verdict import Judged
from deploy.describe import rounded_up

LIVE_ROWS = 16


def truth_table(judged: Judged, rows: int | None = None, missed: Set[str] = frozenset()) -> Table:
    """Values by true frequency, each with its estimate and 95 % interval.

    Parameters
    ----------
    judged : a collection's estimate beside the truth.
    rows : how many values to show; None for all that occur.
    missed : values to mark, since their interval does not hold the truth.
    """
    collection, estimate = judged.collection, judged.estimate
    epsilon = rounded_up(collection.mechanism.epsilon)
    table = Table(
        title=f"{collection.name}: {estimate.reports:,} reports, epsilon {epsilon}",
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("value")
    for name in ("truth", "estimate", "95 % interval"):
        table.add_column(name, justify="right")
    if missed:
        table.add_column("")
    index = {value: i for i, value in enumerate(collection.labels())}
    for value in sorted(judged.truth, key=lambda value: -judged.truth[value])[:rows]:
        i = index[value]
        table.add_row(
            value,
            f"{judged.true_frequency(value):.2%}",
            f"{estimate.frequency[i]:.2%}",
            f"{estimate.low[i]:.2%} – {estimate.high[i]:.2%}",
            *([Text("miss", style="red")] if value in missed else []),
        )
    return table


def live_view(judged: list[Judged], status: str, addresses: list[str]) -> RenderableType:
    """The live screen: one table a collection, what is going on, and where to look."""
    tables = Columns([truth_table(one, LIVE_ROWS) for one in judged], padding=(0, 4))
    lines = [Text(status, style="bold"), *(Text(address, style="cyan") for address in addresses)]
    return Group(tables, Text(""), *lines)


def summary(judged: Judged) -> str:
    """One sentence on how honest the estimate was."""
    found = judged.discoveries()
    decoys = len(judged.collection.labels()) - len(judged.truth)
    false = sum(value not in judged.truth for value in found)
    held = len(judged.truth) - len(judged.misses())
    return (
        f"{judged.collection.name}: {held} of {len(judged.truth)} intervals hold the truth; "
        f"{len(found)} values significant, {false} of {decoys} decoys among them"
    )
