"""The Statement sheet: opening, movements, closing by currency, and that each closing is listed."""

from collections.abc import Iterator, Sequence
from typing import Any

from recon.period.month_statement import StatementRow, blocks_of
from recon.steps.care.month_index import NOT_PROVEN, PROVEN
from recon.steps.care.month_statements import StatedMonth
from reports.drawing.blocks import Column, Listing, Part, Row, Sheet, TextLine, check_of
from reports.drawing.look import NAVY, Tone

TITLE = "Statement"
TROUBLES_MAX = 12
"""Sentences on the page; all of them are in the files beside the workbook."""
_, BANK, _ = BLOCKS = ("The gateway", "On the way to the bank", "The books")
_INDENT = "    "


def _tone(row: Row) -> Tone:
    kind = row["kind"]
    return "total" if kind == "close" else {"open": "strong", "note": "muted"}.get(kind, "")


def statement_sheet(stated: StatedMonth) -> Sheet:
    """The page that is read first."""
    statement = stated.statement
    which = "/".join(statement.account)
    verdict, tone = (PROVEN, "good") if stated.is_proven else (NOT_PROVEN, "bad")
    return Sheet(
        TITLE,
        [
            TextLine(f"Statement of account {which}, {statement.month.name}", "title"),
            *(TextLine(sentence, "muted") for sentence in _about(stated)),
            TextLine(verdict, f"verdict {tone}"),
            *(TextLine(sentence, "note") for sentence in _troubles(stated)),
            *(
                part
                for currency in statement.currencies
                for part in _of_currency(stated, currency=currency)
            ),
        ],
        widths=(62, 10, 22, 12),
        frozen=(1, 0),
        is_upright=True,
        colour=NAVY,
    )


def _about(stated: StatedMonth) -> Iterator[str]:
    month = stated.statement.month
    yield (
        f"Business dates {month.first} to {month.last}, by what the night of {stated.known_by} "
        "knows. Amounts as the merchant has them to get: what comes in is positive."
    )
    if stated.is_first:
        yield "No night ran before: what was open then is what this month's nights still show."
    if not stated.statement.is_settled:
        yield "No settlement file was given: fees, reserves and pay-outs are not covered."
    if stated.statement.transit is None:
        yield "The bank is not covered: no statement of it was given."
    if stated.statement.books is None:
        yield "The books are not covered: no ledger was given."
    if len(stated.rules) > 1:
        yield f"The rules changed {len(stated.rules) - 1} times (see Nights); the newest ones date."


def _troubles(stated: StatedMonth) -> list[str]:
    shown = stated.troubles[:TROUBLES_MAX]
    left = len(stated.troubles) - len(shown)
    return [*shown, *([f"and {left} more: see Nights and Proof"] if left else [])]


def _of_currency(stated: StatedMonth, *, currency: str) -> Iterator[Part]:
    """The blocks of one currency; each closing is the sum of what stands above it."""
    statement = stated.statement
    there = (True, statement.transit is not None, statement.books is not None)
    named = [name for name, is_there in zip(BLOCKS, there, strict=True) if is_there]
    yield TextLine()
    yield TextLine(currency, "heading")
    for about, block in zip(named, blocks_of(statement, currency=currency), strict=True):
        columns = (
            Column(about, 62, "label", tone=_tone),
            Column("Count", 10, "count", "count", tone=_tone),
            Column("Amount", 22, "amount", "money", tone=_tone),
            Column("Check", 12, "check", "check"),
        )
        yield Listing(columns, _rows(block, currency=currency, about=about))
        yield TextLine()


def _rows(block: Sequence[StatementRow], *, currency: str, about: str) -> list[dict[str, Any]]:
    place = [row.kind for row in block].index("close")
    moved = sum(row.amount for row in block[:place] if row.kind != "note")
    listed = sum(row.amount for row in block if row.kind == "listed")
    total = block[place].amount
    # What is on its way to the bank is listed on a sheet of its own.
    holds = moved == total and (about == BANK or listed == total)
    return [
        {
            "kind": row.kind,
            "label": f"{_INDENT * row.depth}{row.label}",
            "count": row.count,
            "amount": row.amount,
            "currency": currency,
            "check": check_of(holds=holds) if number == place else None,
        }
        for number, row in enumerate(block)
    ]
