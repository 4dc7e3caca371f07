"""Tables in files: Parquet, and CSV with the same columns.

Columns of repeated texts are plain texts in files, which every reader knows. In CSV, `counts` is a JSON list.
"""

from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np

from deniable.analysis.errors import AnalysisError, arrow
from deniable.analysis.tables.arrow_table import checked_columns

FORMATS = ("parquet", "csv")
MOST_BLOCK = 2**31 - 1
#: Columns that files of older versions lack; they are null then.
LATER = ("low_all", "high_all", "unbiased", "discovered_at", "fit_p_value", "upper")


def plain_schema(schema: Any) -> Any:
    """Return the schema with texts instead of dictionaries."""
    pa = arrow("a file of a table")
    fields = [(each.name, pa.string() if pa.types.is_dictionary(each.type) else each.type) for each in schema]
    return pa.schema(fields)


def write_table(table: Any, sink: Any, ending: str) -> None:
    """Write a pyarrow.Table to a new file, in one of FORMATS.

    Parameters
    ----------
    table : to write.
    sink : the path of the file, or a pyarrow.NativeFile.
    ending : one of FORMATS.

    Raises
    ------
    OSError.
    """
    plain = table.cast(plain_schema(table.schema))
    if ending == "parquet":
        write = import_module("pyarrow.parquet").write_table
        write(plain, sink, compression="zstd", write_page_checksum=True)
        return
    if "counts" in plain.column_names:
        texts = [msgspec.json.encode(each).decode() for each in plain["counts"].to_pylist()]
        place = plain.column_names.index("counts")
        plain = plain.set_column(place, "counts", arrow("a file of a table").array(texts, "string"))
    import_module("pyarrow.csv").write_csv(plain, sink)


def read_table(path: PurePath, schema: Any, missing: dict[str, str], content: bytes | None = None) -> Any:
    """Return the pyarrow.Table of a file.

    Parameters
    ----------
    path : a .parquet or .csv file.
    schema : to return; without more rows than the file has.
    missing : texts of columns that may be absent from the file, as from the names of its folders.
    content : of the file, if it is not on this machine.

    Raises
    ------
    AnalysisError if the file cannot be read, or has other columns.
    """
    pa = arrow("a file of a table")
    source = path if content is None else pa.BufferReader(content)
    try:
        if path.suffix == ".parquet":
            open_file = import_module("pyarrow.parquet").ParquetFile
            found = open_file(source, page_checksum_verification=True).read()
        else:
            found = _read_csv(source, schema)
    except (OSError, pa.ArrowException, UnicodeDecodeError, msgspec.DecodeError) as error:
        reason = str(error).strip().removesuffix(".")
        raise AnalysisError(
            f"{path} cannot be read as {path.suffix[1:]}: {reason}; if it is damaged, copy it again, or "
            "delete it and write its windows again with deniable export --from, as long as their topic keeps "
            "them; if it is of another program, name other files"
        ) from error
    for name, text in missing.items():
        if name not in found.column_names:
            found = found.append_column(name, pa.array(np.full(len(found), text, object), pa.string()))
    for name in LATER:
        if name in schema.names and name not in found.column_names:
            found = found.append_column(name, pa.nulls(len(found), schema.field(name).type))
    return checked_columns(found, schema, str(path))


def _read_csv(source: Any, schema: Any) -> Any:
    pa, csv = arrow("a file of a table"), import_module("pyarrow.csv")
    types = {each.name: pa.string() if each.name == "counts" else each.type for each in plain_schema(schema)}
    options = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False)
    parsing = csv.ParseOptions(newlines_in_values=True)
    # A row must fit into two blocks, and one of counts may take as much as the file.
    block = min(MOST_BLOCK, max(1, _size_of(source))) if "counts" in types else None
    found = csv.read_csv(
        source,
        read_options=csv.ReadOptions(block_size=block),
        parse_options=parsing,
        convert_options=options,
    )
    if "counts" not in found.column_names:
        return found
    lists = [msgspec.json.decode(each, type=list[int]) for each in found["counts"].to_pylist()]
    place = found.column_names.index("counts")
    return found.set_column(place, "counts", pa.array(lists, pa.list_(pa.int64())))


def _size_of(source: Any) -> int:
    """Bytes of a path or a buffer."""
    return int(source.stat().st_size if isinstance(source, Path) else source.size())
