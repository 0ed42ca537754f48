import io
import re
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from recon.steps.care.verify import Reading, Verification, verify
from recon.steps.money.gate import gate_of
from recon.store.nights import runs
from reports.handed import reading, workbooks

pytestmark = pytest.mark.xdist_group("verification")
"""They share what takes longer to make than to look at."""

UNREAD = Reading(lambda _: (), lambda _: "", lambda *_: ())
"""The workbooks of these nights are no workbooks."""


def _verified(
    merchant: Any, *, workbook: Path | None = None, look: Reading = UNREAD
) -> Verification:
    with merchant.environment() as environment:
        return verify(environment, reading=look, workbook=workbook)


def play(merchant: Any) -> None:
    """One night over three orders."""
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:3]))
    merchant.night()


@pytest.fixture
def settled(begun: Any) -> Any:
    """A merchant after that night."""
    return begun(play)


def _workbook(settled: Any) -> Path:
    (path,) = (settled.folder / "reports").glob("*.xlsx")
    return Path(path)


def _edit(merchant: Any, *statements: str) -> None:
    path = merchant.sqlite_path
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_workbook_lies_where_the_reports_folder_is_now(settled: Any) -> None:
    """Whoever moves an installation has every workbook still; another file of its name is none."""
    workbook = _workbook(settled)
    _edit(settled, "UPDATE run SET workbook = replace(workbook, '/reports/', '/before/')")
    assert _verified(settled).problems == ()

    workbook.write_bytes(workbook.read_bytes() + b"x")
    (problem,) = _verified(settled).problems
    assert problem.endswith("is not the workbook that was written that night")
    assert str(workbook) in problem


def test_an_edited_workbook_is_found(settled: Any) -> None:
    """A workbook that was changed after the night is named."""
    workbook = _workbook(settled)
    workbook.write_bytes(workbook.read_bytes() + b" ")

    assert "not the workbook that was written" in _verified(settled).problems[0]
    assert "edited" in _verified(settled, workbook=workbook).problems[0]


def _without(content: bytes, *, pattern: str, new: str, sheet: str = "sheet3.xml") -> bytes:
    """The workbook with something else on the sheet Breaks."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w") as book:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith(f"worksheets/{sheet}"):
                changed, count = re.subn(pattern, new, text.decode(), count=1)
                assert count == 1
                text = changed.encode()
            book.writestr(name, text)
    return target.getvalue()


def test_a_planted_value_and_a_planted_row_are_named(merchant: Any) -> None:
    """One amount made larger, or one break taken out: the cell, what it says and what is true."""
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:3]))
    merchant.night(workbooks=workbooks())
    (workbook,) = (merchant.folder / "reports").glob("*.xlsx")
    content = workbook.read_bytes()
    value = _without(content, pattern=r'(<c r="C5"[^>]*><v>)[^<]*', new=r"\g<1>99")
    row = _without(content, pattern=r'<row r="5".*?</row>', new="")
    saved = _without(content, pattern=r'<row r="5"', new=' <row r="5"')
    told = {}
    for name, planted in {"value": value, "row": row, "saved": saved, "own": content}.items():
        workbook.write_bytes(planted)
        told[name] = _verified(merchant, workbook=workbook, look=reading()).problems

    assert told["value"][0].endswith("wrote: 1 differences")
    assert re.fullmatch(r"Breaks!C5 says 99, the night says -?[0-9.]+", told["value"][1])
    assert re.fullmatch(r"Breaks lacks the row of the break [0-9a-f]{16}", told["row"][1])
    assert told["saved"] == told["own"] == ()


def test_a_copy_says_what_it_was_held_against_and_where_the_sealed_file_lies(merchant: Any) -> None:
    """The file itself, a copy of the same cells, one that another program saved, a lost file."""
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:3]))
    merchant.night(workbooks=workbooks())
    (sealed,) = (merchant.folder / "reports").glob("*.xlsx")
    copy, bare = (merchant.folder / name for name in ("copy.xlsx", "bare.xlsx"))
    copy.write_bytes(_without(sealed.read_bytes(), pattern=r'<row r="5"', new=' <row r="5"'))
    openpyxl.load_workbook(sealed).save(bare)
    own, alike, without = (
        _verified(merchant, workbook=path, look=reading()) for path in (sealed, copy, bare)
    )
    with sealed.open("ab") as file:
        file.write(b" ")
    gone = _verified(merchant, workbook=copy, look=reading())

    assert own.compared.startswith(f"{sealed} is the file that run ")
    assert f"with the sealed file {sealed}, which is the one to keep and sign" in alike.compared
    assert alike.compared.endswith(": they say the same")
    assert own.problems == alike.problems == gone.problems == ()
    assert f"({sealed} is gone or was changed: `recon workbook " in gone.compared
    assert f"with the sealed file {sealed}" in without.compared
    assert without.problems == ()


def test_a_workbook_that_is_gone_is_found_with_the_way_back(settled: Any) -> None:
    """A missing workbook is named with the command that writes it again."""
    _workbook(settled).unlink()

    assert "recon workbook" in _verified(settled).problems[0]


def test_a_row_fewer_in_the_summary_is_found(settled: Any) -> None:
    """What the database counts of a result is bound by the event of its night."""
    counted = """replace(document, '"match": ', '"match": 9')"""
    _edit(settled, "UPDATE result_summary SET document = " + counted)  # noqa: S608 - a constant

    (problem,) = _verified(settled).problems
    assert problem.startswith("result summary ")


def test_an_edited_history_is_found(settled: Any) -> None:
    """A history changed past its triggers no longer closes."""
    _edit(
        settled,
        "DROP TRIGGER history_no_update",
        "UPDATE history SET event = 'nothing' WHERE sequence = 1",
    )

    assert "history 1" in _verified(settled).problems[0]


def test_what_is_wrong_beside_a_workbook_is_told_with_its_run(settled: Any) -> None:
    """The files that hold a large night's matches are part of what is verified."""
    workbook = _workbook(settled)
    changed = replace(UNREAD, beside=lambda path: [f"{path.name}: changed"])
    with settled.environment() as environment:
        told = verify(environment, reading=changed)
        one = verify(environment, reading=changed, workbook=workbook)

    assert [problem.endswith(f": {workbook.name}: changed") for problem in told.problems] == [True]
    assert one.problems == (f"{workbook.name}: changed",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "UPDATE history SET data = 'x' WHERE sequence = (SELECT max(sequence) FROM history)",
            "does not close",
        ),
        ("UPDATE history SET previous_hash = 'x' WHERE sequence = 1", ""),
    ],
    ids=["newest", "oldest"],
)
def test_a_night_walks_what_is_new_and_a_person_walks_it_all(
    settled: Any, change: str, words: str
) -> None:
    """The gate takes older links as an earlier night found them; `recon verify` never does."""
    _edit(settled, "DROP TRIGGER history_no_update", change)
    with settled.environment() as environment:
        with environment.store.reading() as connection:
            (run,) = runs.newest_of_accounts(connection)
        gate = gate_of(run, environment=environment)

    assert words in gate.closed_because
    assert bool(gate.closed_because) == bool(words)
    assert "does not close" in _verified(settled).problems[0]
