"""The Guide sheet: how to read the workbook, and every break code in plain words."""

from collections.abc import Iterable
from typing import Any

from recon.matching.codes import CODES
from recon.model.figures import NightFigures
from reports.drawing.blocks import Column, Listing, Sheet, TextLine
from reports.sheets.words import UNVERIFIED_WORDS, VERDICT_WORDS

_OF_A_NIGHT = "Signing is a command of its own."
_OF_PLAIN_FILES = "They are for yourself: only of nights are answers taken in and signed."
RULES = (
    Column("Word", 36, "word", tone="strong"),
    Column("What it means", 186, "meaning", span=3),
)
CODES_COLUMNS = (
    Column("Code", 36, "name"),
    Column("What is wrong", 30, "title", wrap=True),
    Column("What it means", 78, "meaning", wrap=True),
    Column("What to do", 78, "to_do", wrap=True),
)


def guide_sheet(figures: NightFigures) -> Sheet:
    """Rules of reading, verdicts, codes."""
    codes = [
        {"name": code.value, "title": each.title, "meaning": each.meaning, "to_do": each.to_do}
        for code, each in CODES.items()
    ]
    verdicts = [(verdict.value, words) for verdict, words in VERDICT_WORDS.items()]
    return Sheet(
        "Guide",
        [
            pairs(_rules(figures)),
            TextLine(),
            pairs(verdicts, title="Verdicts, worst first"),
            TextLine(),
            Listing(CODES_COLUMNS, codes, title="Break codes, first found first named"),
            TextLine(),
            pairs(UNVERIFIED_WORDS.items(), title="Why a set is not verified"),
        ],
        heading="Guide",
        about="How to read this workbook, and what each code asks.",
        widths=[column.width for column in CODES_COLUMNS],
    )


def pairs(words: Iterable[tuple[Any, str]], *, title: str = "") -> Listing:
    """Words and what they mean."""
    rows = [{"word": str(word), "meaning": meaning} for word, meaning in words]
    return Listing(RULES, rows, title=title)


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
        (
            "Totals",
            "Every figure is a value: no cell is a formula, and a filter changes no total.",
        ),
        (
            "Cream cells",
            "The only cells to write in: the answers on Breaks. "
            + (_OF_PLAIN_FILES if figures.of_plain_files else _OF_A_NIGHT),
        ),
        ("Very large amounts", "Beyond 15 digits an amount is written as text, exactly."),
        ("Rules", f"Digest of the rules: {figures.rules_digest or 'not given'}"),
        ("History", f"Head of the history: {figures.history_head or 'not given'}"),
    ]
