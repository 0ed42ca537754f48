"""Who signs, when it is not a key in this process: what is asked of them, and what they answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A message that is to be signed, or whose signature is to be checked: named fields only."""

    template: str
    """Of signature.toml: the operation, or payment_reply."""
    merchant_id: str
    account_id: str
    fields: Mapping[str, str] = field(repr=False)
    rows: tuple[Mapping[str, str], ...] = field(default=(), repr=False)


class Signer(Protocol):
    """Somebody who holds the key and signs for us; `signer_socket` is one."""

    def sign(self, wanted: Wanted) -> str:
        """The signature of a message, in hexadecimal.

        Raises:
            UnsignedError: refused, or nobody is there; nothing was signed.
        """
        ...

    def matches(self, wanted: Wanted, *, given: str) -> bool:
        """Whether `given` is the signature of a message.

        Raises:
            UnsignedError: nobody is there to say.
        """
        ...
