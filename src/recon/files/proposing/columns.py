"""Map the columns of a sample to ours: first by name, then by what the cells can hold.

A column of ours without a match is a constant, left blank, or asked for.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from recon.config.declared import mistakes_of
from recon.config.file_layouts import FileLayout
from recon.files.formats.raw_table import filled
from recon.files.proposing.sample import Sample
from recon.files.proposing.vocabulary import NAMES, STAND_INS, names_of_column, plain_text
from recon.files.proposing.written_cells import (
    looks_like_amount,
    looks_like_day,
    looks_like_time,
    nearby_currency,
)
from recon.files.typing.amounts import AmountColumn, written_amounts
from recon.files.typing.mapped_columns import MappedColumns, mapped_columns
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.files.typing.text_cells import CellProblems, distinct
from recon.model.errors import UsageError
from recon.model.money import is_currency
from recon.model.terms import SourceKind
from recon.privacy.displayed_text import redacted

_FIT_SHARE_MIN = 9
"""Tenths of the filled cells that must fit the meaning of a column."""
_WORDS_MAX = 30
"""Maximum number of distinct terms in a column of terms."""
_WORD_CHARACTERS_MAX = 50
_OF_STATEMENT = frozenset({"statement_no", "from_date", "to_date"})
"""Our columns that may share one of theirs: one day's entries may form a statement."""
_OF_ACCOUNT = ("merchant_id", "account_id")
_SPARED = frozenset({"transaction_id", "reference_no", "opening", "closing"})
"""Columns that many programs do not export: left blank, and reported, if there is no match."""
_OF_A_LIST = {"query_result": "1"}
"""Constants for what no portal exports: each row of its list is a payment the gateway has."""
_CANDIDATES_MAX = 6
"""Maximum number of columns named in a question."""
_SIGNED = frozenset({SourceKind.SETTLEMENT, SourceKind.BANK, SourceKind.LEDGER})
"""Kinds of file whose amounts may be split into two columns."""
_TABLES = ("columns", "debit", "sums", "clock", "constants", "currencies", "words")
"""Keys of a layout that are tables, as far as a draft fills them."""
WRITING = ("decimal_sign", "thousands_sign", "minus", "currency_sign", "units", "decimals")
"""Keys that define how an amount is written."""
_NO_WORD = "\x1f"
_NOT_ZERO = frozenset("123456789")
_CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?: ?[AaPp][Mm])?", re.ASCII
)

Units = list[int | None]
"""Minor units of each row; 0 for a blank amount, None for one that cannot be read."""


class TheirColumn(NamedTuple):
    """One column of the samples."""

    name: str
    words: str
    """Its normalised name, see `plain_text`."""
    seen: Mapping[str, int]
    """Text of each filled cell -> the first line that has it."""
    full: bool
    """No cell is blank."""
    all_differ: bool
    """No two cells are equal, as in a column of row ids."""

    @property
    def bare(self) -> str:
        """Its name without trailing units."""
        parts = self.words.split(" ")
        while len(parts) > 1 and parts[-1] in NAMES["units"]:
            parts.pop()
        return " ".join(parts)

    def all(self, of: Callable[[str], object]) -> bool:
        """Return whether `of` holds for at least nine tenths, so one bad row hides no column."""
        return sum(bool(of(text)) for text in self.seen) * 10 >= len(self.seen) * _FIT_SHARE_MIN

    def is_named(self, names: frozenset[str]) -> bool:
        """Return whether its name is one of these, with or without trailing units."""
        return self.words in names or self.bare in names

    @property
    def are_codes(self) -> bool:
        """Whether it holds currency codes."""
        return bool(self.seen) and self.all(lambda text: is_currency(text.upper()))

    def rank(self, column: TableColumn) -> int | None:
        """Return how well its name fits our column, 0 being best; None if it does not."""
        names, others = names_of_column(column.name), STAND_INS.get(column.name, frozenset())
        if self.name == column.name:
            return 0
        if self.words in names:
            return 1
        if self.bare in names:  # either of two dates may be ours, even if one states its time zone
            return 1 if column.cell in {Cell.INSTANT, Grammar.DATE} else 2
        return 3 if self.bare in others and self.full and self.all_differ else None

    def fits(self, column: TableColumn) -> bool:
        """Return whether its cells can hold what our column means."""
        if not self.seen or not (self.full or column.may_be_blank):
            return not self.seen and column.may_be_blank
        match column.cell:
            case Cell.AMOUNT:
                return self.all(looks_like_amount)
            case Cell.CURRENCY:
                return self.are_codes
            case Cell.INSTANT | Grammar.DATE:
                return self.all(looks_like_time)
            case Grammar() as grammar:
                return self.all(re.compile(grammar.value[0], re.ASCII).fullmatch)
        are_short = all(len(text) <= _WORD_CHARACTERS_MAX for text in self.seen)
        return are_short and len(self.seen) <= _WORDS_MAX


