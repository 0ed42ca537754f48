"""The Breaks sheet: one row per open break, with the cream columns that people answer in."""

from collections.abc import Callable
from typing import Any

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.filters import AutoFilter
from openpyxl.worksheet.table import Table, TableColumn, TableStyleInfo

from recon.matching.judging.severity import risk_of_break
from recon.model.figures import NightFigures
from recon.model.resolutions import COMMENT_CHARACTERS_MAX, OWNER_CHARACTERS_MAX, KeptAnswer
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import greyed_when, heat, when_equal
from reports.drawing.listing import Column, Row, field, put_list
from reports.drawing.page import print_on, protect, put_heading
from reports.sheets.state_words import flag_words, in_words, state_words
from reports.sheets.totals import Rows
from reports.sheets.words import OWED_WORDS, words_of

HEADER_ROW = 6
OLD_DAYS = 31
"""The age at which the colour is full."""
ANSWERS = ("Resolution", "Owner", "Comment", "Resolved on", "Applies to")
"""Titles of the cream columns."""
KEY = "Break key"
VERSION = "Answers so far"
LAST_ON_PAPER = "Why"
"""The columns up to this one stand on paper, one page wide, then the answers; the others need a
screen."""
FIRST_ANSWERED, LAST_ANSWERED = "Answered by", "Applies to"


def _title(row: Row) -> str:
    return words_of(row["code"]).title


def _to_do(row: Row) -> str:
    return words_of(row["code"]).to_do


def _why(row: Row) -> str:
    words = ": ".join(str(row[name]) for name in ("cause", "reason") if row[name])
    older = row.get("reopens")
    return f"Open again, it was closed as break {older}. {words}" if older else words


def _risk(row: Row) -> str:
    return str(row.get("risk") or "")


def _owed_to(row: Row) -> str:
    return OWED_WORDS.get(row["owed_to"], str(row["owed_to"] or ""))


def _kept(row: Row) -> KeptAnswer | None:
    kept: KeptAnswer | None = row.get("kept")
    return kept


def _version(row: Row) -> int:
    kept = _kept(row)
    return kept.version if kept else 0


def _answered(name: str) -> Callable[[Row], Any]:
    """What an earlier night's answer says in this column."""

    def value(row: Row) -> Any:
        kept = _kept(row)
        return getattr(kept.answer, name) if kept else None

    return value


def _answered_by(row: Row) -> str:
    kept = _kept(row)
    if kept is None:
        return ""
    return f"{kept.by} (waits for a second person)" if kept.waits else kept.by


def _nothing(_: Row) -> None:
    return None


COLUMNS = (
    Column(KEY, 18, "text", field("break_id"), "brkKey"),
    Column("What is wrong", 27, "text", _title),
    Column("Age, days", 7, "days", lambda row: row["age_days"] or 0, "brkAge"),
    Column("Severity", 11, "text", field("severity"), "brkSeverity"),
    Column("Ccy", 6, "text", field("currency"), "brkCcy"),
    Column("Orders", 15, "amount", field("order_amount"), "brkOrders"),
    Column("Gateway", 15, "amount", field("gateway_amount"), "brkGateway"),
    Column("Ledger", 15, "amount", field("ledger_amount"), "brkLedger", of_ledger=True),
    Column("Gateway − orders", 15, "amount", field("effect_orders"), "brkEffectOrders"),  # noqa: RUF001 - a minus
    Column(
        "Gateway − ledger",  # noqa: RUF001 - a minus
        15,
        "amount",
        field("effect_ledger"),
        "brkEffectLedger",
        of_ledger=True,
    ),
    Column("Money at risk", 15, "amount", risk_of_break, "brkAtRisk"),
    Column("Owed to", 10, "text", _owed_to),
    Column("Order no", 18, "text", field("order_no"), wrap=True),
    Column("What to do", 36, "text", _to_do, wrap=True),
    Column(LAST_ON_PAPER, 40, "text", _why, wrap=True),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Order says", 16, "text", in_words("state_orders", state_words)),
    Column("Gateway says", 16, "text", in_words("state_gateway", state_words)),
    Column("First seen", 11, "day", field("first_seen")),
    Column("Flags", 24, "text", in_words("flags", flag_words)),
    Column("Risk, says the gateway", 30, "text", _risk, wrap=True),
    Column("Whole amount", 15, "amount", field("exposure"), "brkExposure"),
    Column("Account", 14, "text", field("account_id")),
    Column("Code", 27, "text", field("code"), "brkCode"),
    Column("Answered by", 16, "text", _answered_by, wrap=True),
    Column(VERSION, 9, "count", _version),
    Column("Resolution", 22, "input", _answered("resolution")),
    Column("Owner", 16, "input", _answered("owner")),
    Column("Comment", 36, "input", _answered("comment")),
    Column("Resolved on", 12, "input day", _answered("resolved_on")),
    Column("Applies to", 20, "input", _nothing),
)


