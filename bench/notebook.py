"""Run the notebook `docs/analysis.ipynb` on the flights, and store it with what it shows: `make notebook`.

Its figures depend on nothing but the files of `flights_files`; a test compares them.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import click
import nbformat
from nbclient import NotebookClient

from bench.flights_files import flights_by_day, write

REPOSITORY = Path(__file__).parents[1]
FILE = REPOSITORY / "docs" / "analysis.ipynb"
SECONDS = 240


def executed(notebook: Any, folder: Path) -> Any:
    """Run all cells on the files of a folder, and return the notebook with outputs, without times.

    Parameters
    ----------
    notebook : a nbformat.NotebookNode, which is changed.
    folder : that `flights_files` wrote.
    """
    search = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "FLIGHTS": str(folder), "PYTHONPATH": search}
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    client.execute(env=environment)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def texts(notebook: Any) -> list[list[str]]:
    """What each code cell shows as text; pictures as the word "picture"."""
    return [[_text(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: Any) -> str:
    data = output.get("data", {})
    return "picture" if "image/png" in data else str(data.get("text/plain", output.get("text", "")))


@click.command()
def main() -> None:
    """Write the notebook again."""
    notebook = nbformat.read(FILE, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), flights_by_day())
        executed(notebook, Path(folder))
    nbformat.write(notebook, FILE)  # type: ignore[no-untyped-call]
    click.echo(f"{FILE.relative_to(REPOSITORY)}: {len(texts(notebook))} cells run")


if __name__ == "__main__":
    main()
