"""A request to the signer as it came in: JSON of a stranger, read within bounds."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from recon.desk.endorsement import Signed
from recon.model.errors import UsageError

ROWS_MAX = 100
FIELDS_MAX = 200
WORDS_MAX = 1_000
"""Endorsements that may come with one request."""
TEXT_CHARACTERS_MAX = 8_192
NAME_CHARACTERS_MAX = 100


class AskedRow(BaseModel):
    """What is said for one row: which instruction it is, and what that would send."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    instruction_id: str = Field(min_length=1, max_length=NAME_CHARACTERS_MAX)
    terms: dict[str, str | int]
    """What it sends now, as `settlement.terms.terms_of` has it."""
    seen: dict[str, str | int] = Field(default_factory=dict)
    """What people saw of it, where that was before its payment was filled in; {}: the same."""


class AskedWord(BaseModel):
    """An endorsement of the desk."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    document: str
    signature: str
    key: str

    @property
    def signed(self) -> Signed:
        """As the desk's own module reads it."""
        return Signed(self.document, self.signature, self.key)


class Grounds(BaseModel):
    """Why money may move: the rows in order, and who endorsed them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rows: tuple[AskedRow, ...] = Field(default=(), max_length=ROWS_MAX)
    endorsements: tuple[AskedWord, ...] = Field(default=(), max_length=WORDS_MAX)


class Asked(BaseModel):
    """What somebody wants signed, or checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    template: str = Field(max_length=NAME_CHARACTERS_MAX)
    merchant_id: str = Field(max_length=NAME_CHARACTERS_MAX)
    account_id: str = Field(max_length=NAME_CHARACTERS_MAX)
    fields: dict[str, str] = Field(max_length=FIELDS_MAX)
    rows: tuple[dict[str, str], ...] = Field(max_length=ROWS_MAX)
    grounds: Grounds = Grounds()
    given: str = Field(default="", max_length=TEXT_CHARACTERS_MAX)
    """Of a check: the signature that came."""

    @property
    def account(self) -> str:
        """Merchant and account as one name."""
        return f"{self.merchant_id}/{self.account_id}"


def asked_of(document: Any) -> Asked:
    """The request in a document.

    Raises:
        UsageError: it is none; no value of it is quoted.
    """
    try:
        return Asked.model_validate(document)
    except ValueError:
        msg = "the request is not one that a signer understands"
        raise UsageError(msg) from None
