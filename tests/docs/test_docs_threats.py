"""The figures of docs/threats.md are those of the mechanism."""

import math
import re

from estimators.mechanisms.rappor import Rappor
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "threats.md").read_text(encoding="utf-8")


def test_what_a_thief_of_the_secret_learns_from_one_report() -> None:
    """Permanent bits of two values differ by noise; each shows its value with q against p."""
    (figures,) = re.findall(
        r"At f = ([\d.]+), p =\s([\d.]+), q = ([\d.]+) and (\d+) bits, two values differ in (\d+) bits"
        r"[^,]*, and one report changes the odds\sbetween them by (\d+) nats",
        PAGE,
    )
    f, p, q = map(float, figures[:3])
    bits, differing, nats = map(int, figures[3:])
    mechanism = Rappor.from_probabilities(bits, 2, 8, f, p, q)
    flip = mechanism.f / 2
    expected = bits * 2 * flip * (1 - flip)
    assert round(expected) == differing
    of_a_bit = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    assert round(expected * of_a_bit) == nats
