"""For tests of an application: a producer without disk, Kafka and threads, and a pytest fixture. Not private.

pytest_plugins = ["deniable.testing"]  # in conftest.py of the root folder

def test_checkout_is_counted(deniable_producer):
    shop.checkout("user-17")  # opens its producer by deniable.open_producer, and records
    assert deniable_producer.events == [("opened", "checkout", "user-17", None)]
"""

from pathlib import Path

import pytest

import deniable
from deniable.config.file import load
from deniable.producers.opening.double import Event as Event
from deniable.producers.opening.double import ProducerDouble as ProducerDouble

__all__ = ["Event", "ProducerDouble", "deniable_file", "deniable_producer", "open_double"]


def open_double(path: str | Path, seed: int = 0) -> ProducerDouble:
    """Open a double for all collections of a collection file.

    Parameters
    ----------
    path : of the collection file.
    seed : of its noise: the same seed and calls give the same packs.

    Raises
    ------
    CollectionFileError if the file cannot be used.
    """
    return ProducerDouble(load(path).allowances, seed)


@pytest.fixture
def deniable_file(pytestconfig: pytest.Config) -> Path:
    """Path of the collection file, `deniable.yaml` in pytest's root folder: to be overridden for another."""
    return pytestconfig.rootpath / "deniable.yaml"


@pytest.fixture
def deniable_producer(deniable_file: Path, monkeypatch: pytest.MonkeyPatch) -> ProducerDouble:
    """A double for the collections of `deniable_file`, which each `open_producer` of this test opens anew.

    A producer that was opened before, such as at the import of a module, stays what it is.
    """
    if not deniable_file.exists():
        pytest.fail(
            f"the fixture deniable_file must be the path of a collection file, got {deniable_file}, which "
            "does not exist: override it in conftest.py",
            pytrace=False,
        )
    double = open_double(deniable_file)
    monkeypatch.setattr(deniable, "_stand_in", double.opened)
    return double
