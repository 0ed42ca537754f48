"""The Guide sheet: how to read the workbook, and every break code in plain words."""

from typing import Any

from recon.matching.codes import CODES
from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths
from reports.sheets.words import UNVERIFIED_WORDS, VERDICT_WORDS

WIDTHS = (36, 30, 78, 78)
_OF_A_NIGHT = "Signing is a command of its own."
_OF_PLAIN_FILES = "They are for yourself: only of nights are answers taken in and signed."


def draw_guide(draft: Draft, sheet: Any, *, figures: NightFigures) -> None:
    """Rules of reading, verdicts, codes."""
    set_widths(sheet, WIDTHS)
    put_heading(
        draft, sheet, title="Guide", sentence="How to read this workbook, and what each code asks."
    )
    row = 4
    for title, text in _rules(figures):
        draft.text(sheet, (row, 1), title, looks.LABEL)
        draft.text(sheet, (row, 2), text, looks.PLAIN)
        row += 1
    row = _put_block(draft, sheet, row + 1, ("Verdicts, worst first", _verdicts()))
    row = _put_codes(draft, sheet, row)
    _put_block(draft, sheet, row, ("Why a set is not verified", list(UNVERIFIED_WORDS.items())))
    print_on(sheet, run_id=figures.run_id)
    protect(sheet)


def _rules(figures: NightFigures) -> list[tuple[str, str]]:
    return [
        (
            "Sign",
            "Gateway minus orders, gateway minus ledger. Plus: the gateway has more money.",
        ),
        ("Amounts", "Net of refunds, in the row's own currency; never added over currencies."),
        ("Blank and dash", "Blank: no such record on that side. A dash: zero."),
        (
            "Money at risk",
            (
                "The difference, without a sign; where none is known, the whole amount of what is "
                "in question (a status, a cancel still to do, a move in doubt)."
            ),
        ),
        (
            "Severity",
            (
                "By money at risk against the currency's thresholds; one step up after three "
                "business days; money in doubt is never below HIGH."
            ),
        ),
        ("Owed to", "Who loses money if nothing is done: the shopper, the merchant, or nobody."),
        (
            "Age",
            "Business days since it happened (ordered, paid or booked): 0-1, 2-3, 4-7, 8-30, 30+.",
        ),
        ("Known since, first seen", "The night that showed the break first; it may be far older."),
        ("Times", f"In {figures.timezone}; data as of the cut-off of the business day."),
        ("Grey cells", "The engine's figures. White totals are formulas over the rows here."),
        (
            "Cream cells",
            "The only cells to write in: the answers on Breaks. "
            + (_OF_PLAIN_FILES if figures.of_plain_files else _OF_A_NIGHT),
        ),
        ("Very large amounts", "Beyond 15 digits an amount is written as text, exactly."),
        ("Rules", f"Digest of the rules: {figures.rules_digest or 'not given'}"),
        ("History", f"Head of the history: {figures.history_head or 'not given'}"),
    ]


def _verdicts() -> list[tuple[str, str]]:
    return [(verdict.value, words) for verdict, words in VERDICT_WORDS.items()]


def _put_block(draft: Draft, sheet: Any, row: int, block: tuple[str, list[tuple[str, str]]]) -> int:
    title, lines = block
    draft.text(sheet, (row, 1), title, looks.HEADING)
    for number, (word, meaning) in enumerate(lines, row + 1):
        draft.text(sheet, (number, 1), word, looks.LABEL)
        draft.text(sheet, (number, 2), meaning, looks.PLAIN)
    return row + len(lines) + 2


def _put_codes(draft: Draft, sheet: Any, row: int) -> int:
    draft.text(sheet, (row, 1), "Break codes, first found first named", looks.HEADING)
    titles = ("Code", "What is wrong", "What it means", "What to do")
    put_header(draft, sheet, row=row + 1, titles=titles)
    body = looks.BODY_TEXT.but(wrap=True, top=True)
    for number, (code, words) in enumerate(CODES.items(), row + 2):
        draft.text(sheet, (number, 1), code.value, body)
        for column, text in enumerate((words.title, words.meaning, words.to_do), 2):
            draft.text(sheet, (number, column), text, body)
    return row + 3 + len(CODES)
