"""Which column of a sample is which of ours: by its name, then by what its cells can be.

What no column is known to be is the same in every row, left blank, or asked.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from pydantic import ValidationError

from recon.config.declared import mistakes_of
from recon.config.file_layouts import FileLayout
from recon.files.proposing.sample import Sample
from recon.files.proposing.vocabulary import NAMES, STAND_INS, names_of_column, plain_words
from recon.files.proposing.written_cells import (
    currency_beside,
    looks_like_amount,
    looks_like_day,
    looks_like_time,
)
from recon.files.typing.mapped_columns import MappedColumns, mapped_columns
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.model.errors import UsageError
from recon.model.money import is_currency
from recon.model.words import SourceKind
from recon.privacy.shown_text import redacted

_CURRENCIES = names_of_column("currency")
_FIT_SHARE_MIN = 9
"""Tenths of the filled cells that must be able to be what a column means."""
_WORDS_MAX = 30
"""Different words of a column of words."""
_WORD_CHARACTERS_MAX = 50
_OF_STATEMENT = frozenset({"statement_no", "from_date", "to_date"})
"""Columns of ours that may share one of theirs: a day of entries may be a statement."""
_OF_ACCOUNT = ("merchant_id", "account_id")
_SPARED = frozenset({"transaction_id", "reference_no", "opening", "closing"})
"""Columns that many programs do not have: blank where no column is them, and said so."""
_OF_A_LIST = {"query_result": "1"}
"""What no portal says, for each row of its list is a payment that the gateway has."""
_CANDIDATES_MAX = 6
"""Columns that a question names."""
_SIGNED = frozenset({SourceKind.SETTLEMENT, SourceKind.BANK, SourceKind.LEDGER})
"""Kinds whose amounts may stand in two columns."""
_WRITING = ("decimal_sign", "thousands_sign", "minus", "currency_sign", "units", "short_decimals")
"""Keys that say how an amount is written."""
_NO_WORD = "\x1f"
_NOT_ZERO = frozenset("123456789")
_CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?: ?[AaPp][Mm])?", re.ASCII
)


Units = list[int | None]
"""Minor units of each row; 0 where an amount is blank, None where it cannot be read."""


class TheirColumn(NamedTuple):
    """One column of the samples."""

    name: str
    words: str
    """Its name, plain."""
    seen: Mapping[str, int]
    """What stands in its filled cells -> the first line of it."""
    full: bool
    """No cell is blank."""
    all_differ: bool
    """No two cells are alike, as those of a number that names a row."""

    @property
    def bare(self) -> str:
        """Its words without the units behind them."""
        parts = self.words.split(" ")
        while len(parts) > 1 and parts[-1] in NAMES["units"]:
            parts.pop()
        return " ".join(parts)

    def all(self, of: Callable[[str], object]) -> bool:
        """Whether nearly all cells are so: one bad row of a sample must not hide a column."""
        return sum(bool(of(text)) for text in self.seen) * 10 >= len(self.seen) * _FIT_SHARE_MIN

    def is_named(self, names: frozenset[str]) -> bool:
        """Whether its name is one of them, with or without a unit behind."""
        return self.words in names or self.bare in names

    @property
    def are_codes(self) -> bool:
        """Whether it holds currencies."""
        return self.all(lambda text: is_currency(text.upper()))


@dataclass(frozen=True, slots=True)
class Draft:
    """A layout while its keys are decided; each step adds to it by what was decided before."""

    sample: Sample
    schema: TableSchema
    answers: Mapping[str, str]
    """What a person decided: key of the layout -> text."""
    theirs: Mapping[str, TheirColumn]
    keys: dict[str, Any]
    questions: dict[str, str]
    columns: dict[str, str]
    """Ours -> theirs, and so are the next two."""
    debit: dict[str, str] = field(default_factory=dict)
    clock: dict[str, str] = field(default_factory=dict)
    sums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Our amount -> their columns of which it is the sum."""
    constants: dict[str, str] = field(default_factory=dict)
    """Ours -> what every row has there; "" where no column of the samples is it."""

    def answered(self, table: str) -> dict[str, str]:
        """What a person decided of the parts of one key."""
        given = self.answers.items()
        return {key.removeprefix(table): text for key, text in given if key.startswith(table)}

    def taken(self) -> set[str]:
        """Their columns of which something is read."""
        mapped = (self.columns, self.debit, self.clock)
        return {*chain.from_iterable(of.values() for of in mapped), *chain(*self.sums.values())}

    def seen(self, ours: str) -> Mapping[str, int]:
        """What stands in the column that is ours -> the first line of it."""
        their = self.theirs.get(self.columns.get(ours, ""))
        return {} if their is None else their.seen

    def amount_columns(self) -> list[TableColumn]:
        """Our columns of amounts that a column of the samples is."""
        columns = self.schema.columns
        return [c for c in columns if c.cell is Cell.AMOUNT and c.name in self.columns]

    def layout(self) -> dict[str, Any]:
        """Keys of the layout, as far as they are decided."""
        columns = {ours: their for ours, their in self.columns.items() if ours != their}
        mapped = {"columns": columns, "debit": self.debit, "sums": self.sums, "clock": self.clock}
        mapped["constants"] = self.constants
        return self.keys | {key: value for key, value in mapped.items() if value}

    def mapped(self, names: Iterable[str], **keys: Any) -> MappedColumns:
        """Columns of ours as a night takes them by the layout so far, and by further keys."""
        wanted = {*names, "entry_type", "currency"}
        columns = (column for column in self.schema.columns if column.name in wanted)
        layout = self.layout() | {"constants": self._constants()} | keys
        signs = layout.get("sign", {}).items()  # a word that no row has is not known yet
        layout["sign"] = {ours: sign | {"minus": sign["minus"] or _NO_WORD} for ours, sign in signs}
        schema = TableSchema(self.schema.kind, tuple(columns))
        return mapped_columns(self.sample.raw, schema=schema, layout=layout_of(layout))

    def read(self, theirs: Sequence[str], *, rows: Any = None, **keys: Any) -> list[Units]:
        """Amounts of columns of theirs, each by itself, with any sign; `rows`: of all without."""
        amounts = {f"their {name}": name for name in theirs}
        columns = amounts | {n: their for n, their in self.columns.items() if n == "currency"}
        written = {key: self.keys[key] for key in _WRITING if key in self.keys} | keys
        constants = {"currency": self._constants().get("currency", "")}
        words = {n: words for n, words in self.keys.get("words", {}).items() if n == "currency"}
        written |= {"columns": columns, "words": words}
        written |= {"constants": {n: text for n, text in constants.items() if n not in columns}}
        mapped = mapped_columns(
            self.sample.raw if rows is None else self.sample.raw.some(rows),
            schema=TableSchema(
                SourceKind.SETTLEMENT,
                (
                    TableColumn("currency", Cell.CURRENCY),
                    *(TableColumn(name, Cell.AMOUNT) for name in amounts),
                ),
            ),
            layout=layout_of(written),
        )
        return [units_of(mapped, name) for name in amounts]

    def _constants(self) -> dict[str, str]:
        """What is known to stand in every row; an amount is read without its currency, too."""
        known = {"currency": "EUR"} | self.constants | self.answered("constants.")
        return {name: text for name, text in known.items() if name not in self.columns}


