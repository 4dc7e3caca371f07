"""Word sources for tests: one that says exactly what is drawn, one that looks random and repeats."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class ScriptedWords:
    """Gives out the given draws in order; a draw of another size is an error."""

    def __init__(self, *draws):
        self._draws = [np.array(draw, np.uint64) for draw in draws]

    def words64(self, count):
        return self._next((count,))

    def words32(self, shape):
        return self._next(tuple(shape)).astype(np.uint32)

    def _next(self, shape):
        draw = self._draws.pop(0)
        assert draw.shape == shape, f"drew {shape}, scripted was {draw.shape}"
        return draw

    @property
    def is_used_up(self):
        return not self._draws


class RepeatableWords:
    """AES-CTR under a known key: as random as the real source, the same in every run."""

    def __init__(self, seed):
        key = seed.to_bytes(16, "big")
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words64(self, count):
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), "<u8")

    def words32(self, shape):
        count = int(np.prod(shape))
        return np.frombuffer(self._encryptor.update(bytes(4 * count)), "<u4").reshape(shape)
