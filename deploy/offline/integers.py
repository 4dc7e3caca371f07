"""Parse whole numbers from options and files."""


def parse_whole(text: str, least: int, most: int, *, is_option: bool = False) -> int:
    """Parse decimal digits, with or without space around them.

    Errors show the text only if it is a number of an option: a file given by mistake may hold true values.

    Parameters
    ----------
    text : to parse.
    least, most : ends of the allowed range, 0 <= least <= most < 10^20.
    is_option : whether the text is from the command line, not from a file.

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
    raise ValueError(f"must be a whole number in [{least}, {most}], got {_shown(digits, is_option)}")


def _shown(text: str, is_option: bool) -> str:
    if not text:
        return "nothing"
    try:
        float(text)
    except ValueError:
        return "text"
    if not is_option:
        return "another number"
    return text if len(text) <= 24 else f"{text[:20]}..."
