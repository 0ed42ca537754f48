import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.instructions.sealing import Seal, masked_account
from recon.model.errors import ConfigurationError


def _seal() -> Seal:
    return Seal(SecretStr(Fernet.generate_key().decode()))


def test_only_its_own_key_opens_a_seal() -> None:
    """What one key sealed, that key opens and no other."""
    seal = _seal()
    sealed = seal.close("DE89370400440532013000")

    assert seal.open(sealed) == "DE89370400440532013000"
    with pytest.raises(ConfigurationError, match="another RECON_SEAL_KEY"):
        _seal().open(sealed)


def test_a_digest_needs_the_key() -> None:
    """The same account has another digest under another key: nobody can guess it back."""
    seal = _seal()

    assert seal.digest("DE89") == seal.digest("DE89") != _seal().digest("DE89")


@pytest.mark.parametrize("key", [None, SecretStr("short")])
def test_a_missing_or_wrong_key_says_what_to_do(key: SecretStr | None) -> None:
    """Without a usable key the sentence names the variable, never the key."""
    with pytest.raises(ConfigurationError, match="RECON_SEAL_KEY") as caught:
        Seal(key)
    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "shown"),
    [("DE89 3704 0044 0532 0130 00", "DE…3000"), ("12345678", "…"), ("", "…")],
)
def test_an_account_is_shown_by_its_ends_only(number: str, shown: str) -> None:
    """Enough to recognise one's own, too little to use another's."""
    assert masked_account(number) == shown
