"""The package `deniable` that applications import, and packages that would hide it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import deniable
from tests.architecture.imports import MODULES, imported, is_in
from tests.support.paths import REPOSITORY


def test_every_public_name_exists() -> None:
    assert {name for name in vars(deniable) if not name.startswith("_")} >= set(deniable.__all__)


def test_project_does_not_import_the_public_face() -> None:
    names = {name: imported(path.read_text()) for name, path in MODULES.items()}
    assert [name for name, imports in names.items() if any(is_in(each, "deniable") for each in imports)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["producers", "estimators", "aggregator", "deploy"])
@pytest.mark.parametrize("file", ["__init__.py", "module.py"])
def test_other_package_of_the_same_name_is_refused(tmp_path: Path, name: str, file: str) -> None:
    """A folder with only `module.py` is a namespace package, which does not hide our regular one."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / file).write_text("raise SystemExit('the wrong package was run')")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(REPOSITORY)!r}]; import deniable"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if file == "module.py":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1
    expected = f"ImportError: another package called {name!r} hides deniable's: {folder / file}"
    assert done.stderr.splitlines()[-1] == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["producers", "estimators", "aggregator"])
def test_command_refuses_it_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    hiding = tmp_path / name / "__init__.py"
    hiding.touch()
    places = [str(tmp_path), str(REPOSITORY)]
    code = f"import sys; sys.path[:0] = {places}; from deploy.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"Error: another package called {name!r} hides deniable's: {hiding}\n"


def test_errors_of_open_producer_are_public() -> None:
    """Every error that its docstring names can be caught without importing anything deeper."""
    documented = set(re.findall(r"[A-Z]\w+Error", deniable.open_producer.__doc__ or ""))
    assert documented
    assert documented <= set(deniable.__all__)
