"""The Journals sheet: what would put the books right, and what became of every break.

Nothing here books. What was handed out stands here until the ledger shows it. The movements are the
rows that the roll-forward on Control totals adds up.
"""

from dataclasses import asdict
from typing import Any

from recon.model.figures import NightFigures
from reports.drawing.blocks import Column, Listing, Row, Sheet, TextLine, check_of
from reports.sheets.totals import Rows, sum_of
from reports.sheets.words import TABLES, worded, words_of

_HANDED_OUT = ": `recon journals --out` hands each one out once"


def _became(row: Row) -> str:
    return TABLES["movements"].get(row["movement"], str(row["movement"]))


def _title(code: str) -> str:
    return words_of(code).title if code else ""


SUMS = (
    Column("Currency", 36, "currency", tone="strong", span=4),
    Column("Debit", 16, "debit", "money"),
    Column("Credit", 16, "credit", "money"),
    Column("Difference", 24, "difference", "money"),
    Column("Check", 24, "check", "check"),
)
JOURNALS = (
    Column("Journal", 36, "journal_id"),
    Column("Date", 14, "date", "date"),
    Column("Account of the books", 27, "account"),
    Column("Ccy", 8, "currency"),
    Column("Debit", 16, "debit", "money"),
    Column("Credit", 16, "credit", "money"),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Break key", 18, "break_id"),
    Column("What for", 42, "text"),
)
OUT = (
    Column("Journal", 36, "journal_id"),
    Column("Handed out (UTC)", 14, "handed_out"),
    Column("Of run", 27, "run_id"),
    Column("Ccy", 8, "currency"),
    Column("Books still lack", 16, "amount", "money"),
    Column("", 16, lambda _: None),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Break key", 18, "break_id"),
)
MOVEMENTS = (
    Column("What became of it", 36, _became),
    Column("Ccy before", 14, "currency_before"),
    Column("It was", 27, worded("code_before", _title)),
    Column("Ccy", 8, "currency"),
    Column("At risk before", 16, "exposure_before", "money", currency="currency_before"),
    Column("At risk now", 16, "exposure", "money"),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Break key", 18, "break_id"),
    Column("It is", 42, worded("code", _title)),
    Column("Counts as", 14, "counts_as"),
)


def journals_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Totals per currency, the lines of the proposals, then the movements."""
    out = [
        {**asdict(each), "handed_out": f"{each.handed_out_at:%Y-%m-%d}"}
        for each in figures.handed_out
    ]
    count, moved = len(rows.journals), len(rows.movements)
    became = f"What became of each break since the night before ({moved})"
    return Sheet(
        "Journals",
        [
            Listing(
                SUMS, _sums(rows), title="Proposed per currency", nothing="No journal is proposed."
            ),
            TextLine(),
            Listing(JOURNALS, rows.journals, title=f"Lines of the proposals ({count})"),
            TextLine(),
            Listing(OUT, out, title=f"Handed out, not yet seen in the books ({len(out)})"),
            TextLine(),
            Listing(MOVEMENTS, rows.movements, title=became),
        ],
        heading="Journals",
        about="Proposed journals: what would put the books right, two lines for each kind of "
        f"entry. Nothing is booked from here{'' if figures.of_plain_files else _HANDED_OUT}.",
        widths=[column.width for column in MOVEMENTS],
    )


def _sums(rows: Rows) -> list[dict[str, Any]]:
    sums = []
    for currency in sorted({line["currency"] for line in rows.journals}):
        debit, credit = (
            sum_of(rows.journals, name=name, currency=currency) for name in ("debit", "credit")
        )
        sums.append(
            {"currency": currency, "debit": debit, "credit": credit}
            | {"difference": debit - credit, "check": check_of(holds=debit == credit)}
        )
    return sums
