"""Tables in files: Parquet, and CSV with the same columns.

Columns of repeated texts are plain texts in files, which every reader knows. In CSV, `counts` is a JSON list.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from analysis.errors import AnalysisError, arrow
from analysis.tables.arrow_table import checked_columns

FORMATS = ("parquet", "csv")


def plain_schema(schema: Any) -> Any:
    """Return the schema with texts instead of dictionaries."""
    pa = arrow("a file of a table")
    fields = [(each.name, pa.string() if pa.types.is_dictionary(each.type) else each.type) for each in schema]
    return pa.schema(fields)


def write_table(table: Any, path: Path, ending: str) -> None:
    """Write a pyarrow.Table to a new file, in one of FORMATS.

    Raises
    ------
    OSError.
    """
    plain = table.cast(plain_schema(table.schema))
    if ending == "parquet":
        import_module("pyarrow.parquet").write_table(plain, path, compression="zstd")
        return
    if "counts" in plain.column_names:
        texts = [msgspec.json.encode(each).decode() for each in plain["counts"].to_pylist()]
        place = plain.column_names.index("counts")
        plain = plain.set_column(place, "counts", arrow("a file of a table").array(texts, "string"))
    import_module("pyarrow.csv").write_csv(plain, path)


def read_table(path: Path, schema: Any, missing: dict[str, str]) -> Any:
    """Return the pyarrow.Table of a file.

    Parameters
    ----------
    path : a .parquet or .csv file.
    schema : to return; without more rows than the file has.
    missing : texts of columns that may be absent from the file, as from the names of its folders.

    Raises
    ------
    AnalysisError if the file cannot be read, or has other columns.
    """
    pa = arrow("a file of a table")
    try:
        if path.suffix == ".parquet":
            found = import_module("pyarrow.parquet").ParquetFile(path).read()
        else:
            found = _read_csv(path, schema)
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).strip().removesuffix(".")
        raise AnalysisError(
            f"{path} cannot be read as {path.suffix[1:]}: {reason}; if it is damaged, copy it again, or "
            "delete it and write its windows again with deniable export --from, as long as their topic keeps "
            "them; if it is of another program, name other files"
        ) from error
    for name, text in missing.items():
        if name not in found.column_names:
            found = found.append_column(name, pa.array(np.full(len(found), text, object), pa.string()))
    return checked_columns(found, schema, str(path))


def _read_csv(path: Path, schema: Any) -> Any:
    pa, csv = arrow("a file of a table"), import_module("pyarrow.csv")
    types = {each.name: pa.string() if each.name == "counts" else each.type for each in plain_schema(schema)}
    options = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False)
    found = csv.read_csv(
        path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options
    )
    if "counts" not in found.column_names:
        return found
    lists = [msgspec.json.decode(each, type=list[int]) for each in found["counts"].to_pylist()]
    place = found.column_names.index("counts")
    return found.set_column(place, "counts", pa.array(lists, pa.list_(pa.int64())))
