"""What one row of each kind of file means, judged cell by cell, in no code of ours.

A row comes as column -> (text, whether it was a number); what comes back is column -> value, or
nothing where the row must be refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tests.recon.files.strict_reader import Cells, is_id, moment_of, units_of

ACCOUNT = "[A-Za-z0-9._-]{1,50}"
ORDER_KEY = "[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}"
REFERENCE = "[!-~]([ -~]{0,62}[!-~])?"
NAME = "[^\\x00-\\x1f\\x7f]{1,255}"
REASON = "[!-~]([ -~]{0,48}[!-~])?"
CODE = "-?[A-Za-z0-9_]{1,20}"
BOOKED = ("capture", "refund", "fee", "chargeback", "payout", "reserve", "adjustment")
STATUSES = (
    "pending",
    "authorised",
    "paid",
    "partially_refunded",
    "refunded",
    "cancelled",
    "failed",
)
OF_PAYMENT = ("capture", "refund", "cancel", "review")

Row = Mapping[str, Any]


class Refused(Exception):  # noqa: N818 - it is what the reader says of a row
    """A cell of the row is wrong."""


@dataclass(frozen=True)
class Text:
    """An id or text of one grammar."""

    grammar: str
    blank: bool = False


@dataclass(frozen=True)
class Words:
    """One of some words."""

    words: tuple[str, ...]
    blank: bool = False


@dataclass(frozen=True)
class Money:
    """Minor units of the currency in another column."""

    currency: str = "currency"
    signed: bool = False
    blank: bool = False


@dataclass(frozen=True)
class Currency:
    """A code of ISO 4217 with a minor unit."""

    blank: bool = False


@dataclass(frozen=True)
class Moment:
    """An instant, or a day."""

    blank: bool = False
    day: bool = False


Cell = Text | Words | Money | Currency | Moment


FIRST, LAST = date(1970, 1, 1), date(2199, 12, 31)
"""No day of a file lies beyond them."""


@dataclass(frozen=True)
class Kind:
    """One kind of file: its columns, and how many of them a file must have."""

    columns: Mapping[str, Cell]
    needed: int
    may_be_open: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in their order."""
        return tuple(self.columns)


KEY = {"merchant_id": Text(ACCOUNT), "account_id": Text(ACCOUNT)}
KINDS: Mapping[str, Kind] = {
    "orders": Kind(
        {
            **KEY,
            "order_no": Text(ORDER_KEY),
            "currency": Currency(),
            "amount": Money(),
            "status": Words(STATUSES),
            "ordered_at": Moment(),
            "transaction_id": Text(ACCOUNT, blank=True),
            "expected_captured_amount": Money(blank=True),
            "refund_amount": Money(blank=True),
            "updated_at": Moment(blank=True),
            "action": Words(OF_PAYMENT, blank=True),
            "action_amount": Money(blank=True),
            "action_reason": Text(REASON, blank=True),
            "request_id": Text(ACCOUNT, blank=True),
        },
        needed=7,
    ),
    "ledger": Kind(
        {
            "entry_id": Text(REFERENCE),
            **KEY,
            "order_no": Text(ORDER_KEY, blank=True),
            "entry_type": Words(
                tuple(
                    f"{word}{end}" for word in (*BOOKED, "write_off") for end in ("", "_reversal")
                )
            ),
            "currency": Currency(),
            "amount": Money(signed=True),
            "booked_at": Moment(),
            "transaction_id": Text(ACCOUNT, blank=True),
            "reference_no": Text(REFERENCE, blank=True),
            "reverses_entry_id": Text(REFERENCE, blank=True),
            "transaction_currency": Currency(blank=True),
            "transaction_amount": Money("transaction_currency", signed=True, blank=True),
        },
        needed=8,
        may_be_open=True,
    ),
    "settlement": Kind(
        {
            "batch_id": Text(REFERENCE),
            **KEY,
            "settled_on": Moment(day=True),
            "entry_type": Words(BOOKED),
            "order_no": Text(ORDER_KEY, blank=True),
            "transaction_id": Text(ACCOUNT, blank=True),
            "reference_no": Text(REFERENCE, blank=True),
            "currency": Currency(),
            "gross": Money(signed=True),
            "fee": Money(signed=True),
            "net": Money(signed=True),
            "own_reference": Text(REFERENCE, blank=True),
            "method": Text(REFERENCE, blank=True),
            "brand": Text(REFERENCE, blank=True),
            "region": Text(REFERENCE, blank=True),
        },
        needed=12,
    ),
    "instructions": Kind(
        {
            **KEY,
            "kind": Words((*OF_PAYMENT, "cancel_subscription", "payout")),
            "request_id": Text(ACCOUNT),
            "order_no": Text(ORDER_KEY, blank=True),
            "transaction_id": Text(ACCOUNT, blank=True),
            "currency": Currency(blank=True),
            "amount": Money(blank=True),
            "reason": Text(REASON, blank=True),
            "review_flag": Text(CODE, blank=True),
            "recurring_id": Text(ACCOUNT, blank=True),
            "contract_name": Text(NAME, blank=True),
        },
        needed=4,
    ),
}


