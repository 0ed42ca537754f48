"""Open breaks by cause and age on page one; each cause leads to its most urgent break."""

from collections import Counter

from recon.model.words import BreakCode
from reports.drawing import look as looks
from reports.drawing.highlight import heat
from reports.sheets.ageing import BUCKETS
from reports.sheets.breaks_sheet import HEADER_ROW as BREAKS_HEADER_ROW
from reports.sheets.words import words_of
from reports.summary.summary_charts import put_age_bars
from reports.summary.summary_page import CHART_ROWS_MIN, LAST, LEFT, RIGHT, Page

CODES_SHOWN = 9
SHARED_CAUSES_SHOWN = 3
"""Many breaks with one cause are told as one line; the rest stands on Breaks."""


def put_matrix(page: Page, top: int) -> int:
    """Open breaks by code and age; each code leads to its most urgent break."""
    page.text(top, LEFT, "Open breaks by cause and age (business days)", looks.HEADING)
    page.text(top + 1, LEFT, "What is wrong", looks.HEADER)
    for column, title in enumerate([*(bucket.label for bucket in BUCKETS), "Total"], LEFT + 1):
        page.text(top + 1, column, title, looks.HEADER_RIGHT)
    first = top + 2
    codes, others = _codes(page)
    for row, code in enumerate(codes, first):
        _put_code(page, row, code)
    row = first + len(codes)
    if others:
        _put_other_codes(page, row, others, first)
        row += 1
    if not codes:
        page.text(row, LEFT, "No open breaks.", looks.NOTE)
        row += 1
    _put_all_breaks(page, row, first)
    bottom = max(_put_shared_causes(page, row + 1), top + CHART_ROWS_MIN)
    if codes:
        page.sheet.conditional_formatting.add(f"C{first}:G{row - 1}", heat(most=None))
        put_age_bars(page.sheet, rows=(top + 1, row - 1), box=(RIGHT, top + 1, LAST, bottom))
    return bottom


def _codes(page: Page) -> tuple[list[str], list[str]]:
    """The codes that occur, most frequent first: those that are shown, and the rest."""
    counts = Counter(str(row["code"]) for row in page.rows.breaks)
    order = [code.value for code in BreakCode]
    rank = {code: order.index(code) if code in order else len(order) for code in counts}
    codes = sorted(counts, key=lambda code: (-counts[code], rank[code]))
    return codes[:CODES_SHOWN], codes[CODES_SHOWN:]


def _put_code(page: Page, row: int, code: str) -> None:
    rows = page.rows.breaks
    first = next(number for number, row in enumerate(rows) if row["code"] == code)
    target = f"'Breaks'!A{BREAKS_HEADER_ROW + 1 + first}"
    page.draft.link(page.sheet, (row, LEFT), (words_of(code).title, target))
    ages = [row["age_days"] or 0 for row in rows if row["code"] == code]
    for column, bucket in enumerate(BUCKETS, LEFT + 1):
        formula = f'=COUNTIFS(brkCode,"{code}",{bucket.criteria("brkAge")})'
        count = sum(map(bucket.holds, ages))
        page.draft.formula(page.sheet, (row, column), (formula, count))
    _put_row_sum(page, row, len(ages))


def _put_other_codes(page: Page, row: int, codes: list[str], first: int) -> None:
    page.draft.link(page.sheet, (row, LEFT), (f"{len(codes)} other causes", "'Breaks'!A6"))
    ages = [row["age_days"] or 0 for row in page.rows.breaks if row["code"] in codes]
    for column, bucket in enumerate(BUCKETS, LEFT + 1):
        letter = "ABCDEFGH"[column - 1]
        above = f"SUM({letter}{first}:{letter}{row - 1})"
        formula = f"=COUNTIFS({bucket.criteria('brkAge')})-{above}"
        count = sum(map(bucket.holds, ages))
        page.draft.formula(page.sheet, (row, column), (formula, count))
    _put_row_sum(page, row, len(ages))


def _put_row_sum(page: Page, row: int, count: int) -> None:
    look = looks.NUMBER.but(bold=True)
    page.draft.formula(page.sheet, (row, 8), (f"=SUM(C{row}:G{row})", count), look)


def _put_all_breaks(page: Page, row: int, first: int) -> None:
    look = looks.NUMBER.but(bold=True, line="total")
    page.text(row, LEFT, "All breaks", looks.LABEL.but(line="total"))
    ages = [row["age_days"] or 0 for row in page.rows.breaks]
    counts = [*(sum(map(bucket.holds, ages)) for bucket in BUCKETS), len(ages)]
    for column, count in enumerate(counts, LEFT + 1):
        letter = "ABCDEFGH"[column - 1]
        formula = f"=SUM({letter}{first}:{letter}{row - 1})"
        page.draft.formula(page.sheet, (row, column), (formula, count), look)


def _put_shared_causes(page: Page, row: int) -> int:
    """The causes that many breaks share, most breaks first; each leads to its first break."""
    causes = [str(row["cause"] or "") for row in page.rows.breaks]
    for cause, count in Counter(filter(None, causes)).most_common(SHARED_CAUSES_SHOWN):
        target = f"'Breaks'!A{BREAKS_HEADER_ROW + 1 + causes.index(cause)}"
        page.draft.link(page.sheet, (row, LEFT), (f"{count:,} breaks: {cause}", target))
        row += 1
    return row
