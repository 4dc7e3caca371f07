"""Java, and Kafka's jars: fetched once by Maven into the cache folder."""

import os
import re
import shutil
import subprocess
from hashlib import blake2b
from pathlib import Path

import structlog

from deploy.broker.child_processes import last_lines, spawn, stop
from deploy.broker.errors import BrokerError, ToolMissingError
from deploy.broker.locked_folder import cache_folder, lock

POM = Path(__file__).parent / "kafka" / "pom.xml"
LEAST_JAVA = 17
MAVEN_SECONDS = 600

log = structlog.get_logger()


def find_java() -> str:
    """The path of a Java that Kafka runs on: that of JAVA_HOME, else that of PATH.

    Raises
    ------
    ToolMissingError when there is none, or an older one than 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    advice = "install openjdk-17-jre-headless or a newer one, or let JAVA_HOME name one"
    if java is None:
        raise ToolMissingError(f"Kafka needs Java {LEAST_JAVA} or newer, found none: {advice}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    if match is None or int(match[1]) < LEAST_JAVA:
        found = f"version {match[1]}" if match else "one that does not tell its version"
        raise ToolMissingError(f"Kafka needs Java {LEAST_JAVA} or newer, found {found} at {java}: {advice}")
    return java


def fetch_jars() -> Path:
    """The folder of Kafka's jars; filled at the first call, by one process at a time, whole or not at all.

    Raises
    ------
    ToolMissingError without Maven, BrokerError with Maven's last lines when it fails, FolderError when the
    cache folder cannot be written.
    """
    # Named after the list of jars, so that a changed list is fetched anew.
    digest = blake2b(POM.read_bytes(), digest_size=4).hexdigest()
    folder = cache_folder() / "kafka"
    libs = folder / f"libs-{digest}"
    with lock(folder):
        if not libs.is_dir():
            _fetch(libs)
    return libs


def _fetch(libs: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ToolMissingError("Kafka's jars come through Maven, found no mvn: run `apt-get install maven`")
    partial = libs.parent / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    log.info("fetching Kafka's jars through Maven, once", folder=str(libs))
    _run_maven(maven, partial)
    (partial / "libs").rename(libs)
    shutil.rmtree(partial)


def _run_maven(maven: str, partial: Path) -> None:
    target = f"-DoutputDirectory={partial / 'libs'}"
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", target]
    said = partial / "maven.log"
    child = spawn([maven, "-B", "-C", "-ntp", "-f", POM, *goal], said)
    try:
        status = child.wait(MAVEN_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise BrokerError(f"Maven did not end within {MAVEN_SECONDS} s:\n{last_lines(said)}") from error
    finally:
        stop([child])
    if status != 0:
        raise BrokerError(f"Maven could not fetch Kafka's jars:\n{last_lines(said)}")
