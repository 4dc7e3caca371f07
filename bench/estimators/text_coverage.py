"""Coverage of the 95 % intervals of texts: local hashing of both kinds, and Bloom RAPPOR.

Clients hold 105 listed texts and, where said, texts that no list has; 200 candidates are held by nobody.
What clients hold stays the same in all windows of a cell. The functions of Bloom RAPPOR stay, too, as they do
in a collection, so a candidate is covered over windows or is not. Those of local hashing are drawn anew in
each window, since its intervals are over collisions as well; in cells "with one key" they stay.

200 windows of thousands of candidates have a worst one near 88 % if all are covered in 95 %. Of 2,000 windows
that is 93 %, so cells of 2,000 tell whether any candidate is covered in less than 92 %.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product

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
from bench.sections import ResultRow, Section, percent
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
#: Of cells with functions that stay: reports of a window and of 1,000 rolled up.
ONE_KEY_REPORTS = (1_000_000, 1_000_000_000)
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
ABOUT = """\
Percent. `covered` is of all candidates in all windows that are not flagged as unreliable; `1 % of
candidates` and `worst one` are the shares of windows that cover a candidate or flag it; `other` the share
of windows in which it is within 1.96 standard errors of the unlisted share."""


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

    def row(self) -> ResultRow:
        """Row of the table, percent."""
        return {
            "mechanism": self.mechanism,
            "N": self.reports,
            "unlisted": f"{percent(self.share, 0)} % in {self.unlisted}" if self.unlisted else "none",
            "windows": self.windows,
            "covered": percent(self.covered),
            "1 % of candidates": percent(self.first_percent),
            "worst one": percent(self.least),
            "flagged": percent(self.flagged),
            "of covered-up ones": "" if self.covered_up is None else percent(self.covered_up),
            "other": percent(self.other),
        }


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


def section_of(cells: Iterable[TextCell], *, functions_stay: bool) -> Section:
    """All cells of a kind, and what they cover."""
    done = list(cells)
    covered, most = [one.covered for one in done], max(one.windows for one in done)
    least = min(one.least for one in done)
    below = (
        f"Covered {percent(float(np.mean(covered)))} %, least cell {percent(min(covered))} %, least "
        "candidate "
        f"{percent(least)} %, of cells with {most:,} windows "
        f"{percent(min(one.least for one in done if one.windows == most))} %."
    )
    missed = ["a cell is covered below 93 %"] if min(covered) < LEAST_COVERED else []
    missed += ["a candidate is covered below 80 %"] if functions_stay and least < LEAST_OF_CANDIDATE else []
    return Section(ABOUT, [one.row() for one in done], below, missed)


def hashed(kind: str, runs: int = LONG_RUNS) -> Section:
    """Local hashing of a kind, with at most so many windows."""
    grid = product(_of(kind), REPORTS, UNLISTED)
    return section_of(
        (
            hashed_cell(name, reports, *unlisted, min(runs, _windows(name, reports, unlisted[1])))
            for name, reports, unlisted in grid
        ),
        functions_stay=False,
    )


def one_key(kind: str, runs: int = RUNS) -> Section:
    """The same with functions that stay."""
    grid = product(_of(kind), ONE_KEY_REPORTS, UNLISTED)
    return section_of(
        (one_key_cell(name, reports, *unlisted, runs) for name, reports, unlisted in grid),
        functions_stay=True,
    )


def _of(kind: str) -> list[str]:
    return [name for name in HASHED if name.partition(",")[0] == kind]


def _windows(name: str, reports: int, unlisted: int) -> int:
    return LONG_RUNS if (name, reports, unlisted) in LONG else RUNS


def bloom(runs: int = LONG_RUNS) -> Section:
    """Bloom RAPPOR."""
    cells = (
        bloom_cell(cohorts, reports, share, unlisted, min(runs, windows))
        for cohorts, reports, share, unlisted, windows in BLOOM
    )
    return section_of(cells, functions_stay=True)


def covering(runs: int = LONG_RUNS) -> Section:
    """Bloom RAPPOR with candidates whose bits are covered up."""
    cells = (covering_cell(cohorts, reports, min(runs, windows)) for cohorts, reports, windows in COVERING)
    return section_of(cells, functions_stay=True)


KINDS = ("local-hash", "local-hash-longitudinal")
CASES = {
    **{kind: partial(hashed, kind) for kind in KINDS},
    "rappor": bloom,
    "rappor, two candidates covered up": covering,
    **{f"{kind} with one key": partial(one_key, kind) for kind in KINDS},
}
