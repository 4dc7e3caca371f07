"""Frequencies and errors of an estimate, as one object for programs and as a table for people."""

import math
from collections.abc import Sequence
from typing import Any

from estimators.frequency.estimate import Estimate, QuantileEstimate, ScalarEstimate
from estimators.rollup import RollUp

SHOWN = 50  # lines of a table, the most frequent first
BITS_SHOWN = 20  # unexplained bits that a table names
LEAST_P_VALUE = 1e-6  # smaller ones say nothing more to people


def record_of(names: Sequence[str], result: Estimate, name: str = "candidate") -> dict[str, Any]:
    """Return the estimate for programs: arrays of equal length in the order of `names`; infinite is null."""
    other, other_error = result.other or (None, None)
    return {
        "estimator": result.estimator,
        "N": result.reports,
        name: list(names),
        "frequency": result.frequency.tolist(),
        "std_error": [_finite(error) for error in result.std_error.tolist()],
        "low": result.low.tolist(),
        "high": result.high.tolist(),
        "significant": result.significant.tolist(),
        **_for_all(result),
        **_misfit(result),
        "other": other,
        "other_std_error": _finite(other_error),
        "diagnostics": result.diagnostics,
    }


def _for_all(result: Estimate) -> dict[str, Any]:
    """Return the ends of intervals for all values at once, and the unconstrained estimate."""
    columns = {}
    if result.for_all is not None:
        columns = {"low_all": result.for_all.low.tolist(), "high_all": result.for_all.high.tolist()}
    if result.unbiased is not None:
        columns["unbiased"] = result.unbiased.tolist()
    return columns


def _misfit(result: Estimate) -> dict[str, Any]:
    """Return what unlisted strings do to the estimate, for RAPPOR of any text."""
    misfit = result.misfit
    if misfit is None:
        return {}
    return {
        "misfit_error": misfit.std_error.tolist(),
        "unreliable": misfit.unreliable.tolist(),
        "unexplained_bits": [{"cohort": cohort, "bit": bit} for cohort, bit in misfit.places()],
    }


def _finite(figure: float | None) -> float | None:
    return figure if figure is not None and math.isfinite(figure) else None


def table(names: Sequence[str], result: Estimate, name: str = "candidate") -> str:
    """Return the most frequent values for people; `*` marks significant ones."""
    head = f"{result.reports} reports, {len(names)} {name}s, 95 % intervals, * significant"
    return "\n".join([head, *_lines(names, [result], name), *_last(names, result, name)])


def roll_up_table(names: Sequence[str], result: RollUp, name: str) -> str:
    """Like `table`, with errors under both assumptions about who reported."""
    independent, shared = result.independent, result.shared
    if shared is independent:
        return table(names, independent, name)
    head = [
        f"{independent.reports} reports, {len(names)} {name}s, 95 % intervals, * significant",
        "left: if every report comes from another client; right: also valid if the same clients report in",
        "every window",
    ]
    lines = [*_lines(names, [independent, shared], name), *_last(names, independent, name)]
    if independent.other is not None and shared.other is not None:
        lines[-1] += f" (safe: {shared.other[1]:.6f})"
    return "\n".join([*head, *lines])


def _lines(names: Sequence[str], results: Sequence[Estimate], name: str) -> list[str]:
    """Return header and rows, steps of a number in order; frequencies are those of the first result."""
    order = (-results[0].frequency).argsort(kind="stable")[:SHOWN].tolist()
    if results[0].mean is not None:
        order.sort()
    printable, width = name_column(names, order, name)
    head = f"{name:<{width}} {'frequency':>10}" + f" {'std error':>10} {'low':>9} {'high':>9}  " * len(
        results
    )
    return [head.rstrip()] + [
        f"{printable[place]:<{width}} {results[0].frequency[place]:>10.6f}"
        + "".join(_errors(result, place) for result in results).rstrip()
        for place in order
    ]


