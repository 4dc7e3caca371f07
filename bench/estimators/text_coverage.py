"""Coverage of the 95 % intervals of texts: local hashing of both kinds, and Bloom RAPPOR.

    python -m bench.estimators.text_coverage

Clients hold 105 listed texts and, where said, texts that no list has; 200 candidates are held by nobody.
What clients hold stays the same in all windows of a cell. The functions of Bloom RAPPOR stay, too, as they do
in a collection, so a candidate is covered over windows or is not. Those of local hashing are drawn anew in
each window, since its intervals are over collisions as well.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import round_to_counts, zipf_shares
from estimators.decoding.bloom import decode
from estimators.decoding.design import bloom_design
from estimators.decoding.hashed.decode import decode_hashed
from estimators.frequency.estimate import QUANTILE_975, Estimate
from estimators.mechanisms.hashing.function_pool import FunctionPool
from estimators.mechanisms.hashing.hash_functions import hash_functions_of
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.rappor import Rappor

LISTED, DECOYS = 105, 200
CANDIDATES = [f"real-{i}" for i in range(LISTED)] + [f"decoy-{i}" for i in range(DECOYS)]
REPORTS = (10_000, 100_000, 1_000_000)
HASHED: dict[str, FunctionPool] = {
    "local-hash, epsilon 1": LocalHash.from_epsilon(1.0),
    "local-hash, epsilon 2": LocalHash.from_epsilon(2.0),
    "local-hash, epsilon 4": LocalHash.from_epsilon(4.0),
    "local-hash-longitudinal, 2 and 1": LongitudinalHash.from_epsilons(2.0, 1.0),
    "local-hash-longitudinal, 4 and 2": LongitudinalHash.from_epsilons(4.0, 2.0),
}
#: Share of reports of unlisted texts, and the number of these texts, of local hashing.
UNLISTED = ((0.0, 0), (0.2, 1), (0.2, 30))
#: Bloom RAPPOR: cohorts, reports, share and number of unlisted texts, largest number of windows. The reports
#: of the last one are those of 1,000 windows rolled up.
BLOOM = (
    (8, 336_776, 0.0, 0, 200),
    (8, 336_776, 0.2, 1, 200),
    (8, 5_000_000, 0.2, 30, 200),
    (64, 5_000_000, 0.2, 1, 40),
    (8, 5_000_000_000, 0.2, 30, 200),
)
RUNS = 200
LEAST_COVERED, LEAST_OF_CANDIDATE = 0.93, 0.8
RESULTS = Path(__file__).parents[1] / "results"

Counts = NDArray[np.int64]


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


def held_texts(reports: int, share: float, unlisted: int) -> Counts:
    """Clients with each listed and unlisted text, int64 (105 + unlisted,), both by Zipf's law."""
    rare = round(reports * share)
    listed = round_to_counts(zipf_shares(LISTED, 1.0), reports - rare)
    return np.append(listed, round_to_counts(zipf_shares(unlisted, 1.0), rare)) if unlisted else listed


def texts_of(unlisted: int) -> list[str]:
    """The texts of `held_texts`."""
    return CANDIDATES[:LISTED] + [f"stranger-{i}" for i in range(unlisted)]


def hashed_counts(
    held: Counts, texts: list[str], mechanism: FunctionPool, hash_key: int, rng: np.random.Generator
) -> Counts:
    """Reports per function and bucket, int64 (C g,), one report of each client."""
    functions = hash_functions_of.__wrapped__(mechanism, hash_key)  # a key is used once: not kept
    words = functions.words(texts).repeat(held)
    drawn = rng.integers(mechanism.hash_functions, size=len(words))
    bucket = functions.buckets(words, drawn)
    lie = rng.integers(mechanism.hash_buckets - 1, size=len(words))
    lie += lie >= bucket
    shown = np.where(rng.random(len(words)) < mechanism.response.p, bucket, lie)
    return np.bincount(drawn * mechanism.hash_buckets + shown, minlength=mechanism.width)


