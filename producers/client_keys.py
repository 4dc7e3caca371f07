"""The names by which a budget is kept: of a client, without the client's id."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from producers.prf import derive_key, mac_texts
from producers.secret import Secret

CLIENT_KEY_BYTES = 16


class ClientKeys:
    """Keyed hash of clients, the same in every collection; without the secret it names nobody.

    Parameters
    ----------
    secret : Secret shared by all producers that serve the same clients.
    """

    def __init__(self, secret: Secret) -> None:
        self._key = derive_key(secret, b"deniable-budget")

    def of(self, clients: Sequence[str]) -> NDArray[np.uint8]:
        """Key of each client, uint8 (n, CLIENT_KEY_BYTES)."""
        return mac_texts(self._key, clients).view(np.uint8)