@dataclass(frozen=True, slots=True)
class Draft:
    """A layout whose keys are being decided; each step builds on the previous ones.

    It starts with the user's answers, which are kept and not asked again.
    """

    sample: Sample
    schema: TableSchema
    answers: Mapping[str, str]
    """The user's answers: key of the layout -> text."""
    theirs: Mapping[str, TheirColumn]
    keys: dict[str, Any]
    questions: dict[str, str]

    def ask(self, key: str, question: str) -> None:
        """Add a question about a key, unless it has been answered."""
        if key not in self.answers:
            self.questions[key] = question

    @property
    def columns(self) -> dict[str, str]:
        """Our column -> their column."""
        return self.keys["columns"]  # type: ignore[no-any-return]  # a layout is of any shape

    @property
    def has_amounts(self) -> bool:
        """Whether amounts can be read."""
        return not {"decimal_sign", "units", "currency_sign"} & self.questions.keys()

    def assigned(self) -> set[str]:
        """Return their columns that are read in any way."""
        keys = self.keys
        mapped = {their for key in ("columns", "debit", "clock") for their in keys[key].values()}
        return mapped.union(*keys["sums"].values())

    def free(self, fits: Callable[[TheirColumn], object]) -> list[str]:
        """Return their filled columns that are not read yet and fit."""
        assigned = self.assigned()
        return [
            n
            for n, their in self.theirs.items()
            if n not in assigned and their.seen and fits(their)
        ]

    def seen(self, ours: str) -> Mapping[str, int]:
        """Return text -> first line of their column that is mapped to ours."""
        their = self.theirs.get(self.columns.get(ours, ""))
        return {} if their is None else their.seen

    def amount_columns(self) -> list[TableColumn]:
        """Return our amount columns that have a match in the samples."""
        columns = self.schema.columns
        return [c for c in columns if c.cell is Cell.AMOUNT and c.name in self.columns]

    def layout(self) -> dict[str, Any]:
        """Return the keys of the layout decided so far."""
        columns = {ours: their for ours, their in self.columns.items() if ours != their}
        keys = self.keys | {"columns": columns}
        return {key: value for key, value in keys.items() if value or key not in _TABLES}

    def mapped(self, names: Iterable[str], **keys: Any) -> MappedColumns:
        """Read our columns as a run would, with the layout so far and further keys."""
        expected = {*names, "entry_type", "currency"}
        columns = (column for column in self.schema.columns if column.name in expected)
        layout = self.layout() | {"constants": self._constants()} | keys
        signs = layout.get("sign", {}).items()  # a term that no row has is not known yet
        layout["sign"] = {ours: sign | {"minus": sign["minus"] or _NO_WORD} for ours, sign in signs}
        schema = TableSchema(self.schema.kind, tuple(columns))
        return mapped_columns(self.sample.raw, schema=schema, layout=layout_of(layout))

    def read(self, their: str, *, rows: Any = None, **keys: Any) -> Units:
        """Read a column of theirs as amounts of any sign, in all rows or only `rows`."""
        raw = self.sample.raw if rows is None else self.sample.raw.some(rows)
        layout = layout_of({key: self.keys[key] for key in WRITING if key in self.keys} | keys)
        code = self._constants().get("currency", "")
        codes = raw.columns.get(self.columns.get("currency", ""), filled(code, rows=len(raw.lines)))
        problems: CellProblems = {}
        texts, amounts = written_amounts(
            raw.columns[their],
            layout=layout,
            currencies=distinct(pc.utf8_upper(codes)),
            signed=np.ones(len(raw.lines), dtype=bool),
            numbers=raw.numbers.get(their),
            problems=problems,
        )
        return _units(texts, amounts, problems=problems)

    def _constants(self) -> dict[str, str]:
        """Return the constants; EUR stands in for a currency that is not known yet."""
        known = {"currency": "EUR"} | self.keys["constants"]
        return {name: text for name, text in known.items() if name not in self.columns}


