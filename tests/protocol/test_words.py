"""How programs write a number of things."""

from deniable.protocol.words import number_of


def test_one_thing_is_no_plural() -> None:
    assert [number_of(count, "window") for count in (0, 1, 2)] == ["0 windows", "1 window", "2 windows"]
    assert number_of(12_000, "report", ",") == "12,000 reports"
