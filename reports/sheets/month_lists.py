"""The lists behind a statement: open items, transit, books, straddling, nights, proof, facts."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from recon.period.month_statement import GROUPS, OPEN, prior_items
from recon.period.statement_rows import DIFFERENCES, ITEMS, MOVEMENTS, RESERVE_MOVED, STRADDLES
from recon.steps.care.month_statements import StatedMonth
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.listing import Column, field
from reports.drawing.page import put_header, put_heading, set_widths
from reports.sheets.month_list import TOP, MonthList, finish, put_month_list

Files = Mapping[str, str]
"""Name -> content of the files beside the workbook."""
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
    "Proof": "Both sides of each equation, in SQL over the sealed files of the nights.",
    "Facts": "Every movement of the month by the business date of its own event.",
}


def draw_items(draft: Draft, sheet: Any, *, stated: StatedMonth, files: Files) -> None:
    """What was open at both closes."""
    sides = {"closing": stated.statement.closing_items, "opening": stated.statement.opening_items}
    frame = pd.concat([rows.assign(at=at) for at, rows in sides.items()], ignore_index=True)
    listed = MonthList(
        "Open items",
        SENTENCES["Open items"],
        ITEM_COLUMNS,
        by={"at": "Close", "label": "What", "currency": "Ccy"},
        counted="Since",
        files={f"{at}-items.csv": len(rows) for at, rows in sides.items()},
    )
    frame = frame.assign(label=_labels(frame["what"], ITEMS))
    put_month_list(draft, sheet, listed=listed, frame=frame, files=files, stated=stated)


def draw_transit(draft: Draft, sheet: Any, *, stated: StatedMonth, files: Files) -> None:
    """What is on the way to the bank."""
    frame = stated.statement.transit
    if frame is None:
        return
    listed = MonthList(
        "In transit",
        SENTENCES["In transit"],
        TRANSIT_COLUMNS,
        by={"currency": "Ccy", "state": "State", "code": "Break"},
        counted="Since",
        files={"in-transit.csv": len(frame)},
    )
    put_month_list(draft, sheet, listed=listed, frame=frame, files=files, stated=stated)


def draw_books(draft: Draft, sheet: Any, *, stated: StatedMonth, files: Files) -> None:
    """Where books and gateway differ; of too many rows those that no night shows stand first."""
    frame = stated.statement.books
    if frame is None:
        return
    listed = MonthList(
        "Books",
        SENTENCES["Books"],
        BOOK_COLUMNS,
        by={"label": "What", "currency": "Ccy", "is_shown": "Shown"},
        counted="Order or group",
        files={"books.csv": len(frame)},
        amounts=("amount", "told"),
        first=("is_shown", "NO"),
    )
    is_open = frame["what"].isin((OPEN, *GROUPS))
    is_alike = frame["amount"].eq(frame["shown"])
    is_shown = pd.Series("yes", frame.index, dtype="str").where(is_alike, "NO").where(is_open, "")
    frame = frame.assign(
        label=_labels(frame["what"], DIFFERENCES),
        told=frame["shown"].astype("Int64").where(is_open),
        is_shown=is_shown,
    )
    put_month_list(draft, sheet, listed=listed, frame=frame, files=files, stated=stated)


def draw_straddling(draft: Draft, sheet: Any, *, stated: StatedMonth, files: Files) -> None:
    """What lies across a close."""
    frame = stated.statement.straddling
    listed = MonthList(
        "Straddling",
        SENTENCES["Straddling"],
        STRADDLING_COLUMNS,
        by={"label": "What", "currency": "Ccy"},
        counted="Then",
        files={"straddling.csv": len(frame)},
    )
    frame = frame.assign(label=_labels(frame["what"], STRADDLES))
    put_month_list(draft, sheet, listed=listed, frame=frame, files=files, stated=stated)


def draw_prior(draft: Draft, sheet: Any, *, stated: StatedMonth, files: Files) -> None:
    """What is dated in a closed month and was told after its close: it counts in this one."""
    frame = _movements(prior_items(stated.statement.facts))
    listed = MonthList(
        "Prior periods",
        SENTENCES["Prior periods"],
        PRIOR_COLUMNS,
        by={"label": "What", "currency": "Ccy"},
        counted="Its own date",
        files={"facts.csv": len(stated.statement.facts)},
    )
    put_month_list(draft, sheet, listed=listed, frame=frame, files=files, stated=stated)


def draw_facts(draft: Draft, sheet: Any, *, stated: StatedMonth, files: Files) -> None:
    """Every movement of the month."""
    facts = stated.statement.facts
    outside = facts["is_outside"].astype(bool) | facts["kind"].eq("reserve")
    yes, blank = (pd.Series(word, facts.index, dtype="str") for word in ("yes", ""))
    listed = MonthList(
        "Facts",
        SENTENCES["Facts"],
        FACT_COLUMNS,
        by={"label": "What", "currency": "Ccy", "counts": "Counts", "late": "Late"},
        counted="Business date",
        files={"facts.csv": len(facts)},
    )
    frame = _movements(facts).assign(
        counts=yes.where(~outside, "no"), late=blank.where(~facts["is_late"].astype(bool), "late")
    )
    put_month_list(draft, sheet, listed=listed, frame=frame, files=files, stated=stated)


def _movements(facts: pd.DataFrame) -> pd.DataFrame:
    """Facts with what they are; a list has no truth values."""
    labels = _labels(facts["kind"], {**MOVEMENTS, "reserve": RESERVE_MOVED})
    return facts.drop(columns=["is_outside", "is_late", "told"]).assign(label=labels)


def _labels(names: "pd.Series[str]", words: Mapping[str, str]) -> "pd.Series[str]":
    """The words of each; a name without any is a defect."""
    return names.map({name: words[str(name)] for name in names.unique()}).astype("str")


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
    sheet.freeze_panes = f"A{TOP + 1}"
    finish(sheet, stated=stated, title_row=TOP)


def draw_proof(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """The equations; each check is a formula over the two figures beside it."""
    set_widths(sheet, (6, 74, 6, 10, 20, 20, 10))
    put_heading(draft, sheet, title="Proof", sentence=SENTENCES["Proof"])
    put_header(draft, sheet, row=TOP, titles=PROOF_TITLES)
    row = TOP
    for row, each in enumerate(stated.statement.equations, start=TOP + 1):
        for column, text in enumerate((each.id, each.name, each.currency, each.measure), start=1):
            draft.text(sheet, (row, column), text, looks.BODY_TEXT)
        for column, number in enumerate((each.left, each.right), start=5):
            if each.measure == "amount":
                draft.amount(sheet, (row, column), number, each.currency)
            else:
                draft.number(sheet, (row, column), number)
        formula = f'=IF(E{row}=F{row},"{OK}","{CHECK}")'
        draft.formula(sheet, (row, 7), (formula, OK if each.holds else CHECK), looks.CHECK)
    colour_checks(sheet, f"G{TOP + 1}:G{max(row, TOP + 1)}")
    sheet.freeze_panes = f"A{TOP + 1}"
    finish(sheet, stated=stated, title_row=TOP)
