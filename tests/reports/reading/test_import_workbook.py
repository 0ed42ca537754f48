from dataclasses import replace

from python_calamine import CalamineWorkbook

from recon.model.resolutions import BreakAnswer, Import, Taken, WorkbookRefusal
from reports.reading.read_back import write_import

DONE = Import(
    name="answered.xlsx",
    sha256="abcdef0123456789",
    run_id="run-1",
    by="jo",
    taken=(Taken("b1", "A1", BreakAnswer("Refunded", "Jo", "=1+1"), 2, 7, waits=False),),
    refusals=(WorkbookRefusal("Breaks!Y8", "Sorted", "not in the list"),),
)


def labels(path, sheet):
    """All texts of a sheet."""
    rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_name(sheet).to_python()
    return [str(cell) for row in rows for cell in row]


def test_every_cell_that_was_not_taken_stands_with_its_reason(tmp_path):
    path = write_import(DONE, next_to=tmp_path / "answered.xlsx")

    assert {"Breaks!Y8", "Sorted", "not in the list"} <= set(labels(path, "Not taken"))
    assert {"A1", "Refunded", "Jo", "=1+1", "kept"} <= set(labels(path, "Taken"))


def test_the_result_lies_beside_the_file_and_is_never_overwritten(tmp_path):
    first = write_import(DONE, next_to=tmp_path / "answered.xlsx")
    second = write_import(replace(DONE, taken=()), next_to=tmp_path / "answered.xlsx")

    assert first.name == "answered-result-abcdef01.xlsx"
    assert second.name == "answered-result-abcdef01-v2.xlsx"
