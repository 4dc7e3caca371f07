"""How many reports chance leaves together where it spreads them over pools."""

from scipy.special import betainc  # of scipy.special: scipy.stats takes half a second to load

#: That a pool of reports spread by chance is smaller than `least_pool`.
SMALLER_PROBABILITY = 1e-6


def least_pool(reports: int, pools: int) -> int:
    """Return the number of reports that all pools have, but for a probability of 1e-6.

    Each report is in one of them by chance, all equally likely. The number in one pool is binomial, and the
    bound of the smallest is the sum over pools.

    Parameters
    ----------
    reports : N, >= 1.
    pools : >= 1.

    Returns
    -------
    In [0, reports / pools].
    """
    low, high = 0, reports // pools
    while low < high:
        middle = (low + high + 1) // 2
        # P(fewer than m of N) of a binomial; exact for numbers beyond 32 bits, too.
        fewer = float(betainc(reports - middle + 1, middle, 1 - 1 / pools))
        if pools * fewer <= SMALLER_PROBABILITY:
            low = middle
        else:
            high = middle - 1
    return low
