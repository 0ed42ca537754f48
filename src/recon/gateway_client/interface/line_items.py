"""The `items` of a payment: a list in one text, `#;#` between items, `#,#` between their parts."""

from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN_ITEMS = "#;#"
BETWEEN_PARTS = "#,#"
PARTS = 4
NOTHING = "0"
"""Stands for an empty part."""


@dataclass(frozen=True, slots=True)
class LineItem:
    """One thing a shopper buys; the document shows four parts and names none of them."""

    name: str
    number: str
    price: str
    """Of one piece, major units."""
    quantity: str


def encoded_items(items: Sequence[LineItem]) -> str:
    """The items as one text.

    Raises:
        ValueError: a part holds a separator, or completes one with its neighbours.
    """
    text = BETWEEN_ITEMS.join(
        BETWEEN_PARTS.join(part or NOTHING for part in _parts(item)) for item in items
    )
    # Only reading it back shows that no name adds an item to the order.
    if decoded_items(text) != (tuple(_line(_parts(item)) for item in items), ()):
        msg = "a part of an item holds a separator, or completes one"
        raise ValueError(msg)
    return text


def decoded_items(text: str) -> tuple[tuple[LineItem, ...], tuple[str, ...]]:
    """The items of a text, and the pieces of it that are no item of four parts."""
    pieces = [piece for piece in text.split(BETWEEN_ITEMS) if piece]
    split = [(piece, piece.split(BETWEEN_PARTS)) for piece in pieces]
    good = tuple(_line(parts) for _, parts in split if len(parts) == PARTS)
    return good, tuple(piece for piece, parts in split if len(parts) != PARTS)


def _parts(item: LineItem) -> tuple[str, str, str, str]:
    parts = (item.name, item.number, item.price, item.quantity)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError
    return parts


def _line(parts: Sequence[str]) -> LineItem:
    return LineItem(*("" if part == NOTHING else part for part in parts))
