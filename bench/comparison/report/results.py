"""The results of one run as Markdown, JSON and a picture: ratios first, then figures."""

import json
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import click

from bench.aggregator.results import machine, table
from bench.comparison.peer_environment import version_of
from bench.comparison.report.figure import ResultsPart
from bench.comparison.report.summary import figure_row, shortfall, summary, tally
from bench.comparison.timing.contestant import ROOT
from bench.comparison.timing.rounds import Scale
from deniable.deploy.broker.jars import POM

MARKDOWN = ROOT / "bench" / "results.md"
#: Results of some parts alone; `make bench-recording` and `make bench-streaming` write them.
RECORDING = ROOT / "bench" / "results" / "recording.md"
STREAMING = ROOT / "bench" / "results" / "streaming.md"
TITLE, QUICK = "Beside its peers", "the quick cut"
SUFFIXES = (".md", ".json", ".png")
OURS = ("numpy", "scipy", "cryptography", "faust-streaming", "aiokafka", "kafka-python")
PEERS = (
    "pure-ldp", "multi-freq-ldpy", "numba", "opendp", "scikit-learn", "bytewax", "quixstreams",
    "confluent-kafka", "opentelemetry-sdk",
)  # fmt: skip


def check_writable(markdown_file: Path = MARKDOWN) -> None:
    """Fail before minutes of measuring: click.ClickException if a results file cannot be written."""
    for suffix in SUFFIXES:
        file = markdown_file.with_suffix(suffix)
        try:
            file.open("ab").close()
        except OSError as error:
            raise click.ClickException(
                f"the results cannot be written to {file}: {error.strerror}; make it a file that is yours"
            ) from error


def write(
    parts: Sequence[ResultsPart], failed: Mapping[str, str], scale: Scale, markdown_file: Path = MARKDOWN
) -> None:
    """Write the Markdown, JSON and picture, and print the unmet goals."""
    command = _command(scale, markdown_file)
    figures = [figure for part in parts for figure in part.figures]
    records = json.dumps([each.record() for each in figures], indent=1)
    text = markdown(parts, failed, scale, markdown_file)
    markdown_file.write_text(text, encoding="utf-8")
    markdown_file.with_suffix(".json").write_text(records + "\n", encoding="utf-8")
    title = f"{TITLE}: {QUICK}" if scale.quick else TITLE
    from bench.comparison.report import picture  # here, since to import matplotlib takes half a second

    picture.draw(parts, title, f"By {command} on {_setting()}", markdown_file.with_suffix(".png"))
    unmet = [figure for figure in figures if figure.met is False]
    click.echo(f"{tally(parts)}; {markdown_file}")
    if unjudged := [each for part in parts for each in part.unjudged]:
        click.echo("\n".join(f"not judged: {each}" for each in unjudged))
        click.echo("where a peer is broken, rm -r .peers lets the next run make their environment anew")
    for figure in unmet:
        click.echo(f"not met: {shortfall(figure).replace('**', '')}")


def markdown(
    parts: Sequence[ResultsPart], failed: Mapping[str, str], scale: Scale, markdown_file: Path = MARKDOWN
) -> str:
    """A summary, then all parts; packages that could not be installed come first."""
    text = f"# {TITLE}\n\nBy `{_command(scale, markdown_file)}` on {_setting()}.\n"
    if scale.quick:
        text += f"\n**This is {QUICK}**: smaller sizes and fewer rounds than those of `make bench`.\n"
    text += "".join(f"\n**{peer} could not be installed**: {why}\n" for peer, why in failed.items())
    text += (
        f"\n![How many times better each figure is, and how time and memory grow]({markdown_file.stem}.png)\n"
    )
    return text + summary(parts) + sections(parts)


def sections(parts: Sequence[ResultsPart]) -> str:
    """Results of each part, and why goals could not be judged."""
    return "".join(_section(part) for part in parts)


def _command(scale: Scale, markdown_file: Path) -> str:
    if markdown_file in (RECORDING, STREAMING):
        return f"make bench-{markdown_file.stem}"
    return "make bench-quick" if scale.quick else "make bench"


def _setting() -> str:
    ours = ", ".join(f"{name} {version(name)}" for name in OURS)
    ours = f"{_deniable()}, {ours}, Kafka {_kafka()}"
    peers = ", ".join(f"{name} {version_of(name) or '(missing)'}" for name in PEERS)
    return f"{machine()}; {_processor()}; Python {platform.python_version()}; {ours}; peers: {peers}"


@cache
def _deniable() -> str:
    """Our version, and its commit if git knows it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"deniable {version('deniable')}"
    return f"deniable {version('deniable')} ({shown})"


def _kafka() -> str:
    """Version of the broker that the benchmark starts."""
    found = re.search(
        r"<artifactId>kafka_[\d.]+</artifactId><version>([^<]+)<", POM.read_text(encoding="utf-8")
    )
    return found[1] if found else ""


def _processor() -> str:
    shown = Path("/proc/cpuinfo")
    lines = shown.read_text(encoding="utf-8").splitlines() if shown.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _section(part: ResultsPart) -> str:
    text = f"\n## {part.title}\n\n{part.about}\n"
    if part.figures:
        text += "\n" + table([figure_row(figure) for figure in part.figures])
    for each in part.tables:
        if each.rows:
            text += f"\n### {each.title}\n\n{table(each.rows)}"
    if part.notes:
        text += "\n" + "".join(f"- {note}\n" for note in part.notes)
    if part.unjudged:
        text += "\n" + "".join(f"- **Not judged**: {each}\n" for each in part.unjudged)
    return text
