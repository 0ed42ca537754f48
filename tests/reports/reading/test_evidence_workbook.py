import io
from datetime import UTC, date, datetime

import openpyxl

from recon.model.nights import Mode
from recon.model.words import ControlTotal
from recon.steps.care.evidence import CopiedFolder, EvidenceIndex, NightOfEvidence, Span
from recon.store.database.history import Head
from recon.store.nights.runs import LetGo, Run
from reports.reading.evidence_workbook import evidence_index

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
FOLDER = "nights/1/2/2026-11-20/r"
RUN = Run(
    *("r", "1", "2", date(2026, 11, 20), Mode.LIVE, "finished", "report", "somebody", NOW, NOW),
    *("RECONCILED", "w.xlsx", ""),
)
TOTAL = ControlTotal("T4", "orders matched", "1", "2", "EUR", "amount", 1234, 1234)
GONE = LetGo("r", "1", "2", date(2026, 11, 20), "Otto", NOW, 3, 99, "ab")


def test_each_run_has_a_row_with_its_money_fault_and_a_link_that_moves_with_the_folder() -> None:
    """Amounts have the decimals of their currency; the workbook's link is relative."""
    copy = CopiedFolder(FOLDER, {"inputs": "cd"}, ("a file is gone",))
    workbook = f"{FOLDER}/proof/workbook.xlsx"
    night = NightOfEvidence(
        RUN,
        is_newest=True,
        rules_digest="ef",
        signed="Anna",
        totals=[TOTAL],
        copy=copy,
        workbook=workbook,
    )
    day = date(2026, 11, 20)
    index = EvidenceIndex(Span(day, day, [("1", "2")]), [night], [], [GONE], [], [], Head(7, "aa"))

    book = openpyxl.load_workbook(io.BytesIO(evidence_index(index)))

    cells = [cell.value for cell in book["Nights"][5]]
    assert (cells[0], cells[5], cells[6]) == (
        datetime(2026, 11, 20),  # noqa: DTZ001 - a date as a sheet has it
        "RECONCILED",
        "orders matched 12.34 EUR",
    )
    assert (cells[7], cells[8], cells[10], cells[14]) == (1, 1, "a file is gone", "inputs cd")
    assert book["Nights"].cell(row=5, column=12).hyperlink.target == workbook
    assert [cell.value for cell in book["Let go"][5]][3:6] == ["Otto", 3, 99]
    assert book["Closes"]["A5"].value == "None."
