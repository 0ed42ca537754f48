import hashlib

import pytest

from recon.model.errors import ConfigurationError
from recon.sandbox.ground.signatures import agrees, sign, signed_fields


def test_a_signature_joins_fields_and_rows_without_spaces_and_then_the_key() -> None:
    """SHA-256 over merchant, account, every transaction in order, then the key as it is."""
    rows = [{"transaction_id": "1 3"}, {}, {"transaction_id": 79}]
    got = sign("refund", {"merchant_id": " 1", "account_id": "2"}, sign_key="k y", rows=rows)
    assert got == hashlib.sha256(b"121379k y").hexdigest()


def test_comparison_ignores_case_only() -> None:
    """Upper and lower hex are one signature; foreign characters are none."""
    assert agrees("AB", expected="ab")
    assert not agrees("é", expected="ab")
    assert not agrees("", expected="ab")


def test_a_template_that_is_not_there_is_named() -> None:
    """An operation without a rule cannot be signed."""
    with pytest.raises(ConfigurationError, match="no template nothing"):
        signed_fields("nothing")
