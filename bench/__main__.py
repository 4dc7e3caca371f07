"""Measure parts by name, or those of `make bench`: python -m bench [NAME...]; --list shows all.

Each case is written to its file in bench/results as soon as it is measured. One that fails stops no other.
"""

import inspect
import logging
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module

import click

from bench.parts import PARTS, Part, chosen
from bench.sections import FOLDER, ResultRow, Section, keep, read, setting, table, text_of

SIGINT_STATUS, SIGTERM_STATUS = 130, 143

Case = Callable[..., Section]


def cases_of(part: Part) -> Mapping[str, Case]:
    """Return what measures each section of a part, by the section's name."""
    cases: Mapping[str, Case] = import_module(part.module).CASES
    return cases


def measured(name: str, measure: Callable[[], Section], part: Part, order: Sequence[str]) -> list[str]:
    """Measure, print and, unless `order` is empty, write a case; return what it missed, or its failure."""
    began, place = time.monotonic(), setting()
    click.echo(f"\n## {name}\n")
    try:
        section = measure()
    except Exception as error:  # noqa: BLE001 - the other cases measure for minutes, and must not be lost
        where = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{name} failed: {type(error).__name__} at {where.name}, line {where.lineno}: {error}"]
    text = text_of(section, place)
    click.echo(text, nl=False)
    click.echo(f"{name}: {time.monotonic() - began:.0f} s", err=True)
    if part.file and order:
        keep(FOLDER / f"{part.file}.md", name, text, order)
    return [f"{name}: {each}" for each in section.missed]


def with_runs(name: str, measure: Case, runs: int | None) -> Callable[[], Section]:
    """Give a simulation its number of runs; click.UsageError if the case has none."""
    if runs is None:
        return measure
    if "runs" not in inspect.signature(measure).parameters:
        raise click.UsageError(f"--runs is for simulations, which {name} is not")
    return partial(measure, runs=runs)


def listing() -> str:
    """Markdown: each case with its part, when it was measured last, and the minutes of the part."""
    rows: list[ResultRow] = []
    for part in PARTS:
        file = FOLDER / f"{part.file}.md"
        stored = read(file)[1] if part.file and file.exists() else {}
        for name in cases_of(part):
            words = stored.get(name, "").partition("Measured ")[2].split()
            rows.append(
                {
                    "part": part.name,
                    "group": part.group,
                    "case": name,
                    "measured": " ".join(words[:3]),
                    "minutes of the part": part.minutes,
                    "in make bench": "yes" if name in part.in_bench else "",
                    "page": part.page,
                }
            )
    return table(rows)


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--list", "is_list", is_flag=True, help="Show all parts and cases, and when they were measured."
)
@click.option("--only", default="", help="Cases whose names contain this.")
@click.option("--runs", type=click.IntRange(2), help="Of simulations, instead of those of the results.")
@click.option("--print", "is_printed", is_flag=True, help="Write nothing, as with --runs.")
def main(names: tuple[str, ...], only: str, runs: int | None, *, is_list: bool, is_printed: bool) -> None:
    """Measure these parts or groups of parts; exit status 1 if a case fails or misses its goal."""
    if is_list:
        click.echo(listing(), nl=False)
        return
    writes = not (is_printed or runs)
    missed: list[str] = []
    for part in chosen(names):
        order = [each for other in PARTS if other.file == part.file for each in cases_of(other)]
        for name, measure in cases_of(part).items():
            if only in name and (names or name in part.in_bench):
                missed += measured(name, with_runs(name, measure, runs), part, order if writes else [])
        if part.after and writes:
            import_module(part.after).main()
    if missed:
        raise click.ClickException("\n".join(["not all is as it should be", *missed]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_STATUS))  # cleans up folders and children
    logging.getLogger("deniable.producers").setLevel(logging.ERROR)  # advice to keep throwaway secrets
    try:
        main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("ended; what was measured before is written", err=True)
        sys.exit(SIGINT_STATUS)
