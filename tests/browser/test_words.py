"""How long words of the operating system are kept before they are used: copies of a machine repeat them."""

import json
from pathlib import Path

from tests.support.edge.browser.node import BROWSER, broken_sources, run

WORDS = "randomization/words.js"
START = 1_767_225_600_000
#: Milliseconds since the start; two within a second, later, and after the clock was set back.
TIMES = [0, 999, 1001, 1500, 100_000, 99_500, 40_000, 40_001]


def drawn(source: Path) -> list[int]:
    """How often words were drawn, after each of TIMES."""
    return json.loads(run("words.mjs", str(source / WORDS), json.dumps([START + each for each in TIMES])))


def test_words_are_kept_for_a_second():
    assert drawn(BROWSER / "src") == [1, 1, 2, 2, 3, 3, 4, 4]


def test_words_that_are_kept_for_ever_are_found(tmp_path):
    copied = broken_sources(tmp_path, WORDS, " || (now() - drawn) ** 2 > 1", "")
    assert drawn(copied) == [1] * len(TIMES)
