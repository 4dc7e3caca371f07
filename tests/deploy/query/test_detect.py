"""P-values are written so that people can read them."""

import pytest

from deniable.deploy.query.detectors.detect import chance


@pytest.mark.parametrize(
    ("p_value", "words"),
    [
        (1.0, "100 % of"),
        (0.0104, "1 % of"),
        (0.0099, "1 of 100"),
        (3.4e-7, "1 of 2,900,000"),
        (1e-12, "1 of 1,000,000,000,000"),
        (9e-13, "less than 1 of 10^12"),
        (0.0, "less than 1 of 10^12"),
    ],
)
def test_a_p_value_is_a_share_of_runs(p_value: float, words: str) -> None:
    assert chance(p_value) == words
