"""Whole numbers as people and files write them."""


def parse_whole(text: str, least: int, most: int) -> int:
    """Read decimal digits, with or without space around them.

    What stands there instead is shown only where it is a number: it may be a true value, in a file that was
    given by mistake.

    Parameters
    ----------
    text : what stands there.
    least, most : ends of the range that is allowed, 0 <= least <= most < 10^20.

    Returns
    -------
    Number in [least, most].

    Raises
    ------
    ValueError if the text is anything else.
    """
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) <= 20 and least <= int(digits) <= most:
        return int(digits)
    raise ValueError(f"must be a whole number in [{least}, {most}], got {_shown(digits)}")


def _shown(text: str) -> str:
    if not text:
        return "nothing"
    try:
        float(text)
    except ValueError:
        return "text"
    return text if len(text) <= 24 else f"{text[:20]}..."
