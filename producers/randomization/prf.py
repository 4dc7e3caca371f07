"""A keyed pseudo-random function of many messages at once: CBC-MAC of AES-128.

Let m be the number of blocks of the longest message. No message is a prefix of another, so with q messages
the advantage in distinguishing CBC-MAC of a random permutation from a random function is at most about m q² /
2^128 (Bellare, Pietrzak and Rogaway, "Improved security analyses for CBC MACs", CRYPTO 2005). AES is assumed
to be a pseudo-random permutation: 2^40 messages of 4 blocks leave 2^-46.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.secrets import aes
from deniable.protocol.secrets.aes import BLOCK_BYTES, KEY_BYTES
from deniable.protocol.secrets.secret import Secret

CLIENT_KEY_BYTES = 16


class ClientKeys:
    """Keyed hash of clients, the same in every collection; without the secret it identifies nobody.

    Parameters
    ----------
    secret : Secret shared by all producers that serve the same clients.
    """

    def __init__(self, secret: Secret) -> None:
        self._key = derive_key(secret, b"deniable-budget")

    def of(self, clients: Sequence[str]) -> NDArray[np.uint8]:
        """Return the key of each client, uint8 (n, CLIENT_KEY_BYTES)."""
        return mac_texts(self._key, clients).view(np.uint8)


LENGTH_BYTES = 8
WORD_BYTES = 8
CHUNK_TEXTS = 2**13
_LOWEST = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES + 1)], np.uint64)  # of this many bytes


def derive_key(secret: Secret, purpose: bytes, *context: str | int) -> bytes:
    """Derive a key of KEY_BYTES: a pseudo-random function of purpose and context under the secret.

    Parameters
    ----------
    secret : Secret.
    purpose : of the key, 1 to 16 bytes.
    context : items are encoded as text after their length, so different contexts have different encodings.
    """
    function = secret.function(purpose, KEY_BYTES)
    for item in context:
        data = str(item).encode("utf-8", "surrogatepass")
        function.update(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    return function.digest()


def encrypt(key: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Encrypt each block by AES: uint64 (n, 2) to uint64 (n, 2), little-endian."""
    plain = np.ascontiguousarray(blocks, "<u8").reshape(-1).view(np.uint8)
    sealed = np.empty(plain.size + BLOCK_BYTES - 1, np.uint8)
    aes.blockwise(key).update_into(plain.data, sealed.data)
    return sealed[: plain.size].view("<u8").reshape(blocks.shape)


def mac(key: bytes, blocks: Sequence[NDArray[np.uint64]] | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Compute the CBC-MAC of n messages of m blocks; under one key, m must be fixed or messages prefix-free.

    Parameters
    ----------
    key : KEY_BYTES.
    blocks : m arrays of uint64 (n, 2), the first block of every message, the second, …; m at least 1.

    Returns
    -------
    uint64 (n, 2).
    """
    if len(blocks) > len(blocks[0]) > 0:
        return _mac_of_few(key, np.swapaxes(np.asarray(blocks), 0, 1))
    state = encrypt(key, blocks[0])
    for block in blocks[1:]:
        state = encrypt(key, state ^ block)
    return state


def _mac_of_few(key: bytes, messages: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Compute `mac` of messages, uint64 (n, m, 2), by a call for each, which is faster when they are long."""
    tags = [aes.chained(key).update(message.tobytes())[-BLOCK_BYTES:] for message in messages]
    return np.frombuffer(b"".join(tags), "<u8").reshape(-1, 2)


def mac_texts(key: bytes, texts: Sequence[str]) -> NDArray[np.uint64]:
    """Compute the CBC-MAC of each text: its length in 8 bytes, its UTF-8, zeros to the end of a block.

    Different texts have different messages, and none is a prefix of another, since each begins with its
    length.

    Parameters
    ----------
    key : KEY_BYTES.
    texts : n of them; lone surrogates, which come from undecodable bytes, are encoded like other characters.

    Returns
    -------
    uint64 (n, 2).
    """
    tags = np.empty((len(texts), 2), np.uint64)
    for start in range(0, len(texts), CHUNK_TEXTS):
        chunk = slice(start, start + CHUNK_TEXTS)
        tags[chunk] = _mac_chunk(key, texts[chunk])
    return tags


def _mac_chunk(key: bytes, texts: Sequence[str]) -> NDArray[np.uint64]:
    """Take the `mac` of the messages of texts, those of one size together."""
    data, lengths = _encode(texts)
    # Copy eight bytes from every position, since unaligned reads are slow.
    words = np.ndarray((len(data) - WORD_BYTES + 1,), "<u8", data, strides=(1,)).copy()
    starts = np.cumsum(lengths) - lengths
    sizes = (lengths + (LENGTH_BYTES + BLOCK_BYTES - 1)) // BLOCK_BYTES
    if (sizes == sizes[0]).all():
        return mac(key, _blocks(words, starts, lengths, int(sizes[0])))
    tags = np.empty((len(texts), 2), np.uint64)
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        rows = np.flatnonzero(sizes == size)
        tags[rows] = mac(key, _blocks(words, starts.take(rows), lengths.take(rows), size))
    return tags


def _blocks(
    words: NDArray[np.uint64], starts: NDArray[np.int64], lengths: NDArray[np.int64], size: int
) -> NDArray[np.uint64]:
    """Build the messages of texts that need `size` blocks: uint64 (size, n, 2).

    Parameters
    ----------
    words : the eight bytes from each position; LENGTH_BYTES of zeros follow the last text.
    starts, lengths : int64 (n,), position and number of bytes of each text.
    """
    offsets = np.arange(-LENGTH_BYTES, BLOCK_BYTES * size - LENGTH_BYTES, WORD_BYTES)
    # The first word, replaced by the length below, may be anything.
    messages = words.take(offsets[:, np.newaxis] + starts, mode="clip")
    messages[0] = lengths
    # A text's last word is cut off at its end, and one more word may follow it.
    for place in range(max(1, len(offsets) - 2), len(offsets)):
        messages[place] &= _LOWEST.take(lengths - offsets[place], mode="clip")
    return np.ascontiguousarray(messages.reshape(size, 2, -1).swapaxes(1, 2))


def _encode(texts: Sequence[str]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the UTF-8 of all texts joined, then a block of zeros; and each text's bytes, int64 (n,)."""
    joined = "".join(texts)
    if joined.isascii():
        data, lengths = joined.encode(), map(len, texts)
    else:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        data, lengths = b"".join(encoded), map(len, encoded)
    return data + bytes(BLOCK_BYTES), np.fromiter(lengths, np.int64, len(texts))
