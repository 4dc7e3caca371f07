"""The first section of the results: every figure with a goal, and its shortfall."""

from collections.abc import Sequence

from bench.aggregator.results import ResultRow, shown, table
from bench.comparison.report.figure import GOAL, Figure, ResultsPart


def summary(parts: Sequence[ResultsPart]) -> str:
    """Markdown: a table over all parts, and a line for each unmet goal."""
    asked = [(part, figure) for part in parts for figure in part.figures if figure.goal is not None]
    unjudged = [each for part in parts for each in part.unjudged]
    if not asked and not unjudged:
        return ""
    unmet = [figure for _, figure in asked if figure.met is False]
    rows: list[ResultRow] = [{"part": part.title, **figure_row(figure)} for part, figure in asked]
    text = f"\n## Summary\n\n{tally(parts)}.\n"
    text += "".join(f"\n**Not judged**: {each}\n" for each in unjudged)
    if rows:
        text += f"\n{table(rows)}"
        text += _beside([figure for part in parts for figure in part.figures], [each for _, each in asked])
    if unmet:
        text += "\n### What fell short\n\n" + "".join(f"- {shortfall(figure)}\n" for figure in unmet)
    return text


def _beside(figures: Sequence[Figure], asked: Sequence[Figure]) -> str:
    """A sentence on the same jobs compared with other rivals than those of the goals."""
    names = tuple(f"{each.name}, beside " for each in asked if each.reference != GOAL)
    others = [
        f"{shown(each.ratio)} ({each.name})"
        for each in figures
        if each.goal is None and each.name.startswith(names)
    ]
    return f"\nComparisons without a goal, times better: {'; '.join(others)}.\n" if others else ""


def tally(parts: Sequence[ResultsPart]) -> str:
    """Number of met goals, out of those that could be judged."""
    judged = [figure.met for part in parts for figure in part.figures if figure.met is not None]
    others = any(part.unjudged for part in parts)
    of = "goals that could be judged are" if others else "goals"
    return f"{sum(judged)} of {len(judged)} {of} met{', others are not judged' if others else ''}"


def figure_row(figure: Figure) -> ResultRow:
    """A figure as a row of a table, ratio first."""
    judged = {True: "", False: ", **not met**", None: ", **not judged**"}[figure.met]
    goal = "" if figure.goal is None else f"{figure.goal:g}{judged}"
    return {
        "figure": figure.name,
        "times better": figure.ratio,
        "goal": goal,
        "ours": figure.ours,
        "reference": figure.reference_value,
        "unit": figure.unit,
        "of": figure.reference,
    }


def shortfall(figure: Figure) -> str:
    """Distance of a figure from its goal, in words."""
    ours, other = shown(figure.ours), shown(figure.reference_value)
    if figure.reference == GOAL:
        return f"**{figure.name}**: {ours} {figure.unit}, of {other} asked."
    better = f"{shown(figure.ratio)} times better than {figure.reference}, of {figure.goal:g} asked"
    return f"**{figure.name}**: {better} ({ours} and {other} {figure.unit})."
