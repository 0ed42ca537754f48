"""Who is notified when a run has ended, as declared in `notices.toml`.

Each notice has one table `[notices.<name>]`. Its address contains a password or token and is only
referred to here: an environment variable, or a file that only its owner can read.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    StringConstraints,
    model_validator,
)

from recon.config.declared import DeclaredTable
from recon.model.errors import ConfigurationError
from recon.model.terms import End

NOTICES_MAX = 20
"""More addresses than that should be a mailing list."""

STOPPED = "STOPPED"
"""End of a run that reached no verdict."""

NoticeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]


class Notice(DeclaredTable):
    """One address, and what is told there."""

    address_env: str = ""
    """The environment variable that holds the address, as Apprise writes it."""
    address_file: Path | None = None
    """Or the file, mode 0600, that holds it."""
    accounts: tuple[str, ...] = ("*",)
    """`<merchant>/<account>` with * and ?: of which accounts; without it of all."""
    verdicts: frozenset[End | Literal["STOPPED"]] = frozenset({*End, "STOPPED"})
    """After which ends of a night; without it after every one."""
    attach: bool = False
    """Whether the workbook comes along."""

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if bool(self.address_env) == bool(self.address_file):
            msg = "name one of address_env and address_file"
            raise ValueError(msg)
        return self

    def concerns(self, account: str, *, ends: Collection[str]) -> bool:
        """Whether it applies to a run of `<merchant>/<account>` that ended in any of these ways."""
        is_requested = not self.verdicts.isdisjoint(ends)
        return is_requested and any(fnmatchcase(account, named) for named in self.accounts)


class Notices(DeclaredTable):
    """All of notices.toml, by name."""

    notices: dict[NoticeName, Notice] = Field(default_factory=dict, max_length=NOTICES_MAX)

    def refuse_strangers(self, accounts: Collection[str]) -> None:
        """Refuse a pattern that matches none of these accounts and would never notify anybody.

        Raises:
            ConfigurationError: names the notice and the pattern.
        """
        for name, notice in self.notices.items():
            for pattern in notice.accounts:
                if accounts and not any(fnmatchcase(account, pattern) for account in accounts):
                    msg = (
                        f"notices.toml: notices.{name}.accounts: {pattern!r} fits no account of "
                        "merchants.toml"
                    )
                    raise ConfigurationError(msg)
