"""Contents of the wheel and the sdist; the wheel works without the checkout."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.needed import missing
from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.slow

NOT_PACKAGED = re.compile(
    r"node_modules|Dockerfile|\.(sh|lock|service|yaml|yml|conf)$|grafana|kubernetes|compose|tests/"
)
BUILD = [sys.executable, "-m", "hatchling", "build", "-d"]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
NOWHERE = 'kafka: {bootstrap_servers: "127.0.0.1:9"}\n'
CHECKOUT = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}  # variables that could lead back to the checkout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build wheel and sdist; return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([*BUILD, str(folder)], cwd=REPOSITORY, check=True, capture_output=True)
    return folder


def files_of(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_wheel_contains_only_what_runs(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    files = files_of(wheel)
    assert {name.split("/")[0] for name in files} == {"deniable", f"{wheel.name.split('-py3')[0]}.dist-info"}
    assert [name for name in files if NOT_PACKAGED.search(name)] == []
    needed = {
        "deniable/aggregator/records/estimate.schema.json",
        "deniable/aggregator/web/page/index.html",
        "deniable/edge/try_page/index.html",
        "deniable/edge/try_page/parts.js",
        "deniable/producers/browser/deniable.d.ts",
        "deniable/producers/browser/deniable.min.js",
        "deniable/producers/browser/directory.d.ts",
        "deniable/producers/browser/mechanisms.d.ts",
        "deniable/producers/browser/mechanisms.min.js",
        "deniable/producers/budget/postgres/schema.sql",
        "deniable/deploy/broker/kafka/pom.xml",
        "deniable/deploy/broker/kafka/server.properties",
        "deniable/py.typed",
    }
    assert needed <= files.keys()


def test_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    subprocess.run([*BUILD, str(tmp_path), "-t", "wheel"], cwd=source, check=True, capture_output=True)
    (again,) = tmp_path.glob("*.whl")
    assert files_of(again) == files_of(wheel)


#: A distribution with names that are common, as an application may have.
COMMON = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "common"
version = "1"
[tool.hatch.build.targets.wheel]
only-include = ["edge", "deploy.py", "analysis.py"]
""",
    "edge/__init__.py": "OURS = 1\n",
    "deploy.py": "OURS = 2\n",
    "analysis.py": "OURS = 3\n",
}
USE = """
from importlib import import_module
assert [import_module(name).OURS for name in ("edge", "deploy", "analysis")] == [1, 2, 3]
"""


@pytest.mark.all
def test_a_distribution_with_common_names_is_left_alone(built: Path, tmp_path: Path) -> None:
    """In either order of installing; and each works on once the other is uninstalled."""
    for name, text in COMMON.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run([*BUILD, str(tmp_path), "-t", "wheel"], cwd=tmp_path, check=True, capture_output=True)
    (common,), (ours,) = tmp_path.glob("common*.whl"), built.glob("*.whl")
    for number, order in enumerate(((common, ours), (ours, common))):
        home = tmp_path / str(number)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
        python = str(home / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "-q", "--python", python]
        for wheel in order:
            subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
        works = {"common": USE, "deniable": "import deniable.protocol.words"}
        for code in works.values():
            assert run(python, "-c", code, folder=home).returncode == 0
        gone = order[0].name.partition("-")[0]
        subprocess.run([*pip, "uninstall", "-y", gone], check=True)
        (left,) = works.keys() - {gone}
        assert run(python, "-c", works[left], folder=home).returncode == 0
        assert run(python, "-c", works[gone], folder=home).returncode == 1


