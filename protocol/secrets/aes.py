"""AES-128 in the modes used here."""

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

KEY_BYTES = 16
BLOCK_BYTES = 16


def counter(key: bytes) -> CipherContext:
    """Return an encryptor in counter mode from block 0, which turns zeros into the keystream."""
    return Cipher(algorithms.AES(key), modes.CTR(bytes(BLOCK_BYTES))).encryptor()


def blockwise(key: bytes) -> CipherContext:
    """Return an encryptor of single blocks; its buffer must be up to 15 bytes larger than its output."""
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305


def chained(key: bytes) -> CipherContext:
    """Return an encryptor in CBC mode from a block of zeros; its last block of output is the CBC-MAC."""
    return Cipher(algorithms.AES(key), modes.CBC(bytes(BLOCK_BYTES))).encryptor()


# On the first use of a mode the library imports objects under a lock: a signal handler that interrupted that
# very thread would wait forever. So each mode is first used here, at import.
for _mode in (counter, blockwise, chained):
    _encryptor = _mode(bytes(KEY_BYTES))
    _encryptor.update(bytes(BLOCK_BYTES))
    _encryptor.update_into(bytes(BLOCK_BYTES), bytearray(2 * BLOCK_BYTES))
