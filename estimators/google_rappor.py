"""The files of google/rappor's analysis: params.csv, counts.csv and map.csv, parsed from their text."""

import csv
import io
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from estimators.bit_counts import BitCounts
from estimators.rappor_design import design_of_positions

_HEADER = ("k", "h", "m", "p", "q", "f")


@dataclass(frozen=True)
class GoogleParameters:
    """What params.csv says, under the names of the paper; a BitChannel.

    Parameters
    ----------
    k : bits of a report, >= 1.
    h : hash functions, in [1, k].
    m : cohorts, >= 1.
    p : P(report 1 | permanent bit 0), in [0, q).
    q : P(report 1 | permanent bit 1), in (p, 1].
    f : share of permanent bits that are noise, in [0, 1).

    Raises
    ------
    ValueError if a parameter is out of range, or no bit is randomized.
    """

    k: int
    h: int
    m: int
    p: float
    q: float
    f: float

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1, got {self.k}")
        if not 1 <= self.h <= self.k:
            raise ValueError(f"h must be in [1, k = {self.k}], got {self.h}")
        if self.m < 1:
            raise ValueError(f"m must be at least 1, got {self.m}")
        if not 0 <= self.f < 1:
            raise ValueError(f"f must be in [0, 1), got {self.f}")
        if not 0 < self.q <= 1:
            raise ValueError(f"q must be in (0, 1], got {self.q}")
        if not 0 <= self.p < self.q:
            raise ValueError(f"p must be in [0, q = {self.q}), got {self.p}")
        if not 0 < self.p_star < self.q_star < 1:
            raise ValueError(
                f"p* and q* must be in (0, 1) with p* < q*, so that bits are noisy, got p* = {self.p_star}"
                f" and q* = {self.q_star}"
            )

    @cached_property
    def p_star(self) -> float:
        """P(report 1 | true bit 0) = p (1 - f/2) + q f/2."""
        return self.p * (1 - self.f / 2) + self.q * self.f / 2

    @cached_property
    def q_star(self) -> float:
        """P(report 1 | true bit 1) = q (1 - f/2) + p f/2."""
        return self.q * (1 - self.f / 2) + self.p * self.f / 2


def parse_params(text: str) -> GoogleParameters:
    """Read params.csv: a header with k, h, m, p, q and f in any order, and one line of values.

    Parameters
    ----------
    text : content of the file.

    Raises
    ------
    ValueError if a name is missing, a value is no number, or out of range.
    """
    lines = _lines(text)
    if len(lines) != 2:
        raise ValueError(f"params must have 2 lines, a header and values, got {len(lines)}")
    header, values = ([cell.strip() for cell in line] for _, line in lines)
    if sorted(header) != sorted(_HEADER) or len(values) != len(header):
        raise ValueError(f"params must have the header {','.join(_HEADER)} and a value for each name")
    given = dict(zip(header, values, strict=True))
    try:
        whole = [int(given[name]) for name in ("k", "h", "m")]
        shares = [float(given[name]) for name in ("p", "q", "f")]
    except ValueError:
        raise ValueError("params must hold whole numbers k, h, m and numbers p, q, f") from None
    return GoogleParameters(*whole, *shares)


def parse_counts(text: str, parameters: GoogleParameters) -> BitCounts:
    """Read counts.csv: a line for each cohort, its reports, then the reports that show a 1, bit by bit.

    An empty cell is a count of 0.

    Parameters
    ----------
    text : content of the file, without a header.
    parameters : GoogleParameters.

    Raises
    ------
    ValueError if there are not m lines of k + 1 cells, a cell is no whole number >= 0, a bit's count exceeds
    its cohort's reports, or there is no report.
    """
    lines = _lines(text)
    if len(lines) != parameters.m:
        raise ValueError(f"counts must have m = {parameters.m} lines, one for each cohort, got {len(lines)}")
    table = np.zeros((parameters.m, parameters.k + 1), np.int64)
    for row, (number, cells) in zip(table, lines, strict=True):
        if len(cells) != parameters.k + 1:
            raise ValueError(
                f"counts line {number} must have k + 1 = {parameters.k + 1} cells, got {len(cells)}"
            )
        row[:] = [_whole(cell, "counts", number) for cell in cells]
    return BitCounts(table[:, 1:], table[:, 0], parameters)


def parse_map(text: str, parameters: GoogleParameters) -> tuple[list[str], csc_array]:
    """Read map.csv: a line for each candidate, its name, then one-based positions cohort * k + bit + 1.

    Empty cells set nothing; a position that appears twice, where hashes collide, is set once.

    Parameters
    ----------
    text : content of the file, without a header.
    parameters : GoogleParameters.

    Returns
    -------
    Candidates in the order of the file, and their design, float64 csc_array (m k, n).

    Raises
    ------
    ValueError if there is no candidate, one is repeated, a line has more than m h positions, or a position is
    no whole number in [1, m k].
    """
    lines = _lines(text)
    if not lines:
        raise ValueError("map must have at least 1 candidate, got 0")
    rows, width = parameters.m * parameters.k, parameters.m * parameters.h
    nowhere = rows  # a row below all others takes the empty cells, and is cut off
    positions = np.full((len(lines), width), nowhere, np.int32)
    first_line: dict[str, int] = {}
    for row, (number, (candidate, *cells)) in zip(positions, lines, strict=True):
        earlier = first_line.setdefault(candidate, number)
        if earlier != number:
            raise ValueError(f"map line {number} repeats the candidate of line {earlier}")
        if len(cells) > width:
            raise ValueError(
                f"map line {number} must have at most m * h = {width} positions, got {len(cells)}"
            )
        row[: len(cells)] = [_position(cell, rows, nowhere, number) for cell in cells]
    return list(first_line), design_of_positions(positions, rows + 1)[:rows]


def _lines(text: str) -> list[tuple[int, list[str]]]:
    """Cells of each line that is not empty, with its number from 1."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        return [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is no CSV: {error}") from error


def _whole(cell: str, name: str, number: int) -> int:
    """Value of a cell, 0 when it is empty."""
    digits = cell.strip()
    if digits and not (digits.isascii() and digits.isdigit() and len(digits) <= 13):
        raise ValueError(f"{name} line {number} must hold whole numbers >= 0 below 10^13")
    return int(digits or 0)


def _position(cell: str, rows: int, nowhere: int, number: int) -> int:
    """Row of a one-based position, `nowhere` when the cell is empty."""
    if not cell.strip():
        return nowhere
    position = _whole(cell, "map", number)
    if not 1 <= position <= rows:
        raise ValueError(f"map line {number}: positions must be in [1, m * k = {rows}], got {position}")
    return position - 1