def layout_of(keys: Mapping[str, Any]) -> FileLayout:
    """The layout of some keys.

    Raises:
        UsageError: an answer is none that its key can have.
    """
    try:
        return FileLayout.model_validate(keys)
    except ValidationError as error:
        key, why = mistakes_of(error)[0]
        msg = f"{key}: {why}"
        raise UsageError(msg) from error


def units_of(mapped: MappedColumns, ours: str) -> Units:
    """An amount of each row as it was read."""
    amounts = mapped.amounts[ours]
    filled = np.array(pc.not_equal(mapped.cells[ours], ""))
    unread = {*mapped.problems.get(ours, ()), *np.flatnonzero(filled & ~amounts.given).tolist()}
    return [None if row in unread else n for row, n in enumerate(amounts.minor_units.tolist())]


def draft_of(
    sample: Sample, *, schema: TableSchema, known: Mapping[str, str], answers: Mapping[str, str]
) -> Draft:
    """A draft with the columns that names and cells tell; what more than one could be is asked.

    `known`: merchant and account, as far as they are; `answers` holds what a person decided.

    Raises:
        UsageError: a person named a column that the samples do not have.
    """
    theirs = {}
    raw = sample.raw
    for name in raw.header:
        if redacted(name) == name:  # else a person must not read it
            texts = raw.columns[name].to_pylist()
            pairs = [pair for pair in zip(texts, raw.lines.tolist(), strict=True) if pair[0]]
            seen = dict(reversed(pairs))
            whole = name.rpartition(".")[0] if _currency_of(name, header=raw.header) else name
            theirs[name] = TheirColumn(
                name,
                plain_words(whole),
                dict(reversed(seen.items())),
                full=len(pairs) == len(texts),
                all_differ=len(seen) == len(pairs),
            )
    draft = Draft(sample, schema, answers, theirs, dict(sample.keys), {**sample.questions}, {})
    for ours, name in draft.answered("columns.").items():
        if name not in theirs:
            msg = f"columns.{ours}: the samples have no column {name!r} that can be named"
            raise UsageError(msg)
        draft.columns[ours] = name
    _split(draft)
    for ranks in ((0,), (1, 2, 3)):  # a name that is ours to the letter goes before any other
        _rank(draft, ranks)
    _currencies_beside(draft)
    _ask_of_days(draft)
    _place_account(draft, known=known)
    _fill_required(draft)
    return draft


