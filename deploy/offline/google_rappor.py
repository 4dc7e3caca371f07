"""The files of google/rappor's analysis: params.csv, counts.csv and map.csv, parsed from their text.

Source: google/rappor, doc/data-flow.md.
"""

import csv
import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from deniable.deploy.offline.integers import parse_whole
from deniable.estimators.decoding.bit_counts import BitCounts

_HEADER: dict[str, type[int | float]] = {"k": int, "h": int, "m": int, "p": float, "q": float, "f": float}
LARGEST = 1 << 16
LARGEST_ROWS = 1 << 24
MOST_REPORTS = 10**13


@dataclass(frozen=True)
class GoogleParameters:
    """The content of params.csv, under the paper's names; a BitChannel.

    Parameters
    ----------
    k : bits of a report, in [1, 65536].
    h : hash functions, in [1, k].
    m : cohorts, in [1, 65536]; m k is at most 2^24.
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
        if not 1 <= self.k <= LARGEST:
            raise ValueError(f"k must be in [1, {LARGEST}], got {self.k}")
        if not 1 <= self.h <= self.k:
            raise ValueError(f"h must be in [1, k = {self.k}], got {self.h}")
        if not 1 <= self.m <= LARGEST:
            raise ValueError(f"m must be in [1, {LARGEST}], got {self.m}")
        if self.m * self.k > LARGEST_ROWS:
            raise ValueError(f"m * k must be at most {LARGEST_ROWS}, got {self.m * self.k}")
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
        raise ValueError(f"must have 2 lines, the header {','.join(_HEADER)} and values, got {len(lines)}")
    header, values = ([cell.strip() for cell in line] for _, line in lines)
    if sorted(header) != sorted(_HEADER):
        raise ValueError(f"line {lines[0][0]} must be the header {','.join(_HEADER)}, in any order")
    if len(values) != len(header):
        raise ValueError(f"line {lines[1][0]} must have {len(header)} values, got {len(values)}")
    given: dict[str, Any] = {}
    for name, value in zip(header, values, strict=True):
        try:
            given[name] = _HEADER[name](value)
        except ValueError:
            kind = "whole number" if _HEADER[name] is int else "number"
            raise ValueError(f"{name} must be a {kind}, got {'text' if value else 'nothing'}") from None
    return GoogleParameters(**given)


def parse_counts(text: str, parameters: GoogleParameters) -> BitCounts:
    """Read counts.csv: a line for each cohort, its reports, then the reports that show a 1, bit by bit.

    An empty cell is a count of 0.

    Parameters
    ----------
    text : content of the file, without a header.
    parameters : GoogleParameters.

    Raises
    ------
    ValueError if there are not m lines of k + 1 cells, a cell is no whole number in [0, 10^13], a bit's count
    exceeds its cohort's reports, or there is no report.
    """
    lines = _lines(text)
    if len(lines) != parameters.m:
        raise ValueError(f"must have m = {parameters.m} lines, one for each cohort, got {len(lines)}")
    rows = []
    for number, cells in lines:
        if len(cells) != parameters.k + 1:
            raise ValueError(f"line {number} must have k + 1 = {parameters.k + 1} cells, got {len(cells)}")
        row = [
            _whole(cell.strip() or "0", 0, MOST_REPORTS, number, place) for place, cell in enumerate(cells, 1)
        ]
        if max(row) > row[0]:
            raise ValueError(
                f"line {number}, cell {row.index(max(row)) + 1} must be at most the reports of the cohort,"
                f" {row[0]}, got {max(row)}"
            )
        rows.append(row)
    table = np.array(rows, np.int64)
    if not table.any():
        raise ValueError("must have at least 1 report, got 0")
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
        raise ValueError("must have at least 1 candidate, got 0")
    rows, most = parameters.m * parameters.k, parameters.m * parameters.h
    columns, first_line = [], dict[str, int]()
    for number, (candidate, *cells) in lines:
        earlier = first_line.setdefault(candidate, number)
        if earlier != number:
            raise ValueError(f"line {number} repeats the candidate of line {earlier}")
        if len(cells) > most:
            raise ValueError(f"line {number} must have at most m * h = {most} positions, got {len(cells)}")
        given = [(place, cell) for place, cell in enumerate(cells, 2) if cell.strip()]
        positions = {_whole(cell, 1, rows, number, place) for place, cell in given}
        columns.append(np.array(sorted(positions), np.int32) - 1)
    indices = np.concatenate(columns)
    ends = np.cumsum([0, *map(len, columns)])
    design = csc_array((np.ones(len(indices)), indices, ends), shape=(rows, len(columns)))
    return list(first_line), design


def _lines(text: str) -> list[tuple[int, list[str]]]:
    """Cells of each line that is not empty, with its number from 1."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is no CSV: {error}") from error


def _whole(cell: str, least: int, most: int, line: int, place: int) -> int:
    """Value of a cell in [least, most]."""
    try:
        return parse_whole(cell, least, most)
    except ValueError as error:
        raise ValueError(f"line {line}, cell {place} {error}") from error
