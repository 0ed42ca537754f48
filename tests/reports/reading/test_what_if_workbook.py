"""The workbook of nights under candidate rules."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.model.errors import OutputError
from recon.model.words import Verdict
from recon.steps.compare.rules_change import Change, ChangedRule
from recon.steps.compare.what_if import JudgedAgain, NeverRaised, WhatIf
from reports.reading import what_if_workbook
from reports.reading.what_if_workbook import write_what_if

AT = datetime(2026, 11, 23, 8, tzinfo=UTC)
WINDOW = ChangedRule("window.orders_days", "30", "60")
RULES = (ChangedRule("tolerance.EUR.absolute_minor_units", "not set", "7"), WINDOW)
NIGHT = datetime(2026, 11, 20)  # noqa: DTZ001 - a date as a sheet has it


def found(*changes: Change) -> WhatIf:
    """One night with these changes."""
    verdicts = (Verdict.BREAKS_OPEN, Verdict.RECONCILED)
    night = JudgedAgain(
        "r1",
        NIGHT.date(),
        *verdicts,
        3,
        2,
        1,
        0,
        changes,
        "d" * 64,
        is_same=False,
        unverified_then=6,
        unverified=4,
    )
    never = NeverRaised("b1", "AMOUNT_OVER", "=SO1", "JPY", 7, NIGHT.date(), "Jo Hill")
    return WhatIf(RULES, (WINDOW,), (night,), (never,), "e" * 64)


def change(number: int) -> Change:
    """An order off by some minor units."""
    key = ("100042", "100042001", f"SO{number}", "KWD")
    return Change(key, "AMOUNT_OVER", "matched", "the rules changed, no side did", number)


def rows(path: Path, name: str) -> list[list[Any]]:
    """The rows of one sheet."""
    sheet = load_workbook(path)[name]
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=5)]


def test_each_sheet_has_its_rows(tmp_path: Path) -> None:
    """Nights with counts, rules, kinds and sets with money of their currency, answered breaks."""
    path = write_what_if(found(change(1), change(2)), path=tmp_path / "w.xlsx", at=AT)

    assert rows(path, "Nights")[0][1:11] == ["BREAKS OPEN", "RECONCILED", 3, 2, 1, 0, 2, 6, 4, "r1"]
    assert [row[:3] for row in rows(path, "Rules")] == [
        [rule.key, rule.before, rule.after] for rule in RULES
    ]
    assert [bool(row[3]) for row in rows(path, "Rules")] == [False, True]
    assert rows(path, "Changes") == [
        [NIGHT, "AMOUNT_OVER", "matched", 2, "KWD", pytest.approx(0.003)]
    ]
    assert [row[1] for row in rows(path, "Sets")] == ["SO1", "SO2"]
    assert rows(path, "Never raised")[0][3:] == ["=SO1", "JPY", 7, "Jo Hill"]
    assert load_workbook(path)["Never raised"]["D5"].data_type == "s"


def test_more_sets_than_a_sheet_takes_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first are listed, and how many there are."""
    monkeypatch.setattr(what_if_workbook, "SETS_SHOWN_MAX", 2)

    path = write_what_if(found(*map(change, range(5))), path=tmp_path / "w.xlsx", at=AT)

    assert len(rows(path, "Sets")) == 2
    assert load_workbook(path)["Sets"]["A2"].value.startswith("The first 2 of 5 sets")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The sentence names the file and what to do."""
    with pytest.raises(OutputError, match="name a file in a folder that exists"):
        write_what_if(found(), path=tmp_path / "none" / "w.xlsx", at=AT)
