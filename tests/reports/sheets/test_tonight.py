"""The foot of page one: what was proven, in words, and who signs."""

import re
from collections.abc import Callable
from dataclasses import replace

from recon.model.figures import PLAIN_FILES, NightFigures
from recon.model.words import ControlTotal, Verdict
from reports.sheets.page_one import TO_DO
from tests.reports.drawn_sheets import SHEETS, content_of, words_on

Build = Callable[..., NightFigures]
COMMANDS = re.compile("`recon [a-z-]+(?: [a-z]+)?")


def line(statement: str, currency: str, count: int, amount: int = 0) -> dict[str, str | int]:
    """A line of the scope of assurance."""
    return {"statement": statement, "currency": currency, "count": count, "amount": amount}


def test_a_count_beside_currencies_says_that_it_has_none(build: Build) -> None:
    """No figure of page one stands there without its word, be it of no currency or of no money."""
    unproven = "not proven: no usable evidence"
    scope = (
        line(unproven, "", 10),
        line(unproven, "EUR", 38, 1_400),
        line(unproven, "JPY", 2),
        line("rows that could not be read", "", 107),
        line("nobody can see this", "", 0),
    )
    words = words_on(content_of(build(scope_of_assurance=scope)), "Summary")

    told = "10 whose currency nothing tells · 38 (14.00 EUR) · 2 (0 JPY)"
    assert f"Not proven: no usable evidence: {told}" in words
    assert "Rows that could not be read: 107" in words
    assert "Nobody can see this" in words


def test_plain_files_name_no_command_that_needs_a_night(build: Build) -> None:
    """What nobody can type stands on no sheet, whichever control total fails."""
    totals = tuple(ControlTotal(of, of, "", "", "", "count", 1, 0) for of in TO_DO)
    night = build(verdict=Verdict.NOT_PROVEN, control_totals=totals[:5])
    plain = replace(night, mode=PLAIN_FILES, quarantined=(), attention=())
    for at in range(0, len(totals), 5):
        content = content_of(replace(plain, control_totals=totals[at : at + 5]))
        every = " ".join(word for sheet in SHEETS for word in words_on(content, sheet))
        assert {*COMMANDS.findall(every)} <= {"`recon reconcile", "`recon order-file check"}
        assert "no command signs it" in every
    every = " ".join(words_on(content_of(night), "Summary"))
    assert "`recon sign-off" in every
    assert "no command signs it" not in every
