"""The lists behind a statement: open items, transit, books, straddling, nights, proof, facts."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from recon.period.month_words import DIFFERENCES, ITEMS, MOVEMENTS, RESERVE_MOVED, STRADDLES
from recon.period.prior_periods import prior_items
from recon.steps.care.month_statements import StatedMonth
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.listing import Column, Row, field, put_list, rows_of
from reports.drawing.page import (
    print_first_rows,
    print_on,
    protect,
    put_header,
    put_heading,
    set_widths,
)

FACTS_ROWS_MAX = 100_000
"""More facts stand in the files beside the workbook only, and movements as the engine has them."""
TOP = 4
ITEM_COLUMNS = (
    Column("Close", 10, "text", field("at"), "itmAt"),
    Column("What", 40, "text", field("label"), "itmWhat"),
    Column("Ccy", 6, "text", field("currency"), "itmCcy"),
    Column("Amount", 18, "amount", field("amount"), "itmAmount"),
    Column("Since", 12, "day", field("since")),
    Column("Payment or batch", 28, "text", field("key")),
    Column("Order", 22, "text", field("order_no")),
)
TRANSIT_COLUMNS = (
    Column("Batch", 26, "text", field("batch_id")),
    Column("Ccy", 6, "text", field("currency"), "trnCcy"),
    Column("Amount", 18, "amount", field("amount"), "trnAmount"),
    Column("Since", 12, "day", field("since")),
    Column("State", 12, "text", field("state")),
    Column("Break", 28, "text", field("code")),
)
BOOK_COLUMNS = (
    Column("What", 40, "text", field("label"), "bokWhat"),
    Column("Ccy", 6, "text", field("currency"), "bokCcy"),
    Column("Order or group", 28, "text", field("key")),
    Column("Books less gateway", 20, "amount", field("amount"), "bokAmount"),
    Column("As the nights show it", 22, "amount", field("told")),
    Column("Shown", 12, "text", field("is_shown")),
)
STRADDLING_COLUMNS = (
    Column("What", 46, "text", field("label")),
    Column("First", 12, "day", field("first_on")),
    Column("Then", 12, "day", field("then_on")),
    Column("Ccy", 6, "text", field("currency")),
    Column("Amount", 18, "amount", field("amount")),
    Column("Payment or batch", 28, "text", field("key")),
    Column("Order", 22, "text", field("order_no")),
)
FACT_COLUMNS = (
    Column("Business date", 14, "day", field("event_on")),
    Column("What", 34, "text", field("label"), "facWhat"),
    Column("Ccy", 6, "text", field("currency"), "facCcy"),
    Column("Amount", 18, "amount", field("amount"), "facAmount"),
    Column("Counts", 8, "text", field("counts"), "facCounts"),
    Column("Payment", 24, "text", field("payment")),
    Column("Order", 20, "text", field("order_no")),
    Column("Batch", 24, "text", field("batch_id")),
    Column("Dated by", 14, "text", field("dated_by")),
    Column("First told", 12, "day", field("told_on")),
    Column("Late", 6, "text", field("late")),
)
PRIOR_COLUMNS = (
    Column("Its own date", 14, "day", field("own_on")),
    Column("Counts on", 14, "day", field("event_on")),
    Column("What", 34, "text", field("label")),
    Column("Ccy", 6, "text", field("currency")),
    Column("Amount", 18, "amount", field("amount")),
    Column("Payment", 24, "text", field("payment")),
    Column("Order", 20, "text", field("order_no")),
    Column("Batch", 24, "text", field("batch_id")),
    Column("First told", 12, "day", field("told_on")),
)
NIGHT_TITLES = ("Business date", "Night", "Run", "What is wrong")
PROOF_TITLES = (
    "Id",
    "What is held against what",
    "Ccy",
    "Measure",
    ">Left",
    ">Right",
    ">Left, SQL",
    ">Right, SQL",
    "Check",
)
SENTENCES = {
    "Open items": "What the gateway owed at the two closes, item by item; sums stand on page one.",
    "In transit": "Paid out and not at the bank at the last close; a break says why.",
    "Books": "Why the books differ from the gateway at the last close, by order or group.",
    "Straddling": "What lies across a close, with both dates; no second date: it has not come yet.",
    "Prior periods": (
        "Dated in a closed month and told after its close: it counts here, the close stays."
    ),
    "Nights": "Every business date of the month, and what is wrong with its night.",
    "Proof": "Both sides of each equation, by pandas and by SQL over the same sealed files.",
    "Facts": "Every movement of the month by the business date of its own event.",
}


def draw_items(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """What was open at both closes."""
    statement = stated.statement
    rows = [
        {**row, "at": at, "label": ITEMS[row["what"]]}
        for at, frame in (
            ("closing", statement.closing_items),
            ("opening", statement.opening_items),
        )
        for row in rows_of(frame)
    ]
    _put(draft, sheet, "Open items", columns=ITEM_COLUMNS, rows=rows, stated=stated)


def draw_transit(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """What is on the way to the bank."""
    frame = stated.statement.transit
    rows = [] if frame is None else rows_of(frame)
    _put(draft, sheet, "In transit", columns=TRANSIT_COLUMNS, rows=rows, stated=stated)


def draw_books(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """Where books and gateway differ."""
    rows = [
        {
            **row,
            "label": DIFFERENCES[row["what"]],
            "told": row["shown"] if row["what"] == "open" else None,
            "is_shown": ""
            if row["what"] != "open"
            else "yes"
            if row["amount"] == row["shown"]
            else "NO",
        }
        for row in ([] if stated.statement.books is None else rows_of(stated.statement.books))
    ]
    _put(draft, sheet, "Books", columns=BOOK_COLUMNS, rows=rows, stated=stated)


def draw_straddling(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """What lies across a close."""
    rows = [
        {**row, "label": STRADDLES[row["what"]]} for row in rows_of(stated.statement.straddling)
    ]
    _put(draft, sheet, "Straddling", columns=STRADDLING_COLUMNS, rows=rows, stated=stated)


def draw_prior(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """What is dated in a closed month and was told after its close: it counts in this one."""
    labels = {**MOVEMENTS, "reserve": RESERVE_MOVED}
    items = prior_items(stated.statement.facts)
    rows = [{**row, "label": labels[row["kind"]]} for row in rows_of(_as_text(items))]
    _put(draft, sheet, "Prior periods", columns=PRIOR_COLUMNS, rows=rows, stated=stated)


def draw_facts(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """Every movement of the month."""
    labels = {**MOVEMENTS, "reserve": RESERVE_MOVED}
    rows = [
        {
            **row,
            "label": labels[row["kind"]],
            "counts": "no" if row["is_outside"] or row["kind"] == "reserve" else "yes",
            "late": "late" if row["is_late"] else "",
        }
        for row in rows_of(_as_text(stated.statement.facts))
    ]
    _put(draft, sheet, "Facts", columns=FACT_COLUMNS, rows=rows, stated=stated)


def draw_nights(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """The nights of the month, and the rules that judged."""
    set_widths(sheet, (16, 26, 30, 70))
    put_heading(draft, sheet, title="Nights", sentence=SENTENCES["Nights"])
    put_header(draft, sheet, row=TOP, titles=NIGHT_TITLES)
    row = TOP + 1
    for night in stated.nights:
        draft.day(sheet, (row, 1), night.business_date)
        for column, text in enumerate((night.standing, night.run_id, night.trouble), start=2):
            draft.text(sheet, (row, column), text, looks.BODY_TEXT)
        row += 1
    for digest, day in stated.rules.items():
        draft.text(sheet, (row + 1, 1), f"Rules from the night of {day}: {digest}", looks.NOTE)
        row += 1
    _finish(sheet, stated=stated)


def draw_proof(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """The equations; each check is a formula over the four figures beside it."""
    set_widths(sheet, (6, 74, 6, 10, 20, 20, 20, 20, 10))
    put_heading(draft, sheet, title="Proof", sentence=SENTENCES["Proof"])
    put_header(draft, sheet, row=TOP, titles=PROOF_TITLES)
    row = TOP
    for row, each in enumerate(stated.statement.equations, start=TOP + 1):
        for column, text in enumerate((each.id, each.name, each.currency, each.measure), start=1):
            draft.text(sheet, (row, column), text, looks.BODY_TEXT)
        for column, number in enumerate(
            (each.left, each.right, each.sql_left, each.sql_right), start=5
        ):
            if each.measure == "amount":
                draft.amount(sheet, (row, column), number, each.currency)
            else:
                draft.number(sheet, (row, column), number)
        formula = f'=IF(AND(E{row}=F{row},E{row}=G{row},E{row}=H{row}),"{OK}","{CHECK}")'
        draft.formula(sheet, (row, 9), (formula, OK if each.holds else CHECK), looks.CHECK)
    colour_checks(sheet, f"I{TOP + 1}:I{max(row, TOP + 1)}")
    for sentence in stated.statement.unproven_figures:
        row += 1
        draft.text(sheet, (row + 1, 1), sentence, looks.NOTE)
    _finish(sheet, stated=stated)


def _put(
    draft: Draft,
    sheet: Any,
    title: str,
    *,
    columns: Sequence[Column],
    rows: Sequence[Row],
    stated: StatedMonth,
) -> None:
    put_heading(draft, sheet, title=title, sentence=SENTENCES[title])
    extent = put_list(draft, sheet, columns=columns, rows=rows, top=TOP)
    if not rows:
        draft.text(sheet, (extent[0], 1), "None.", looks.NOTE)
    sheet.auto_filter.ref = f"A{TOP}:{chr(64 + len(columns))}{extent[1]}"
    print_first_rows(draft, sheet, columns=len(columns), rows=extent)
    _finish(sheet, stated=stated)


def _finish(sheet: Any, *, stated: StatedMonth) -> None:
    sheet.freeze_panes = f"A{TOP + 1}"
    about = f"Statement {'/'.join(stated.statement.account)} {stated.statement.month.name}"
    print_on(sheet, about=about, title_rows=f"{TOP}:{TOP}")
    protect(sheet)


def _as_text(facts: pd.DataFrame) -> pd.DataFrame:
    """Truth values as numbers: a list has no other."""
    return facts.astype({"is_outside": "int64", "is_late": "int64"})
