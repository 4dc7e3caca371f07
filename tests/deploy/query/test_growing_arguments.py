"""Wrong arguments of `deniable.grow` are refused before the collection file is read."""

import pytest

from analysis.errors import WrongArgumentError
from deploy.query.decoding.any_text import grow


@pytest.mark.parametrize("rate", [0, 1, 3, -0.1, float("nan")])
def test_a_rate_out_of_range_is_refused_before_anything_is_read(rate: float) -> None:
    with pytest.raises(WrongArgumentError, match=r"rate must be in \(0, 1\), got "):
        grow("absent.yaml", collection="search", rate=rate)


def test_a_character_that_no_text_has_is_refused_before_anything_is_read() -> None:
    with pytest.raises(WrongArgumentError, match=r"alphabet must be characters that UTF-8 has, got U\+D800"):
        grow("absent.yaml", collection="search", alphabet="a\ud800")
