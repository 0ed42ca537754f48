"""Rows that cannot be read, one of each kind, as shops really send them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recon.sandbox.sample_night.records import ORDER_HEADER, OrderLine, cells_of

Cells = dict[str, str]

WHOLE_ROW = "(row)"
"""Column of a reject whose cells cannot be told apart: then no key is believed either."""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """One unreadable row: its cells as written, and what is wrong with it."""

    cells: tuple[str, ...]
    column: str
    """The first bad column; WHOLE_ROW when it has the wrong shape."""
    kind: str
    line: OrderLine
    """What the row was meant to say."""
    key_readable: bool
    """Merchant, account and order number can still be read: the order is in quarantine."""


@dataclass(frozen=True, slots=True)
class _Mistake:
    kind: str
    column: str
    written: str
    """What stands in the column instead."""
    key_readable: bool = True


_MISTAKES = (
    _Mistake("decimal comma", "amount", "12,50"),
    _Mistake("too few decimals", "amount", "10.5"),
    _Mistake("too many decimals", "amount", "10.505"),
    _Mistake("negative amount", "amount", "-5.00"),
    _Mistake("scientific notation", "amount", "1e3"),
    _Mistake("grouped thousands", "amount", "1 250.00"),
    _Mistake("unknown currency", "currency", "EUX"),
    _Mistake("lower-case currency", "currency", "eur"),
    _Mistake("unknown status", "status", "shipped"),
    _Mistake("no such date", "ordered_at", "2026-02-30T10:00:00+00:00"),
    _Mistake("blank date", "ordered_at", ""),
    _Mistake("space in the order number", "order_no", "SO 42", key_readable=False),
    _Mistake("blank order number", "order_no", "", key_readable=False),
    _Mistake("unknown action", "action", "void"),
)


def bad_rows(lines: Sequence[OrderLine]) -> list[UnreadableRow]:
    """One row of each kind; every row needs a line that nobody else uses."""
    rows = [_mistaken(mistake, line) for mistake, line in zip(_MISTAKES, lines, strict=False)]
    rest = lines[len(rows) :]
    return rows + [make(line) for make, line in zip(_MISSHAPEN, rest, strict=False)]


def rows_needed() -> int:
    """How many lines `bad_rows` can spoil."""
    return len(_MISTAKES) + len(_MISSHAPEN)


def _mistaken(mistake: _Mistake, line: OrderLine) -> UnreadableRow:
    cells = {**_cells(line), mistake.column: mistake.written}
    return UnreadableRow(
        tuple(cells.values()), mistake.column, mistake.kind, line, mistake.key_readable
    )


def _short(line: OrderLine) -> UnreadableRow:
    cells = tuple(_cells(line).values())[:5]
    return UnreadableRow(cells, WHOLE_ROW, "row cut short", line, key_readable=False)


def _long(line: OrderLine) -> UnreadableRow:
    cells = (*_cells(line).values(), "surplus")
    return UnreadableRow(cells, WHOLE_ROW, "one cell too many", line, key_readable=False)


def _header_again(line: OrderLine) -> UnreadableRow:
    """The words of the header read as ids, so this is a row of a merchant who does not exist."""
    meant = replace(line, merchant_id="merchant_id", account_id="account_id", order_no="order_no")
    return UnreadableRow(ORDER_HEADER, "currency", "header repeated", meant, key_readable=True)


def _part_without_amount(line: OrderLine) -> UnreadableRow:
    cells = {**_cells(line), "status": "partially_refunded", "refund_amount": ""}
    kind = "refunded in part without an amount"
    return UnreadableRow(tuple(cells.values()), "refund_amount", kind, line, key_readable=True)


_MISSHAPEN: tuple[Callable[[OrderLine], UnreadableRow], ...] = (
    _short,
    _long,
    _header_again,
    _part_without_amount,
)


def _cells(line: OrderLine) -> Cells:
    return dict(zip(ORDER_HEADER, cells_of(line), strict=True))
