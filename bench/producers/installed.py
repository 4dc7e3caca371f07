"""What each extra costs: packages, size on disk, processor time and memory of the first import.

Each case installs the wheel into fresh environments, in the versions of requirements.lock.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.sections import ROOT, ResultRow, Section

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


def installed() -> Section:
    """Install each extra into an environment of its own."""
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = _wheel(Path(folder))
        for extra in EXTRAS:
            _install(wheel, extra, Path(folder) / f"with-{extra}")
            names, size = _installed(Path(folder) / f"with-{extra}")
            install = f"`deniable{f'[{extra}]' if extra else ''}`"
            rows.append({"install": install, "packages": names, "MB on disk": round(size / 1e6)})
    return Section("What each extra brings.", rows)


def imported() -> Section:
    """Time processes that import and open."""
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as folder:
        home, environment = Path(folder), Path(folder) / "environment"
        _install(_wheel(home), "", environment)
        init = [str(environment / "bin" / "deniable"), "init", "shop"]
        subprocess.run(init, cwd=home, check=True, capture_output=True)
        for what, step in STEPS.items():
            for threads in ("1", ""):  # without a number, OpenBLAS counts the processors
                python = environment / "bin" / "python"
                costs = [_cost(python, home / "shop", step, threads) for _ in range(RUNS)]
                seconds, mebibytes = (median(each) for each in zip(*costs, strict=True))
                row = {"step": what, "threads": threads or "not set", "CPU, s": seconds, "MiB": mebibytes}
                rows.append(row)
    about = (
        f"Processor time and memory of a new process, medians of {RUNS}, with one thread of OpenBLAS and "
        "with as many as it starts, which spin at first."
    )
    return Section(about, rows)


CASES = {"what extras bring": installed, "first import": imported}


def _wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


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
