"""Encryption of bank details at rest, and keyed digests by which payees are compared.

The journal stores a payout's details encrypted until the payout is final; then only a digest of the
payee and a display such as `DE…3000` remain. Neither can be reversed without the key.
"""

import hashlib
import hmac
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken
from pydantic import SecretStr

from recon.model.errors import ConfigurationError

if TYPE_CHECKING:
    from recon.gateway_client import PayoutRow

DISPLAYED_FIRST = 2
DISPLAYED_LAST = 4
SHORTEST_DISPLAYED = 12
"""No digit of a shorter account number is shown: it would be too large a part."""


class Seal:
    """Encrypts and decrypts texts with one key, which is never shown in a repr."""

    def __init__(self, key: SecretStr | None) -> None:
        """Use the key of RECON_SEAL_KEY.

        Raises:
            ConfigurationError: It is missing, or not a valid key.
        """
        if key is None:
            msg = (
                "RECON_SEAL_KEY (or RECON_SEAL_KEY_FILE) is not set; payouts are stored sealed "
                'only. Make a key with `python -c "from cryptography.fernet import Fernet; '
                'print(Fernet.generate_key().decode())"` and keep it as you keep the sign key'
            )
            raise ConfigurationError(msg)
        secret = key.get_secret_value().encode()
        try:
            self._fernet = Fernet(secret)
        except ValueError:
            msg = "RECON_SEAL_KEY is not a key: it is 32 bytes in URL-safe base64"
            raise ConfigurationError(msg) from None
        self._digest_key = hashlib.sha256(b"recon payee\x1f" + secret).digest()

    def __repr__(self) -> str:
        return "Seal(…)"

    def close(self, text: str) -> str:
        """Return the text encrypted and authenticated."""
        return self._fernet.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """Return the decrypted text.

        Raises:
            ConfigurationError: It was encrypted with another key, or altered.
        """
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            msg = (
                "a payout's details were sealed under another RECON_SEAL_KEY; set the key they "
                "were sealed under"
            )
            raise ConfigurationError(msg) from None

    def digest(self, text: str) -> str:
        """Return a keyed hexadecimal digest, the same for the same text and key."""
        return hmac.new(self._digest_key, text.encode(), hashlib.sha256).hexdigest()


def payee_identity(row: "PayoutRow") -> str:
    """Return what identifies a payee: the account with its bank, else the gateway's payee id."""
    bank = row.beneficiary.bank_details if row.beneficiary else None
    account = (bank.iban or bank.account_number) if bank else ""
    if bank is None or not account:
        return f"\x1f\x1f\x1f{row.beneficiary_id}"
    return "\x1f".join((account.replace(" ", "").upper(), bank.swift_code, bank.bank_code, ""))


def masked_account(number: str) -> str:
    """Return an IBAN or account number as it may be displayed."""
    plain = number.replace(" ", "")
    if len(plain) < SHORTEST_DISPLAYED:
        return "…"
    return f"{plain[:DISPLAYED_FIRST]}…{plain[-DISPLAYED_LAST:]}"
