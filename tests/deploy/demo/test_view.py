"""The demo's screen: whatever the terminal's size, progress and addresses are on it, then what fits."""

import io

import pytest
from rich.console import Console

from deniable.deploy.demo.view import live_view, truth_table, verdict
from tests.support.deploy.judged import REAL, judged

STATUS = "7 of 336,776 flights sent"
ADDRESSES = ["live page: http://127.0.0.1:1/", "metrics: http://127.0.0.1:1/metrics"]


def screen(width: int, height: int, collections: int = 2) -> list[str]:
    output = io.StringIO()
    shown = live_view([judged(0, 0)] * collections, STATUS, ADDRESSES, width, height)
    Console(file=output, width=width).print(shown)
    return output.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 50), (60, 24), (50, 13), (60, 5), (80, 3)])
def test_the_screen_holds_all_of_it(width: int, height: int) -> None:
    lines = screen(width, height)
    assert [line.strip() for line in lines[:3]] == [STATUS, *ADDRESSES]
    assert len(lines) <= height


@pytest.mark.parametrize(
    ("width", "height", "rows"), [(80, 24, 2 * 17), (140, 50, 2 * 43), (60, 24, 2 * 6), (60, 12, 0)]
)
def test_as_many_values_as_fit_are_shown(width: int, height: int, rows: int) -> None:
    text = "\n".join(screen(width, height))
    assert text.count("real-") == rows
    assert text.count(f"… {REAL - rows // 2} more") == (2 if rows else 0)


def test_before_the_first_estimate_there_is_nothing_to_fit() -> None:
    assert len(screen(80, 24, collections=0)) == 3


def test_final_table_is_whole_and_marks_what_misses() -> None:
    output = io.StringIO()
    one = judged(missed=2, false=0)
    Console(file=output, width=80).print(truth_table(one, missed=set(one.misses())))
    text = output.getvalue()
    assert (text.count("real-"), text.count("decoy-"), text.count(" miss"), "more" in text) == (
        REAL,
        0,
        2,
        False,
    )


def test_the_verdict_says_what_it_allows() -> None:
    one = judged(2, 1, found=30)
    assert verdict([one]) == [
        "place: 119 of 121 intervals contain the truth; 30 values significant, 1 of 210 decoys among them",
        "intervals: 2 of 121 miss the truth; 5 % are stated to, the check allows 20",
        "decoys: 1 of 30 significant values; 5 % are stated to be, the check allows 10",
    ]
