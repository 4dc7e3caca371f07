"""What each extra costs: packages, size on disk, processor time and memory of the first import.

Installs the wheel into fresh environments, in the versions of requirements.lock, and prints a table. Times
are medians of nine processes, with one thread of OpenBLAS and with as many as it starts, which spin at first.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import click

ROOT = Path(__file__).parents[1]
EXTRAS = ("", "analysis", "s3", "worker", "postgres", "edge", "otlp", "demo")
RUNS = 9
STEPS = {
    "import deniable": "import deniable",
    "import deniable and open a producer": "import deniable; it = deniable.open_producer('deniable.yaml')",
    "import numpy": "import numpy",
}
FIRST = """
import re, time
began = time.process_time()
{step}
seconds = time.process_time() - began
print(seconds, int(re.search("VmHWM:\\\\s*(\\\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = home.glob("*.whl")
        click.echo("| install | packages | MB on disk |\n|---|---|---|")
        for extra in EXTRAS:
            environment = home / f"with-{extra}"
            _install(wheel, extra, environment)
            names, size = _installed(environment)
            click.echo(f"| `deniable{f'[{extra}]' if extra else ''}` | {names} | {size / 1e6:.0f} |")
        programs = home / "with-" / "bin"
        subprocess.run(
            [str(programs / "deniable"), "init", "shop"], cwd=home, check=True, capture_output=True
        )
        for what, step in STEPS.items():
            for threads in ("1", ""):  # without a number, OpenBLAS counts the processors
                costs = [_cost(programs / "python", home / "shop", step, threads) for _ in range(RUNS)]
                seconds, mebibytes = (median(each) for each in zip(*costs, strict=True))
                click.echo(f"{what}, threads {threads or 'not set'}: {seconds:.4f} s, {mebibytes:.0f} MiB")


def _install(wheel: Path, extra: str, environment: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    locked = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    constraints = environment / "constraints.txt"
    constraints.write_text("\n".join(locked) + "\n")
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "-q", "-c", str(constraints)]
    subprocess.run([*pip, f"{wheel}[{extra}]" if extra else str(wheel)], check=True)


def _installed(environment: Path) -> tuple[int, int]:
    """Return the number of packages and their bytes on disk, without those of a new environment."""
    ours = [
        each
        for each in environment.glob("lib/python*/site-packages/*")
        if not each.name.startswith(("pip", "setuptools", "pkg_resources", "_distutils", "distutils"))
    ]
    files = [file for each in ours for file in (each, *each.rglob("*"))]
    size = sum(file.stat().st_blocks * 512 for file in files)
    return sum(each.name.endswith(".dist-info") for each in ours), size


def _cost(python: Path, folder: Path, step: str, threads: str) -> tuple[float, float]:
    """Return seconds of processor time and MiB of one step in this folder."""
    command = [str(python), "-c", FIRST.format(step=step)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    seconds, mebibytes = done.stdout.split()
    return float(seconds), float(mebibytes)


if __name__ == "__main__":
    main()
