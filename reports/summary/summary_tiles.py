"""The tiles of page one: the verdict and five figures."""

from decimal import Decimal
from typing import Any

from recon.model.figures import NightFigures
from recon.model.words import Verdict
from reports.drawing import look as looks
from reports.drawing.highlight import when
from reports.drawing.look import Look
from reports.sheets.open_rows import NOT_VERIFIED, WAITING
from reports.summary.summary_page import RIGHT, Page

VERDICT_COLOURS = {
    Verdict.NOT_PROVEN: looks.BAD,
    Verdict.INCOMPLETE: looks.BAD,
    Verdict.BREAKS_OPEN: looks.WARN,
    Verdict.RECONCILED: looks.GOOD,
}


def put_tiles(page: Page, top: int) -> int:
    """The verdict and five figures; the next free row."""
    for row, points in ((top, 16), (top + 1, 32), (top + 2, 16)):
        page.sheet.row_dimensions[row].height = points
    _put_verdict(page, top)
    places = page.places.results
    every, matched = page.rows.matched.count + _others(page), page.rows.matched.count
    everything, matched_cell = (f"'Control totals'!B{places[name]}" for name in ("All", "Matched"))
    # Rounded down: 99.999 % must not read as 100.
    share = f"=IF({everything}=0,0,ROUNDDOWN({matched_cell}/{everything},4))"
    value = Decimal(matched * 10_000 // every if every else 0).scaleb(-4)
    of_all = (f'="of "&TEXT({everything},"#,##0")&" sets"', f"of {every:,} sets")
    _put_tile(page, top, (5, 6), "Matched", (share, value), looks.SHARE_FORMAT)
    _put_tile_line(page, top + 2, (5, 6), of_all)
    breaks = ("=COUNTA(brkKey)", len(page.rows.breaks))
    _put_tile(page, top, (7, 9), "Open breaks", breaks, looks.TILE_FORMAT)
    page.merged(top + 2, (7, 9), _since_yesterday(page.figures), looks.TILE_LABEL)
    urgent = sum(row["severity"] in {"HIGH", "CRITICAL"} for row in page.rows.breaks)
    formula = '=COUNTIF(brkSeverity,"HIGH")+COUNTIF(brkSeverity,"CRITICAL")'
    _put_tile(page, top, (11, 11), "High or critical", (formula, urgent), looks.TILE_FORMAT)
    page.merged(top + 2, (11, 11), "of the open breaks", looks.TILE_LABEL)
    oldest = max((row["age_days"] or 0 for row in page.rows.breaks), default=0)
    _put_tile(
        page, top, (12, 12), "Oldest, business days", ("=MAX(brkAge)", oldest), looks.TILE_FORMAT
    )
    page.merged(top + 2, (12, 12), "since it happened", looks.TILE_LABEL)
    _put_doubt(page, top)
    return top + 3


def _others(page: Page) -> int:
    return page.rows.open.count() + len(page.rows.breaks)


def _put_verdict(page: Page, top: int) -> None:
    verdict = page.figures.verdict
    shown = Verdict.NOT_PROVEN if page.places.failed_checks else verdict
    failing = "+".join(f'COUNTIF({name},"CHECK")' for name in page.places.checks)
    formula = f'=IF({failing}>0,"{Verdict.NOT_PROVEN.value}",runVerdict)'
    look = Look(bold=True, size=20, align="center", fill=looks.ENGINE_FILL)
    for row in range(top, top + 3):
        for column in range(2, 5):
            page.draft.cell(page.sheet, (row, column), look)
    page.draft.formula(page.sheet, (top, 2), (formula, shown.value), look)
    page.sheet.merge_cells(start_row=top, end_row=top + 2, start_column=2, end_column=4)
    page.draft.name("sumVerdict", f"'{page.sheet.title}'!$B${top}")
    for word, colours in VERDICT_COLOURS.items():
        rule = when(f'$B${top}="{word.value}"', colours=colours)
        page.sheet.conditional_formatting.add(f"B{top}:D{top + 2}", rule)


def _put_tile(  # noqa: PLR0917 - a tile has a place, a label and a value
    page: Page,
    top: int,
    columns: tuple[int, int],
    label: str,
    written: tuple[str, Any],
    number_format: str,
) -> None:
    page.merged(top, columns, label, looks.TILE_LABEL)
    look = looks.TILE_NUMBER.but(number_format=number_format)
    page.merged(top + 1, columns, "", look)
    page.draft.formula(page.sheet, (top + 1, columns[0]), written, look)


def _put_tile_line(
    page: Page, row: int, columns: tuple[int, int], written: tuple[str, str]
) -> None:
    page.merged(row, columns, "", looks.TILE_LABEL)
    page.draft.formula(page.sheet, (row, columns[0]), written, looks.TILE_LABEL)


def _put_doubt(page: Page, top: int) -> None:
    """How many moves of money are in doubt: red when there is one."""
    doubtful = sum(row["group"] == "in doubt" for row in page.rows.instructions)
    written = ('=COUNTIF(insResult,"in doubt")', doubtful)
    _put_tile(page, top, (13, 13), "In doubt", written, looks.TILE_FORMAT)
    page.merged(top + 2, (13, 13), "instructions", looks.TILE_LABEL)
    rule = when(f"$M${top + 1}>0", colours=looks.BAD)
    page.sheet.conditional_formatting.add(f"M{top}:M{top + 2}", rule)


def _since_yesterday(figures: NightFigures) -> str:
    if figures.opening_breaks is None:
        return "no night before to compare with"
    change = len(figures.breaks) - figures.opening_breaks
    if change == 0:
        return "as many as the night before"
    return f"{'▲' if change > 0 else '▼'} {abs(change):,} since the night before"


def put_results(page: Page, row: int) -> None:
    """How many sets came to what, in one live sentence under the right tiles."""
    rows = page.rows
    counts = {
        "Matched": rows.matched.count,
        **{result: rows.open.count(result) for result in (WAITING, NOT_VERIFIED)},
        "Breaks": len(rows.breaks),
    }
    counted = " · ".join(f"{count:,} {name.lower()}" for name, count in counts.items())
    parts = [
        f'TEXT(\'Control totals\'!B{page.places.results[name]},"#,##0")&" {name.lower()}"'
        for name in counts
    ]
    formula = "=" + '&" · "&'.join(parts)
    page.draft.formula(page.sheet, (row, RIGHT), (formula, counted), looks.SUBTITLE)
