"""Other releases of Kafka than the embedded one, fetched as it is: by Maven, once, into the cache folder."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from deniable.deploy.broker import jars

KAFKA = re.compile(r"(?<=<artifactId>kafka_2\.13</artifactId><version>)[^<]+")


@contextmanager
def kafka_of(release: str, folder: Path) -> Iterator[None]:
    """Let brokers that are started within be of this release.

    Parameters
    ----------
    release : such as `3.9.2`.
    folder : for the list of its jars.
    """
    text, replaced = KAFKA.subn(release, jars.POM.read_text(encoding="utf-8"))
    assert replaced == 1
    pom = folder / "pom.xml"
    pom.write_text(text, encoding="utf-8")
    with patch.object(jars, "POM", pom):
        assert (jars.fetch_jars() / f"kafka_2.13-{release}.jar").exists()
        yield
