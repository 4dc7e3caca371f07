"""Wrong arguments of `deniable.grow` are refused before the collection file is read."""

from functools import partial

from deniable.analysis.functions.decoding import grow
from tests.support.messages import PinMessages


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            f"rate is {rate}": partial(grow, "absent.yaml", collection="search", rate=rate)
            for rate in (0, 1, 3, -0.1, float("nan"))
        }
        | {
            "a character that no text has": partial(
                grow, "absent.yaml", collection="search", alphabet="a\ud800"
            )
        }
    )
