"""Frequencies and errors of an estimate, as one object for programs and as a table for people."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from deniable.estimators.detectors.fit import FIT, contradicts
from deniable.estimators.frequency.estimate import Estimate, IntervalEnds, QuantileEstimate, ScalarEstimate
from deniable.estimators.mechanisms.rappor import LEAST_COHORTS
from deniable.estimators.rollup.overlap import RollUp
from deniable.protocol.words import number_of

NAME_COLUMNS = 40  # of a table, for names
EMPTY = '""'
SHOWN = 50  # lines of a table, the most frequent first
BITS_SHOWN = 20  # unexplained bits that a table names
PARAMETERS = "epsilon, the number of values"  # that counts may contradict
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


def table(
    names: Sequence[str],
    result: Estimate,
    name: str = "candidate",
    reports: int | None = None,
    *,
    for_all: bool = False,
    parameters: str = PARAMETERS,
) -> str:
    """Return the most frequent values for people; `*` marks significant ones.

    `reports` is the number of all, where the estimate is of some, such as of one level of a tree. With
    `for_all`, intervals are those that hold for all values at once. `parameters` names those to check if
    they contradict the counts.
    """
    reports = result.reports if reports is None else reports
    head = _head(reports, names, name, for_all=for_all)
    rows = _lines(names, [result], name, for_all=for_all)
    wrong = contradictions(result.diagnostics, parameters)
    return "\n".join([head, *rows, *_last(names, result, name), *wrong])


def roll_up_table(
    names: Sequence[str],
    result: RollUp,
    name: str,
    reports: int,
    collection: str = "NAME",
    *,
    for_all: bool = False,
) -> str:
    """Like `table`, with errors under both assumptions about who reported.

    Without names, say what to do; `collection` is the name to do it with.
    """
    independent, shared = result.independent, result.shared
    if shared is independent and names:
        return table(names, independent, name, reports, for_all=for_all)
    if not names:
        return "\n".join([without_candidates(collection), *_last(names, independent, name)])
    head = [
        _head(reports, names, name, for_all=for_all),
        "left: if every report comes from another client; right: also valid if the same clients report in",
        "every window",
    ]
    lines = [*_lines(names, [independent, shared], name, for_all=for_all), *_last(names, independent, name)]
    if independent.other is not None and shared.other is not None and math.isfinite(shared.other[1]):
        lines[-1] += f" (safe: {shared.other[1]:.6f})"
    return "\n".join([*head, *lines, *contradictions(shared.diagnostics)])


def _head(reports: int, names: Sequence[str], name: str, *, for_all: bool) -> str:
    of_names, all_values = number_of(len(names), name), " that hold for all values at once" if for_all else ""
    return f"{number_of(reports, 'report')}, {of_names}, 95 % intervals{all_values}, * significant"


def without_candidates(collection: str) -> str:
    """Say what to do about a collection whose file lists no candidates, so that nothing is estimated."""
    return f"{collection} has no candidates, so no shares are estimated: {search_of_past(collection)}"


def search_of_past(collection: str) -> str:
    """Say how to find texts that are not listed."""
    return f"deniable decode {collection} --grow --last 1d finds frequent texts of the past"


def contradictions(diagnostics: Mapping[str, float], parameters: str = PARAMETERS) -> list[str]:
    """Return a line that says that no true values explain the counts, and what to check, or none."""
    if not contradicts(diagnostics):
        return []
    return [
        f"the counts contradict the parameters ({p_value_text(diagnostics[FIT])}): no true values explain "
        f"them, so these shares mean nothing; check {parameters}, and who reports"
    ]


def incomplete_list(diagnostics: Mapping[str, float]) -> str:
    """Say that the list lacks frequent strings, and how that shows; else nothing."""
    reason = _unexplained_bits(diagnostics) or _unlisted_texts(diagnostics)
    return f"the list is incomplete: {reason}" if reason else ""


def _unexplained_bits(diagnostics: Mapping[str, float]) -> str:
    """Bits of Bloom RAPPOR, if they show it."""
    ratio, limit = diagnostics.get("chi_square_ratio", 0.0), diagnostics.get("chi_square_limit", math.inf)
    if ratio <= limit:
        return ""
    return (
        f"reports have bits that no listed string explains (chi-square ratio {ratio:.2f}, above {limit:.2f})"
    )


def _unlisted_texts(diagnostics: Mapping[str, float]) -> str:
    """Texts that are plain in the counts of local hashing, if there are any."""
    texts = int(diagnostics.get("unlisted_texts", 0))
    if not texts:
        return ""
    verb, them, together = ("is", "it", "") if texts == 1 else ("are", "them", " together")
    return (
        f"{number_of(texts, 'frequent text')} {verb} not on it, with about "
        f"{100 * diagnostics['unlisted_share']:.1f} % of the reports{together}; the listed shares are "
        f"corrected for {them}"
    )


def _lines(names: Sequence[str], results: Sequence[Estimate], name: str, *, for_all: bool) -> list[str]:
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
        + "".join(_errors(result, place, for_all=for_all) for result in results).rstrip()
        for place in order
    ]


def _errors(result: Estimate, place: int, *, for_all: bool) -> str:
    ends = result.for_all if for_all else IntervalEnds(result.low, result.high)
    assert ends is not None  # noqa: S101 - for mypy: all mechanisms have them
    error, low, high = (float(column[place]) for column in (result.std_error, *ends))
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
        unlisted = "other strings" if result.pair is None else "pairs with an unlisted value"
        others = unlisted + (f", and {number_of(screened, name)} not chosen" if screened else "")
        share, error = result.other
        known = f"standard error {error:.6f}" if math.isfinite(error) else "from 0 to 1"
        lines.append(f"{others}: {shown_share(share):.6f}, {known}")
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
        f"{found}: chi-square {test.statistic:.6g} with {number_of(test.degrees, 'degree')}, "
        f"{p_value_text(test.p_value)}"
    ]


def _unlisted(result: Estimate, name: str) -> list[str]:
    """Return lines about strings that the list lacks, if the reports show that it does."""
    misfit, incomplete = result.misfit, incomplete_list(result.diagnostics)
    if misfit is None:
        return [incomplete] if incomplete else []
    lines, bits = [], misfit.places()
    if result.other is not None and math.isinf(result.other[1]):
        lines.append(
            f"reports in fewer than {LEAST_COHORTS} cohorts do not tell candidates from unlisted strings: "
            "none is marked, and every interval is from 0 to 1"
        )
    if unreliable := int(misfit.unreliable.sum()):
        share, their = ("shares", "its") if unreliable == 1 else ("share", "their")
        some = number_of(unreliable, name)
        lines.append(f"? {some} {share} bits with unlisted strings: {their} error is unknown")
    if incomplete:
        lines.append(incomplete)
    if bits:
        named = " ".join(f"{cohort}/{bit}" for cohort, bit in bits[:BITS_SHOWN])
        more = f" and {len(bits) - BITS_SHOWN} more" if len(bits) > BITS_SHOWN else ""
        lines.append(
            f"{number_of(len(bits), 'bit')} that unlisted strings set, as cohort/bit from 0: {named}{more}"
        )
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


def shown_share(share: float) -> float:
    """Return a share for people: noise may take an unbiased one out of [0, 1]."""
    return min(max(share, 0.0), 1.0)


def name_column(
    names: Sequence[str], places: Sequence[int], head: str = "value"
) -> tuple[dict[int, str], int]:
    """Return the printable names at these places, and the width of a column of them under its head.

    Names are cut at NAME_COLUMNS, unless they would then look alike.
    """
    printable = {place: printable_name(names[place]) for place in places}
    cut = {place: cut_name(name) for place, name in printable.items()}
    times = Counter(cut.values())
    shown = {place: name if times[name] == 1 else printable[place] for place, name in cut.items()}
    return shown, max(map(len, [head, *shown.values()]))


def row_names(edges: Sequence[str]) -> list[str]:
    """Return the names of a number's rows, from each of the ascending edges to the next one."""
    return [f"{low} to {high}" for low, high in pairwise(edges)]


def cut_name(name: str) -> str:
    """Return a printable name, with `…` for what is beyond NAME_COLUMNS."""
    return name if len(name) <= NAME_COLUMNS else f"{name[: NAME_COLUMNS - 1]}…"


def printable_name(name: str) -> str:
    """Escape a name from a file: it must not control the terminal, hide blanks at its ends, or be empty."""
    if not name:
        return EMPTY
    is_plain = name.isprintable() and name == name.strip() and name != EMPTY
    return name if is_plain else ascii(name)