@pytest.fixture(scope="module")
def fresh(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with the extra `demo`; return the folder of commands."""
    return installed(built, tmp_path_factory.mktemp("fresh"), "[demo]")


@pytest.fixture(scope="module")
def light(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel without extras; return the folder of commands."""
    return installed(built, tmp_path_factory.mktemp("light"), "")


def installed(built: Path, home: Path, extra: str) -> Path:
    """Install the wheel and its dependencies, in locked versions; return the folder of commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    locked = re.findall(r"^[\w.-]+==[^\\\n]+", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    constraints = home / "constraints.txt"
    constraints.write_text("\n".join(locked) + "\n")
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    command = [*pip, "install", "-q", "-c", str(constraints)]
    done = subprocess.run([*command, f"{wheel}{extra}"], capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"pip cannot install the wheel: {done.stderr.strip().splitlines()[-1]}")
    return home / "bin"


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder outside the checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in CHECKOUT}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def is_kept(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the snippet's report is stored: a busy machine may take longer than `report` waits."""
    receipt = re.search(r"Receipt\(stored=(\d), refused=0, dropped=0, pending=(\d)\)", done.stdout)
    is_one = receipt is not None and sorted(receipt.groups()) == ["0", "1"]
    return is_one and "1 pack is kept in .deniable" in done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with README's collection file; Kafka is not running."""
    (file,) = re.findall("```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "deniable.yaml").write_text(NOWHERE + file, encoding="utf-8")
    return tmp_path


@pytest.mark.broker
@pytest.mark.timeout(600)
@pytest.mark.nightly
def test_demo_runs_from_the_wheel(fresh: Path, home: Path, kafka_jars: None) -> None:
    done = run(fresh / "deniable", "demo", "--once", folder=home)
    assert done.returncode == 0, done.stderr


# Size on disk, and what `import deniable` loads and takes: its time follows from that.
LARGEST_MB, MOST_MODULES, LARGEST_MIB = 125, 500, 50
IMPORT = """
import re, sys
import deniable
print(len(sys.modules), int(re.search("VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.nightly
@pytest.mark.all
@pytest.mark.timeout(600)
def test_light_installation_is_small_stores_reports_and_names_extras(light: Path, home: Path) -> None:
    """Without Kafka the report is stored in the folder, and closing reports that it was not delivered."""
    packages = [each for each in (light.parent / "lib").glob("python*/site-packages/*") if _is_ours(each)]
    size = sum(file.stat().st_blocks * 512 for each in packages for file in (each, *each.rglob("*")))
    assert size < LARGEST_MB * 10**6
    modules, mebibytes = map(int, run(light / "python", "-c", IMPORT, folder=home).stdout.split())
    assert modules < MOST_MODULES
    assert mebibytes < LARGEST_MIB
    checked = run(light / "deniable", "check", folder=home)
    assert checked.returncode == 0, checked.stderr
    assert "one report: epsilon 2" in checked.stdout
    (snippet,) = re.findall(r"```python\n(import deniable\n.*?)```", README, re.DOTALL)
    (home / "app.py").write_text(snippet, encoding="utf-8")
    done = run(light / "python", "app.py", folder=home)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("deniable.producers.errors.DeliveryError: ")
    assert is_kept(done)
    refused = run(light / "deniable", "aggregate", folder=home)
    assert refused.returncode == 1
    assert refused.stderr == "Error: deniable aggregate needs scipy: pip install 'deniable[worker]'\n"


UNPACKED = """\
import os, sys
sys.path.insert(0, "unpacked")
"""
#: Without Kafka an end in good order would wait for it half a minute.
REPORTS = """\
import deniable
producer = deniable.open_producer("deniable.yaml")
print(deniable.__file__, producer.report("plan", ["free"], clients=None).dropped, flush=True)
os._exit(0)
"""
CHECKS = """\
from deniable.deploy.cli.main import main
sys.argv[1:] = ["check"]
main()
"""


@pytest.mark.all
def test_unpacked_wheel_takes_reports_and_checks(built: Path, home: Path) -> None:
    """With the packages that are here, but the modules and files of the wheel."""
    (wheel,) = built.glob("*.whl")
    shutil.unpack_archive(wheel, home / "unpacked", "zip")
    reported, checked = (
        run(sys.executable, "-c", UNPACKED + each, folder=home) for each in (REPORTS, CHECKS)
    )
    assert (reported.returncode, checked.returncode) == (0, 0), reported.stderr + checked.stderr
    assert re.search(r"/unpacked/deniable/__init__\.py 0$", reported.stdout, re.MULTILINE)
    assert "one report: epsilon 2" in checked.stdout


def _is_ours(package: Path) -> bool:
    """Whether an installed package came with ours, not with a new environment."""
    return not package.name.startswith(("pip", "setuptools", "pkg_resources", "_distutils", "distutils"))
