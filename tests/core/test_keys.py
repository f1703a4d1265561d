import hashlib

import pytest

from antiphon.core.keys import hash_key


@pytest.mark.parametrize("key", ["sk-secret", "", "é"])
def test_what_is_kept_of_a_key_is_its_hash(key: str) -> None:
    assert hash_key(key) == f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def test_keys_that_differ_are_kept_apart() -> None:
    assert hash_key("a") == hash_key("a")
    assert hash_key("a") != hash_key("A")
