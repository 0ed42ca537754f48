"""The table of break codes, codes.toml: one place says what a code is called and how it counts."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from recon.model.errors import Defect
from recon.model.words import BreakCode, Severity

TITLE_MAX = 30
"""Characters of a title: it stands in a column of page one."""
Text = Annotated[str, Field(min_length=1)]


class Template(BaseModel):
    """Words with the names of amounts and clauses in braces; a capital name begins a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: Text
    when: str = Field(default="", alias="if")
    """See expressions.py; "": it holds for all that is left."""


class Code(BaseModel):
    """What the table says of one code; the head of codes.toml tells what each field means."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    title: Annotated[str, Field(min_length=1, max_length=TITLE_MAX)]
    meaning: Text
    to_do: Text
    risk: Literal[
        "effect",
        "amount",
        "whole",
        "taken",
        "captured",
        "settled",
        "settlement gap",
        "fee",
        "exchange",
    ] = "effect"
    owed_to: Literal["by sign", "nobody", "shopper"] = "by sign"
    floor: Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"] = "LOW"
    firm: bool = False
    lacks_a_side: bool = False
    journal: Literal["", "books", "undecided"] = ""
    say: tuple[Template, ...] = ()

    @field_validator("say", mode="before")
    @classmethod
    def _of_list(cls, say: Any) -> Any:
        return tuple(say) if isinstance(say, list) else say

    @field_validator("say")
    @classmethod
    def _ends_without_condition(cls, say: tuple[Template, ...]) -> tuple[Template, ...]:
        if say and [bool(sentence.when) for sentence in say] != [True] * (len(say) - 1) + [False]:
            msg = "the last sentence, and no other, holds without a condition"
            raise ValueError(msg)
        return say

    @property
    def lowest(self) -> Severity:
        """The severity that it is never below."""
        return Severity(self.floor)


def codes_of(text: str, *, source: str) -> Mapping[BreakCode, Code]:
    """Read a table of codes, in the order of precedence.

    Args:
        text: TOML with one `[[code]]` for each code.
        source: what it is called in errors.

    Raises:
        Defect: a field or a code is not known, lacks or stands twice; the message names it.
    """
    tables = tomllib.loads(text)
    codes: dict[BreakCode, Code] = {}
    known = {code.value: code for code in BreakCode}
    counts = Counter(str(table.get("name", "")) for table in tables.get("code", []))
    for number, table in enumerate(tables.get("code", []), 1):
        name = str(table.get("name", ""))
        where = f"{source}, code {number} ({name or 'without a name'})"
        if name not in known:
            msg = f"{where}: there is no such code"
            raise Defect(msg)
        if counts[name] > 1:
            msg = f"{where}: it stands {counts[name]} times"
            raise Defect(msg)
        try:
            codes[known[name]] = Code.model_validate(table)
        except ValidationError as error:
            first = error.errors()[0]
            msg = f"{where}, {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise Defect(msg) from error
    if lacking := [name for name in known if name not in counts]:
        msg = f"{source} says nothing of {', '.join(lacking)}"
        raise Defect(msg)
    return codes


CODES = codes_of(Path(__file__).with_name("codes.toml").read_text("utf-8"), source="codes.toml")
"""Every code, in the order of precedence."""
PRECEDENCE = tuple(CODES)
