"""Which secret a store belongs to: with another one, every client would begin anew in it."""

from producers.secret import Secret, SecretError
from producers.store import Store

DIGEST_BYTES = 16


def check_identity(store: Store, secret: Secret) -> None:
    """Check that a store was begun with this secret; note so in a new one.

    Raises
    ------
    SecretError if it was begun with another one: clients would be other clients, with budgets of their own
    and other permanent responses. StoreError if the store cannot be used.
    """
    digest = secret.function(b"deniable-store", DIGEST_BYTES).digest()
    if not (known := store.rows("SELECT digest FROM identity")):
        with store.transaction():
            store.rows("INSERT OR IGNORE INTO identity VALUES (0, ?)", digest)
            known = store.rows("SELECT digest FROM identity")
    if known != [(digest,)]:
        raise SecretError(
            f"the secret is another one than {store.path.parent} was used with: put the former one back; "
            "with this one every client would have its budget again, and other permanent responses"
        )
