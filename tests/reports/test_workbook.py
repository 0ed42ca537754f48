import io
import re
import zipfile
from dataclasses import replace
from datetime import UTC, datetime

import openpyxl
import pandas as pd
import pytest

from recon.model.figures import matched_of
from recon.model.terms import Verdict
from reports.sheets.page_one import Page, verdict_sentence
from reports.sheets.totals import rows_on_sheets
from reports.workbook import write_workbook
from tests.reports.drawn_sheets import SHEETS, content_of, list_on, words_on

EVIL = '=HYPERLINK("http://evil.example","click")'


def opened(content):
    """The workbook as openpyxl reads it."""
    return openpyxl.load_workbook(io.BytesIO(content))


def cells_of(workbook):
    for sheet in workbook.worksheets:
        for row in sheet.iter_rows():
            yield from (cell for cell in row if cell.value is not None)


@pytest.fixture
def content(night_workbook):
    return night_workbook


def test_sheets_stand_in_their_order_and_the_run_sheet_is_hidden(content):
    workbook = opened(content)

    assert tuple(workbook.sheetnames) == SHEETS
    assert workbook["_run"].sheet_state == "veryHidden"
    assert all(workbook[title].sheet_state == "visible" for title in SHEETS[:-1])


def test_same_figures_give_same_bytes(figures):
    assert content_of(figures) == content_of(figures)


