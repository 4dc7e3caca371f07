"""The test of fit of every estimate: whether any true values at all explain the counts.

An estimate of impossible counts looks surer than any other: it is cut to shares of 0 and 1, with short
intervals. So each estimate has the diagnostic `fit_p_value`; what shows it says if that is below LIMIT.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.detectors.forgery import impossible_p_values
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.mechanisms.mechanism import Mechanism, bits_of, pair_of

#: Name of the diagnostic.
FIT = "fit_p_value"
#: Counts of honest reports are below it in at most one of a million estimates.
LIMIT = 1e-6


class BitNoise(NamedTuple):
    """Noise of reports of bits.

    Parameters
    ----------
    q_star, p_star : probability that a report shows a 1 where the true bit is 1, and where it is 0.
    ones : most true bits of a client that are 1.
    bits : of a report, noise that pads it left out.
    """

    q_star: float
    p_star: float
    ones: int
    bits: int

    @property
    def counter_rates(self) -> tuple[float, float]:
        """As of a mechanism."""
        return self.q_star, self.p_star


def with_fit(
    result: Estimate,
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    mechanism: Mechanism | BitNoise,
    repeats: float = 1.0,
) -> Estimate:
    """Add `fit_p_value` of the counts, of which the estimate is, to its diagnostics."""
    p_value = fit_p_value(counts, sizes, mechanism, repeats)
    return replace(result, diagnostics=result.diagnostics | {FIT: p_value})


def fit_p_value(
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    mechanism: Mechanism | BitNoise,
    repeats: float = 1.0,
) -> float:
    """Return the p-value of all tests together (Bonferroni).

    Tested are each counter; of a pair also each margin, which is k-RR of one field; of bits also how many
    there are in all. The smallest counter of a cohort has the least lower tail, and the largest the least
    upper one, so others need no test.

    Parameters
    ----------
    counts : int64 array (cohorts, width).
    sizes : int64 array (cohorts,), reports, each of another client but for `repeats`.
    mechanism : of the reports, or the noise of their bits.
    repeats : windows, >= 1, in which clients may have reported the same permanent response: so many of their
        reports have the noise of one.
    """
    bounds = [_bound(counts, sizes, mechanism.counter_rates, repeats)]
    noise = mechanism if isinstance(mechanism, BitNoise) else _noise_of(mechanism)
    if noise is not None:
        bounds.append(_bound_of_total(counts, sizes, noise, repeats))
    elif not isinstance(mechanism, BitNoise) and (pair := pair_of(mechanism)) is not None:
        first, second = pair.fields
        cells = counts.reshape(first.k, second.k)
        bounds.append(_bound(cells.sum(axis=1)[None], sizes, (first.p, first.q), repeats))
        bounds.append(_bound(cells.sum(axis=0)[None], sizes, (second.p, second.q), repeats))
    return min(1.0, len(bounds) * min(bounds))


def _noise_of(mechanism: Mechanism) -> BitNoise | None:
    bits = bits_of(mechanism)
    return None if bits is None else BitNoise(bits.q_star, bits.p_star, bits.ones, bits.used_bits)


def _bound(
    counts: NDArray[np.int64], sizes: NDArray[np.int64], rates: tuple[float, float], repeats: float
) -> float:
    extremes = np.column_stack([counts.min(axis=1), counts.max(axis=1)])
    clients = np.ceil(sizes / repeats).astype(np.int64)[:, None]
    extremes = np.minimum(np.rint(extremes / repeats).astype(np.int64), clients)
    return float(impossible_p_values(extremes, clients, *rates).min()) * counts.size


def _bound_of_total(
    counts: NDArray[np.int64], sizes: NDArray[np.int64], noise: BitNoise, repeats: float
) -> float:
    """Bound the probability of so many bits in all, or more.

    Each bit of a client is an independent Bernoulli variable, and at most `ones` of them are the likelier
    kind. Whatever the values, their sum is thus at most one of mean m and variance v, and exceeds m by t with
    probability at most exp(-t^2 / (2 v + 2 t / 3)) (Bernstein's inequality).
    """
    clients = math.ceil(int(sizes.sum()) / repeats)
    zeros = noise.bits - noise.ones
    mean = clients * (noise.ones * noise.q_star + zeros * noise.p_star)
    variance = clients * (
        noise.ones * noise.q_star * (1 - noise.q_star) + zeros * noise.p_star * (1 - noise.p_star)
    )
    beyond = int(counts[:, : noise.bits].sum()) / repeats - mean
    return 1.0 if beyond <= 0 else math.exp(-(beyond**2) / (2 * variance + 2 * beyond / 3))


def contradicts(diagnostics: Mapping[str, float]) -> bool:
    """Whether the counts of an estimate contradict its parameters; False where nothing was tested."""
    return diagnostics.get(FIT, 1.0) < LIMIT
