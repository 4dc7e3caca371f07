"""What the signature of an edge's list of collections covers, and how exact numbers stand in it."""

from collections.abc import Mapping

FORMAT = 1
_DOMAIN = b"deniable-collections-1\n"
_THRESHOLD = "threshold"
_MOST_DIGITS = 39  # of 128 bits

Parameters = Mapping[str, int | str]


def signed_bytes(text: str) -> bytes:
    """Return what the signature of this list is over."""
    return _DOMAIN + text.encode()


def thresholds_as_text(parameters: Parameters) -> dict[str, int | str]:
    """Write thresholds as decimal text: JavaScript's numbers have 53 bits."""
    return {name: str(value) if _THRESHOLD in name else value for name, value in parameters.items()}


def thresholds_as_numbers(parameters: Parameters) -> dict[str, int | str]:
    """Read thresholds; one that is no decimal number stays as it is, and differs from any."""
    return {
        name: int(value) if _THRESHOLD in name and _is_number(value) else value
        for name, value in parameters.items()
    }


def _is_number(value: int | str) -> bool:
    text = str(value)
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
