"""No word is drawn twice after a fork that Python does not see, of any kind of draw; keys end after a second.

Words of 64 bits or more are compared, so two that are equal by chance fail the test with a probability below
2**-60. Each fails if draws do not compare process ids.
"""

import os
import subprocess
import sys

import pytest

from deniable.producers.randomization import randomness
from deniable.producers.randomization.randomness import Keystream

FORK = """
import ctypes, os
import numpy as np
from deniable.deploy.produce.canary import draw
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.pipeline.packer import Packer
from deniable.protocol.secrets.order import random_order
from deniable.producers.randomization.permanent_responses import Memory
from deniable.producers.randomization.randomness import Keystream
from deniable.protocol.secrets.secret import Secret
from deniable.producers.responders.factory import responder_of

words, secret = Keystream(), Secret(bytes(32))
numbers = Collection("c", KRR.from_epsilon(1000, 1.0))
several = Collection("c", Rappor.from_probabilities(64, 2, 8, 0.25, 0.35, 0.65))

def reports(collection, values):
    responder = responder_of(collection, secret, words)
    cohorts, rows = responder.prepare(values, None).respond(slice(0, len(values)))
    return cohorts.tobytes() + rows.tobytes()

def pack():
    packer = Packer([numbers], 10, 1.0, words)
    return packer.add(numbers.fingerprint, np.zeros(10, np.int64), np.zeros(10, np.uint16),
                      np.zeros((10, 2), np.uint8), 0.0)[0].pack_id

DRAWS = {
    "single": lambda: words.words64(1).tobytes(),
    "batch": lambda: words.words64((100, 3)).tobytes(),
    "order": lambda: random_order(words.words64(100)).tobytes(),
    "cohorts": lambda: Memory(secret, "c", (), False).cohorts(None, 100, 8, words).tobytes(),
    "pack ids": pack,
    "k-rr": lambda: reports(numbers, list(range(100))),
    "rappor": lambda: reports(several, ["a"] * 100),
    "hashed": lambda: reports(Collection("c", LocalHash.from_epsilon(1.0, 26)), ["a"] * 100),
    "number": lambda: reports(Collection("c", SquareWave.from_epsilon(0.0, 1.0, 64, 1.0)), [0.5] * 100),
    "canary": lambda: draw(words.words64(100), 1000).tobytes(),
}
for name, drawn in DRAWS.items():
    before = drawn()
    reader, writer = os.pipe()
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        os.write(writer, drawn())
        os._exit(0)
    os.close(writer)
    here = drawn()
    there = b"".join(iter(lambda: os.read(reader, 2**16), b""))
    os.waitpid(child, 0)
    if len(before) == len(here) == len(there) and len({before, here, there}) == 3:
        print(name)
"""


@pytest.mark.slow
def test_child_of_an_unseen_fork_draws_other_words():
    run = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=True
    )
    draws = [
        "single",
        "batch",
        "order",
        "cohorts",
        "pack ids",
        "k-rr",
        "rappor",
        "hashed",
        "number",
        "canary",
    ]
    assert run.stdout.splitlines() == draws


def test_fork_in_the_middle_of_a_draw(monkeypatch):
    """As by a signal handler, between the choice of a key and its words: those words are not used alone."""
    stream = Keystream()
    key = bytes(range(16))
    monkeypatch.setattr(os, "urandom", lambda size: key)
    stream.words64(1)
    expected, stream = stream.words64(4), Keystream()
    stream.words64(1)
    monkeypatch.setattr(os, "urandom", lambda size: key[::-1])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not (stream.words64(4) == expected).any()


def test_key_ends_after_a_second(monkeypatch):
    """What copies of a machine have in common: a snapshot's key is not used later than this."""
    now, keys = [100.0], []
    monkeypatch.setattr(randomness.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "urandom", lambda size: keys.append(size) or bytes([len(keys)] * size))
    stream = Keystream()
    for now[0] in (100.0, 100.9, 101.1, 102.0, 102.2):
        stream.words64(4)
    assert len(keys) == 3