def draw_breaks(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """The register of open breaks, most urgent first."""
    put_heading(
        draft,
        sheet,
        title="Breaks",
        sentence="One row per open break, most urgent first. Answer in the cream columns; "
        "everything else is locked and is never read back.",
    )
    extent = put_list(
        draft,
        sheet,
        columns=COLUMNS,
        rows=[{**row, "kept": figures.answers.get(row["break_id"])} for row in rows.breaks],
        top=HEADER_ROW,
        ledger_covered=figures.ledger_covered,
    )
    _put_counts(draft, sheet, count=len(rows.breaks))
    _put_table(sheet, last_row=extent[1])
    _put_rules(sheet, extent=extent)
    _put_validation(sheet, extent=extent)
    sheet.freeze_panes = sheet.cell(row=HEADER_ROW + 1, column=3)
    print_on(sheet, run_id=figures.run_id, title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    answers = f"{_letter(FIRST_ANSWERED)}{HEADER_ROW}:{_letter(LAST_ANSWERED)}{extent[1]}"
    # Two areas: what is wrong, then the answers, with the keys beside them.
    sheet.print_area = f"A1:{_letter(LAST_ON_PAPER)}{extent[1]},{answers}"
    sheet.print_title_cols = "A:B"
    protect(sheet)


def _put_counts(draft: Draft, sheet: Any, *, count: int) -> None:
    draft.text(sheet, (4, 1), "Open breaks", looks.LABEL)
    draft.formula(sheet, (4, 2), ("=COUNTA(brkKey)", count), looks.NUMBER)
    draft.text(sheet, (4, 4), "Shown", looks.LABEL)
    draft.formula(sheet, (4, 5), ("=SUBTOTAL(103,brkKey)", count), looks.NUMBER)


def _put_table(sheet: Any, *, last_row: int) -> None:
    """An Excel table over the rows; its columns are named here, or openpyxl would create cells."""
    last_column = get_column_letter(len(COLUMNS))
    columns = [
        TableColumn(id=number, name=column.title) for number, column in enumerate(COLUMNS, 1)
    ]
    reference = f"A{HEADER_ROW}:{last_column}{last_row}"
    table = Table(displayName="tblBreaks", ref=reference, tableColumns=columns)
    table.autoFilter = AutoFilter(ref=reference)
    table.tableStyleInfo = TableStyleInfo(name=None, showRowStripes=False)
    sheet.add_table(table)


def _put_rules(sheet: Any, *, extent: tuple[int, int]) -> None:
    first, last = extent
    answered = f"LEN(${_letter('Resolution')}{first})>0"
    whole = f"A{first}:{get_column_letter(len(COLUMNS))}{last}"
    sheet.conditional_formatting.add(whole, greyed_when(answered))
    severity = f"{_letter('Severity')}{first}:{_letter('Severity')}{last}"
    for word, colours in {"CRITICAL": looks.BAD, "HIGH": looks.WARN}.items():
        sheet.conditional_formatting.add(severity, when_equal(word, colours=colours))
    ages = f"{_letter('Age, days')}{first}:{_letter('Age, days')}{last}"
    sheet.conditional_formatting.add(ages, heat(most=OLD_DAYS))


def _put_validation(sheet: Any, *, extent: tuple[int, int]) -> None:
    checks = {
        "Resolution": DataValidation(
            type="list",
            formula1="lstResolutions",
            error="Choose a resolution from the list.",
        ),
        "Owner": DataValidation(
            type="textLength",
            operator="lessThanOrEqual",
            formula1=str(OWNER_CHARACTERS_MAX),
            error=f"At most {OWNER_CHARACTERS_MAX} characters.",
        ),
        "Comment": DataValidation(
            type="textLength",
            operator="lessThanOrEqual",
            formula1=str(COMMENT_CHARACTERS_MAX),
            error=f"At most {COMMENT_CHARACTERS_MAX} characters.",
        ),
        "Applies to": DataValidation(
            type="list",
            formula1="lstScopes",
            error="Choose from the list; blank means this break only.",
        ),
        "Resolved on": DataValidation(
            type="date",
            operator="greaterThan",
            formula1="36526",
            error="Write a date, such as 2026-11-21.",
        ),
    }
    for title, check in checks.items():
        check.allow_blank, check.showErrorMessage, check.errorTitle = True, True, title
        check.add(f"{_letter(title)}{extent[0]}:{_letter(title)}{extent[1]}")
        sheet.add_data_validation(check)


def _letter(title: str) -> str:
    position = next(n for n, column in enumerate(COLUMNS, 1) if column.title == title)
    return get_column_letter(position)
