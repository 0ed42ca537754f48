"""The table of break codes, codes.toml: what a code is called, when a set has it, how it counts."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from recon.model.errors import Defect
from recon.model.words import BreakCode, Flag, Severity

TITLE_MAX = 30
"""Characters of a title: it stands in a column of page one."""
Text = Annotated[str, Field(min_length=1)]
Kind = TypeVar("Kind", BreakCode, Flag)
Row = TypeVar("Row", bound=BaseModel)


class Template(BaseModel):
    """Words with the names of amounts and clauses in braces; a capital name begins a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: Text
    when: str = Field(default="", alias="if")
    """See expressions.py; "": it holds for all that is left."""


class When(BaseModel):
    """One way to have a code or a flag; the head of codes.toml tells what each field means."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    holds: Text = Field(alias="if")
    leg: Literal["", "orders", "instructions", "ledger", "settlement"] = ""
    grace: str = ""
    side: Literal["orders", "gateway", "ledger", "settlement"] = "gateway"
    payout: bool = False
    last: bool = False


class Code(BaseModel):
    """What the table says of one code; the head of codes.toml tells what each field means."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    title: Annotated[str, Field(min_length=1, max_length=TITLE_MAX)]
    area: Literal["moves", "bank", "settlement", "books", "orders"] = "orders"
    overdue: bool = False
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
    both_legs: bool = False
    names_rows: bool = False
    other_amount: bool = False
    when: list[When] = []
    journal: Literal["", "books", "undecided"] = ""
    say: tuple[Template, ...] = ()
    say_of_cash: tuple[Template, ...] = ()
    say_of_bank: tuple[Template, ...] = ()

    @field_validator("say", "say_of_cash", "say_of_bank", mode="before")
    @classmethod
    def _of_list(cls, say: Any) -> Any:
        return tuple(say) if isinstance(say, list) else say

    @field_validator("say", "say_of_cash", "say_of_bank")
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


class FlagOfSets(BaseModel):
    """When a set has a flag, and why it agrees then."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    rule: str = ""
    when: list[When]


class Agreement(BaseModel):
    """Why a set agrees."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rule: Text
    holds: Text = Field(alias="if")


@dataclass(frozen=True, slots=True)
class CodeTable:
    """What codes.toml says."""

    codes: Mapping[BreakCode, Code]
    """In the order of precedence."""
    facts: Mapping[str, str]
    """Name -> condition; in this order."""
    cells: Mapping[str, list[str]]
    """State of the order -> a word for each column of states of the gateway."""
    flags: Mapping[Flag, FlagOfSets]
    matched: tuple[Agreement, ...]


def table_of(text: str, *, source: str) -> CodeTable:
    """Read a table of codes.

    Args:
        text: TOML with one `[[code]]` for each code.
        source: what it is called in errors.

    Raises:
        Defect: a field, code or flag is not known, lacks or stands twice; the message names it.
    """
    tables = tomllib.loads(text)
    codes = _named(tables.get("code", []), kinds=BreakCode, model=Code, source=source)
    if lacking := [code.value for code in BreakCode if code not in codes]:
        msg = f"{source} says nothing of {', '.join(lacking)}"
        raise Defect(msg)
    flags = _named(tables.get("flag", []), kinds=Flag, model=FlagOfSets, source=source)
    matched = tuple(Agreement.model_validate(row) for row in tables.get("matched", []))
    cells = {state: words.split() for state, words in tables.get("states", {}).items()}
    return CodeTable(codes, tables.get("facts", {}), cells, flags, matched)


def _named(
    rows: list[dict[str, Any]], *, kinds: type[Kind], model: type[Row], source: str
) -> dict[Kind, Row]:
    """The rows by what they are named, in their order."""
    named: dict[Kind, Row] = {}
    what = {BreakCode: "code", Flag: "flag"}[kinds]
    known = {kind.value: kind for kind in kinds}
    counts = Counter(str(row.get("name", "")) for row in rows)
    for number, row in enumerate(rows, 1):
        name = str(row.get("name", ""))
        where = f"{source}, {what} {number} ({name or 'without a name'})"
        if name not in known:
            msg = f"{where}: there is no such {what}"
            raise Defect(msg)
        if counts[name] > 1:
            msg = f"{where}: it stands {counts[name]} times"
            raise Defect(msg)
        try:
            named[known[name]] = model.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            msg = f"{where}, {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise Defect(msg) from error
    return named


TABLE = table_of(Path(__file__).with_name("codes.toml").read_text("utf-8"), source="codes.toml")
CODES = TABLE.codes
"""Every code, in the order of precedence."""
PRECEDENCE = tuple(CODES)
