"""The keystream is AES-CTR, never repeats across threads, forks and keys, and fails closed."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from deniable.producers.randomization import randomness
from deniable.producers.randomization.randomness import Keystream, below
from deniable.protocol.secrets.order import random_order


def test_words_are_the_aes_ctr_keystream_little_endian(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    encryptor = Cipher(algorithms.AES(bytes(range(16))), modes.ECB()).encryptor()  # noqa: S305 (the definition)
    blocks = b"".join(encryptor.update(counter.to_bytes(16, "big")) for counter in range(3))
    stream = Keystream()
    assert stream.words64(3).tobytes() == blocks[:24]
    assert stream.words64((1, 3)).tobytes() == blocks[24:48]
    monkeypatch.undo()
    assert stream.words64((2, 3)).shape == (2, 3)
    assert stream.words64(0).shape == (0,)


@given(st.integers(0, 2**64 - 1), st.sampled_from([1, 2, 2**31, 2**32 - 1, 2**32]) | st.integers(1, 2**32))
def test_below_is_the_exact_high_word(word, bound):
    assert int(below(np.array([word], np.uint64), bound)[0]) == (word * bound) >> 64


@pytest.mark.parametrize("bound", [1, 3, 99, 2**31 - 1, 2**32])
def test_below_at_extreme_words(bound):
    ends = np.array([0, 2**64 - 1], np.uint64)
    assert below(ends, bound).tolist() == [0, bound - 1]


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 2).map(lambda high: high << 32), max_size=50))
def test_random_order_sorts_by_the_lower_half_of_each_word(words):
    """And keeps the order of those that tie."""
    expected = sorted(range(len(words)), key=lambda place: words[place] % 2**32)
    assert random_order(np.array(words, np.uint64)).tolist() == expected


def test_two_streams_differ():
    assert not np.array_equal(Keystream().words64(4), Keystream().words64(4))


@pytest.mark.slow
def test_threads_never_share_words():
    """Catches a keystream position used twice: 2**18 words repeat by chance with probability below 2**-29."""
    stream = Keystream()
    with ThreadPoolExecutor(8) as pool:
        draws = list(pool.map(stream.words64, [256] * 1024))
    assert len(np.unique(np.concatenate(draws))) == 256 * 1024


def test_key_is_used_for_a_bounded_number_of_bytes(monkeypatch):
    keys = []
    monkeypatch.setattr(os, "urandom", lambda size: keys.append(size) or bytes([len(keys)] * size))
    monkeypatch.setattr(randomness, "BYTES_PER_KEY", 64)
    stream = Keystream()
    words = [stream.words64(4) for _ in range(4)]
    assert keys == [16, 16]
    assert len(np.unique(np.concatenate(words))) == 16
    stream.words64(100)
    stream.words64(1)
    assert keys == [16] * 4


def test_no_word_without_a_key(monkeypatch):
    def refuse(size):
        raise OSError("no entropy")

    stream = Keystream()
    monkeypatch.setattr(os, "urandom", refuse)
    with pytest.raises(OSError, match="no entropy"):
        stream.words64(1)
    monkeypatch.undo()
    stream.words64(1)
    stream.forget()
    monkeypatch.setattr(os, "urandom", refuse)
    with pytest.raises(OSError, match="no entropy"):
        stream.words64((1, 1))


FORK = """
import os, threading
from deniable.producers.randomization.randomness import Keystream

stream = Keystream()
before = stream.words64(4).tobytes().hex()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    {in_child}
    try:
        answer = stream.words64(4).tobytes().hex()
    except OSError:
        answer = "refused"
    os.write(writer, answer.encode())
    os._exit(0)
os.close(writer)
answer = os.read(reader, 1000).decode()
os.waitpid(child, 0)
print(before, answer, stream.words64(4).tobytes().hex())
"""


def fork(in_child):
    code = FORK.format(in_child=in_child)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return run.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("in_child", ["pass", "os.getpid = os.getppid"])
def test_forked_child_has_another_key(in_child):
    """Also in a namespace of its own, where it may have its parent's process id."""
    assert len(set(fork(in_child))) == 3


@pytest.mark.slow
def test_forked_child_without_entropy_gets_no_words():
    before, child, after = fork("os.urandom = lambda size: (_ for _ in ()).throw(OSError('no entropy'))")
    assert child == "refused"
    assert before != after
