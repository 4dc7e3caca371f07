"""A store goes on with the secret that it was begun with, and with no other."""

import pytest

from producers.identity import check_identity
from producers.secret import Secret, SecretError


def test_a_store_takes_the_secret_that_it_was_begun_with_only(tmp_path):
    first, other = Secret(b"a" * 32), Secret(b"b" * 32)
    check_identity(tmp_path, first)
    check_identity(tmp_path, first)
    for _ in range(2):
        with pytest.raises(
            SecretError, match=r"^the secret is another one than .* was used with: put the former"
        ):
            check_identity(tmp_path, other)
    check_identity(tmp_path, first)
