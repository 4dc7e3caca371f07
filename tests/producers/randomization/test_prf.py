"""The keyed function is CBC-MAC; distinct texts and contexts have distinct messages."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from deniable.producers.randomization.prf import ClientKeys, derive_key, encrypt, mac, mac_texts
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.sources import RepeatableWords

KEY = bytes(range(16))
SECRET = Secret(bytes(range(32)))


def cbc_mac(message):
    cipher = Cipher(algorithms.AES(KEY), modes.CBC(bytes(16)))
    return cipher.encryptor().update(message)[-16:]


def framed(text):
    """The message of a text, as the docstring states it."""
    data = text.encode("utf-8", "surrogatepass")
    message = len(data).to_bytes(8, "little") + data
    return message + bytes(-len(message) % 16)


@given(st.lists(st.text(st.characters(), max_size=60), max_size=12))
def test_texts_have_the_cbc_mac_of_their_message(texts):
    """Texts of any lengths in one call, lone surrogates and zeros included, give the same as alone."""
    tags = mac_texts(KEY, texts)
    assert tags.shape == (len(texts), 2)
    assert [tag.tobytes() for tag in tags] == [cbc_mac(framed(text)) for text in texts]


def test_long_text_among_short_ones():
    """One call per message if there are more blocks than messages, else one per block: same result."""
    texts = ["x" * 100_000, *map(str, range(9000)), "y" * 100_000, "é\0" * 40]
    tags = mac_texts(KEY, texts)
    assert [tag.tobytes() for tag in tags] == [cbc_mac(framed(text)) for text in texts]


@pytest.mark.parametrize("messages", [1, 2, 3, 100])
def test_mac_of_blocks_is_cbc_mac(messages):
    blocks = RepeatableWords(1).words64((3, messages, 2))
    expected = [cbc_mac(blocks[:, each].tobytes()) for each in range(messages)]
    assert [tag.tobytes() for tag in mac(KEY, blocks)] == expected
    assert [tag.tobytes() for tag in mac(KEY, list(blocks))] == expected


def test_encrypt_is_aes_of_each_block_in_any_layout():
    blocks = RepeatableWords(1).words64((4, 3, 2))
    aes = Cipher(algorithms.AES(KEY), modes.ECB())  # noqa: S305 (the definition)
    for layout in (blocks[0], blocks[:, 1], blocks[:0, 1]):
        expected = [aes.encryptor().update(block.tobytes()) for block in layout]
        assert [block.tobytes() for block in encrypt(KEY, layout)] == expected


@given(st.text(st.characters(), max_size=40), st.text(st.characters(), max_size=40))
def test_messages_are_injective_and_prefix_free(left, right):
    """CBC-MAC needs this to be a pseudo-random function."""
    assert framed(left).startswith(framed(right)) == (left == right)


def test_keys_depend_on_purpose_and_whole_context():
    contexts = [(), ("",), ("ab", "c"), ("a", "bc"), ("abc",), ("abc", 1), ("abc", 1, 2), ("abc", 12)]
    keys = {derive_key(SECRET, purpose, *context) for purpose in (b"one", b"two") for context in contexts}
    keys |= {derive_key(Secret(bytes(32)), b"one", *context) for context in contexts}
    assert len(keys) == 3 * len(contexts)
    assert {len(key) for key in keys} == {16}


def test_client_keys():
    """Pinned: with other keys every client would get a new budget."""
    keys = ClientKeys(SECRET).of(["ann", "bob", "ann", "\udc80", ""])
    assert (keys.shape, keys.dtype) == ((5, 16), np.uint8)
    assert keys[0].tobytes().hex() == "f0a2388b6de48150eb657b2552804a46"
    assert len(np.unique(keys, axis=0)) == 4
    assert np.array_equal(keys[0], keys[2])
    assert not np.array_equal(ClientKeys(Secret(bytes(32))).of(["ann"])[0], keys[0])
    assert ClientKeys(SECRET).of([]).shape == (0, 16)
