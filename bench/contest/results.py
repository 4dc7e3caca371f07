"""The results of one run as Markdown and JSON: ratios first, then figures."""

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import click

from bench.aggregator_results import Row, machine, table
from bench.contest.contestant import ROOT
from bench.contest.figure import Figure, Part
from bench.contest.rounds import Scale

MARKDOWN = ROOT / "bench" / "results.md"
JSON = ROOT / "bench" / "results.json"
OURS = ("numpy", "scipy", "cryptography", "faust-streaming", "aiokafka", "kafka-python")


def write(parts: Sequence[Part], failed: Mapping[str, str], scale: Scale) -> None:
    """Write both files, and say which goals are not met."""
    figures = [figure for part in parts for figure in part.figures]
    MARKDOWN.write_text(markdown(parts, failed, scale), encoding="utf-8")
    JSON.write_text(json.dumps([each.record() for each in figures], indent=1) + "\n", encoding="utf-8")
    goals = [figure for figure in figures if figure.goal is not None]
    met = sum(bool(figure.met) for figure in goals)
    click.echo(f"{met} of {len(goals)} goals met; bench/results.md")
    for figure in goals:
        if not figure.met:
            click.echo(f"not met: {figure.name}: {figure.ratio:.3g} of {figure.goal:.3g}")


def markdown(parts: Sequence[Part], failed: Mapping[str, str], scale: Scale) -> str:
    """All parts; what could not be installed stands before them."""
    command = "make bench-quick" if scale.quick else "make bench"
    text = f"# Beside its peers\n\nBy `{command}` on {_setting()}.\n"
    text += "".join(f"\n**{peer} could not be installed**: {why}\n" for peer, why in failed.items())
    return text + "".join(_section(part) for part in parts)


def _setting() -> str:
    ours = ", ".join(f"{name} {version(name)}" for name in OURS)
    return f"{machine()}; {_processor()}; Python {platform.python_version()}, {ours}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _section(part: Part) -> str:
    text = f"\n## {part.title}\n\n{part.about}\n"
    if part.figures:
        text += "\n" + table([_row(figure) for figure in part.figures])
    for each in part.tables:
        text += f"\n### {each.title}\n\n{table(each.rows)}"
    if part.notes:
        text += "\n" + "".join(f"- {note}\n" for note in part.notes)
    return text


def _row(figure: Figure) -> Row:
    return {
        "": figure.name,
        "times better": figure.ratio,
        "goal": "" if figure.goal is None else f"{figure.goal:g}{'' if figure.met else ', **not met**'}",
        "ours": figure.ours,
        "reference": figure.reference_value,
        "unit": figure.unit,
        "of": figure.reference,
    }
