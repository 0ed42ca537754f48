"""The roll-forward on Control totals: open last night, new, open again, ended, open now."""

from collections.abc import Callable
from typing import Any

from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.page import column_range, put_header
from reports.sheets.totals import CLOSED, OPENED, STILL_OPEN, Rows, Totals, sum_of

TITLES = (
    "Currency",
    "Measured by",
    ">Open the night before",
    ">New",
    ">Open again",
    ">Changed amount",
    ">Matched late",
    ">Resolved",
    ">Written off",
    ">Ended otherwise",
    ">Open now",
    ">Rows on Breaks",
    ">Difference",
    "Check",
)
ROLL_CHECKS = "chkRoll"


def put_roll_forward(
    draft: Draft, sheet: Any, *, rows: Rows, totals: Totals, top: int
) -> tuple[int, int]:
    """The block; how many of its checks fail, and the next free row."""
    draft.text(sheet, (top, 1), "Breaks from the night before to tonight", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=TITLES)
    sheet.row_dimensions[top + 1].height = 30
    row = top + 2
    failed = _put_line(draft, sheet, row, _counts(rows), _put_count)
    draft.text(sheet, (row, 2), "breaks", looks.BODY_TEXT)
    for currency in _currencies(rows):
        row += 1
        live = currency not in totals.text_currencies
        draft.text(sheet, (row, 1), currency, looks.LABEL)
        draft.text(sheet, (row, 2), "whole amount", looks.BODY_TEXT)
        amounts = _amounts(rows, currency=currency, row=row)
        failed += _put_line(draft, sheet, row, amounts, _money(currency, live=live))
    draft.name(ROLL_CHECKS, column_range(sheet, column=len(TITLES), rows=(top + 2, row)))
    colour_checks(sheet, f"N{top + 2}:N{row}")
    return failed, row + 2


Written = tuple[str, int]
"""A formula without its equals sign, and what the engine computed for it."""
Put = Callable[[Draft, Any, tuple[int, int], Written], None]


def _currencies(rows: Rows) -> list[str]:
    names = {row[name] for row in rows.movements for name in ("currency", "currency_before")}
    return sorted((names | {row["currency"] for row in rows.breaks}) - {"", None})


def _put_line(  # noqa: PLR0917 - a line has a place, its cells and their kind
    draft: Draft, sheet: Any, row: int, written: list[Written], put: Put
) -> int:
    """The cells of one line, its sums and its check; 1 when the check fails."""
    opened, on_breaks = sum(amount for _, amount in written[:-1]), written[-1][1]
    sums = [
        *written[:-1],
        (f"SUM(C{row}:J{row})", opened),
        written[-1],
        (f"K{row}-L{row}", opened - on_breaks),
    ]
    for column, sum_ in enumerate(sums, 3):
        put(draft, sheet, (row, column), sum_)
    failed = opened != on_breaks
    written_check = (f'=IF(M{row}=0,"{OK}","{CHECK}")', CHECK if failed else OK)
    draft.formula(sheet, (row, len(TITLES)), written_check, looks.CHECK)
    return int(failed)


def _put_count(draft: Draft, sheet: Any, cell: tuple[int, int], written: Written) -> None:
    draft.formula(sheet, cell, (f"={written[0]}", written[1]))


def _money(currency: str, *, live: bool) -> Put:
    def put(draft: Draft, sheet: Any, cell: tuple[int, int], written: Written) -> None:
        if live:
            draft.money_formula(sheet, cell, (*written, currency))
        else:
            draft.amount(sheet, cell, written[1], currency)

    return put


def _counts(rows: Rows) -> list[Written]:
    """Every break of last night or tonight, counted by what it counts as."""
    counted = {word: _count(rows, word) for word in (*OPENED, STILL_OPEN, *CLOSED)}
    before = len(rows.movements) - sum(counted[word] for word in OPENED)
    came_in = "".join(f'-COUNTIF(movCountsAs,"{word}")' for word in OPENED)
    return [
        (f"COUNTA(movKey){came_in}", before),
        *((f'COUNTIF(movCountsAs,"{word}")', counted[word]) for word in OPENED),
        ("0", 0),
        *((f'-COUNTIF(movCountsAs,"{word}")', -counted[word]) for word in CLOSED),
        ("COUNTA(brkKey)", len(rows.breaks)),
    ]


def _count(rows: Rows, word: str) -> int:
    return sum(row["counts_as"] == word for row in rows.movements)


def _amounts(rows: Rows, *, currency: str, row: int) -> list[Written]:
    """Whole amounts of one currency; a break that changed its currency leaves one for another."""
    before = [{**movement, "currency": movement["currency_before"]} for movement in rows.movements]
    at = f"$A{row}"

    def was(word: str) -> int:
        chosen = [movement for movement in before if word in {"", movement["counts_as"]}]
        return sum_of(chosen, name="exposure_before", currency=currency)

    def now(word: str) -> int:
        chosen = [movement for movement in rows.movements if movement["counts_as"] == word]
        return sum_of(chosen, name="exposure", currency=currency)

    def is_now(word: str) -> str:
        return f'SUMIFS(movNow,movCcy,{at},movCountsAs,"{word}")'

    def has_been(word: str) -> str:
        return f'SUMIFS(movBefore,movCcyBefore,{at},movCountsAs,"{word}")'

    on_breaks = sum_of(rows.breaks, name="exposure", currency=currency)
    return [
        (f"SUMIFS(movBefore,movCcyBefore,{at})", was("")),
        *((is_now(word), now(word)) for word in OPENED),
        (f"{is_now(STILL_OPEN)}-{has_been(STILL_OPEN)}", now(STILL_OPEN) - was(STILL_OPEN)),
        *((f"-{has_been(word)}", -was(word)) for word in CLOSED),
        (f"SUMIFS(brkExposure,brkCcy,{at})", on_breaks),
    ]
