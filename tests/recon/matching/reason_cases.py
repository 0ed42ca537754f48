"""Planted truths: rows whose every amount is another one, and the sentence a controller reads.

They stand in `reason_cases.txt`, one after the other, each with the code that it must come to:

    OVER_REFUND: more refunded than captured
      order refunded amount=101.01
      payment refunded amount=101.01 refunded_amount=120.00
      > The gateway shows 120.00 EUR refunded, more than the captured 101.01 EUR.

A line is a row of one side, its words and its cells, or `rules` and a table of them. The sentences
were written from the rows, not from what the engine answered.
"""

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

TEXT = Path(__file__).with_suffix(".txt")
SIDES = frozenset({"order", "payment", "entry", "move", "line", "payout", "ledger"})
DAYS = frozenset({"queried_at"})
MONEY = frozenset(
    {
        *("amount", "refund_amount", "authorised_amount", "captured_amount", "refunded_amount"),
        *("transaction_amount", "gross", "fee"),
    }
)
"""Cells in major units, with all decimals of their currency."""


class Planted(NamedTuple):
    """Rows, the code they must come to, and what must be said of it."""

    name: str
    code: str
    rows: tuple[str, ...]
    said: str

    def build(self, case: Any) -> Any:
        """The case with these rows."""
        for row in self.rows:
            side, _, rest = row.partition(" ")
            if side == "rules":
                case.ruled(**tomllib.loads(rest))
                continue
            assert side in SIDES, f"{self.name}: {row}"
            words = rest.split()
            cells = dict(_cell(word) for word in words if "=" in word)
            getattr(case, side)(*(word for word in words if "=" not in word), **cells)
        return case


def _cell(word: str) -> tuple[str, object]:
    name, _, text = word.partition("=")
    if name in MONEY:
        return name, int(text.replace(".", ""))
    if name in DAYS:
        return name, datetime.fromisoformat(text).replace(tzinfo=UTC)
    return name, text


def _planted(text: str) -> Iterator[Planted]:
    for case in text.split("\n\n"):
        head, *rows, said = case.strip().splitlines()
        code, _, name = head.partition(": ")
        assert said.startswith("  > "), head
        yield Planted(name, code, tuple(row.strip() for row in rows), said.removeprefix("  > "))


PLANTED = tuple(_planted(TEXT.read_text()))
