"""Every row of docs/claims.md names pages that exist and a test that exists."""

import re

import pytest

from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "claims.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| claim ", "|---"))
]


def test_rows_are_found_and_no_claim_is_there_twice() -> None:
    assert len(ROWS) > 50
    assert {len(row) for row in ROWS} == {3}
    assert len({(claim, where) for claim, where, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("claim", "where", "test"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_places_and_test_of_a_claim_exist(claim: str, where: str, test: str) -> None:
    for page in where.split(", "):
        folder = REPOSITORY if page == "README.md" else REPOSITORY / "docs"
        assert (folder / page).is_file(), page
    found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", test)
    assert found is not None, test
    source = (REPOSITORY / found[1]).read_text(encoding="utf-8")
    assert re.search(rf"^(?:async )?def {found[2]}\(", source, re.MULTILINE), test
