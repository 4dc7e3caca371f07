"""Requirements of tests beside Python: if one is missing they are skipped, but fail in CI; and of time."""

import os
import shutil
from collections.abc import Collection, Iterable
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def tool(name: str, where: str, excused_by: str) -> str:
    """Return the path of a program, else skip the test; in CI skip only if a variable gives a reason.

    Parameters
    ----------
    name : of the program.
    where : to get it.
    excused_by : the variable, such as NO_KUSTOMIZE.
    """
    found = shutil.which(name)
    if found is None:
        if reason := os.environ.get(excused_by):
            pytest.skip(f"no {name}: {reason}")
        missing(f"{name} is missing: {where}; or give {excused_by} a reason")
    return found


def but_for(often: Collection[object], cases: Iterable[object], mark: pytest.MarkDecorator) -> list[object]:
    """Return these cases as parameters, those not in `often` with a mark of tests that are run less."""
    cases = list(cases)
    assert all(each in cases for each in often), "a case has another name now"
    return [each if each in often else pytest.param(each, marks=mark) for each in cases]