def meaning_of(cells: Cells, *, kind: str) -> Row | None:
    """What the row means; nothing where it must be refused."""
    try:
        row = {name: _value(name, cell, cells=cells) for name, cell in KINDS[kind].columns.items()}
        _BETWEEN[kind](row)
    except Refused:
        return None
    return row


def _value(name: str, cell: Cell, *, cells: Cells) -> Any:
    text, is_number = cells.get(name, ("", False))
    if not text and cell.blank:
        return "" if isinstance(cell, Text | Words | Currency) else None
    value = _filled(text, is_number, cell=cell, cells=cells) if text else None
    if value is None:
        raise Refused
    return value


def _filled(text: str, is_number: bool, *, cell: Cell, cells: Cells) -> Any:  # noqa: FBT001 - a cell
    match cell:
        case Text(grammar):
            return text if is_id(text, is_number, pattern=grammar) else None
        case Words(words):
            return text if text in words else None
        case Currency():
            return None if units_of("1", True, currency=text) is None else text
        case Moment():
            return _day(text) if cell.day else moment_of(text)
    return _money(text, is_number, cell=cell, cells=cells)


def _money(text: str, is_number: bool, *, cell: Money, cells: Cells) -> int | None:  # noqa: FBT001 - a cell
    currency = cells.get(cell.currency, ("", False))[0]
    signed = cell.signed
    if "entry_type" in cells and "batch_id" not in cells:
        signed = cells["entry_type"][0] in {"adjustment", "adjustment_reversal"}
    minus = text.startswith("-") and signed
    units = units_of(text[1:] if minus else text, is_number, currency=currency)
    return -units if minus and units is not None else units


def _day(text: str) -> str | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return text if found.isoformat() == text and FIRST <= found <= LAST else None


def _demand(holds: bool) -> None:  # noqa: FBT001 - one thing that must hold
    if not holds:
        raise Refused


def _order(row: Row) -> None:
    _demand(row["status"] != "partially_refunded" or row["refund_amount"] is not None)
    if not row["action"]:
        details = (row["action_amount"], row["action_reason"], row["request_id"])
        return _demand(details == (None, "", ""))
    part = row["action_amount"]
    if part is not None:
        _demand(part <= row["amount"])
        _demand(part > 0 or row["action"] == "review")
        _demand(part == row["amount"] or row["action"] in {"capture", "refund"})
    return None


def _entry(row: Row) -> None:
    _demand((row["transaction_currency"] == "") == (row["transaction_amount"] is None))


def _line(row: Row) -> None:
    _demand(row["gross"] - row["fee"] == row["net"])


def _instruction(row: Row) -> None:
    kind = row["kind"]
    wanted = {"order_no", "transaction_id", "currency", "amount"}
    allowed = {"review_flag"} if kind == "review" else set()
    if kind == "cancel_subscription":
        wanted = {"recurring_id", "contract_name", "currency"}
    if kind == "payout":
        wanted = {"currency", "amount"}
    judged = {"order_no", "transaction_id", "currency", "amount"}
    for name in judged | {"review_flag", "recurring_id", "contract_name"}:
        given = row[name] not in {"", None}
        _demand(given or name not in wanted)
        _demand(not given or name in wanted | allowed)
    _demand(row["amount"] != 0 or kind == "review")
    _demand(row["review_flag"] in {"", "1"})


_BETWEEN = {"orders": _order, "ledger": _entry, "settlement": _line, "instructions": _instruction}


def is_like_a_card(row: Row) -> bool:
    """Ids as long as card numbers are judged by their whole column, elsewhere."""
    return any(isinstance(cell, str) and re.search("[0-9]{13}", cell) for cell in row.values())


def as_ours(row: Row) -> dict[str, Any]:
    """Instants without their zone's object, for comparing."""
    return {
        name: cell.timestamp() if isinstance(cell, datetime) else cell for name, cell in row.items()
    }
