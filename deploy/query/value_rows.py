"""The lines of a table of values, for people."""

from collections.abc import Callable, Sequence

from deniable.deploy.offline.estimate_table import SHOWN, name_column


def rows_of(
    names: Sequence[str], order: Sequence[int], heads: str, figures: Callable[[int], str]
) -> list[str]:
    """Return the head and the first SHOWN lines of a table, and how many more values there are.

    Parameters
    ----------
    names : of the values.
    order : their places, the first line first.
    heads : of the columns beside the values.
    figures : returns these columns of the value at a place.
    """
    printable, width = name_column(names, order[:SHOWN])
    lines = [f"{'value':<{width}} {heads}"]
    lines += [f"{name:<{width}} {figures(place)}".rstrip() for place, name in printable.items()]
    more = len(names) - SHOWN
    return [*lines, f"and {more} more; --json shows all"] if more > 0 else lines
