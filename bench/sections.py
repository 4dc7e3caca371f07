"""The one format of results: Markdown files of sections, each measured at once by a case of `parts`.

Under a section's heading stand what was done, when, at which commit, on which machine and under which load it
was measured, and a table. A new measurement replaces its section and leaves the others. `rows_of` reads a
table back: docs/sizing.md and the picture of coverage are made from tables.
"""

import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "bench" / "results"
PROCESSORS = Path("/proc/cpuinfo")

ResultRow = Mapping[str, float | str]


@dataclass(frozen=True)
class Section:
    """What one case measured.

    Parameters
    ----------
    about : method, and what columns mean; Markdown.
    rows : figures by column, the same columns in each; units are in the names of columns.
    below : sentences under the table, Markdown.
    missed : goals that were not met, a sentence each; with one the run ends with status 1.
    """

    about: str
    rows: Sequence[ResultRow]
    below: str = ""
    missed: Sequence[str] = ()


def setting() -> str:
    """Say when, at which commit, where and under which load of other work a measurement begins."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = PROCESSORS.read_text(encoding="utf-8").splitlines() if PROCESSORS.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (
        f"Measured {time.strftime('%Y-%m-%d')} at {_commit()} on {os.cpu_count()} cores, {gibibytes:.0f} "
        f"GiB, {models[0] if models else platform.machine()}, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} before."
    )


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "an unknown commit"


def text_of(section: Section, measured: str) -> str:
    """Return a section's text without its heading."""
    parts = [section.about, measured, table(section.rows).rstrip()]
    parts += [section.below.strip(), "\n".join(f"- **Not met**: {each}" for each in section.missed)]
    return "\n\n".join(filter(None, parts)) + "\n"


def keep(file: Path, name: str, text: str, order: Sequence[str]) -> None:
    """Replace one section of a file, made if need be; sections have this order, others come last."""
    head, found = read(file) if file.exists() else (f"# {file.stem.replace('_', ' ').capitalize()}\n", {})
    found[name] = text
    names = [each for each in order if each in found] + [each for each in found if each not in order]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([head, *(f"## {each}\n\n{found[each]}" for each in names)]), encoding="utf-8")


def read(file: Path) -> tuple[str, dict[str, str]]:
    """Return what is above the first section, and the text of each by its name."""
    head, *parts = re.split(r"^## (.*)\n\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = [each.rstrip("\n") + "\n" for each in (head, *parts[1::2])]
    return texts[0], dict(zip(parts[::2], texts[1:], strict=True))


def rows_of(file: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of a section's first table, cells as they are shown."""
    first = re.search(r"(?:^\|.*\n)+", read(file)[1][name], re.MULTILINE)
    lines = first[0].splitlines() if first else []
    columns, _, *cells = ([each.strip() for each in line.strip("|").split("|")] for line in lines)
    return [dict(zip(columns, row, strict=True)) for row in cells]


def number(cell: str) -> float:
    """Return the number that a cell shows."""
    return float(cell.replace(",", ""))


def table(rows: Sequence[ResultRow]) -> str:
    """Markdown, one line per row."""
    lines = [list(rows[0]), ["---" for _ in rows[0]]]
    lines += [[shown(figure) for figure in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(figure: float | str) -> str:
    """Texts unchanged, integers in full, other numbers to three digits."""
    if isinstance(figure, str):
        return figure
    return f"{figure:,.0f}" if figure == int(figure) or abs(figure) >= 1000 else f"{figure:.3g}"


def percent(share: float, digits: int = 1) -> str:
    """Percent with as many decimals, without the sign."""
    return f"{100 * share:.{digits}f}"
