"""A store accepts only the secret it was created with."""

import pytest

from deniable.producers.storage.store import BusyError, Store, check_identity
from deniable.protocol.secrets.secret import Secret
from tests.support.messages import PinMessages


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, busy_seconds=0.01)
    yield store
    store.close()


def test_store_accepts_only_its_first_secret(store: Store, pin_messages: PinMessages) -> None:
    first, other = Secret(b"a" * 32), Secret(b"b" * 32)
    check_identity(store, first)
    check_identity(store, first)
    for _ in range(2):
        pin_messages({"another secret": lambda: check_identity(store, other)})
    check_identity(store, first)


def test_only_a_new_store_is_written(store, tmp_path):
    other = Store(tmp_path)
    with other.transaction(), pytest.raises(BusyError):
        check_identity(store, Secret(b"a" * 32))
    check_identity(store, Secret(b"a" * 32))
    with other.transaction():
        check_identity(store, Secret(b"a" * 32))
    other.close()