def layout_of(keys: Mapping[str, Any]) -> FileLayout:
    """Validate these keys as a layout.

    Raises:
        UsageError: an answer is not valid for its key.
    """
    try:
        return FileLayout.model_validate(keys)
    except ValidationError as error:
        key, why = mistakes_of(error)[0]
        msg = f"{key}: {why}"
        raise UsageError(msg) from error


def units_of(mapped: MappedColumns, ours: str) -> Units:
    """Return the amount of each row as it was read."""
    problems = mapped.problems.get(ours, {})
    return _units(mapped.cells[ours], mapped.amounts[ours], problems=problems)


def _units(texts: pa.Array, amounts: AmountColumn, *, problems: CellProblems) -> Units:
    unread = np.array(pc.not_equal(texts, "")) & ~amounts.given
    unread[[*problems]] = True
    units = amounts.minor_units.tolist()
    return [None if lost else n for n, lost in zip(units, unread.tolist(), strict=True)]


def draft_of(
    sample: Sample, *, schema: TableSchema, known: Mapping[str, str], answers: Mapping[str, str]
) -> Draft:
    """Return a draft with the columns found by name and content; ambiguous ones become questions.

    `known` holds merchant and account as far as known, `answers` those of the user.

    Raises:
        UsageError: an answer names a column that the samples do not have.
    """
    theirs = {}
    raw = sample.raw
    for name in raw.header:
        if redacted(name) == name:  # otherwise the name must not be shown to the user
            texts = raw.columns[name].to_pylist()
            pairs = [pair for pair in zip(texts, raw.lines.tolist(), strict=True) if pair[0]]
            seen = dict(reversed(dict(reversed(pairs)).items()))
            whole = name.rpartition(".")[0] if _currency_of(name, header=raw.header) else name
            full, all_differ = len(pairs) == len(texts), len(seen) == len(pairs)
            theirs[name] = TheirColumn(name, plain_text(whole), seen, full, all_differ)
    keys = {key: {} for key in _TABLES} | sample.keys
    draft = Draft(sample, schema, answers, theirs, keys, {})
    for key, text in answers.items():
        _take_answer(draft, key, text)
    for key, question in sample.questions.items():
        draft.ask(key, question)
    _split(draft)
    for ranks in ((0,), (1, 2, 3)):  # an exact match goes before any other
        _rank(draft, ranks)
    _nearby_currencies(draft)
    _ask_of_days(draft)
    _place_account(draft, known=known)
    _fill_required(draft)
    return draft


def listed(text: str, *, by: str = ",") -> tuple[str, ...]:
    """Split the columns of an answer such as `gross,net` or `Commission + Markup`."""
    return tuple(name.strip() for name in text.split(by) if name.strip())


def _take_answer(draft: Draft, key: str, text: str) -> None:
    """Apply an answer to the draft; in `words.status.on hold` only two dots separate."""
    table, _, rest = key.partition(".")
    if table in {"skip", "sign", "lines"}:
        return  # handled where these keys are decided
    if not rest:
        yes_or_no = {"true": True, "false": False}.get(text, text)
        draft.keys[key] = listed(text) if key == "negated" else yes_or_no
        return
    of = draft.keys.setdefault(table, {})
    if not isinstance(of, dict):
        msg = f"{key}: {table} is one text and has no parts"
        raise UsageError(msg)
    parts = listed(text, by=" + ")
    if table == "sums" or (table == "columns" and len(parts) > 1 and text not in draft.theirs):
        table, of = "sums", draft.keys["sums"]
    if table in {"columns", "sums"}:
        for name in parts if table == "sums" else (text,):
            if name not in draft.theirs:
                msg = f"{key}: the samples have no column {name!r} that can be named"
                raise UsageError(msg)
    column, _, word = rest.partition(".")
    match table:
        case "words":
            of.setdefault(column, {})[word] = text
        case "sums":
            of[rest] = parts
        case "negated_rows":
            of[rest] = listed(text)
        case _:
            of[rest] = text


