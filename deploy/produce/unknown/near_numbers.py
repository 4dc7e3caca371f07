"""Say why a text that looks like a number is none: for whoever holds the input, never for a log.

No such text is ever guessed: `1,000` is a thousand to some and one to others.
"""

import math
import re
import unicodedata
from collections.abc import Callable

from deniable.deploy.produce.input.values import Value
from deniable.deploy.produce.unknown.unknown_values import known_by
from deniable.estimators.collection import Collection
from deniable.protocol.notation import ListedTexts, number_of

_GAP = r"[  ' _\u2019\u202f]"
_DIGITS = rf"[+-]?\d[\d.,]*({_GAP}\d[\d.,]*)*(?:[eE][+-]?\d+)?"
_NEAR = re.compile(rf"(?P<before>\D{{0,4}}?)\s*(?P<digits>{_DIGITS})\s*(?P<after>\D{{0,4}})")
_SIGNED = re.compile(rf"\({_DIGITS}\)|{_DIGITS}\s*[+\u2212-]|[\u2010-\u2015\u2212]\s*{_DIGITS}")
_NOT_DECIMAL = re.compile(r"[+-]?0[xob][0-9a-f_]+", re.IGNORECASE)
_AMOUNT = re.compile(r"[+-]?[0.,\s]+")
_LONGEST = 40  # characters; no amount is longer


def doubt_of(collection: Collection) -> Callable[[Value], str] | None:
    """Return what says why a value looks like a number and is none; None if no number is asked for."""
    lists = [each.values for each in collection.fields] or [collection.values]
    asks = collection.takes_integers or collection.number is not None
    if not asks and not any(ListedTexts(values).has_numbers for values in lists):
        return None
    is_known = known_by(collection)

    def doubt(value: Value) -> str:
        parts = value if isinstance(value, list | tuple) else [value]
        texts = [part for part in parts if isinstance(part, str) and math.isnan(number_of(part))]
        return "" if is_known(value) else next(filter(None, map(why_no_number, texts)), "")

    return doubt


def why_no_number(text: str) -> str:
    """Return why a text is no number although it looks like one; empty if it does not.

    Parameters
    ----------
    text : of which `notation.number_of` makes no number.
    """
    written = text.strip()
    if len(text) > _LONGEST:
        return ""
    if _has_other_digits(written):
        return "it has digits other than 0 to 9"
    if _NOT_DECIMAL.fullmatch(written):
        return "it is not decimal"
    if _SIGNED.fullmatch(written):
        return "its sign is not a - or + before its digits"
    if not (match := _NEAR.fullmatch(written)):
        return ""
    beside = match["before"] + match["after"]
    is_code = re.fullmatch("[A-Z]{3}|[Ee]uros?|[Dd]ollars?", beside.strip())
    if is_code or any(unicodedata.category(each) == "Sc" for each in beside):
        return "it has a currency"
    if "%" in beside:
        return "it has a percent sign"
    if beside.strip():
        return ""
    if "," in match["digits"]:
        return "it has a comma, of decimals or thousands"
    if re.search(_GAP, match["digits"]) or re.fullmatch(r"\D?\d{1,3}(\.\d{3}){2,}", match["digits"]):
        return "it has separators of thousands"
    return ""


def _has_other_digits(written: str) -> bool:
    """Whether a text is of digits, signs and separators, and not all of its digits are 0 to 9."""
    plain = "".join("0" if unicodedata.category(each) in ("Nd", "No") else each for each in written)
    return not written.isascii() and plain != re.sub("[1-9]", "0", written) and bool(_AMOUNT.fullmatch(plain))
