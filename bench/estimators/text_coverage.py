"""Coverage of the 95 % intervals of texts: local hashing of both kinds, and Bloom RAPPOR.

    python -m bench.estimators.text_coverage [--only TEXT]

Clients hold 105 listed texts and, where said, texts that no list has; 200 candidates are held by nobody.
What clients hold stays the same in all windows of a cell. The functions of Bloom RAPPOR stay, too, as they do
in a collection, so a candidate is covered over windows or is not. Those of local hashing are drawn anew in
each window, since its intervals are over collisions as well; in cells "with one key" they stay.

200 windows of thousands of candidates have a worst one near 88 % if all are covered in 95 %. Of 2,000 windows
that is 93 %, so cells of 2,000 tell whether any candidate is covered in less than 92 %.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import (
    CANDIDATES,
    COVERED_UP,
    DECOYS,
    LISTED,
    Counts,
    bit_counts,
    bloom_mechanism,
    buckets_of,
    covering_texts,
    fixed_counts,
    hashed_counts,
    held_texts,
    texts_of,
)
from deniable.estimators.decoding.bloom import decode
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.frequency.estimate import QUANTILE_975, Estimate
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash

REPORTS = (10_000, 100_000, 1_000_000)
HASHED: dict[str, FunctionPool] = {
    "local-hash, epsilon 1": LocalHash.from_epsilon(1.0),
    "local-hash, epsilon 2": LocalHash.from_epsilon(2.0),
    "local-hash, epsilon 4": LocalHash.from_epsilon(4.0),
    "local-hash-longitudinal, 2 and 1": LongitudinalHash.from_epsilons(2.0, 1.0, 5460),
    "local-hash-longitudinal, 4 and 2": LongitudinalHash.from_epsilons(4.0, 2.0, 2336),
}
#: Share of reports of unlisted texts, and the number of these texts, of local hashing.
UNLISTED = ((0.0, 0), (0.2, 1), (0.2, 30))
#: Cells with functions that stay: mechanisms, reports of a window and of 1,000 rolled up.
ONE_KEY, ONE_KEY_REPORTS = tuple(HASHED), (1_000_000, 1_000_000_000)
#: Bloom RAPPOR: cohorts, reports, share and number of unlisted texts, windows. Each case with unlisted texts
#: is there twice, the second time with the reports of 1,000 windows rolled up.
BLOOM = (
    (8, 336_776, 0.0, 0, 2000),
    (8, 336_776, 0.2, 1, 2000),
    (8, 336_776_000, 0.2, 1, 2000),
    (8, 5_000_000, 0.2, 30, 2000),
    (8, 5_000_000_000, 0.2, 30, 2000),
    (64, 5_000_000, 0.2, 1, 500),
    (64, 5_000_000_000, 0.2, 1, 500),
)
#: The same with `covering_texts` as unlisted ones: cohorts, reports, windows.
COVERING = ((8, 5_000_000, 2000), (8, 5_000_000_000, 2000))
RUNS, LONG_RUNS = 200, 2000
#: Cells of local hashing with 2,000 windows, by name, reports and unlisted texts.
LONG = (
    ("local-hash, epsilon 1", 10_000, 1),
    ("local-hash, epsilon 4", 1_000_000, 1),
    ("local-hash-longitudinal, 2 and 1", 1_000_000, 0),
    ("local-hash-longitudinal, 4 and 2", 100_000, 30),
)
LEAST_COVERED, LEAST_OF_CANDIDATE = 0.93, 0.8
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class TextCell:
    """One cell: coverage over windows, as shares, of candidates by fixed truth.

    Parameters
    ----------
    mechanism, reports, share, unlisted : of the cell; `share` of the reports are of `unlisted` other texts.
    covered : of all candidates in all windows that are not flagged as unreliable.
    first_percent : share of windows of each candidate that cover it or flag it; its quantile of 1 %.
    least : the same, of the worst candidate.
    flagged : share of intervals flagged as unreliable.
    other : share of windows in which `other` is within 1.96 standard errors of the unlisted share.
    covered_up : of the candidates most of whose bits unlisted texts set, share of windows that flag them;
        None where the unlisted texts were not chosen for that.
    """

    mechanism: str
    reports: int
    share: float
    unlisted: int
    windows: int
    covered: float
    first_percent: float
    least: float
    flagged: float
    other: float
    covered_up: float | None = None

    @property
    def name(self) -> str:
        """What `--only` finds it by."""
        return cell_name(self.mechanism, self.reports, self.unlisted)


def text_cell(
    mechanism: str,
    held: Counts,
    share: float,
    windows: int,
    window: Callable[[np.random.Generator], Estimate],
    covered_up: NDArray[np.bool_] | None = None,
) -> TextCell:
    """Estimate windows of fixed clients, and count what intervals hold.

    `covered_up`, bool (305,), has the candidates whose bits unlisted texts were chosen to set.
    """
    reports, rng = int(held.sum()), np.random.default_rng(1)
    truth = np.append(held[:LISTED], np.zeros(DECOYS)) / reports
    covered, flagged, other = [], [], []
    for _ in range(windows):
        found = window(rng)
        covered.append((found.low <= truth) & (truth <= found.high))
        flagged.append(found.misfit.unreliable if found.misfit else np.zeros(len(truth), np.bool_))
        of_others, error = found.other or (0.0, np.inf)
        other.append(abs(of_others - share) <= QUANTILE_975 * error)
    held_or_flagged, told = (np.array(covered) | np.array(flagged)).mean(axis=0), ~np.array(flagged)
    return TextCell(
        mechanism,
        reports,
        share,
        len(held) - LISTED,
        windows,
        float(np.array(covered)[told].mean()),
        float(np.quantile(held_or_flagged, 0.01)),
        float(held_or_flagged.min()),
        float(1 - told.mean()),
        float(np.mean(other)),
        None if covered_up is None else float(1 - told[:, covered_up].mean()),
    )


def hashed_cell(name: str, reports: int, share: float, unlisted: int, windows: int = RUNS) -> TextCell:
    """Local hashing, with functions drawn anew in each window."""
    mechanism, held, texts = HASHED[name], held_texts(reports, share, unlisted), texts_of(unlisted)

    def window(rng: np.random.Generator) -> Estimate:
        key = int(rng.integers(2**63))
        return decode_hashed(hashed_counts(held, texts, mechanism, key, rng), CANDIDATES, mechanism, key)

    return text_cell(name, held, share, windows, window)


def one_key_cell(name: str, reports: int, share: float, unlisted: int, windows: int = RUNS) -> TextCell:
    """Local hashing, with functions that stay the same in all windows."""
    mechanism, held, texts = HASHED[name], held_texts(reports, share, unlisted), texts_of(unlisted)
    key = 1
    functions = hash_functions_of(mechanism, key)
    buckets = buckets_of(functions.words(texts), functions)

    def window(rng: np.random.Generator) -> Estimate:
        return decode_hashed(fixed_counts(held, buckets, mechanism, rng), CANDIDATES, mechanism, key)

    return text_cell(f"{name}, with one key", held, share, windows, window)


def bloom_cell(cohorts: int, reports: int, share: float, unlisted: int, windows: int = RUNS) -> TextCell:
    """Bloom RAPPOR: functions stay the same."""
    mechanism = bloom_mechanism(cohorts)
    held, texts = held_texts(reports, share, unlisted), texts_of(unlisted)

    def window(rng: np.random.Generator) -> Estimate:
        return decode(*bit_counts(held, texts, mechanism, rng), CANDIDATES, mechanism)

    return text_cell(f"rappor, {cohorts} cohorts", held, share, windows, window)


def covering_cell(cohorts: int, reports: int, windows: int = RUNS) -> TextCell:
    """Bloom RAPPOR, with a fifth of the reports in unlisted texts that set most bits of two candidates."""
    mechanism = bloom_mechanism(cohorts)
    unlisted = [each for candidate in COVERED_UP for each in covering_texts(candidate, mechanism)]
    rare = reports // 5 // len(unlisted)
    listed = held_texts(reports - rare * len(unlisted), 0.0, 0)
    held, texts = np.append(listed, np.full(len(unlisted), rare)), [*CANDIDATES[:LISTED], *unlisted]

    def window(rng: np.random.Generator) -> Estimate:
        return decode(*bit_counts(held, texts, mechanism, rng), CANDIDATES, mechanism)

    is_covered_up = np.isin(CANDIDATES, COVERED_UP)
    return text_cell(f"rappor, {cohorts} cohorts", held, 0.2, windows, window, is_covered_up)


def text_table(cells: list[TextCell]) -> str:
    """Markdown: percent covered, a line for each cell, and what all cells of a kind cover."""
    lines = [
        "| mechanism | N | unlisted | windows | covered | 1 % of candidates | worst one | flagged"
        " | of covered-up ones | other |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in cells:
        unlisted = f"{100 * one.share:.0f} % in {one.unlisted}" if one.unlisted else "none"
        figures = (one.covered, one.first_percent, one.least, one.flagged, one.covered_up, one.other)
        shown = " | ".join("" if each is None else f"{100 * each:.1f}" for each in figures)
        lines.append(f"| {one.mechanism} | {one.reports:,} | {unlisted} | {one.windows:,} | {shown} |")
    kinds = dict.fromkeys(_kind(one) for one in cells)
    lasts = [_summary(kind, [one for one in cells if _kind(one) == kind]) for kind in kinds]
    return "\n".join([*lines, "", *lasts, ""])


def _kind(cell: TextCell) -> str:
    name, *others = cell.mechanism.split(", ")
    return f"{name} with one key" if "with one key" in others else name


def _summary(kind: str, cells: list[TextCell]) -> str:
    covered, most = [one.covered for one in cells], max(one.windows for one in cells)
    longest = min(one.least for one in cells if one.windows == most)
    return (
        f"All of {kind}: covered {100 * np.mean(covered):.1f} %, least cell {100 * min(covered):.1f} %,"
        f" least candidate {100 * min(one.least for one in cells):.1f} %,"
        f" of cells with {most:,} windows {100 * longest:.1f} %.  "
    )


def all_cells(most: int) -> dict[str, Callable[[], TextCell]]:
    """What simulates each cell, by its name, with at most so many windows."""
    cells: dict[str, Callable[[], TextCell]] = {}
    for name, reports, (share, unlisted) in product(HASHED, REPORTS, UNLISTED):
        windows = min(most, LONG_RUNS if (name, reports, unlisted) in LONG else RUNS)
        cells[cell_name(name, reports, unlisted)] = partial(
            hashed_cell, name, reports, share, unlisted, windows
        )
    for name, reports, (share, unlisted) in product(ONE_KEY, ONE_KEY_REPORTS, UNLISTED):
        cells[cell_name(f"{name}, with one key", reports, unlisted)] = partial(
            one_key_cell, name, reports, share, unlisted, min(most, RUNS)
        )
    for cohorts, reports, share, unlisted, windows in BLOOM:
        cells[cell_name(f"rappor, {cohorts} cohorts", reports, unlisted)] = partial(
            bloom_cell, cohorts, reports, share, unlisted, min(most, windows)
        )
    for cohorts, reports, windows in COVERING:
        texts = sum(len(covering_texts(each, bloom_mechanism(cohorts))) for each in COVERED_UP)
        cells[cell_name(f"rappor, {cohorts} cohorts", reports, texts)] = partial(
            covering_cell, cohorts, reports, min(most, windows)
        )
    return cells


def cell_name(mechanism: str, reports: int, unlisted: int) -> str:
    """The name of a cell: `rappor, 8 cohorts, 5,000,000 reports, 30 unlisted`."""
    return f"{mechanism}, {reports:,} reports, {unlisted} unlisted"


@click.command()
@click.option("--runs", type=click.IntRange(1), default=LONG_RUNS, help="Most windows of a cell.")
@click.option("--only", default="", help="Simulate cells whose names contain this, and keep the others.")
def main(runs: int, only: str) -> None:
    """Write the table to bench/results after each cell, and print it.

    Exit status 1 if a cell is covered below 93 %, or a candidate whose functions stay below 80 %.
    """
    RESULTS.mkdir(exist_ok=True)
    cells: list[TextCell] = []
    for name, simulate in all_cells(runs).items():
        if only in name:
            cells = stored_cells(RESULTS, simulate())
            click.echo(name)
    click.echo(text_table(cells), nl=False)
    if min(one.covered for one in cells) < LEAST_COVERED:
        raise click.ClickException("a cell is covered below 93 %")
    stay = [one.least for one in cells if one.mechanism.startswith("rappor") or "one key" in one.mechanism]
    if stay and min(stay) < LEAST_OF_CANDIDATE:
        raise click.ClickException("a candidate is covered below 80 %")


def stored_cells(folder: Path, newer: TextCell) -> list[TextCell]:
    """Put a cell in its place among those stored, store them and their table, and return them."""
    stored = folder / "text_coverage.json"
    every = [TextCell(**one) for one in json.loads(stored.read_text())] if stored.exists() else []
    known = {one.name: one for one in [*every, newer]}
    cells = [known[name] for name in all_cells(1) if name in known]
    stored.write_text(json.dumps([asdict(one) for one in cells], indent=1) + "\n")
    (folder / "text_coverage.md").write_text(text_table(cells))
    return cells


if __name__ == "__main__":
    main()
