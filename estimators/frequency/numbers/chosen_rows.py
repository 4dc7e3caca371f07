"""Rows of a number that an analyst chooses, on the steps that reports have."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from deniable.estimators.mechanisms.square_wave import SquareWave

_ROUNDING = 1e-3  # of a step: edges are typed in decimal, and labels have ten digits


def with_rows(mechanism: SquareWave, edges: Sequence[float]) -> SquareWave:
    """Return the mechanism with rows between these edges: their estimates have the intervals of these rows.

    Rows may be of any width, down to a step: the narrower, the wider their intervals. Numbers before the
    first edge and from the last one on are in no row; those beyond the range count as its ends.

    Parameters
    ----------
    mechanism : of the reports.
    edges : at least 2, ascending, in [minimum, maximum], each a boundary of steps.

    Raises
    ------
    ValueError that says which edges are near, if one is no boundary of steps, or what else is wrong.
    """
    lowest, highest = mechanism.minimum, mechanism.maximum
    if len(edges) < 2:
        raise ValueError(f"at least 2 edges are needed, got {len(edges)}")
    for edge in edges:
        if not lowest <= edge <= highest:
            raise ValueError(f"edges must be in [{lowest:.10g}, {highest:.10g}], got {edge:.10g}")
    for edge, later in pairwise(edges):
        if edge >= later:
            raise ValueError(f"edges must ascend, got {edge:.10g} before {later:.10g}")
    width = (highest - lowest) / mechanism.steps
    cells = (np.array(edges, np.float64) - lowest) / width
    nearest = np.rint(cells).astype(np.int64)
    off = np.abs(cells - nearest) > _ROUNDING
    off[1:] |= nearest[1:] == nearest[:-1]
    if off.any():
        allowed = np.unique([*nearest, *(nearest + 1 if nearest[0] == nearest[-1] else [])])
        near = ",".join(f"{edge:.10g}" for edge in mechanism.edges[allowed.clip(0, mechanism.steps)])
        raise ValueError(
            f"edges must be boundaries of steps, each {width:.10g} wide from {lowest:.10g} on, got "
            f"{edges[int(off.argmax())]:.10g}; the nearest are {near}"
        )
    return replace(mechanism, chosen=tuple(nearest.tolist()))


def with_growing_rows(mechanism: SquareWave) -> SquareWave:
    """Return the mechanism with rows for skewed numbers.

    The first row is one step wide; then each edge is about twice as far from the minimum as the one before:
    d^(i / n) steps for i = 0 ... n, where n is log2(d), rounded.
    """
    rows = round(math.log2(mechanism.steps))
    return replace(
        mechanism, chosen=(0, *(round(mechanism.steps ** (row / rows)) for row in range(rows + 1)))
    )