def _split(draft: Draft) -> None:
    """Find amounts split into two columns, such as `Gross Debit` and `Gross Credit`.

    An answer for one of the two sides decides both.
    """
    for column in draft.schema.columns if draft.schema.kind in _SIGNED else ():
        own = "" if column.name == "amount" else f"{column.name} "
        named = [
            [
                their
                for their in draft.theirs.values()
                if their.bare in {own + word for word in NAMES[side]}
                and their.all(looks_like_amount)
            ]
            for side in ("debits", "credits")
        ]
        if column.cell is not Cell.AMOUNT or [*map(len, named)] != [1, 1]:
            continue
        sides = [of[0] for of in named]
        if all(side.full and all({*text} & _NOT_ZERO for text in side.seen) for side in sides):
            continue  # the columns hold amounts of two accounts
        names = [side.name for side in sides]
        if draft.columns.get(column.name, names[0]) in names:
            draft.keys["debit"][column.name], draft.columns[column.name] = names


def _rank(draft: Draft, ranks: tuple[int, ...]) -> None:
    """Map the columns whose names have one of these ranks; our required columns choose first."""
    for column in sorted(draft.schema.columns, key=lambda column: not column.required):
        if column.name in {*draft.columns, *draft.keys["sums"]}:
            continue
        assigned = {their for ours, their in draft.columns.items() if ours not in _OF_STATEMENT}
        ranked = {
            name: rank
            for name, their in draft.theirs.items()
            if name not in assigned and (rank := their.rank(column)) in ranks and their.fits(column)
        }
        best = [name for name, rank in ranked.items() if rank == min(ranked.values())]
        if len(best) == 1:
            draft.columns[column.name] = best[0]
        elif best and column.required:
            draft.ask(f"columns.{column.name}", f"is it {_either(best)}?")


def _currency_of(name: str, *, header: Iterable[str]) -> str:
    """Return the currency column of a value, `amount.currency` of `amount.value`, or ""."""
    whole, point, part = name.rpartition(".")
    if not point or plain_text(part) not in NAMES["values"]:
        return ""
    neighbours = (each for each in header if each.rpartition(".")[0] == whole and each != name)
    codes = names_of_column("currency")
    named = [each for each in neighbours if plain_text(each.rpartition(".")[2]) in codes]
    return named[0] if len(named) == 1 else ""


def _nearby_currencies(draft: Draft) -> None:
    """Decide the key `currencies`: amounts with a currency column, to be equal to the row's.

    If amounts are objects, the currency of the first one is the row's. In settlement files a column
    may be named after its amount, such as `Fee Currency`.
    """
    own = draft.keys["currencies"]
    for column in draft.amount_columns():
        stated = _currency_of(draft.columns[column.name], header=draft.sample.raw.header)
        assigned = draft.columns.get(column.currency, "")
        if stated and f"columns.{column.currency}" not in draft.answers:
            if "." not in assigned:
                draft.columns[column.currency] = assigned = stated
                draft.questions.pop(f"columns.{column.currency}", None)
            if stated != assigned:
                own.setdefault(column.name, stated)
        named = draft.theirs[draft.columns[column.name]].words.removesuffix(" amount")
        names = {f"{column.name} currency", f"{named} currency"}
        for name in draft.free(lambda their: their.are_codes and their.words in names):  # noqa: B023
            if draft.schema.kind is SourceKind.SETTLEMENT:
                own[column.name] = name


def _either(names: Iterable[str]) -> str:
    return " or ".join(map(repr, names))


def _ask_of_days(draft: Draft) -> None:
    """Ask about a column that is only called a date if there are other date columns.

    The same goes for a date of a settled row, such as its booking: ours is that of the batch. The
    time of day may be in a column of its own.
    """
    assigned = set(draft.columns.values())
    filled = [their for their in draft.theirs.values() if their.seen]
    others = [t.name for t in filled if t.name not in assigned and t.all(looks_like_day)]
    clocks = [t.name for t in filled if t.words in NAMES["clocks"] and t.all(_CLOCK.fullmatch)]
    for column in draft.schema.columns:
        their = draft.theirs.get(draft.columns.get(column.name, ""))
        is_moment = column.cell is Cell.INSTANT
        if their is None or not column.required or not (is_moment or column.cell is Grammar.DATE):
            continue
        weak = NAMES["dates"]
        weak |= NAMES["days_of_rows"] if column.name == "settled_on" else frozenset()
        if their.is_named(weak) and others:
            draft.ask(f"columns.{column.name}", f"is it {_either((their.name, *others))}?")
        if is_moment and len(clocks) == 1 and not any(":" in text for text in their.seen):
            draft.keys["clock"][column.name] = clocks[0]


