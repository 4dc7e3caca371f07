"""The demo's screen: truth, estimate and interval of every value, and the verdict in words."""

from collections.abc import Set

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deploy.config.describe import rounded_up
from deploy.demo.verdict import MISS_RATE, JudgedCollection, most, tally
from estimators.frequency.significance import FALSE_DISCOVERY_RATE

TABLE_COLUMNS = 40  # characters of a table, and of the gap beside it
TABLE_FRAME = 4  # lines of a table without values: two of title, the header, the number left out


def truth_table(judged: JudgedCollection, rows: int | None = None, missed: Set[str] = frozenset()) -> Table:
    """Build a table of values by true frequency, each with its estimate and 95 % interval.

    Parameters
    ----------
    judged : a collection's estimate beside the truth.
    rows : number of values to show; None for all that occur.
    missed : values to mark, whose interval misses the truth.
    """
    collection, estimate = judged.collection, judged.estimate
    values = sorted(judged.truth, key=lambda value: -judged.truth[value])
    left_out = 0 if rows is None else max(0, len(values) - rows)
    table = Table(
        title=f"{collection.name}, epsilon {rounded_up(collection.mechanism.epsilon)}\n"
        f"{estimate.reports:,} reports",
        caption=f"… {left_out} more" if left_out else None,
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("value")
    for name in ("truth", "estimate", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    if missed:
        table.add_column("")
    index = {value: i for i, value in enumerate(collection.labels())}
    for value in values[:rows]:
        i = index[value]
        table.add_row(
            value,
            f"{judged.true_frequency(value):.2%}",
            f"{estimate.frequency[i]:.2%}",
            interval(float(estimate.low[i]), float(estimate.high[i])),
            *([Text("miss", style="red")] if value in missed else []),
        )
    return table


def interval(low: float, high: float) -> str:
    """Return an interval in words: of width 0 if noise has put all of it outside [0, 1], where it is cut."""
    return f"{low:.2%} – {high:.2%}" if high > low else f"{low:.2%}, cut"


def live_view(
    judged: list[JudgedCollection], status: str, addresses: list[str], width: int, height: int
) -> RenderableType:
    """Build the live screen: status, addresses, and as many values as fit.

    Parameters
    ----------
    judged : shown as a table each, side by side if there is room.
    status, addresses : lines above the tables.
    width, height : of the terminal, in characters and lines.
    """
    lines = [Text(status, style="bold"), *(Text(address, style="cyan") for address in addresses)]
    beside = max(1, min(len(judged), width // TABLE_COLUMNS))
    levels = -(-len(judged) // beside)
    rows = (height - len(lines)) // max(1, levels) - TABLE_FRAME
    if not judged or rows < 1:
        return Group(*lines)
    grid = Table.grid(padding=(0, 3, 0, 0))
    for first in range(0, len(judged), beside):
        grid.add_row(*(truth_table(one, rows) for one in judged[first : first + beside]))
    return Group(*lines, grid)


def verdict(judged: list[JudgedCollection]) -> list[str]:
    """State how many intervals miss and discoveries are false, and how many the check allows."""
    of = tally(judged)
    return [
        *(_summary(one) for one in judged),
        f"intervals: {of.missed} of {of.real} miss the truth; {100 * MISS_RATE:.0f} % are stated to, "
        f"the check allows {most(of.real, MISS_RATE)}",
        f"decoys: {of.false} of {of.found} significant values; {100 * FALSE_DISCOVERY_RATE:.0f} % are stated "
        f"to be, the check allows {most(of.found, FALSE_DISCOVERY_RATE)}",
    ]


def _summary(judged: JudgedCollection) -> str:
    found = judged.discoveries()
    decoys = judged.collection.entries - len(judged.truth)
    false = sum(value not in judged.truth for value in found)
    held = len(judged.truth) - len(judged.misses())
    return (
        f"{judged.collection.name}: {held} of {len(judged.truth)} intervals contain the truth; "
        f"{len(found)} values significant"
    ) + (f", {false} of {decoys} decoys among them" if decoys else "")
