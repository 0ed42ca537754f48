"""The people who may approve, release and sign, as declared in `approvers.toml`.

Each has one table `[approvers.<short name>]`; `--as` takes the short name. A one-time code
authenticates the person; its secret is only referred to here, never written here.
"""

import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from recon.config.declared import DeclaredTable

NAME = r"^[^:\x00-\x1f\x7f]+$"
"""No colon, because it separates the name from the rest of a sentence."""


class Approver(DeclaredTable):
    """One person."""

    name: str = Field(min_length=1, max_length=100, pattern=NAME)
    """As it stands in reports."""
    role: Literal["reviewer", "approver"] = "approver"
    """A reviewer looks and signs; of two people who release money one is an approver."""
    limit: dict[str, Decimal] = Field(default_factory=dict)
    """Currency -> the largest sum of one list, major units; a currency that is absent: none."""
    code_secret_env: str = ""
    """The environment variable that holds the secret of the one-time codes (base32)."""
    code_secret_file: Path | None = None
    """Or the file, mode 0600, that holds it. Neither: the identity is never authenticated."""


def person_key(name: str, *, declared: Mapping[str, Approver]) -> str:
    """The key that identifies the person with this name, for any comparison of people.

    Short name and full name are the same person, in any case, white space or Unicode form. The key
    of a person who is not declared is the folded name itself.
    """
    key_of = folded(name)
    for short, person in declared.items():
        if key_of in {folded(short), folded(person.name)}:
            return short
    return key_of


def has_left(name: str, *, declared: Mapping[str, Approver]) -> bool:
    """Whether the person of a recorded name is no longer declared; False if nobody is declared."""
    return bool(declared) and person_key(name, declared=declared) not in declared


def folded(name: str) -> str:
    """A name normalised for comparison: NFKC, case-folded, single blanks, nothing invisible."""
    whole = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(letter for letter in whole if unicodedata.category(letter) != "Cf")
    # Case folding may decompose a character again.
    return " ".join(unicodedata.normalize("NFKC", shown).split())


class Approvers(DeclaredTable):
    """All of approvers.toml, by short name."""

    approvers: dict[str, Approver] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nobody_is_two(self) -> Self:
        """Refuse a name or secret under two short names: one person could act as two."""
        names: dict[tuple[str, str], str] = {}
        for short, person in self.approvers.items():
            for key, value in _identities_of(short, person):
                first = names.setdefault((key, value), short)
                if value and first != short:
                    msg = f"{first} and {short} have the same {key}: each person needs their own"
                    raise ValueError(msg)
        return self


def _identities_of(short: str, person: Approver) -> set[tuple[str, str]]:
    """The values that no two people may share; "" is ignored. A short name is a name, too."""
    file = person.code_secret_file
    return {
        ("name", folded(short)),
        ("name", folded(person.name)),
        ("code_secret_env", person.code_secret_env),
        ("code_secret_file", "" if file is None else str(file.resolve())),
    }
