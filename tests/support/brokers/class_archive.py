"""Java's archive of Kafka's loaded classes: with it a broker takes three fifths of the processor to start."""

import os
import subprocess
from hashlib import blake2b
from pathlib import Path

from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.jars import fetch_jars, find_java

OPTIONS = "KAFKA_JVM_PERFORMANCE_OPTS"


def use_class_archive() -> None:
    """Let brokers of this process and its children use the archive; the first run on a machine writes it.

    Java ignores an archive of other jars or another Java.

    Raises
    ------
    ToolMissingError without Java or Maven.
    """
    archive = _path()
    options = os.environ[OPTIONS]
    if not archive.exists():
        partial = archive.with_suffix(f".{os.getpid()}")
        os.environ[OPTIONS] = f"{options} -XX:ArchiveClassesAtExit={partial}"
        with Broker():
            pass
        partial.rename(archive)
    os.environ[OPTIONS] = f"{options} -XX:SharedArchiveFile={archive}"


def _path() -> Path:
    version = subprocess.run([find_java(), "-version"], capture_output=True, check=True).stderr
    digest = blake2b(version, digest_size=4).hexdigest()
    libs = fetch_jars()
    return libs.with_name(f"{libs.name}-{digest}.jsa")
