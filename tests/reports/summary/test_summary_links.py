"""Sentences of page one that lead to another sheet."""

from dataclasses import replace
from typing import Any

from recon.model.figures import NightFigures
from reports.drawing.draft import grouped_amount
from reports.sheets.books_block import BOOK_STEPS, books_sentence
from reports.summary.summary_page import LEFT, WIDTHS
from reports.summary.summary_sheet import LAST_LEFT
from reports.workbook import drawn


def test_a_long_sentence_that_leads_elsewhere_is_on_paper_whole(figures: NightFigures) -> None:
    """It goes on in the next row, before the chart beside it; every line leads there."""
    books = {"EUR": dict.fromkeys(BOOK_STEPS, 12_345_678_900)}
    long = replace(figures, books=books)
    sheet: Any = drawn(long).workbook["Summary"]
    cells = [row[0] for row in sheet.iter_rows(min_col=LEFT, max_col=LEFT)]
    texts = [str(cell.value) for cell in cells]
    first = next(at for at, text in enumerate(texts) if text.startswith("The books: "))
    after = next(at for at in range(first, len(cells)) if cells[at].hyperlink is None)
    lines = texts[first:after]

    assert " ".join(lines) == f"The books: {books_sentence(long, currency='EUR')}"
    assert len(lines) > 1
    assert max(map(len, lines)) <= sum(WIDTHS[LEFT - 1 : LAST_LEFT])


def test_an_amount_keeps_its_sign_and_has_its_thousands() -> None:
    """Also less than one major unit, and a currency without minor units."""
    wanted = {(-50, "EUR"): "-0.50", (-146_455, "GBP"): "-1,464.55", (-30_121, "JPY"): "-30,121"}

    assert {given: grouped_amount(*given) for given in wanted} == wanted
