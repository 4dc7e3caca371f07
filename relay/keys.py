"""What relays of a deployment keep secret: all of them share it, nobody else has it.

Whoever knows it can undo the shuffling of a log of uploads that they can read, and nothing else: reports were
randomized before they left their device.
"""

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.secrets import aes
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import PACK_ID_BYTES

MAC_BYTES = 16
CHECK_BYTES = 16
NUMBER_BYTES = 8


class RelayKeys:
    """Pseudo-random functions under the secret of the relays. Their inputs are numbers of 8 bytes each.

    Parameters
    ----------
    secret : Secret shared by all relays of a deployment.
    """

    def __init__(self, secret: Secret) -> None:
        self._order = secret.function(b"relay-order", aes.KEY_BYTES)
        self._pack_id = secret.function(b"relay-pack-id", PACK_ID_BYTES)
        self._control = secret.function(b"relay-control", MAC_BYTES)
        self.check = secret.function(b"relay-check", CHECK_BYTES).digest()  # public: tells secrets apart

    def words(self, context: bytes, count: int) -> NDArray[np.uint64]:
        """Return `count` words, uint64 (count,), for the order of the reports that `context` names."""
        function = self._order.copy()
        function.update(context)
        words = np.zeros(count, "<u8")
        stream = words.view(np.uint8).data
        aes.counter(function.digest()).update_into(stream, stream)
        return words

    def pack_id(self, context: bytes, number: int) -> bytes:
        """Return the id of the pack with this number among those that `context` names.

        Different inputs have independent, uniform outputs, up to the advantage against BLAKE2b: q packs share
        an id with probability at most q² / 2^129, that is 2^-49 for 2^40 packs. So packs spread over the
        partitions of `reports` like those of producers.
        """
        function = self._pack_id.copy()
        function.update(context + number.to_bytes(NUMBER_BYTES, "little"))
        return function.digest()

    def control_mac(self, data: bytes) -> bytes:
        """Return the authentication code of a control record, MAC_BYTES."""
        function = self._control.copy()
        function.update(data)
        return function.digest()


def context_of(*numbers: int) -> bytes:
    """Encode unsigned numbers below 2^64 for the functions above; the caller's count of them is fixed."""
    return b"".join(number.to_bytes(NUMBER_BYTES, "little") for number in numbers)
