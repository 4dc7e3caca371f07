"""AES-128 in the modes that are used here."""

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

KEY_BYTES = 16
BLOCK_BYTES = 16


def counter(key: bytes) -> CipherContext:
    """Encryptor in counter mode, from block 0: of zeros it makes the keystream. `key` has KEY_BYTES."""
    return Cipher(algorithms.AES(key), modes.CTR(bytes(BLOCK_BYTES))).encryptor()


def blockwise(key: bytes) -> CipherContext:
    """Encryptor of blocks one by one, AES itself. It writes up to 15 bytes less than it must be given."""
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305


def chained(key: bytes) -> CipherContext:
    """Encryptor in CBC mode from a block of zeros; the last block that comes out is the CBC-MAC."""
    return Cipher(algorithms.AES(key), modes.CBC(bytes(BLOCK_BYTES))).encryptor()


# On first use of a mode the library looks up Python objects, and whoever comes meanwhile waits until it has
# them: a signal handler that had interrupted that very thread would wait for ever. So first use is here.
for _mode in (counter, blockwise, chained):
    _encryptor = _mode(bytes(KEY_BYTES))
    _encryptor.update(bytes(BLOCK_BYTES))
    _encryptor.update_into(bytes(BLOCK_BYTES), bytearray(2 * BLOCK_BYTES))
