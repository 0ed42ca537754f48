"""The people who may approve, release and sign (`approvers.toml`), as they are declared.

Each has one table `[approvers.<short name>]`; the short name is what `--as` takes. A one-time code
proves who it is; its secret is only named here, never written here.
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from recon.errors import ConfigurationError
from recon.mistakes import problems_of

SHORT_NAME = r"^[a-z][a-z0-9._-]{0,39}$"


class Approver(BaseModel):
    """One person."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(min_length=1, max_length=100)
    """As it stands in reports."""
    role: Literal["reviewer", "approver"] = "approver"
    """A reviewer looks and signs first; an approver releases money and signs last."""
    limit: dict[str, Decimal] = Field(default_factory=dict)
    """Currency -> the largest sum of one list, major units; a currency that is absent: none."""
    code_secret_env: str = ""
    """The environment variable that holds the secret of the one-time codes (base32)."""
    code_secret_file: Path | None = None
    """Or the file, mode 0600, that holds it. Neither: the identity is never authenticated."""


def approvers_of(tables: Mapping[str, Any]) -> dict[str, Approver]:
    """The people of approvers.toml by short name.

    Raises:
        ConfigurationError: naming the table and key that is wrong.
    """
    unknown = sorted(set(tables) - {"approvers"})
    if unknown:
        msg = f"approvers.toml: {', '.join(unknown)}: only tables [approvers.<name>] stand here"
        raise ConfigurationError(msg)
    try:
        return _People.model_validate(tables).approvers
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, source="approvers.toml")) from None


class _People(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    approvers: dict[str, Approver] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nobody_is_two(self) -> Self:
        """One name or one secret under two short names would let one person be two."""
        told: dict[tuple[str, str], str] = {}
        for short, person in self.approvers.items():
            for key, value in _marks_of(person).items():
                first = told.setdefault((key, value), short)
                if value and first != short:
                    msg = f"{first} and {short} have the same {key}: each person needs their own"
                    raise ValueError(msg)
        return self


def _marks_of(person: Approver) -> dict[str, str]:
    """What no two people may share; "" is nothing."""
    file = person.code_secret_file
    return {
        "name": " ".join(person.name.casefold().split()),
        "code_secret_env": person.code_secret_env,
        "code_secret_file": "" if file is None else str(file.resolve()),
    }
