import openpyxl
import pytest

from recon.model.errors import OutputError
from recon.model.figures import matched_of
from recon.steps.compare.sheets_proven import CHECKS
from reports.reading.workbook_check import minor_units_of, sheet_totals
from reports.workbook import write_workbook


def rewritten(path, *, sheet, cell, value):
    """The workbook with one cell changed."""
    book = openpyxl.load_workbook(path)
    book[sheet][cell] = value
    changed = path.with_name("changed.xlsx")
    book.save(changed)
    return changed


def test_sheets_say_what_the_figures_say(workbook, figures):
    totals = sheet_totals(workbook)
    for section, name in (
        ("break", "breaks"),
        ("pending", "pending"),
        ("unverified", "unverified"),
    ):
        sums = getattr(figures, name).groupby("currency")["effect_orders"].sum()
        assert totals[section] == (len(getattr(figures, name)), sums.to_dict())
    matches = next(figures.matches.batches())
    assert totals["match"] == (48, matches.groupby("currency")["effect_orders"].sum().to_dict())
    amounts = figures.instructions.groupby("currency")["amount"].sum()
    assert totals["instruction"] == (6, amounts.to_dict())
    assert totals[CHECKS] == (0, {})


def test_a_check_that_fails_on_the_sheet_is_counted(workbook):
    changed = rewritten(workbook, sheet="Assurance", cell="M6", value="CHECK")

    assert sheet_totals(changed)[CHECKS][0] == 1


def test_an_empty_list_is_zero_rows(build, tmp_path):
    night = build()
    path = write_workbook(
        build(
            breaks=night.breaks.iloc[:0],
            matches=matched_of(next(night.matches.batches()).iloc[:0]),
        ),
        tmp_path / "w.xlsx",
    )

    assert sheet_totals(path)["break"] == (0, {})
    assert sheet_totals(path)["match"] == (0, {})


def test_one_changed_amount_is_seen(workbook):
    before = sheet_totals(workbook)
    after = sheet_totals(rewritten(workbook, sheet="Matched", cell="J7", value=0.02))

    assert before["match"][1]["EUR"] == 1
    assert after["match"][1]["EUR"] == 2
    assert after["break"] == before["break"]


def test_one_lost_row_is_seen(workbook):
    after = sheet_totals(rewritten(workbook, sheet="Breaks", cell="P14", value=None))

    assert after["break"][0] == 9


def test_text_in_place_of_an_amount_is_refused(workbook):
    changed = rewritten(workbook, sheet="Breaks", cell="N5", value="abc")

    with pytest.raises(OutputError, match="not an amount"):
        sheet_totals(changed)


def test_a_fraction_of_a_minor_unit_is_refused():
    with pytest.raises(OutputError, match="not an amount of EUR"):
        minor_units_of(0.005, currency="EUR")


def test_a_file_that_is_no_workbook_is_refused(tmp_path):
    (tmp_path / "night.xlsx").write_bytes(b"PK not really")

    with pytest.raises(OutputError, match=r"night\.xlsx cannot be read back"):
        sheet_totals(tmp_path / "night.xlsx")


def test_a_workbook_without_the_list_is_refused(workbook):
    changed = rewritten(workbook, sheet="Breaks", cell="P4", value="Break")

    with pytest.raises(OutputError, match="has no list with a column 'Key'"):
        sheet_totals(changed)