def _errors(result: Estimate, place: int) -> str:
    error, low, high = (float(column[place]) for column in (result.std_error, result.low, result.high))
    mark = "*" if result.significant[place] else " "
    if result.misfit is not None and result.misfit.unreliable[place]:
        mark = "?"
    return f" {error:>10.6f} {low:>9.6f} {high:>9.6f} {mark}"


def _last(names: Sequence[str], result: Estimate, name: str) -> list[str]:
    """Return lines about values left out, and about reports that no name explains."""
    left_out = len(names) - SHOWN
    lines = [f"and {left_out} more, of smaller shares; --json shows all"] if left_out > 0 else []
    lines += [
        f"{figure} {each.value:.6g}, from {each.low:.6g} to {each.high:.6g}"
        for figure, each in _figures(result)
    ]
    lines += _of_pair(result)
    lines += _unlisted(result, name)
    if result.other is not None:
        screened = len(names) - int(result.diagnostics.get("chosen", len(names)))
        others = f"other strings, and {screened} {name}s not chosen" if screened else "other strings"
        lines.append(f"{others}: {result.other[0]:.6f}, standard error {result.other[1]:.6f}")
    return lines


def _of_pair(result: Estimate) -> list[str]:
    """Return a line about the independence of two fields; none for other mechanisms."""
    if result.pair is None:
        return []
    test = result.pair.independence
    if test.degrees == 0:
        return ["too few reports to test whether the fields depend on each other"]
    found = "the fields depend on each other" if test.is_rejected else "the fields may be independent"
    return [
        f"{found}: chi-square {test.statistic:.6g} with {test.degrees} degrees, {p_value_text(test.p_value)}"
    ]


def _unlisted(result: Estimate, name: str) -> list[str]:
    """Return lines about strings that the list lacks, if the bits show that it does."""
    misfit, figures = result.misfit, result.diagnostics
    if misfit is None:
        return []
    lines, bits = [], misfit.places()
    if unreliable := int(misfit.unreliable.sum()):
        lines.append(f"? {unreliable} {name}s share bits with unlisted strings: their error is unknown")
    if figures["chi_square_ratio"] > figures["chi_square_limit"]:
        ratio, limit = figures["chi_square_ratio"], figures["chi_square_limit"]
        lines.append(f"the list is incomplete: its chi-square ratio is {ratio:.2f}, above {limit:.2f}")
    if bits:
        named = " ".join(f"{cohort}/{bit}" for cohort, bit in bits[:BITS_SHOWN])
        more = f" and {len(bits) - BITS_SHOWN} more" if len(bits) > BITS_SHOWN else ""
        lines.append(f"{len(bits)} bits that unlisted strings set, as cohort/bit from 0: {named}{more}")
    return lines


def _figures(result: Estimate) -> list[tuple[str, ScalarEstimate | QuantileEstimate]]:
    """Return the mean and the quantiles of a number, by name; none for other mechanisms."""
    quantiles = [(f"quantile {each.level:g}:", each) for each in result.quantiles]
    return [*([("mean:", result.mean)] if result.mean else []), *quantiles]


def p_value_text(p_value: float) -> str:
    """Return `p = 0.00865` in three digits, or that it is below what people can tell apart."""
    return (
        f"p = {p_value:.3g}" if p_value >= LEAST_P_VALUE else f"p < {LEAST_P_VALUE:.0e}".replace("e-0", "e-")
    )


def name_column(
    names: Sequence[str], places: Sequence[int], head: str = "value"
) -> tuple[dict[int, str], int]:
    """Return the printable names at these places, and the width of a column of them under its head."""
    printable = {place: printable_name(names[place]) for place in places}
    return printable, max(map(len, [head, *printable.values()]))


def printable_name(name: str) -> str:
    """Escape a name from a file: it must not control the terminal, nor hide blanks at its ends."""
    return name if name.isprintable() and name == name.strip() else ascii(name)
