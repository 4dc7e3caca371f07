"""Which number or text a value means, however it is written: one rule for every way into a producer.

1. A value is a text, a number, a truth value, or missing. What it is never decides whether it is reported.
2. Where a number is asked for, a text of digits is that number: `2`, `2.0`, `2e0`, ` +02`; so is `Infinity`.
   Any other text is none, and so are truth values: a comma, a currency or a separator of thousands is never
   guessed.
3. Where a text is asked for, an integer is its decimal text: a float 2.0, as tables with an empty cell write
   2, is `2`.
4. A listed text means itself. Another text means the only listed one of the same number or truth value:
   `2.0` means a listed `2`, `True` and `1` a listed `true`. Numbers from 2^53 on, which floats confuse, are
   not compared. In files, which write numbers as texts, candidates are listed texts, too.

Browsers follow it in `producers/browser/src/notation.js`.
"""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

MISSING_TEXT = "\ufffd"  # stands for a missing text
MISSING_INTEGER = -1  # stands for a missing integer, and for what is none; no collection lists it
UNKNOWN = -1  # index of what is not listed

# Each repetition ends where the next one begins, so that no text takes more than linear time.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|[+-]?(?-i:Infinity)", re.ASCII | re.IGNORECASE)
# White space of ECMAScript; Python has some more.
_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
)
_TRUTH = {"false": 0.0, "true": 1.0}
_CONFUSED = 2.0**53  # from here on, floats are not all different integers


def is_missing(item: object) -> bool:
    """Whether this stands for a missing value: None, NaN, numpy's masked, pandas' NA and NaT."""
    if item is None:
        return True
    if isinstance(item, float | np.floating):
        return bool(item != item)
    return type(item).__name__ in ("NAType", "NaTType", "MaskedConstant")


def is_number(item: object) -> bool:
    """Whether this is an integer or a float, of Python or numpy; a truth value is none."""
    return isinstance(item, float | int | np.integer | np.floating) and not isinstance(item, bool)


def is_value(item: object) -> bool:
    """Whether this is a text, a number, a truth value, or missing."""
    return isinstance(item, str | bool | np.bool_) or is_number(item) or is_missing(item)


def number_of(item: object) -> float:
    """Return the number that a value is or writes; infinite beyond the largest float, NaN if it is none."""
    if isinstance(item, str):
        written = item.strip(_SPACE)
        return float(written) if _NUMBER.fullmatch(written) else math.nan
    if isinstance(item, float):
        return float.__float__(item)
    if not isinstance(item, int | np.integer | np.floating) or isinstance(item, bool):
        return math.nan
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf


def integer_of(item: object) -> int:
    """Return the integer that a value is or writes; MISSING_INTEGER if it is none."""
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return int(item)
    number = number_of(item)
    return int(number) if number.is_integer() else MISSING_INTEGER


def text_of(item: object) -> str:
    """Return a value as a text of type `str` itself; MISSING_TEXT if it is missing or infinite."""
    if isinstance(item, str):
        return str.__str__(item)
    if isinstance(item, bool | np.bool_):
        return "true" if item else "false"
    if isinstance(item, int | np.integer):
        try:
            return str(int(item))
        except ValueError:  # of more digits than Python writes
            return MISSING_TEXT
    number = number_of(item)
    return _written(number) if math.isfinite(number) else MISSING_TEXT


def _written(number: float) -> str:
    """Write a float as ECMAScript does: 2.0 as 2, with an exponent from 1e21 on and below 1e-6."""
    if 1e-6 <= abs(number) < 1e21 or not number:
        return f"{Decimal(repr(number + 0.0)):f}".removesuffix(".0")
    return repr(number).replace("e-0", "e-")


class ListedTexts:
    """Looks texts up in a list, as rule 4 says.

    Parameters
    ----------
    texts : listed, distinct, in order.

    Attributes
    ----------
    confused : the first two of the same number or truth value, which no other notation tells apart; or None.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._index = {text: index for index, text in enumerate(texts)}
        self._same: dict[float, int] = {}
        self.confused: tuple[str, str] | None = None
        for text, index in self._index.items():
            if not math.isnan(key := _compared(text)):
                if key in self._same and self.confused is None:
                    self.confused = [*self._index][self._same[key]], text
                self._same[key] = UNKNOWN if key in self._same else index

    @property
    def has_numbers(self) -> bool:
        """Whether a number or a truth value is listed."""
        return bool(self._same)

    def find(self, text: str) -> int:
        """Return the index of the listed text that a text means; UNKNOWN if there is none."""
        index = self._index.get(text, UNKNOWN)
        return self._same.get(_compared(text), UNKNOWN) if index == UNKNOWN and self._same else index

    def find_all(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return `find` of n texts, int64 (n,)."""
        found = np.fromiter(map(self._index.get, texts, repeat(UNKNOWN)), np.int64, len(texts))
        if self._same:
            for place in np.flatnonzero(found == UNKNOWN).tolist():
                found[place] = self._same.get(_compared(texts[place]), UNKNOWN)
        return found


def _compared(text: str) -> float:
    """Return what is compared of a text that is not listed as it stands; NaN if it means only itself."""
    if (truth := _TRUTH.get(text.lower())) is not None:
        return truth
    number = number_of(text)
    return number if abs(number) < _CONFUSED else math.nan
