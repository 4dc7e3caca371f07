"""How many of the most frequent strings the prefix tree finds, at which epsilon, with how many false ones.

650,000 reports of strings of 48 bits, 120,000 different ones with Zipf frequencies (exponent 1), levels of 2,
3, 4, 5 and 6 bytes. Beside it is what the published method, PEM (Wang, Li, Jha, IEEE TDSC 2021), found of
the top 32 in our measurement of a log of as many strings of as many bits, with 8 bits a step.
"""

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.estimators.growth.prefix_reports import random_strings, tree_counts
from bench.estimators.populations import zipf_shares
from bench.sections import ResultRow, Section
from deniable.estimators.decoding.hashed.growth.alphabet import any_bytes
from deniable.estimators.decoding.hashed.growth.grow import grow
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree

REPORTS, DIFFERENT, STRING_BYTES, TOP = 650_000, 120_000, 6, 32
LENGTHS = (2, 3, 4, 5, 6)
EXPONENT = 1.0
#: Of the top 32, by epsilon.
GOALS = {4.0: 20, 2.0: 4}
#: Of the top 32, by epsilon, that PEM found.
PUBLISHED = {1.0: "0.5 to 1.5", 2.0: "4 to 6", 4.0: "22.5"}
EPSILONS = (1.0, 2.0, 4.0)
RUNS = 20


@dataclass(frozen=True)
class Search:
    """What one search found.

    Parameters
    ----------
    top : of the 32 most frequent strings.
    found, false : strings found, and those of them that nobody has.
    covered : intervals that hold the true frequency among all clients.
    seconds, cpu_seconds : that growing took, elapsed and of processors, all threads of the process.
    """

    top: int
    found: int
    false: int
    covered: int
    seconds: float
    cpu_seconds: float


def searches(
    epsilon: float, runs: int, reports: int = REPORTS, different: int = DIFFERENT
) -> Iterator[Search]:
    """Yield the searches of this many populations, each with hash functions and strings of its own."""
    mechanism = PrefixTree.from_epsilon(LENGTHS, epsilon)
    for run in range(runs):
        rng = np.random.default_rng([int(10 * epsilon), run])
        texts = random_strings(rng, different, STRING_BYTES)
        clients = rng.multinomial(reports, zipf_shares(different, EXPONENT))
        truth = {text: int(number) for text, number in zip(texts, clients, strict=True) if number}
        counts = tree_counts(rng, texts, clients, mechanism, run)
        start, cpu_start = time.perf_counter(), time.process_time()
        found = grow(counts, mechanism, run, any_bytes())
        times = time.perf_counter() - start, time.process_time() - cpu_start
        most_frequent = set(sorted(truth, key=truth.__getitem__, reverse=True)[:TOP])
        covered = sum(
            low <= truth.get(text, 0) / reports <= high
            for text, low, high in zip(found.texts, found.low, found.high, strict=True)
        )
        false = sum(text not in truth for text in found.texts)
        yield Search(len(most_frequent & set(found.texts)), len(found.texts), false, covered, *times)


def top_strings(runs: int = RUNS) -> Section:
    """Search at each epsilon; figures are means of the runs."""
    rows = [row_of(epsilon, list(searches(epsilon, runs))) for epsilon in EPSILONS]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    about = (
        f"{REPORTS:,} reports of {DIFFERENT:,} strings of 48 bits with shares as 1 / rank, {runs} "
        "searches each. "
        "PEM: measured in another log, of 657,427 strings of 48 bits, 120,978 different ones. Elapsed "
        "time is of "
        "a machine that other programs use, too."
    )
    missed = [
        f"{row['of the top 32']} of the top 32 at epsilon {row['epsilon']}, of {row['goal']} asked"
        for row in rows
        if row["goal"] and float(row["of the top 32"]) < float(row["goal"])
    ]
    below = f"Largest memory of the process {peak:.0f} MiB (goals: 5 s, 1 GiB)."
    return Section(about, rows, below, missed)


def row_of(epsilon: float, done: list[Search]) -> ResultRow:
    """Means of the searches at an epsilon."""
    found, false = (np.array([getattr(each, name) for each in done]) for name in ("found", "false"))
    return {
        "epsilon": epsilon,
        "of the top 32": f"{np.mean([each.top for each in done]):.1f}",
        "PEM, of its top 32": PUBLISHED.get(epsilon, ""),
        "goal": GOALS.get(epsilon, ""),
        "found": f"{found.mean():.1f}",
        "false": f"{false.mean():.2f}",
        "mean share of false": f"{(false / np.maximum(1, found)).mean():.1%}",
        "covering intervals": f"{sum(each.covered for each in done) / max(1, int(found.sum())):.1%}",
        "slowest: CPU, s": f"{max(each.cpu_seconds for each in done):.1f}",
        "slowest: elapsed, s": f"{max(each.seconds for each in done):.1f}",
    }


CASES = {"top strings": top_strings}
