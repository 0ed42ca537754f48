"""The rows of a statement in the order in which people read them, and what each is called.

One name for console, files and workbook.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recon.period.month_statement import CLOSING, MOVED, OPENING, MonthFigure, MonthStatement

MOVEMENTS: Mapping[str, str] = {
    "capture": "Captures",
    "refund": "Refunds",
    "chargeback": "Chargebacks",
    "won_back": "Chargebacks won back",
    "fee_on_captures": "Fees on captures",
    "fee_on_refunds": "Fees on refunds, given back",
    "fee_on_chargebacks": "Fees on chargebacks",
    "fee_of_account": "Fees in lines of their own",
    "fee_on_others": "Other fees",
    "adjustment": "Adjustments",
    "payee": "Paid to payees for us",
    "pay_out": "Pay-outs",
}
"""Kinds of movements in the order of a statement."""
ITEMS: Mapping[str, str] = {
    "not_settled": "Captured or given back, not settled",
    "never_shown": "Settled, never shown by the gateway",
    "opening": "Owed from before the first line",
    "no_payout": "Settled, not paid out",
    "item": "Held back",
    "debt": "Owed to the gateway",
    "beyond": "Paid beyond what there was",
    "reserve": "Reserve",
}
"""Classes of what is open, in the order of a statement."""
TRANSIT: Mapping[str, str] = {
    "paid": "Paid out",
    "received": "At the bank",
    "returned": "Returned by the bank",
    "kept": "Kept or exchanged by the bank",
}
DIFFERENCES: Mapping[str, str] = {
    "booked_later": "Took place by then, booked later",
    "booked_earlier": "Booked by then, took place later",
    "open": "Open: see the breaks and what waits",
    "fees": "Fees charged by then, less those booked",
    "pay-outs": "Paid out by then, less what is booked of it",
    "not_in_batch": "Adjustments booked, in no batch of the gateway yet",
    "not_booked": "Adjustments of the gateway, not booked yet",
}
STRADDLES: Mapping[str, str] = {
    "sold": "Sold in one month, captured in another",
    "settled": "Captured in one month, settled in another",
    "at_bank": "Paid out in one month, at the bank in another",
    "old_sale": "Refund of an earlier month's sale",
    "late": "Told after the month's last night",
    "prior": "Of a closed month, told after its close",
    "entry_vanished": "Ledger entries deleted, not reversed",
}
RESERVE_MOVED = "Reserve: kept (+), released (-)"
OUTSIDE = "Before the first settled day, settled by no line: not counted"
BOOKED = "Booked"


def entry_words(entry_type: str) -> str:
    """The type of an entry as people read it: `capture reversal`."""
    return entry_type.replace("_", " ").capitalize()


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
    kind: str, figures: Figures, *, of: str, at: str, words: Mapping[str, str]
) -> Iterator[StatementRow]:
    for name, label in words.items():
        figure = figures.get((of, at, name))
        if figure is not None:
            yield StatementRow(kind, name, label, figure.count, figure.amount)
