"""The foot of page one: what it does not speak of, and who signs."""

import re
from collections.abc import Callable
from dataclasses import replace

from recon.model.figures import PLAIN_FILES, NightFigures
from recon.model.words import ControlTotal, Verdict
from reports.sheets.words import TABLES
from tests.reports.drawn_sheets import SHEETS, content_of, words_on

Build = Callable[..., NightFigures]
COMMANDS = re.compile("`recon [a-z-]+(?: [a-z]+)?")


def test_what_had_no_source_is_named_and_the_rest_is_counted(build: Build) -> None:
    """A controller who reads one page reads what it does not speak of."""
    missing = tuple(f"source {number}: no file of it" for number in range(5))
    words = words_on(content_of(build(not_covered=missing)), "Summary")

    assert [word for word in words if word.startswith("Not covered: ")] == [
        f"Not covered: {each}" for each in missing[:3]
    ]
    assert "and 2 more on Control totals" in words
    write_offs = words_on(content_of(build(not_covered=("write-offs, T10: 2 of them",))), "Summary")
    assert "Not covered: write-offs: 2 of them" in write_offs


def test_plain_files_name_no_command_that_needs_a_night(build: Build) -> None:
    """What nobody can type stands on no sheet, whichever control total fails."""
    totals = tuple(ControlTotal(of, of, "", "", "", "count", 1, 0) for of in TABLES["to_do"])
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
