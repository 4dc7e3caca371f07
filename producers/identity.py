"""Which secret a store belongs to: with another one, every client would begin anew in it."""

from contextlib import closing
from pathlib import Path

from producers.secret import Secret, SecretError
from producers.store import Store

DIGEST_BYTES = 16


def check_identity(folder: Path, secret: Secret) -> None:
    """Check that a folder's store was begun with this secret; note so in a new one.

    Raises
    ------
    SecretError if it was begun with another one: clients would be other clients, with budgets of their own
    and other permanent responses. StoreError if the store cannot be used.
    """
    digest = secret.function(b"deniable-store", DIGEST_BYTES).digest()
    with closing(Store(folder)) as store:
        with store.transaction():
            store.rows("INSERT INTO identity SELECT 0, ? WHERE NOT EXISTS (SELECT * FROM identity)", digest)
        ((known,),) = store.rows("SELECT digest FROM identity")
    if known != digest:
        raise SecretError(
            f"the secret is another one than {folder} was used with: put the former one back; with this one "
            "every client would have its budget again, and other permanent responses"
        )
