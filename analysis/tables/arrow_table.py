"""The table that callers get: an Arrow table that converts itself to pandas and polars."""

from collections.abc import Mapping
from functools import wraps
from typing import Any

import numpy as np

from deniable.analysis.errors import AnalysisError, arrow, needed
from deniable.analysis.tables.plot import plot_shares

#: Columns that have a value in every row of what we write.
ALWAYS = ("collection", "fingerprint", "window_start", "window_end", "revision", "final", "packs", "reports")


class ArrowTable:
    """An Arrow table. Methods of `pyarrow.Table` work on it; DuckDB and polars.DataFrame take it as it is.

    A method takes such tables also as arguments, and returns what pyarrow does. Functions of pyarrow itself,
    such as `pyarrow.parquet.write_table` and `pyarrow.concat_tables`, need `arrow`, and so does
    `polars.from_arrow`.

    Parameters
    ----------
    arrow : the pyarrow.Table.
    about : what the table holds, as a dict for JSON: which windows were read, and which are missing.
    """

    def __init__(self, arrow: Any, about: Mapping[str, Any]) -> None:
        self.arrow = arrow
        self.about = dict(about)

    def to_pandas(self, **options: Any) -> Any:
        """Return a pandas.DataFrame; options are those of pyarrow.Table.to_pandas.

        Raises
        ------
        AnalysisError if pandas is not installed.
        """
        needed("pandas", "to_pandas", "pip install pandas")
        return self.arrow.to_pandas(**options)

    def to_polars(self) -> Any:
        """Return a polars.DataFrame.

        Raises
        ------
        AnalysisError if polars is not installed.
        """
        return needed("polars", "to_polars", "pip install polars").from_arrow(self.arrow)

    def plot(self, *, log: bool = False, top: int | None = None, axes: Any = None) -> Any:
        """Draw shares with their 95 % intervals; see `plot_shares` for parameters, result and errors."""
        return plot_shares(self.arrow, self.about, log=log, top=top, axes=axes)

    def density(self) -> "ArrowTable":
        """Return the smooth density of a roll-up of a number: `lower`, `upper`, `share` of each fine step.

        It has no intervals: reports do not tell such steps apart. The rows of this table have them.

        Raises
        ------
        AnalysisError if this table is no roll-up of a number.
        """
        found = (self.about.get("independent") or {}).get("density")
        if not found:
            raise AnalysisError(
                "density needs a roll-up of a number, as of deniable.rollup; this table is none"
            )
        shares = found["frequency"]
        part = np.arange(len(shares) + 1) / len(shares)
        edges = found["minimum"] * (1 - part) + found["maximum"] * part
        columns = {"lower": edges[:-1], "upper": edges[1:], "share": np.array(shares)}
        return ArrowTable(arrow("a density").table(columns), {"density_of": self.about.get("collection")})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "arrow":  # copy and pickle look for these before __init__
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = getattr(self.arrow, name)
        return _taking_tables(found) if callable(found) else found

    def __getitem__(self, key: Any) -> Any:
        return self.arrow[key]

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArrowTable):
            return bool(self.arrow.equals(other.arrow)) and self.about == other.about
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as a pyarrow.Table, it is not hashable

    def __repr__(self) -> str:
        columns = ", ".join(self.arrow.column_names)
        return f"<{type(self).__name__} of {len(self):,} rows: {columns}>"


def _taking_tables(method: Any) -> Any:
    """Return a method of a pyarrow.Table that takes ArrowTables as well."""

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        plain = [_plain(each) for each in arguments]
        return method(*plain, **{name: _plain(each) for name, each in options.items()})

    return call


def _plain(argument: Any) -> Any:
    return argument.arrow if isinstance(argument, ArrowTable) else argument


def checked_columns(found: Any, expected: Any, where: str) -> Any:
    """Return a table with the expected columns in their order and types; AnalysisError if one is absent.

    Parameters
    ----------
    found : pyarrow.Table.
    expected : pyarrow.Schema.
    where : the file, for the message.
    """
    pa = arrow("reading a table")
    absent = [name for name in expected.names if name not in found.column_names]
    if absent == ["collection"]:
        raise AnalysisError(
            f"{where} must be in the folder collection=NAME of an export, which says its collection: name "
            "the file there, or copy it with that folder"
        )
    if absent:
        raise AnalysisError(
            f"{where} must have the columns of deniable export, and lacks {', '.join(absent)}: name a folder "
            "that deniable export has written, for read_estimates without --of windows, else with it"
        )
    empty = [name for name in ALWAYS if name in expected.names and found[name].null_count]
    if empty:
        raise AnalysisError(
            f"{where} must have a value in every row of {', '.join(empty)}, and has none in some"
        )
    try:
        return found.select(expected.names).cast(expected)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise AnalysisError(f"{where} has columns of other types than deniable export writes") from error
