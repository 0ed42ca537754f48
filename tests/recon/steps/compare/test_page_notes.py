"""The sentences of page one."""

from datetime import timedelta
from typing import Any

from python_calamine import CalamineWorkbook

from recon.store.nights import runs
from reports.handed import workbooks


def page_one(merchant: Any) -> str:
    """The Summary of the newest run, as one text."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        path = runs.finished(connection)[-1].workbook
    rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("Summary").to_python()
    return "\n".join(str(cell) for row in rows for cell in row)


def test_a_healed_night_is_not_held_by_the_run_that_it_replaces(merchant: Any) -> None:
    """The night after a night that is not proven says so; that night, run again, does not."""
    merchant.night(workbooks=workbooks())
    with merchant.environment() as environment, environment.store.writing() as connection:
        (first,) = runs.finished(connection)
        runs.note_result(connection, first.run_id, values={"verdict": "NOT PROVEN"})
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21", workbooks=workbooks())
    held = page_one(merchant)
    merchant.now += timedelta(hours=1)
    merchant.night(workbooks=workbooks())
    healed = page_one(merchant)

    assert "Refunds are held: the night of 2026-11-20 is NOT PROVEN." in held
    assert "Refunds are held" not in healed
    assert "holds refunds" not in healed
