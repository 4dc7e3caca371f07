"""Find Java, and fetch Kafka's jars once, by Maven, into the cache folder."""

import os
import re
import shutil
import subprocess
from hashlib import blake2b
from pathlib import Path

import structlog

from deniable.deploy.broker.child_processes import last_lines, spawn, stop
from deniable.deploy.broker.errors import BrokerError, ToolMissingError
from deniable.deploy.broker.locked_folder import cache_folder, lock

POM = Path(__file__).parent / "kafka" / "pom.xml"
LEAST_JAVA = 17
MAVEN_SECONDS = 600

log = structlog.get_logger()


def find_java() -> str:
    """Return the path of a Java that can run Kafka: from JAVA_HOME, else from PATH.

    Raises
    ------
    ToolMissingError if there is none, or only one older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    advice = "install openjdk-17-jre-headless or newer, or set JAVA_HOME"
    if java is None:
        raise ToolMissingError(f"Kafka needs Java {LEAST_JAVA} or newer, found none: {advice}")
    ended = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    match = re.search(r'version "(?:1\.)?(\d+)', ended.stderr)
    if match is None or int(match[1]) < LEAST_JAVA:
        found = f"version {match[1]}" if match else "an unknown version"
        raise ToolMissingError(f"Kafka needs Java {LEAST_JAVA} or newer, found {found} at {java}: {advice}")
    return java


def fetch_jars(maven_seconds: float = MAVEN_SECONDS) -> Path:
    """Return the folder of Kafka's jars; the first call fetches them, atomically, one process at a time.

    Raises
    ------
    ToolMissingError without Maven; BrokerError with Maven's last lines if it fails; FolderError if the cache
    folder cannot be written.
    """
    # Named after the list of jars, so a changed list is fetched again.
    digest = blake2b(POM.read_bytes(), digest_size=4).hexdigest()
    folder = cache_folder() / "kafka"
    libs = folder / f"libs-{digest}"
    with lock(folder):
        if not libs.is_dir():
            _fetch(libs, maven_seconds)
    return libs


def _fetch(libs: Path, seconds: float) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ToolMissingError("Maven, which fetches Kafka's jars, is missing: run `apt-get install maven`")
    partial = libs.parent / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    log.info("fetching Kafka's jars through Maven, once", folder=str(libs))
    _run_maven(maven, partial, seconds)
    (partial / "libs").rename(libs)
    shutil.rmtree(partial)


def _run_maven(maven: str, partial: Path, seconds: float) -> None:
    target = f"-DoutputDirectory={partial / 'libs'}"
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", target]
    log_file = partial / "maven.log"
    child = spawn([maven, "-B", "-C", "-ntp", "-f", POM, *goal], log_file)
    try:
        status = child.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise BrokerError(f"Maven did not end within {seconds:g} s:\n{last_lines(log_file)}") from error
    finally:
        stop([child])
    if status != 0:
        raise BrokerError(f"Maven could not fetch Kafka's jars:\n{last_lines(log_file)}")
