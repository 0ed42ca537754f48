"""Which column of a sample is which of ours: by its name, then by what its cells can be.

What no column is known to be is the same in every row, left blank, or asked.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from recon.files.proposing.sample import Row, Sample
from recon.files.proposing.vocabulary import NAMES, STAND_INS, names_of_column, plain_words
from recon.files.proposing.written_cells import (
    Decided,
    SeenCell,
    currency_beside,
    looks_like_amount,
    looks_like_day,
    looks_like_time,
)
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.model.errors import UsageError
from recon.model.money import is_currency
from recon.model.words import SourceKind
from recon.privacy.shown_text import scrubbed

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
_WHERE_NONE_IS = {
    "query_result": "constants.query_result=1 where each row is a payment that the gateway has"
}
"""Columns that no portal has -> what a person may decide instead."""
_CANDIDATES_MAX = 6
"""Columns that a question names."""
_SIGNED = frozenset({SourceKind.SETTLEMENT, SourceKind.BANK, SourceKind.LEDGER})
"""Kinds whose amounts may stand in two columns."""
_CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?: ?[AaPp][Mm])?", re.ASCII
)


class TheirColumn(NamedTuple):
    """One column of the samples."""

    name: str
    words: str
    """Its name, plain."""
    cells: tuple[SeenCell, ...]
    """Filled ones; of which file is not known any more."""
    full: bool
    """No cell is blank."""

    @property
    def bare(self) -> str:
        """Its words without the units behind them."""
        parts = self.words.split(" ")
        while len(parts) > 1 and parts[-1] in NAMES["units"]:
            parts.pop()
        return " ".join(parts)

    @property
    def all_differ(self) -> bool:
        """No two cells are alike, as those of a number that names a row."""
        return len({cell.text for cell in self.cells}) == len(self.cells)

    def all(self, of: Callable[[str], object]) -> bool:
        """Whether nearly all cells are so: one bad row of a sample must not hide a column."""
        different = {cell.text for cell in self.cells}
        return sum(bool(of(text)) for text in different) * 10 >= len(different) * _FIT_SHARE_MIN

    def is_named(self, names: frozenset[str]) -> bool:
        """Whether its name is one of them, with or without a unit behind."""
        return self.words in names or self.bare in names


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

    def take(self, decided: Decided) -> None:
        """Keep what was decided and what is to be asked."""
        self.keys.update(decided.keys)
        self.questions.update(decided.questions)

    def ask(self, key: str, question: str) -> None:
        """Leave a key to a person."""
        self.questions[key] = question

    def answered(self, table: str) -> dict[str, str]:
        """What a person decided of the parts of one key."""
        given = self.answers.items()
        return {key.removeprefix(table): text for key, text in given if key.startswith(table)}

    def taken(self) -> set[str]:
        """Their columns of which something is read."""
        mapped = (self.columns, self.debit, self.clock)
        return {*chain.from_iterable(of.values() for of in mapped), *chain(*self.sums.values())}

    def cells_of(self, ours: str) -> tuple[SeenCell, ...]:
        """The filled cells of the column that is ours."""
        their = self.theirs.get(self.columns.get(ours, ""))
        return () if their is None else their.cells

    def cell(self, row: Row, ours: str) -> str:
        """What a row has in the column that is ours, or what all have, as far as it is known."""
        if (their := self.columns.get(ours)) is not None:
            return row.cells[their]
        return self.constants.get(ours, self.answers.get(f"constants.{ours}", ""))

    def amount_columns(self) -> list[TableColumn]:
        """Our columns of amounts that a column of the samples is."""
        columns = self.schema.columns
        return [c for c in columns if c.cell is Cell.AMOUNT and c.name in self.columns]


def draft_of(
    sample: Sample, *, schema: TableSchema, known: Mapping[str, str], answers: Mapping[str, str]
) -> Draft:
    """A draft with the columns that names and cells tell; what more than one could be is asked.

    `known`: merchant and account, as far as they are; `answers` holds what a person decided.

    Raises:
        UsageError: a person named a column that the samples do not have.
    """
    theirs = {}
    for name in sample.header:
        if scrubbed(name) == name:  # else a person must not read it
            cells = tuple(SeenCell(r.line, r.cells[name]) for r in sample.rows if r.cells[name])
            full = len(cells) == len(sample.rows)
            whole = name.rpartition(".")[0] if _currency_of(name, header=sample.header) else name
            theirs[name] = TheirColumn(name, plain_words(whole), cells, full)
    draft = Draft(sample, schema, answers, theirs, dict(sample.keys), {**sample.questions}, {})
    for ours, name in draft.answered("columns.").items():
        if name not in theirs:
            msg = f"columns.{ours}: the samples have no column {name!r} that can be named"
            raise UsageError(msg)
        draft.columns[ours] = name
    _split(draft)
    _rank(draft)
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
        sides = [
            [
                their
                for their in draft.theirs.values()
                if their.bare in {own + word for word in NAMES[side]}
                and their.all(looks_like_amount)
            ]
            for side in ("debits", "credits")
        ]
        if column.cell is not Cell.AMOUNT or [len(named) for named in sides] != [1, 1]:
            continue
        (debit,), (credit,) = sides
        if all(
            side.full and all(any(d in cell.text for d in "123456789") for cell in side.cells)
            for side in (debit, credit)
        ):
            continue  # numbers of two accounts
        if draft.columns.get(column.name, credit.name) in {debit.name, credit.name}:
            draft.debit[column.name], draft.columns[column.name] = debit.name, credit.name


def _rank(draft: Draft) -> None:
    """A name that is ours to the letter is taken before another column may claim it."""
    left = [column for column in draft.schema.columns if column.name not in draft.columns]
    for exact in (True, False):
        for column in sorted(left, key=lambda column: not column.required):
            if column.name in draft.columns:
                continue
            taken = {their for ours, their in draft.columns.items() if ours not in _OF_STATEMENT}
            free = [their for their in draft.theirs.values() if their.name not in taken]
            fitting = [t for t in free if t.name == column.name] if exact else _best(free, column)
            fitting = [their for their in fitting if _fits(their, column)]
            if len(fitting) == 1:
                draft.columns[column.name] = fitting[0].name
            elif fitting and column.required:
                draft.ask(f"columns.{column.name}", f"is it {_either(t.name for t in fitting)}?")


def _currency_of(name: str, *, header: Iterable[str]) -> str:
    """The currency of the same object, `amount.currency` of `amount.value`; "" where none is."""
    whole, point, part = name.rpartition(".")
    if not point or plain_words(part) not in NAMES["values"]:
        return ""
    beside = [each for each in header if each.rpartition(".")[0] == whole and each != name]
    named = [each for each in beside if plain_words(each.rpartition(".")[2]) in _CURRENCIES]
    return named[0] if len(named) == 1 else ""


def _currencies_beside(draft: Draft) -> None:
    """Of amounts that are objects: the currency of the first is that of the row.

    Each other one is held to it (`currencies`), so that a row of two currencies is rejected.
    """
    beside = {
        column: stated
        for column in draft.amount_columns()
        if (stated := _currency_of(draft.columns[column.name], header=draft.sample.header))
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


def _best(free: Iterable[TheirColumn], column: TableColumn) -> list[TheirColumn]:
    """The columns whose name means ours: whole names before such with a unit behind."""
    names, others = names_of_column(column.name), STAND_INS.get(column.name, frozenset())
    known = list(free)
    whole = [their for their in known if their.words in names]
    is_day = column.cell is Cell.INSTANT or column.cell is Grammar.DATE
    # Of two days each may be ours, also where one says its zone.
    if not is_day and any(_fits(their, column) for their in whole):
        return whole
    named = [their for their in known if their.is_named(names)]
    if named or is_day:
        return named
    return [t for t in known if t.bare in others and t.full and t.all_differ]


def _either(names: Iterable[str]) -> str:
    return " or ".join(map(repr, names))


def _ask_of_days(draft: Draft) -> None:
    """A column that is only named a date may be another day than ours, where there are others.

    So may the day of a settled row, such as its booking: ours is that of the batch. The time of
    day may stand in a column of its own.
    """
    taken = set(draft.columns.values())
    filled = [their for their in draft.theirs.values() if their.cells]
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
            draft.ask(f"columns.{column.name}", f"is it {_either((their.name, *others))}?")
        if is_moment and len(clocks) == 1 and not any(":" in cell.text for cell in their.cells):
            draft.clock[column.name] = clocks[0]


def _fits(their: TheirColumn, column: TableColumn) -> bool:
    """Whether the cells of a column can be what ours means."""
    if not their.cells or not (their.full or column.may_be_blank):
        return not their.cells and column.may_be_blank
    match column.cell:
        case Cell.AMOUNT:
            return their.all(looks_like_amount)
        case Cell.CURRENCY:
            return their.all(lambda text: is_currency(text.upper()))
        case Cell.INSTANT | Grammar.DATE:
            return their.all(looks_like_time)
        case Grammar() as grammar:
            return their.all(re.compile(grammar.value[0], re.ASCII).fullmatch)
    different = {cell.text for cell in their.cells}
    return len(different) <= _WORDS_MAX and all(len(t) <= _WORD_CHARACTERS_MAX for t in different)


def _place_account(draft: Draft, *, known: Mapping[str, str]) -> None:
    """Merchant and account are what the caller knows, unless a column says the same."""
    for name in (name for name in _OF_ACCOUNT if name in draft.schema.names):
        their, given = draft.columns.get(name, name), known.get(name, "")
        sure = f"columns.{name}" in draft.answers or their == name
        if not sure and (not given or {cell.text for cell in draft.cells_of(name)} != {given}):
            del draft.columns[name]
        draft.questions.pop(f"columns.{name}", None)
        if name not in draft.columns and given:
            draft.constants[name] = given
        elif name not in draft.columns:
            ask = "whose files are they? No column says it (--merchant, --account)"
            draft.ask(f"constants.{name}", ask)


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
        elif column.cell is Cell.CURRENCY:
            _currency_of_names(draft)
        elif isinstance(column.cell, frozenset):
            which = f" (columns.{name} where it is {named})" if named else ""
            ask = f"no column is known to say it{which}; what is it of every row?"
            draft.ask(f"constants.{name}", ask)
        else:
            ask = f"which column is it{':' * bool(named)} {named}".rstrip() + "?"
            if name in _OF_STATEMENT and (day := draft.columns.get("booked_on")):
                ask += f"; {day!r} makes a statement of each day"
            draft.ask(key, f"{ask} ({_WHERE_NONE_IS.get(name, f'constants.{name} where none is')})")


def _candidates(draft: Draft, column: TableColumn) -> str:
    """Columns of which no required one is read yet, and whose cells could be this one."""
    needed = {draft.columns.get(name, "") for name in draft.schema.required}
    taken = {*needed, *draft.debit.values(), *draft.clock.values()}
    if column.cell is not Cell.AMOUNT:  # what is read as money names and states nothing
        taken |= {draft.columns[each.name] for each in draft.amount_columns()}
    free = [
        their
        for their in draft.theirs.values()
        if their.name not in taken and their.cells and _fits(their, column)
    ]
    if isinstance(column.cell, Grammar) and column.cell is not Grammar.DATE:
        free = [their for their in free if their.all_differ] or free
    return _either([their.name for their in free][:_CANDIDATES_MAX])


def _currency_of_names(draft: Draft) -> None:
    """What names of amounts tell, `Betrag (EUR)`, or the signs beside them; or a question."""
    names = [draft.columns[column.name] for column in draft.amount_columns()]
    codes = {part for name in names for part in re.findall(r"\b[A-Z]{3}\b", name)}
    beside = currency_beside(cell.text for name in names for cell in draft.theirs[name].cells)
    known = {code for code in {*codes, beside} if is_currency(code)}
    if len(known) == 1:
        draft.constants["currency"] = known.pop()
    else:
        draft.ask("constants.currency", "no column says the currency; which one is it?")
