"""CRC-32C, as Kafka's own records have it, of packs and uploads."""

from collections.abc import Callable
from functools import cache


def crc32c(content: bytes | memoryview, before: int = 0) -> int:
    """Return the checksum, in [0, 2**32), of what follows bytes whose checksum is `before`."""
    return _function()(content, before)


@cache
def _function() -> Callable[[bytes | memoryview, int], int]:
    # Not above: the package reads its own metadata, a tenth of all that opening a producer would import.
    from crc32c import crc32c

    return crc32c
