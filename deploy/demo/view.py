"""The demo's screen: truth, estimate and interval of every value, and the verdict in words."""

from collections.abc import Sequence, Set

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.deploy.demo.number_verdict import JudgedNumber
from deniable.deploy.demo.verdict import MISS_RATE, Judged, JudgedCollection, most, tally
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.directed_rounding import rounded_up

TABLE_COLUMNS = 40  # characters of a table, and of the gap beside it
TABLE_FRAME = 4  # lines of a table without values: two of title, the header, the number left out


def truth_table(judged: Judged, rows: int | None = None, missed: Set[str] = frozenset()) -> Table:
    """Build a table of values by true frequency, or of a number's figures, with estimates and intervals.

    Parameters
    ----------
    judged : a collection's estimate beside the truth.
    rows : number of values to show; None for all that occur.
    missed : values to mark, whose interval misses the truth.
    """
    collection, estimate = judged.collection, judged.estimate
    lines = _figures(judged) if isinstance(judged, JudgedNumber) else _shares(judged)
    left_out = 0 if rows is None else max(0, len(lines) - rows)
    table = Table(
        title=f"{collection.name}, epsilon {rounded_up(collection.mechanism.epsilon)}\n"
        f"{estimate.reports:,} reports",
        caption=f"… {left_out} more" if left_out else None,
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("figure" if isinstance(judged, JudgedNumber) else "value")
    for name in ("truth", "estimate", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    if missed:
        table.add_column("")
    for line in lines[:rows]:
        name = line[0].replace(" / ", "/")  # of a pair: it would take two lines
        table.add_row(name, *line[1:], *([Text("miss", style="red")] if line[0] in missed else []))
    return table


def _shares(judged: JudgedCollection) -> list[tuple[str, str, str, str]]:
    """Return value, truth, estimate and interval of each value that occurs, the most frequent first."""
    estimate = judged.estimate
    index = {value: i for i, value in enumerate(judged.collection.labels())}
    values = sorted(judged.truth, key=lambda value: -judged.truth[value])
    return [
        (
            value,
            f"{judged.true_frequency(value):.2%}",
            f"{estimate.frequency[i]:.2%}",
            f"{estimate.low[i]:.2%} – {estimate.high[i]:.2%}",
        )
        for value, i in ((value, index[value]) for value in values)
    ]


def _figures(judged: JudgedNumber) -> list[tuple[str, str, str, str]]:
    """Return name, truth, estimate and interval of the mean and each quantile."""
    return [
        (name, f"{judged.truth[name]:.1f}", f"{each.value:.1f}", f"{each.low:.1f} – {each.high:.1f}")
        for name, each in judged.figures().items()
    ]


def live_view(
    judged: Sequence[Judged], status: str, addresses: list[str], width: int, height: int
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


def verdict(judged: Sequence[Judged]) -> list[str]:
    """State how many intervals miss and discoveries are false, and how many the check allows."""
    of = tally(judged)
    return [
        *(_summary(one) for one in judged),
        f"intervals: {of.missed} of {of.real} miss the truth; {100 * MISS_RATE:.0f} % are stated to, "
        f"the check allows {most(of.real, MISS_RATE)}",
        f"decoys: {of.false} of {of.found} significant values; {100 * FALSE_DISCOVERY_RATE:.0f} % are stated "
        f"to be, the check allows {most(of.found, FALSE_DISCOVERY_RATE)}",
    ]


def _summary(judged: Judged) -> str:
    if isinstance(judged, JudgedNumber):
        held = len(judged.truth) - len(judged.misses())
        return f"{judged.collection.name}: {held} of {len(judged.truth)} intervals contain the truth"
    found = judged.discoveries()
    decoys = judged.collection.entries - len(judged.truth)
    false = sum(value not in judged.truth for value in found)
    held = len(judged.truth) - len(judged.misses())
    return (
        f"{judged.collection.name}: {held} of {len(judged.truth)} intervals contain the truth; "
        f"{len(found)} values significant"
    ) + (f", {false} of {decoys} decoys among them" if decoys else "")
