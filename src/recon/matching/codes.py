"""Reads codes.toml, the table of break codes: titles, conditions, severity floors and sentences."""

import ast
import operator
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from recon.config.rules import Rules, digest_of
from recon.model.errors import Defect
from recon.model.terms import BreakCode, Flag, Severity

Condition = Callable[[Any], Any]
"""Function from facts to whether the condition holds, for one set or for an array of sets."""
_Value = Callable[[Any], Any]
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, several: _any(one == label for label in several),
    ast.NotIn: lambda one, several: _not(_any(one == label for label in several)),
}
_OF_SEVERAL = (ast.In, ast.NotIn)
_IN_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def condition_of(text: str, *, facts: Mapping[str, type]) -> Condition:
    """Compile a condition, such as `money and order == 'paid'`, into a function of facts.

    Args:
        text: the condition.
        facts: name -> int, str or bool, for every fact that it may name.

    Raises:
        ValueError: it is invalid, names an unknown fact, or compares incompatible types.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        msg = f"{text!r} is no condition: {error.msg}"
        raise ValueError(msg) from error
    return _condition(tree, facts=facts)


def _any(holds: Iterable[Any]) -> Any:
    return reduce(operator.or_, holds)


def _all(holds: Iterable[Any]) -> Any:
    return reduce(operator.and_, holds)


def _not(holds: Any) -> Any:
    return operator.xor(True, holds)


def _condition(node: ast.expr, *, facts: Mapping[str, type]) -> Condition:
    if isinstance(node, ast.BoolOp):
        parts = [_condition(part, facts=facts) for part in node.values]
        together = _all if isinstance(node.op, ast.And) else _any
        return lambda known: together(part(known) for part in parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        denied = _condition(node.operand, facts=facts)
        return lambda known: _not(denied(known))
    if isinstance(node, ast.Compare):
        return _comparison(node, facts=facts)
    kind, value = _value(node, facts=facts)
    if kind is not bool:
        msg = f"{ast.unparse(node)!r} is neither true nor false"
        raise ValueError(msg)
    return value


def _comparison(node: ast.Compare, *, facts: Mapping[str, type]) -> Condition:
    sides = [_value(side, facts=facts) for side in (node.left, *node.comparators)]
    pairs = []
    for (kind, one), sign, (other_kind, other) in zip(sides, node.ops, sides[1:], strict=False):
        expected = (tuple, kind) if isinstance(sign, _OF_SEVERAL) else kind
        is_ordered = isinstance(sign, _IN_ORDER) and kind is not int
        if type(sign) not in _COMPARED or other_kind != expected or is_ordered:
            msg = f"{ast.unparse(node)!r} compares what cannot be compared"
            raise ValueError(msg)
        pairs.append((_COMPARED[type(sign)], one, other))
    return lambda known: _all(holds(one(known), other(known)) for holds, one, other in pairs)


def _value(node: ast.expr, *, facts: Mapping[str, type]) -> tuple[Any, _Value]:
    """Return the type of a value, or (tuple, type) for a tuple, and the function that reads it."""
    if isinstance(node, ast.Name):
        if node.id not in facts:
            msg = f"there is no fact {node.id!r}"
            raise ValueError(msg)
        return facts[node.id], operator.attrgetter(node.id)
    if isinstance(node, ast.Constant) and type(node.value) in {int, str, bool}:
        return type(node.value), lambda _: node.value
    if isinstance(node, ast.Tuple) and all(isinstance(one, ast.Constant) for one in node.elts):
        labels = tuple(one.value for one in node.elts if isinstance(one, ast.Constant))
        kinds = {type(label) for label in labels}
        if len(kinds) == 1:
            return (tuple, *kinds), lambda _: labels
    msg = f"{ast.unparse(node)!r} is no fact, number or text"
    raise ValueError(msg)


TITLE_MAX = 30
"""Maximum characters of a title, which is shown in a column of page one."""
Text = Annotated[str, Field(min_length=1)]
Kind = TypeVar("Kind", BreakCode, Flag)
Row = TypeVar("Row", bound=BaseModel)


class Template(BaseModel):
    """A sentence with names of amounts and clauses in braces; a capital name starts a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: Text
    when: str = Field(default="", alias="if")
    """See `condition_of`; "" matches whatever is left."""


def _ends_without_condition(sentences: tuple[Template, ...]) -> tuple[Template, ...]:
    if sentences and [bool(sentence.when) for sentence in sentences] != [True] * (
        len(sentences) - 1
    ) + [False]:
        msg = "the last sentence, and no other, holds without a condition"
        raise ValueError(msg)
    return sentences


Templates = Annotated[
    tuple[Template, ...],
    BeforeValidator(
        lambda sentences: tuple(sentences) if isinstance(sentences, list) else sentences
    ),
    AfterValidator(_ends_without_condition),
]


class Each(BaseModel):
    """A sentence or sum for single rows of a set; see [each] in codes.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    of: Literal["orders", "payments", "entries", "payouts", "rivals"]
    when: str = Field(default="", alias="if")
    templates: list[Template] = []
    sum: str = ""
    distinct: bool = False
    otherwise: str = ""


class When(BaseModel):
    """One condition for a code or a flag; the head of codes.toml explains each field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    holds: Text = Field(alias="if")
    of: Literal["sets", "payouts", "groups", "held", "bank"] = "sets"
    leg: Literal["", "orders", "instructions", "ledger", "settlement", "bank"] = ""
    grace: str = ""
    side: Literal["orders", "gateway", "ledger", "settlement", "bank"] = "gateway"
    last: bool = False


