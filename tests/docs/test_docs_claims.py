"""Every row of docs/claims.md names pages that exist and a test that exists."""

import re

from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGE = (DOCS / "claims.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| claim ", "|---"))
]


def test_rows_are_found_and_no_claim_is_there_twice() -> None:
    assert len(ROWS) > 50
    assert {len(row) for row in ROWS} == {3}
    assert len({(claim, where) for claim, where, _ in ROWS}) == len(ROWS)


def faults(where: str, test: str) -> list[str]:
    """Return what a row names that does not exist: pages, the test's file, or the test in it."""
    folders = {page: REPOSITORY if page == "README.md" else DOCS for page in where.split(", ")}
    absent = [f"no page {page}" for page, folder in folders.items() if not (folder / page).is_file()]
    found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", test)
    if found is None or not (file := REPOSITORY / found[1]).is_file():
        return [*absent, f"no test {test}"]
    defined = re.search(rf"^(?:async )?def {found[2]}\(", file.read_text(encoding="utf-8"), re.MULTILINE)
    return absent if defined else [*absent, f"no test {test}"]


def test_pages_and_tests_of_claims_exist() -> None:
    wrong = [f"{claim}: {fault}" for claim, where, test in ROWS for fault in faults(where, test)]
    assert wrong == [], "\n".join(wrong)


def test_pages_and_tests_that_do_not_exist_are_found() -> None:
    file = "tests/docs/test_docs_claims.py"
    assert faults("README.md, limits.md", f"`{file}::test_pages_and_tests_of_claims_exist`") == []
    assert faults("limits.md, no.md", f"`{file}::test_no`") == ["no page no.md", f"no test `{file}::test_no`"]
    assert faults("README.md", "`tests/no.py::test_no`") == ["no test `tests/no.py::test_no`"]