def _split(draft: Draft) -> None:
    """Amounts that stand in two columns, `Gross Debit` and `Gross Credit`, or Soll and Haben.

    Who decided for one side of them decided for both.
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
            continue  # numbers of two accounts
        names = [side.name for side in sides]
        if draft.columns.get(column.name, names[0]) in names:
            draft.debit[column.name], draft.columns[column.name] = names


def _rank(draft: Draft, ranks: tuple[int, ...]) -> None:
    """Take the columns of a rank; a required one of ours chooses first."""
    for column in sorted(draft.schema.columns, key=lambda column: not column.required):
        if column.name in draft.columns:
            continue
        taken = {their for ours, their in draft.columns.items() if ours not in _OF_STATEMENT}
        ranked = {
            their.name: rank
            for their in draft.theirs.values()
            if their.name not in taken
            and (rank := _rank_of(their, column)) in ranks
            and _fits(their, column)
        }
        best = [name for name, rank in ranked.items() if rank == min(ranked.values())]
        if len(best) == 1:
            draft.columns[column.name] = best[0]
        elif best and column.required:
            draft.questions[f"columns.{column.name}"] = f"is it {_either(best)}?"


def _rank_of(their: TheirColumn, column: TableColumn) -> int | None:
    """How surely a column of theirs is ours by its name, 0 the surest; None: its name is none."""
    names, others = names_of_column(column.name), STAND_INS.get(column.name, frozenset())
    if their.name == column.name:
        return 0
    if their.words in names:
        return 1
    if their.bare in names:  # of two days each may be ours, also where one says its zone
        return 1 if column.cell in {Cell.INSTANT, Grammar.DATE} else 2
    return 3 if their.bare in others and their.full and their.all_differ else None


def _currency_of(name: str, *, header: Iterable[str]) -> str:
    """The currency of the same object, `amount.currency` of `amount.value`; "" where none is."""
    whole, point, part = name.rpartition(".")
    if not point or plain_words(part) not in NAMES["values"]:
        return ""
    beside = [each for each in header if each.rpartition(".")[0] == whole and each != name]
    named = [each for each in beside if plain_words(each.rpartition(".")[2]) in _CURRENCIES]
    return named[0] if len(named) == 1 else ""


def _currencies_beside(draft: Draft) -> None:
    """The key `currencies`: an amount with a currency of its own, which must be that of its row.

    Of amounts that are objects the currency of the first is that of the row. Beside an amount of a
    settled row a column may be named as it is, `Fee Currency`.
    """
    beside = {
        column: stated
        for column in draft.amount_columns()
        if (stated := _currency_of(draft.columns[column.name], header=draft.sample.raw.header))
        and f"columns.{column.currency}" not in draft.answers
    }
    for column, stated in beside.items():
        taken = draft.columns.get(column.currency, "")
        if not taken or "." in taken:
            draft.columns[column.currency] = next(
                each for of, each in beside.items() if of.currency == column.currency
            )
            draft.questions.pop(f"columns.{column.currency}", None)
        if stated != draft.columns[column.currency]:
            draft.keys.setdefault("currencies", {})[column.name] = stated
    if draft.schema.kind is SourceKind.SETTLEMENT:
        free = [t for t in draft.theirs.values() if t.name not in draft.taken() and t.are_codes]
        for column in draft.amount_columns():
            named = draft.theirs[draft.columns[column.name]].words.removesuffix(" amount")
            for their in free:
                if their.words in {f"{column.name} currency", f"{named} currency"}:
                    draft.keys.setdefault("currencies", {})[column.name] = their.name


def _either(names: Iterable[str]) -> str:
    return " or ".join(map(repr, names))


def _ask_of_days(draft: Draft) -> None:
    """A column that is only named a date may be another day than ours, where there are others.

    So may the day of a settled row, such as its booking: ours is that of the batch. The time of
    day may stand in a column of its own.
    """
    taken = set(draft.columns.values())
    filled = [their for their in draft.theirs.values() if their.seen]
    others = [t.name for t in filled if t.name not in taken and t.all(looks_like_day)]
    clocks = [t.name for t in filled if t.words in NAMES["clocks"] and t.all(_CLOCK.fullmatch)]
    for column in draft.schema.columns:
        their = draft.theirs.get(draft.columns.get(column.name, ""))
        is_moment = column.cell is Cell.INSTANT
        if their is None or not column.required or not (is_moment or column.cell is Grammar.DATE):
            continue
        weak = NAMES["dates"]
        weak |= NAMES["days_of_rows"] if column.name == "settled_on" else frozenset()
        if their.is_named(weak) and others:
            draft.questions[f"columns.{column.name}"] = f"is it {_either((their.name, *others))}?"
        if is_moment and len(clocks) == 1 and not any(":" in text for text in their.seen):
            draft.clock[column.name] = clocks[0]


def _fits(their: TheirColumn, column: TableColumn) -> bool:
    """Whether the cells of a column can be what ours means."""
    if not their.seen or not (their.full or column.may_be_blank):
        return not their.seen and column.may_be_blank
    match column.cell:
        case Cell.AMOUNT:
            return their.all(looks_like_amount)
        case Cell.CURRENCY:
            return their.are_codes
        case Cell.INSTANT | Grammar.DATE:
            return their.all(looks_like_time)
        case Grammar() as grammar:
            return their.all(re.compile(grammar.value[0], re.ASCII).fullmatch)
    return len(their.seen) <= _WORDS_MAX and all(len(t) <= _WORD_CHARACTERS_MAX for t in their.seen)


def _place_account(draft: Draft, *, known: Mapping[str, str]) -> None:
    """Merchant and account are what the caller knows, unless a column says the same."""
    for name in (name for name in _OF_ACCOUNT if name in draft.schema.names):
        their, given = draft.columns.get(name, name), known.get(name, "")
        sure = f"columns.{name}" in draft.answers or their == name
        if not sure and (not given or {*draft.seen(name)} != {given}):
            del draft.columns[name]
        draft.questions.pop(f"columns.{name}", None)
        if name not in draft.columns and given:
            draft.constants[name] = given
        elif name not in draft.columns:
            ask = "whose files are they? No column says it (--merchant, --account)"
            draft.questions[f"constants.{name}"] = ask


def _fill_required(draft: Draft) -> None:
    """What every row must have and no column is known to be."""
    for column in draft.schema.columns:
        name, key = column.name, f"columns.{column.name}"
        if name in draft.columns or key in draft.questions or name in _OF_ACCOUNT:
            continue
        if not column.required or f"constants.{name}" in draft.answers:
            continue
        named = _candidates(draft, column)
        if name in _SPARED and column.may_be_blank:
            draft.constants[name] = ""
        elif name in _OF_A_LIST:
            draft.constants[name] = _OF_A_LIST[name]
        elif column.cell is Cell.CURRENCY:
            _currency_of_names(draft)
        elif isinstance(column.cell, frozenset):
            which = f" (columns.{name} where it is {named})" if named else ""
            ask = f"no column is known to say it{which}; what is it of every row?"
            draft.questions[f"constants.{name}"] = ask
        else:
            ask = f"which column is it{':' * bool(named)} {named}".rstrip() + "?"
            if name in _OF_STATEMENT and (day := draft.columns.get("booked_on")):
                ask += f"; {day!r} makes a statement of each day"
            draft.questions[key] = f"{ask} (constants.{name} where none is)"


def _candidates(draft: Draft, column: TableColumn) -> str:
    """Columns of which no required one is read yet, and whose cells could be this one."""
    needed = {draft.columns.get(name, "") for name in draft.schema.required}
    taken = {*needed, *draft.debit.values(), *draft.clock.values()}
    if column.cell is not Cell.AMOUNT:  # what is read as money names and states nothing
        taken |= {draft.columns[each.name] for each in draft.amount_columns()}
    free = [
        their
        for their in draft.theirs.values()
        if their.name not in taken and their.seen and _fits(their, column)
    ]
    if isinstance(column.cell, Grammar) and column.cell is not Grammar.DATE:
        free = [their for their in free if their.all_differ] or free
    return _either([their.name for their in free][:_CANDIDATES_MAX])


def _currency_of_names(draft: Draft) -> None:
    """What names of amounts tell, `Betrag (EUR)`, or the signs beside them; or a question."""
    names = [draft.columns[column.name] for column in draft.amount_columns()]
    codes = {part for name in names for part in re.findall(r"\b[A-Z]{3}\b", name)}
    beside = currency_beside(text for name in names for text in draft.theirs[name].seen)
    known = {code for code in {*codes, beside} if is_currency(code)}
    if len(known) == 1:
        draft.constants["currency"] = known.pop()
    else:
        draft.questions["constants.currency"] = "no column says the currency; which one is it?"