def bit_counts(
    held: Counts, texts: list[str], mechanism: Rappor, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Reports that show each bit, int64 (cohorts, bits), and reports per cohort, int64 (cohorts,)."""
    clients = rng.multinomial(held, np.full(mechanism.cohorts, 1 / mechanism.cohorts))
    sizes = clients.sum(axis=0)
    design = bloom_design(texts, mechanism).toarray().reshape(mechanism.cohorts, mechanism.bits, -1)
    ones = np.einsum("cbv,vc->cb", design, clients).astype(np.int64)
    shown = rng.binomial(ones, mechanism.q_star) + rng.binomial(sizes[:, None] - ones, mechanism.p_star)
    return shown, sizes


def text_cell(
    mechanism: str,
    held: Counts,
    share: float,
    windows: int,
    window: Callable[[np.random.Generator], Estimate],
) -> TextCell:
    """Estimate windows of fixed clients, and count what intervals hold."""
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
    )


def hashed_cell(name: str, reports: int, share: float, unlisted: int, windows: int = RUNS) -> TextCell:
    """Local hashing, with functions drawn anew in each window."""
    mechanism, held, texts = HASHED[name], held_texts(reports, share, unlisted), texts_of(unlisted)

    def window(rng: np.random.Generator) -> Estimate:
        key = int(rng.integers(2**63))
        return decode_hashed(hashed_counts(held, texts, mechanism, key, rng), CANDIDATES, mechanism, key)

    return text_cell(name, held, share, windows, window)


def bloom_cell(cohorts: int, reports: int, share: float, unlisted: int, windows: int = RUNS) -> TextCell:
    """Bloom RAPPOR of 128 bits and 2 hashes, f .25, p .35, q .65: functions stay the same."""
    mechanism = Rappor.from_probabilities(128, 2, cohorts, 0.25, 0.35, 0.65)
    held, texts = held_texts(reports, share, unlisted), texts_of(unlisted)

    def window(rng: np.random.Generator) -> Estimate:
        return decode(*bit_counts(held, texts, mechanism, rng), CANDIDATES, mechanism)

    return text_cell(f"rappor, {cohorts} cohorts", held, share, windows, window)


def text_table(cells: list[TextCell]) -> str:
    """Markdown: percent covered, a line for each cell, and what all cells of a kind cover."""
    lines = [
        "| mechanism | N | unlisted | covered | 1 % of candidates | worst one | flagged | other |",
        "|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for one in cells:
        unlisted = f"{100 * one.share:.0f} % in {one.unlisted}" if one.unlisted else "none"
        figures = (one.covered, one.first_percent, one.least, one.flagged, one.other)
        shown = " | ".join(f"{100 * each:.1f}" for each in figures)
        lines.append(f"| {one.mechanism} | {one.reports:,} | {unlisted} | {shown} |")
    kinds = dict.fromkeys(one.mechanism.split(",")[0] for one in cells)
    lasts = [_summary(kind, [one for one in cells if one.mechanism.split(",")[0] == kind]) for kind in kinds]
    return "\n".join([*lines, "", *lasts, ""])


def _summary(kind: str, cells: list[TextCell]) -> str:
    covered = [one.covered for one in cells]
    return (
        f"All of {kind}: covered {100 * np.mean(covered):.1f} %, least cell {100 * min(covered):.1f} %,"
        f" least candidate {100 * min(one.least for one in cells):.1f} %.  "
    )


@click.command()
@click.option("--runs", type=click.IntRange(1), default=RUNS, show_default=True, help="Windows of each cell.")
def main(runs: int) -> None:
    """Print the table and write it to bench/results.

    Exit status 1 if a cell is covered below 93 %, or a candidate of Bloom RAPPOR below 80 %.
    """
    cells = [
        hashed_cell(name, reports, share, unlisted, runs)
        for name in HASHED
        for reports in REPORTS
        for share, unlisted in UNLISTED
    ]
    bloom = [
        bloom_cell(cohorts, reports, share, unlisted, min(most, runs))
        for cohorts, reports, share, unlisted, most in BLOOM
    ]
    found = text_table([*cells, *bloom])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "text_coverage.md").write_text(found)
    figures = json.dumps([asdict(one) for one in [*cells, *bloom]], indent=1)
    (RESULTS / "text_coverage.json").write_text(figures + "\n")
    click.echo(found, nl=False)
    if min(one.covered for one in [*cells, *bloom]) < LEAST_COVERED:
        raise click.ClickException("a cell is covered below 93 %")
    if min(one.least for one in bloom) < LEAST_OF_CANDIDATE:
        raise click.ClickException("a candidate is covered below 80 %")


if __name__ == "__main__":
    main()
