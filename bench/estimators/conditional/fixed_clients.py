"""What the fixed clients of a cell hold: skewed, smooth and atomic populations."""

import numpy as np

from bench.estimators.populations import Counts, round_to_counts, zipf_shares
from deniable.estimators.arrays import FloatArray

VALUES, LISTED = 40, 20
SKEWED, EVEN, ONE, TWO = "Zipf", "even", "one value", "two values"
SHARES = (SKEWED, EVEN, ONE, TWO)
UNLISTED, FIVE_UNLISTED, ABSENT = "a fifth unlisted", "a fifth unlisted, of five texts", "all unlisted"
TEXTS = (SKEWED, ONE, UNLISTED, ABSENT)
LOG_NORMAL, NORMAL = "log-normal", "normal"
NUMBERS = (LOG_NORMAL, NORMAL, EVEN, ONE, TWO)
DIAGONAL = "diagonal"
PAIRS = (SKEWED, EVEN, ONE, DIAGONAL)
PAIR_SHAPE = (5, 8)


def held(population: str, reports: int, values: int = VALUES) -> Counts:
    """Clients with each value, int64 (values,)."""
    if population == SKEWED:
        return round_to_counts(zipf_shares(values, 1.3), reports)
    if population == EVEN:
        return np.bincount(np.arange(reports) % values, minlength=values)
    shares = np.zeros(values)
    shares[: 1 if population == ONE else 2] = 1 if population == ONE else 0.5
    return round_to_counts(shares, reports)


def held_texts(
    population: str, reports: int, candidates: int
) -> tuple[Counts, tuple[str, ...], tuple[str, ...]]:
    """Clients with each text, int64 (m,); the texts; and the candidates, half of them or more absent."""
    listed = names(candidates, "text")
    match population:
        case "Zipf":
            return held(SKEWED, reports, LISTED), listed[:LISTED], listed
        case "one value":
            return np.array([reports]), listed[:1], listed
        case "a fifth unlisted":
            counts = np.append(held(SKEWED, reports - reports // 5, LISTED), reports // 5)
            return counts, (*listed[:LISTED], "stranger"), listed
        case "a fifth unlisted, of five texts":
            rest = held(EVEN, reports // 5, 5)
            counts = np.append(held(SKEWED, reports - reports // 5, LISTED), rest)
            return counts, (*listed[:LISTED], *names(5, "stranger")), listed
        case _:
            return held(EVEN, reports, 10), names(10, "stranger"), listed


def names(count: int, kind: str = "value") -> tuple[str, ...]:
    """Return so many names."""
    return tuple(f"{kind}-{number}" for number in range(count))


def listed_shares(
    counts: Counts, texts: tuple[str, ...], candidates: tuple[str, ...]
) -> tuple[FloatArray, float]:
    """Return the share of each candidate, float64 (n,), and that of all other texts."""
    share = dict(zip(texts, (counts / counts.sum()).tolist(), strict=True))
    listed = np.array([share.pop(candidate, 0.0) for candidate in candidates])
    return listed, float(sum(share.values()))


def true_numbers(population: str, reports: int) -> FloatArray:
    """Numbers in [0, 1], float64 (reports,); log-normal ones have median .08 and .99 quantile .5."""
    rng = np.random.default_rng(7)
    match population:
        case "log-normal":
            drawn = np.exp(rng.normal(np.log(0.08), 0.8, reports))
        case "normal":
            drawn = rng.normal(0.5, 0.12, reports)
        case "even":
            drawn = rng.random(reports)
        case "one value":
            drawn = np.full(reports, 0.31)
        case _:
            drawn = np.where(np.arange(reports) % 2, 0.2, 0.83)
    return np.clip(drawn, 0, 1)


def true_pairs(population: str, reports: int) -> Counts:
    """Clients with each pair, int64 (5, 8): independent, even, all with one, or each row with one column."""
    if population == DIAGONAL:
        return np.diag(held(EVEN, reports, 5)) @ np.eye(*PAIR_SHAPE, dtype=np.int64)
    if population == SKEWED:
        flat = np.outer(*(1 / np.arange(1, size + 1) for size in PAIR_SHAPE)).ravel()
        return round_to_counts(flat / flat.sum(), reports).reshape(PAIR_SHAPE)
    return held(population, reports, PAIR_SHAPE[0] * PAIR_SHAPE[1]).reshape(PAIR_SHAPE)