def _place_account(draft: Draft, *, known: Mapping[str, str]) -> None:
    """Use the caller's merchant and account, unless a column holds the same."""
    for name in (name for name in _OF_ACCOUNT if name in draft.schema.names):
        their, given = draft.columns.get(name, name), known.get(name, "")
        sure = f"columns.{name}" in draft.answers or their == name
        if not sure and (not given or {*draft.seen(name)} != {given}):
            del draft.columns[name]
        draft.questions.pop(f"columns.{name}", None)
        if name not in draft.columns and given:
            draft.keys["constants"].setdefault(name, given)
        elif name not in draft.columns:
            ask = "whose files are they? No column says it (--merchant, --account)"
            draft.ask(f"constants.{name}", ask)


def _fill_required(draft: Draft) -> None:
    """Decide or ask for every required column that has no match."""
    constants = draft.keys["constants"]
    decided = {*draft.columns, *draft.keys["sums"], *constants, *_OF_ACCOUNT}
    decided |= {"net"} if "net" in draft.keys else set()
    for column in draft.schema.columns:
        name, key = column.name, f"columns.{column.name}"
        if not column.required or name in decided or key in draft.questions:
            continue
        named = _candidates(draft, column)
        if name in _SPARED and column.may_be_blank:
            constants[name] = ""
        elif name in _OF_A_LIST:
            constants[name] = _OF_A_LIST[name]
        elif column.cell is Cell.CURRENCY:
            _currency_of_names(draft)
        elif isinstance(column.cell, frozenset):
            which = f" (columns.{name} where it is {named})" if named else ""
            draft.ask(
                f"constants.{name}",
                f"no column is known to say it{which}; what is it of every row?",
            )
        elif name == "net" and draft.schema.kind is SourceKind.SETTLEMENT:
            ask = f"which column is it: {named}? (net=gross_less_fee where none is)"
            draft.ask(key, ask) if named else draft.keys.update(net="gross_less_fee")
        else:
            ask = f"which column is it{':' * bool(named)} {named}".rstrip() + "?"
            if name in _OF_STATEMENT and (day := draft.columns.get("booked_on")):
                ask += f"; {day!r} makes a statement of each day"
            several = "; 'A + B' where it is their sum" * (name == "fee")
            draft.ask(key, f"{ask} (constants.{name} where none is{several})")


def _candidates(draft: Draft, column: TableColumn) -> str:
    """Return, as text, the columns not mapped to a required one whose cells fit this one."""
    needed = {draft.columns.get(name, "") for name in draft.schema.required}
    assigned = draft.assigned() - {*draft.columns.values()} | needed
    if column.cell is not Cell.AMOUNT:  # columns read as amounts cannot also be names or states
        assigned |= {draft.columns[each.name] for each in draft.amount_columns()}
    free = [
        their
        for name, their in draft.theirs.items()
        if name not in assigned and their.seen and their.fits(column)
    ]
    if isinstance(column.cell, Grammar) and column.cell is not Grammar.DATE:
        free = [their for their in free if their.all_differ] or free
    return _either([their.name for their in free][:_CANDIDATES_MAX])


def _currency_of_names(draft: Draft) -> None:
    """Take the currency from column names, `Betrag (EUR)`, or from signs at the amounts, or ask."""
    names = [draft.columns[column.name] for column in draft.amount_columns()]
    codes = {part for name in names for part in re.findall(r"\b[A-Z]{3}\b", name)}
    neighbours = nearby_currency(text for name in names for text in draft.theirs[name].seen)
    known = {code for code in {*codes, neighbours} if is_currency(code)}
    if len(known) == 1:
        draft.keys["constants"]["currency"] = known.pop()
    else:
        draft.ask("constants.currency", "no column says the currency; which one is it?")
