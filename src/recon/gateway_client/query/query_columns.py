"""Rows of an order query read a column at a time: one look per column instead of one per cell.

Only for ordinary rows: the same fields in every row, all of them text without padding and of the
right form. Whatever is not ordinary gives None, and the careful reader of single rows judges it;
for ordinary rows both give the same records.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from recon.gateway_client.interface.described import GatewayInterface
from recon.gateway_client.interface.rows import text_pattern
from recon.gateway_client.query.query_reading import (
    DATE,
    DROPPED_FIELDS,
    EXTRA_FIELDS_MAX,
)
from recon.gateway_client.wire.private_names import is_private
from recon.gateway_client.wire.text import are_harmless, scrubbed

ONLY_TEXT = frozenset({str})
IDS = ("transaction_id", "order_no")

Columns = dict[str, list[str]]


def text_columns(rows: Sequence[Mapping[str, Any]]) -> Columns | None:
    """The columns of rows that all have the same fields, each cell plain text; else None."""
    names = rows[0].keys()
    if any(row.keys() != names for row in rows):
        return None
    columns: Columns = {name: [row[name] for row in rows] for name in names}
    for cells in columns.values():
        if set(map(type, cells)) != ONLY_TEXT or list(map(str.strip, cells)) != cells:
            return None
    return columns


def are_wellformed(columns: Columns, *, interface: GatewayInterface) -> bool:
    """Whether every amount, currency and id of the columns can be used."""
    is_amount = interface.profile.amounts.is_amount
    pairs = zip(columns["amount"], columns["currency"], strict=True)
    if not all(is_amount(amount, currency=currency) for amount, currency in pairs):
        return False
    for name in IDS:
        cells, longest = columns[name], interface.profile.lengths.get(name)
        if not all(map(text_pattern(name, interface=interface).fullmatch, cells)):
            return False
        if longest is not None and max(map(len, cells)) > longest:
            return False
    return True


def amounts_of(cells: Sequence[str]) -> list[Decimal]:
    """Amounts that are well-formed."""
    return list(map(Decimal, cells))


LAST_YEAR = "9999"
"""Dates from then on are looked at one by one: not every one is an instant in every zone."""


def dates_of(cells: Sequence[str], *, zone: ZoneInfo) -> list[datetime] | None:
    """Every 14-digit date of a column; None when one of them is none."""
    if not all(map(DATE.fullmatch, cells)) or max(cells, default="") >= LAST_YEAR:
        return None
    read = datetime.fromisoformat
    try:
        return [read(f"{text[:8]}T{text[8:]}").replace(tzinfo=zone) for text in cells]
    except ValueError:
        return None


def shown_texts(cells: list[str], *, keep: bool = False) -> list[str]:
    """The texts of a column as they may be kept and shown; each distinct one is scrubbed once.

    Args:
        cells: Texts without padding.
        keep: They are numbers of the gateway's, which may look like a card's.
    """
    if are_harmless(cells):
        return cells
    known = {text: scrubbed(text, keep={text} if keep else ()) for text in set(cells)}
    return [known[text] for text in cells]


def extra_columns(columns: Columns, *, known: frozenset[str]) -> list[dict[str, str]] | None:
    """What each row says beside the listed fields; None when it may be about a person."""
    names = [name for name in columns if name not in known and name not in DROPPED_FIELDS]
    if len(names) > EXTRA_FIELDS_MAX or any(map(is_private, names)):
        return None
    shown = [(scrubbed(name), shown_texts(columns[name])) for name in names]
    count = len(next(iter(columns.values())))
    if all(len(set(texts)) == 1 for _, texts in shown):
        return [{name: texts[0] for name, texts in shown}] * count  # one mapping for all
    return [{name: texts[row] for name, texts in shown} for row in range(count)]
