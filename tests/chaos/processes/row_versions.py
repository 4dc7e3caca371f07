"""A next version of the rows of `state` and `counts`, as two releases bring it: read first, written later.

Version 2 is version 1 with a trailing checksum: whoever knows version 1 alone cannot read it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from crc32c import crc32c

from deniable.aggregator.ledger import row_values

CHECKSUM_BYTES = 4
Replace = Callable[[Any, str, Any], None]


def read_version_2(replace: Replace = setattr) -> None:
    """Add decoders as the release before the one that writes version 2: it writes version 1."""
    new = row_values.Decoders(*(partial(_unsealed, decode) for decode in row_values.DECODERS[1]))
    replace(row_values, "DECODERS", {**row_values.DECODERS, 2: new})


def write_version_2(replace: Replace = setattr) -> None:
    """Read and write version 2."""
    read_version_2(replace)
    for kind in row_values.Decoders._fields:
        replace(row_values, f"encode_{kind}", partial(_sealed, getattr(row_values, f"encode_{kind}")))
    replace(row_values, "ROW_VERSION", 2)


ROW_VERSIONS = {"2-read": read_version_2, "2-written": write_version_2}


def _sealed(encode: Callable[[Any], bytes], what: Any) -> bytes:
    row = encode(what)
    return row + crc32c(row).to_bytes(CHECKSUM_BYTES, "little")


def _unsealed(decode: Callable[[bytes], Any], row: bytes) -> Any:
    if crc32c(row[:-CHECKSUM_BYTES]).to_bytes(CHECKSUM_BYTES, "little") != row[-CHECKSUM_BYTES:]:
        raise row_values.RowError("checksum of a row of version 2 does not match")
    return decode(b"\x01" + row[1:-CHECKSUM_BYTES])
