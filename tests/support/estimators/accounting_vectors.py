"""The accounting vectors, and the privacy loss of each."""

import json
import math
from fractions import Fraction
from typing import Any

from deniable.estimators.accounting.privacy_loss import PrivacyLoss
from tests.support.paths import VECTORS

VECTORS: dict[str, Any] = json.loads((VECTORS / "accounting.json").read_text(encoding="utf-8"))


def loss_of(row: dict[str, Any]) -> PrivacyLoss:
    """Return the loss of one report of the ideal mechanism, without integer thresholds."""
    match row["mechanism"]:
        case "krr" | "binary_rr":
            return ideal_krr(row.get("k", 2), row["epsilon"])
        case "rappor_bloom":
            return ideal_bits(row["p_star"], row["q_star"], row["hashes"])
        case "rappor_onehot" | "k_rappor":
            ones = row.get("hot", 1)
            p_star = 1 / (1 + math.exp(row["epsilon"] / (2 * ones)))
            return ideal_bits(p_star, 1 - p_star, ones)
    raise ValueError(row["mechanism"])


def ideal_krr(k: int, epsilon: float) -> PrivacyLoss:
    odds = Fraction(math.exp(epsilon))
    return PrivacyLoss.of_three_atoms(odds / (odds + k - 1), 1 / (odds + k - 1))


def ideal_bits(p_star: float, q_star: float, ones: int) -> PrivacyLoss:
    p, q = Fraction(p_star), Fraction(q_star)
    return PrivacyLoss.of_three_atoms(q * (1 - p), p * (1 - q), ones)
