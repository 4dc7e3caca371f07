"""A real Kafka Connect of the broker's version, fetched by Maven, once."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from deniable.deploy.broker.child_processes import last_lines, spawn, stop
from deniable.deploy.broker.jars import POM, find_java
from deniable.deploy.broker.locked_folder import cache_folder, lock
from tests.support.needed import tool
from tests.support.paths import REPOSITORY
from tests.support.processes import new_port, wait_until

FETCH_SECONDS, START_SECONDS = 600, 120
DEPENDENCY = (
    "<dependency><groupId>org.apache.kafka</groupId><artifactId>{name}</artifactId>"
    "<version>{version}</version></dependency>"
)
PAGE = (REPOSITORY / "docs" / "connect.md").read_text(encoding="utf-8")
MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"


def samples(language: str) -> list[str]:
    """Return the blocks of a language in docs/connect.md."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def properties(text: str) -> dict[str, str]:
    """Return the properties of a file's text."""
    return dict(line.split("=", 1) for line in text.splitlines())


def connect_jars() -> Path:
    """Return the folder of Connect's jars; skips the test without Maven."""
    maven = tool("mvn", "apt-get install maven", "NO_MAVEN")
    pom = POM.read_text(encoding="utf-8")
    version = re.search(r"<artifactId>kafka_2\.13</artifactId><version>([\d.]+)<", pom)
    assert version is not None
    ours = "".join(
        DEPENDENCY.format(name=f"connect-{each}", version=version[1]) for each in ("runtime", "file")
    )
    pom = pom.replace("<dependencies>", f"<dependencies>{ours}")
    folder = cache_folder() / "connect"
    libs = folder / f"libs-{blake2b(pom.encode(), digest_size=4).hexdigest()}"
    with lock(folder):
        if not libs.exists():
            (folder / "pom.xml").write_text(pom, encoding="utf-8")
            goal = [
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                f"-DoutputDirectory={folder}/new",
            ]
            command = [maven, "-B", "-C", "-ntp", "-f", str(folder / "pom.xml"), *goal]
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
            assert done.returncode == 0, done.stdout[-4000:]
            (folder / "new").rename(libs)
    return libs


@contextmanager
def connecting(
    folder: Path, worker: Mapping[str, str], connector: Mapping[str, str], options: Sequence[str] = ()
) -> Iterator[Path]:
    """Run Connect with one connector; yield its log.

    Parameters
    ----------
    folder : of its files.
    worker, connector : properties; listener, offsets and plugins are ours.
    options : of Java.
    """
    libs = connect_jars()
    own = {
        "listeners": f"http://127.0.0.1:{new_port()}",
        "offset.storage.file.filename": str(folder / "offsets"),
        "plugin.path": str(libs),
    }
    files = []
    for name, properties in (("worker", {**worker, **own}), ("connector", connector)):
        files.append(folder / f"{name}.properties")
        files[-1].write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    log = folder / "connect.log"
    log4j = f"-Dlog4j2.configurationFile={POM.with_name('log4j2.properties')}"
    java = [find_java(), "-Xmx512m", *options, log4j, "-cp", f"{libs}/*", MAIN]
    child = spawn([*java, *files], log)
    try:
        yield log
        assert child.poll() is None, last_lines(log)
    finally:
        stop([child])
    assert wait_until(lambda: child.poll() is not None, START_SECONDS)
