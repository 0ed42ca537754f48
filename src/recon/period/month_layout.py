"""The rows of a statement in the order in which people read them, for console and workbook."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recon.period.month_statement import CLOSING, MOVED, OPENING, MonthFigure, MonthStatement
from recon.period.month_words import (
    DIFFERENCES,
    ITEMS,
    MOVEMENTS,
    OUTSIDE,
    RESERVE_MOVED,
    STRADDLES,
    TRANSIT,
    entry_words,
)

GATEWAY, BANK, BOOKS = "gateway", "transit", "books"


@dataclass(frozen=True, slots=True)
class StatementRow:
    """One row of a statement."""

    kind: str
    """open, move, close, listed or note: a note is in no sum."""
    name: str
    """Of a movement or class; "" for sums."""
    label: str
    count: int | None
    amount: int

    @property
    def depth(self) -> int:
        """How far it stands to the right."""
        return {"open": 0, "close": 0, "move": 1, "listed": 2, "note": 1}[self.kind]


def blocks_of(statement: MonthStatement, *, currency: str) -> list[list[StatementRow]]:
    """The gateway's account, cash in transit where a bank is covered, the books where they are."""
    blocks = [[*_gateway(statement, currency)]]
    if statement.transit is not None:
        blocks.append([*_transit(statement, currency)])
    if statement.books is not None:
        blocks.append([*_books(statement, currency)])
    return blocks


def _gateway(statement: MonthStatement, currency: str) -> Iterator[StatementRow]:
    figures = _of(statement, currency)
    opening = statement.sum_of(currency, of=GATEWAY, at=OPENING)
    closing = statement.sum_of(currency, of=GATEWAY, at=CLOSING)
    yield StatementRow(
        "open", "", f"The gateway owed at the close of {statement.month.before}", None, opening
    )
    yield from _rows("move", figures, of=GATEWAY, at=MOVED, words=MOVEMENTS)
    yield StatementRow("close", "", f"The gateway owes {statement.closing_words}", None, closing)
    yield from _rows("listed", figures, of=GATEWAY, at=CLOSING, words=ITEMS)
    for (of, _, _), figure in figures.items():
        if of == "reserve":
            yield StatementRow("note", figure.name, RESERVE_MOVED, figure.count, figure.amount)
    outside = [figure for (of, _, _), figure in figures.items() if of == "outside"]
    if outside:
        count, amount = sum(each.count for each in outside), sum(each.amount for each in outside)
        yield StatementRow("note", "outside", OUTSIDE, count, amount)


def _transit(statement: MonthStatement, currency: str) -> Iterator[StatementRow]:
    figures = _of(statement, currency)
    opening = statement.sum_of(currency, of=BANK, at=OPENING)
    closing = statement.sum_of(currency, of=BANK, at=CLOSING)
    yield StatementRow(
        "open",
        "",
        f"In transit to the bank at the close of {statement.month.before}",
        None,
        opening,
    )
    yield from _rows("move", figures, of=BANK, at=MOVED, words=TRANSIT)
    yield StatementRow(
        "close", "", f"In transit to the bank {statement.closing_words}", None, closing
    )
    before = statement.before_bank.get(currency, 0)
    if before:
        label = "Paid out before the bank's first statement: not asked for"
        yield StatementRow("note", "before", label, None, before)


def _books(statement: MonthStatement, currency: str) -> Iterator[StatementRow]:
    """The balance that entries come to, from the gateway's and what was open between the two."""
    figures = _of(statement, currency)
    opening = statement.sum_of(currency, of=GATEWAY, at=OPENING) + statement.sum_of(
        currency, of=BOOKS, at=OPENING
    )
    closing = opening + statement.sum_of(currency, of=BOOKS, at=MOVED)
    owed = statement.sum_of(currency, of=GATEWAY, at=CLOSING)
    yield StatementRow(
        "open", "", f"The books, derived, at the close of {statement.month.before}", None, opening
    )
    names = sorted(name for of, at, name in figures if (of, at) == (BOOKS, MOVED))
    words = {name: STRADDLES.get(name) or f"Booked: {entry_words(name).lower()}" for name in names}
    yield from _rows("move", figures, of=BOOKS, at=MOVED, words=words)
    yield StatementRow("close", "", f"The books, derived, {statement.closing_words}", None, closing)
    yield StatementRow("listed", "owed", "The gateway owes", None, owed)
    yield from _rows("listed", figures, of=BOOKS, at=CLOSING, words=DIFFERENCES)
    outside = [figure for (of, _, _), figure in figures.items() if of == "outside"]
    if outside:
        count, amount = sum(each.count for each in outside), sum(each.amount for each in outside)
        yield StatementRow("listed", "outside", OUTSIDE, count, amount)


Figures = Mapping[tuple[str, str, str], MonthFigure]


def _of(statement: MonthStatement, currency: str) -> Figures:
    own = [figure for figure in statement.figures if figure.currency == currency]
    return {(figure.of, figure.at, figure.name): figure for figure in own}


def _rows(
    kind: str, figures: Figures, *, of: str, at: str, words: Mapping[str, str] | Sequence[str]
) -> Iterator[StatementRow]:
    named = dict(words) if isinstance(words, Mapping) else {name: name for name in words}
    for name, label in named.items():
        figure = figures.get((of, at, name))
        if figure is not None:
            yield StatementRow(kind, name, label, figure.count, figure.amount)
