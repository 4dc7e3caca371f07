"""Word sources for tests: one with given words, one pseudo-random and repeatable."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class ScriptedWords:
    """Returns the given draws in order; a draw of another shape is an error."""

    def __init__(self, *draws):
        self._draws = [np.array(draw, np.uint64) for draw in draws]

    def words64(self, shape):
        draw = self._draws.pop(0)
        assert draw.shape == np.broadcast_shapes(shape), f"drew {shape}, scripted was {draw.shape}"
        return draw

    @property
    def is_used_up(self):
        return not self._draws


class RepeatableWords:
    """AES-CTR under a known key: as random as the real source, the same in every run."""

    def __init__(self, seed):
        key = seed.to_bytes(16, "big")
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words64(self, shape):
        size = 8 * int(np.prod(shape))
        return np.frombuffer(self._encryptor.update(bytes(size)), "<u8").reshape(shape)


def spelled(numbers, lowest=0):
    """Return draws that make `bernoulli` compare these numbers: their complemented binary digits.

    Parameters
    ----------
    numbers : integers (n, bits) in [0, 2**32), bits a multiple of 64.
    lowest : the lowest place that is drawn.
    """
    digits = [~np.array(numbers, np.uint64) >> np.uint64(place) & np.uint64(1) for place in range(lowest, 32)]
    return [
        np.packbits(digit.astype(np.uint8), axis=1, bitorder="little").view(np.uint64) for digit in digits
    ]