class Code(BaseModel):
    """One code of the table; the head of codes.toml explains each field."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    title: Annotated[str, Field(min_length=1, max_length=TITLE_MAX)]
    area: Literal["moves", "bank", "settlement", "ledger", "orders"] = "orders"
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
    otherwise: Literal["none", "gateway"] = "none"
    floor: Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"] = "LOW"
    firm: bool = False
    lacks_a_side: bool = False
    both_legs: bool = False
    when: list[When] = []
    journal: Literal["", "ledger", "undecided"] = ""
    templates: dict[Literal["sets", "groups", "held", "bank"], Templates] = {}

    @property
    def lowest(self) -> Severity:
        """The severity that a break of this code never goes below."""
        return Severity(self.floor)


class FlagOfSets(BaseModel):
    """When a set has a flag, and the match rule that the flag implies."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    rule: str = ""
    when: list[When]


class Agreement(BaseModel):
    """A match rule and the condition under which a set matches by it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rule: Text
    holds: Text = Field(alias="if")


class Cause(BaseModel):
    """A cause that several breaks may share; see [[cause]] in codes.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    codes: tuple[BreakCode, ...]
    by: tuple[str, ...]
    of: str = ""
    contrast: str = ""
    over: tuple[str, ...] = ()
    breaks_min: int = 3
    share_percent: int = 80
    text: Text


@dataclass(frozen=True, slots=True)
class CodeTable:
    """The parsed contents of codes.toml."""

    codes: Mapping[BreakCode, Code]
    """In the order of precedence."""
    facts: Mapping[str, str]
    """Name -> condition; each may name the facts above it, so their order counts."""
    cells: Mapping[str, list[str]]
    """State of the order -> one cell for each column of gateway states."""
    flags: Mapping[Flag, FlagOfSets]
    matched: tuple[Agreement, ...]
    labels: Mapping[str, Templates]
    """Parts of sentences; the first whose condition holds is used."""
    listed: Mapping[str, Templates]
    """Parts of sentences; every one whose condition holds is used, the last one if none does."""
    each: Mapping[str, Each]
    """Sentences about single rows, or sums over them."""
    causes: tuple[Cause, ...]
    decides: str
    """Digest of everything that decides: conditions, order, grace, floors, what is at risk."""
    words: str
    """Digest of everything that people read: titles, meanings, sentences."""


DIGEST_DIGITS = 16
"""Hex digits of SHA-256 that name a table of codes, which nobody but a version changes."""


_READ = {
    "code": ("title", "area", "meaning", "to_do", "templates"),
    "cause": ("text",),
    "words": (),
    "listed": (),
    "each": (),
}
"""Table of codes.toml -> what of its rows people only read; () for the whole table."""


def _digests(tables: Mapping[str, Any]) -> tuple[str, str]:
    """Return the digests of what a table of codes decides and of what people read in it."""
    decides, words = dict[str, Any](), dict[str, Any]()
    for name, rows in tables.items():
        read = _READ.get(name)
        if read is None:
            decides[name] = [*rows.items()] if isinstance(rows, dict) else rows
        elif not read:
            words[name] = rows
        else:
            decides[name] = [{k: v for k, v in row.items() if k not in read} for row in rows]
            words[name] = [{k: v for k, v in row.items() if k in read} for row in rows]
    return digest_of(decides)[:DIGEST_DIGITS], digest_of(words)[:DIGEST_DIGITS]


def with_table(rules: Rules) -> Rules:
    """Return rules bound to the table of codes that this program evaluates."""
    return rules.model_copy(update={"codes": TABLE.decides})


def table_of(text: str, *, source: str) -> CodeTable:
    """Parse a table of codes.

    Args:
        text: TOML with one `[[code]]` for each code.
        source: what errors call it.

    Raises:
        Defect: a code or flag is unknown, missing or repeated, or a field invalid; it is named.
    """
    tables = tomllib.loads(text)
    codes = _named(tables.get("code", []), kinds=BreakCode, model=Code, source=source)
    if lacking := [code.value for code in BreakCode if code not in codes]:
        msg = f"{source} says nothing of {', '.join(lacking)}"
        raise Defect(msg)
    flags = _named(tables.get("flag", []), kinds=Flag, model=FlagOfSets, source=source)
    matched = tuple(Agreement.model_validate(row) for row in tables.get("matched", []))
    cells = {state: labels.split() for state, labels in tables.get("states", {}).items()}
    labels, listed = (_SHARED.validate_python(tables.get(n, {})) for n in ("words", "listed"))
    each = _EACH.validate_python(tables.get("each", {}))
    causes = tuple(Cause.model_validate(row) for row in tables.get("cause", []))
    return CodeTable(
        codes,
        tables.get("facts", {}),
        cells,
        flags,
        matched,
        labels,
        listed,
        each,
        causes,
        *_digests(tables),
    )


_SHARED = TypeAdapter(dict[str, Templates])
_EACH = TypeAdapter(dict[str, Each])


def _named(
    rows: list[dict[str, Any]], *, kinds: type[Kind], model: type[Row], source: str
) -> dict[Kind, Row]:
    """Validate the rows and return them by code or flag, in their order."""
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
"""Every code, in order of precedence."""
PRECEDENCE = tuple(CODES)
