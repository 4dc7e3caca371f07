"""A record whose columns are lists of equal length, as a table."""

import msgspec

from deniable.analysis.errors import arrow
from deniable.analysis.tables.arrow_table import ArrowTable

#: Types of columns; others are float64.
KINDS = {"values": "string", "significant": "bool", "differs": "bool", "parts_of_value": "int64"}


def columns_of(record: msgspec.Struct) -> list[str]:
    """Return the names of the fields with an entry for each value: `values`, and the lists after it."""
    names = record.__struct_fields__
    return [name for name in names[names.index("values") :] if isinstance(getattr(record, name), list)]


def record_table(record: msgspec.Struct, what: str) -> ArrowTable:
    """Return a row for each value; `about` is the record without its columns.

    Parameters
    ----------
    record : its field `values` becomes the column `value`.
    what : needs pyarrow, for the message.

    Raises
    ------
    AnalysisError if pyarrow is not installed.
    """
    pa, names = arrow(what), columns_of(record)
    columns = {name: pa.array(getattr(record, name), KINDS.get(name, "float64")) for name in names}
    about = {name: each for name, each in msgspec.to_builtins(record).items() if name not in columns}
    return ArrowTable(pa.table({"value": columns.pop("values"), **columns}), about)