def test_no_part_of_the_package_carries_the_time_of_writing(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        dates = {part.date_time for part in archive.infolist()}
        core = archive.read("docProps/core.xml").decode()

    assert dates == {(1980, 1, 31, 0, 0, 0)}
    assert re.findall(r"[0-9-]{10}T[0-9:]{8}Z", core) == ["2026-11-21T01:58:11Z"] * 2


def test_foreign_text_is_never_a_formula_nor_an_error(content):
    workbook = opened(content)
    texts = [cell for cell in cells_of(workbook) if cell.value in {EVIL, "=1+1", "-1+1", "=9"}]

    assert {cell.value for cell in texts} == {EVIL, "=1+1", "-1+1", "=9"}
    assert {cell.data_type for cell in texts} == {"s"}
    assert all(cell.quotePrefix for cell in texts)
    assert [cell.coordinate for cell in cells_of(workbook) if cell.data_type == "e"] == []
    assert any(label.endswith(" · #N/A") for label in words_on(content, "Breaks"))


def test_a_total_is_what_its_column_adds_up_to(content):
    sums = {
        ("Assurance", "Rows read", "Kind"): (
            "All",
            ["Rows read", "Accepted", "Rejected", "Skipped"],
        ),
        ("Summary", "Breaks", "Breaks by what they are about"): (
            "All breaks, money at risk",
            ["Breaks", "EUR", "JPY"],
        ),
    }
    for (sheet, title, key), (label, titles) in sums.items():
        *rows, total = [row for row in list_on(content, sheet, title, key) if row[titles[0]] != ""]
        assert total[key] == label
        for name in titles:
            assert sum(row[name] for row in rows) == total[name], (sheet, name)


def test_unprintable_characters_are_replaced_and_counted(content):
    assert "\ufffd\ufffdبسم 🙂 漢字" in words_on(content, "Breaks")
    counted = [text for text in words_on(content, "Assurance") if "unprintable" in text]
    assert counted == ["2 unprintable characters of foreign text were shown as \ufffd."]


def test_an_amount_beyond_fifteen_digits_is_text_and_exact(build):
    night = build()
    breaks = night.breaks.copy()
    first = breaks["break_id"] == f"{1:016x}"
    breaks.loc[first, ["exposure", "effect_orders"]] = 10**15
    content = content_of(replace(night, breaks=breaks))

    assert "10000000000000.00" in words_on(content, "Breaks")


def test_a_night_without_a_ledger_says_so_and_never_zero(build):
    content = content_of(build(ledger_covered=False, verdict=Verdict.INCOMPLETE))
    sides = {row["What each side says"] for row in list_on(content, "Breaks", "Key", "Owner")}
    assert all("ledger not covered" in said and "− ledger" not in said for said in sides)  # noqa: RUF001 - a minus
    for key in ("Matched rows", "Match key"):
        assert {row["Ledger"] for row in list_on(content, "Matched", key, "Ledger")} == {
            "not covered"
        }
    labels = words_on(content, "Summary")
    assert any(label.endswith("no ledger: the ledger is not covered") for label in labels)
    assert labels[0].startswith("INCOMPLETE · ")


def test_doubt_without_a_named_person_is_not_called_calm(build):
    labels = words_on(content_of(build(attention=())), "Summary")

    assert "Instructions are in doubt: see the sheet Instructions." in labels


def test_the_verdict_is_never_better_than_the_sheets(build):
    """When the rows do not explain the difference, page one says NOT PROVEN by itself."""
    night = build(verdict=Verdict.RECONCILED)
    sides = night.sides.copy()
    sides.loc[0, "amount"] += 1
    labels = words_on(content_of(replace(night, sides=sides)), "Summary")

    assert labels[0].startswith("NOT PROVEN · ")
    assert not any("RECONCILED" in label for label in labels)


def test_a_failed_proof_shows_on_page_one(build):
    night = build()
    broken = replace(night.control_totals[0], left=61)
    content = content_of(replace(night, control_totals=(broken,)))

    assert words_on(content, "Summary")[0].startswith("NOT PROVEN · ")
    assert "CHECK" in words_on(content, "Assurance")


def test_only_the_answers_can_be_written(content):
    """Five cream columns on Breaks and nothing else: nobody signs by typing a name.

    Breaks can be sorted and its columns unfolded, so it is not locked: a cell that is not read
    back refuses what is typed, and a row whose other cells were changed is not taken.
    """
    workbook = opened(content)
    breaks = workbook["Breaks"]
    titles = [cell.value for cell in breaks[4]]
    free = {titles[cell.column - 1] for cell in breaks[5] if not cell.protection.locked}
    checks = breaks.data_validations.dataValidation

    assert free == {"Resolution", "Owner", "Comment", "Resolved on", "Applies to"}
    forms = dict(zip(titles, (cell.number_format for cell in breaks[5]), strict=True))
    assert forms["Resolved on"] == "d mmm yyyy"  # as text a day shows its number
    assert len(titles) == len({*titles}) == 16
    assert [sheet.title for sheet in workbook if not sheet.protection.sheet] == ["Breaks"]
    refusing = {
        str(check.sqref).split(":")[0] for check in checks if str(check.formula1).endswith("FALSE")
    }
    assert len(refusing) + len(free) == 16
    rules = {(check.type, check.formula1) for check in checks if check.type != "custom"}
    assert {kind for kind, _ in rules} == {"list", "textLength", "date"}
    assert {("textLength", "60"), ("textLength", "500"), ("date", "36526")} <= rules
    assert {str(check.sqref).rpartition(":")[2].lstrip("ABCDEFGHIJKLMNOP") for check in checks} == {
        "14"
    }


def test_an_empty_night_is_a_whole_workbook(build):
    night = build()
    none = {
        name: getattr(night, name).iloc[:0]
        for name in ("breaks", "effects", "pending", "unverified", "sides", "movements", "journals")
    }
    none["matches"] = matched_of(next(night.matches.batches()).iloc[:0])
    empty = {"instructions": night.instructions.iloc[:0], "batches": night.batches.iloc[:0]}
    content = content_of(
        replace(
            night,
            **none,
            **empty,
            files=(),
            rejects=(),
            attention=(),
            trend=(),
            opening_breaks=None,
            control_totals=(),
            scope_of_assurance=(),
            verdict=Verdict.RECONCILED,
        )
    )
    labels = words_on(content, "Summary")

    assert labels[0].startswith("RECONCILED · ")
    assert "No open breaks." in labels
    assert "No break is open, no instruction is in doubt, and none waits for a person." in labels


@pytest.mark.parametrize(
    ("matched", "broken", "labels"),
    [
        (999, 1, "99.9 % of the 1,000 payments due are matched"),
        (9_999, 1, "99.9 % of the 10,000 payments due are matched"),
        (3, 0, "100.0 % of the 3 payments due are matched"),
        (0, 1, "0.0 % of the one payment due is matched"),
        (0, 0, "No payment is due"),
    ],
)
def test_the_share_of_what_is_due_is_rounded_down(build, matched, broken, labels):
    night = build()
    gateway = night.sides[night.sides["source"].eq("gateway")].iloc[[0]]
    counts = {"MATCHED": matched, "BREAK": broken, "PENDING": 50}
    sides = [gateway.assign(state=state, count=count) for state, count in counts.items()]
    figures = replace(night, sides=pd.concat(sides))

    assert labels in page_one_sentence(figures)


def page_one_sentence(figures):
    """What the verdict means, whatever the sheets come to."""
    page = Page(figures, rows_on_sheets(figures), {})
    return verdict_sentence(page)


def test_a_shared_cause_is_told_once_on_page_one(content):
    told = [label for label in words_on(content, "Summary") if "orders-2.csv" in label]

    assert told == [
        "2 breaks: The gateway knows nearly no order of orders-2.csv: is it of another account?"
    ]


def test_instants_stand_in_the_reports_zone(content):
    instants = [
        cell.value
        for row in opened(content)["Instructions"].iter_rows()
        for cell in row
        if isinstance(cell.value, datetime)
    ]

    assert set(instants) == {datetime(2026, 11, 21, 2, 5)}  # noqa: DTZ001 - Excel has no zones
    assert any("Europe/Copenhagen" in label for label in words_on(content, "Instructions"))


def test_an_equal_workbook_is_left_as_it_is(figures, tmp_path):
    first = write_workbook(figures, tmp_path / "night.xlsx")
    second = write_workbook(figures, tmp_path / "night.xlsx")

    assert first == second == tmp_path / "night.xlsx"
    assert [path.name for path in tmp_path.iterdir()] == ["night.xlsx"]


def test_another_workbook_is_never_overwritten(figures, tmp_path):
    wanted = tmp_path / "night.xlsx"
    wanted.write_bytes(b"signed")
    later = replace(figures, generated_at=datetime(2026, 11, 22, tzinfo=UTC))

    assert write_workbook(figures, wanted) == tmp_path / "night-v2.xlsx"
    assert write_workbook(later, wanted) == tmp_path / "night-v3.xlsx"
    assert wanted.read_bytes() == b"signed"


def test_rows_that_a_layout_leaves_out_are_named_by_its_rule(figures):
    first, *others = figures.files
    skipped = replace(first, skipped_by="Type = Subtotal: 2; Line is not 1: 3")
    lines = words_on(content_of(replace(figures, files=(skipped, *others))), "Assurance")
    line = f"Skipped by the layout of {first.name}: Type = Subtotal: 2; Line is not 1: 3."
    assert [text for text in lines if "by the layout" in text] == [line]
