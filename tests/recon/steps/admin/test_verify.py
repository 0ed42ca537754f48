"""`recon verify` names each word of people that the desk did not sign."""

import io
import json
import re
import shutil
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest
from sqlalchemy import insert

from recon.model.nights import Mode
from recon.steps.admin.verify import unendorsed, verify
from recon.steps.money.gate import gate_of
from recon.store.database.history import Event, append
from recon.store.money.case_rows import DECIDED
from recon.store.nights import runs
from recon.store.schema import contradiction
from reports.workbook_io import reading, workbooks
from tests.recon.steps.conftest import (
    BUSINESS_DATE,
    UNREAD,
    archive_of,
    capture,
    checked,
    run_folder,
)

pytestmark = pytest.mark.xdist_group("verification")
"""They share what takes longer to make than to look at."""


def play(merchant):
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:3]))
    merchant.night()


@pytest.fixture
def settled(begun):
    return begun(play)


def _workbook(settled):
    (path,) = (settled.folder / "reports").glob("*.xlsx")
    return Path(path)


def _edit(merchant, *statements):
    path = merchant.sqlite_path
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_workbook_lies_where_the_reports_folder_is_now(settled):
    """Whoever moves an installation has every workbook still; another file of its name is none."""
    workbook = _workbook(settled)
    _edit(settled, "UPDATE run SET workbook = replace(workbook, '/reports/', '/before/')")
    assert checked(settled).problems == ()

    workbook.write_bytes(workbook.read_bytes() + b"x")
    (problem,) = checked(settled).problems
    assert problem.endswith(f"{workbook} is not the workbook that was written that night")
    assert "edited" in checked(settled, workbook=workbook).problems[0]

    workbook.unlink()
    assert "recon workbook" in checked(settled).problems[0]


def _without(content, *, pattern, new, sheet="sheet2.xml"):
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


def test_a_planted_value_and_a_planted_row_are_named(merchant):
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
        told[name] = checked(merchant, workbook=workbook, reading=reading()).problems

    assert told["value"][0].endswith("wrote: 1 differences")
    assert re.fullmatch(r"Breaks!C5 says 99, the night says -?[0-9.]+", told["value"][1])
    assert re.fullmatch(r"Breaks lacks the row of the break [0-9a-f]{16}", told["row"][1])
    assert told["saved"] == told["own"] == ()


def test_a_copy_says_what_it_was_held_against_and_where_the_sealed_file_lies(merchant):
    """The file itself, a copy of the same cells, one that another program saved, a lost file."""
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:3]))
    merchant.night(workbooks=workbooks())
    (sealed,) = (merchant.folder / "reports").glob("*.xlsx")
    copy, bare = (merchant.folder / name for name in ("copy.xlsx", "bare.xlsx"))
    copy.write_bytes(_without(sealed.read_bytes(), pattern=r'<row r="5"', new=' <row r="5"'))
    openpyxl.load_workbook(sealed).save(bare)
    own, alike, without = (
        checked(merchant, workbook=path, reading=reading()) for path in (sealed, copy, bare)
    )
    with sealed.open("ab") as file:
        file.write(b" ")
    gone = checked(merchant, workbook=copy, reading=reading())

    assert own.compared.startswith(f"{sealed} is the file that run ")
    assert f"with the sealed file {sealed}, which is the one to keep and sign" in alike.compared
    assert alike.compared.endswith(": they say the same")
    assert own.problems == alike.problems == gone.problems == ()
    assert f"({sealed} is gone or was changed: `recon workbook " in gone.compared
    assert f"with the sealed file {sealed}" in without.compared
    assert without.problems == ()


def test_a_row_fewer_in_the_summary_is_found(settled):
    """What the database counts of a result is bound by the event of its night."""
    counted = """replace(document, '"match": ', '"match": 9')"""
    _edit(settled, "UPDATE result_summary SET document = " + counted)  # noqa: S608 - a constant

    (problem,) = checked(settled).problems
    assert problem.startswith("result summary ")


def test_what_is_wrong_beside_a_workbook_is_told_with_its_run(settled):
    workbook = _workbook(settled)
    changed = replace(UNREAD, companions=lambda path: [f"{path.name}: changed"])
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
def test_a_night_walks_what_is_new_and_a_person_walks_it_all(settled, change, words):
    """The gate takes older links as an earlier night found them; `recon verify` never does."""
    _edit(settled, "DROP TRIGGER history_no_update", change)
    with settled.environment() as environment:
        with environment.store.reading() as connection:
            (run,) = runs.newest_of_accounts(connection)
        gate = gate_of(run, environment=environment)

    assert words in gate.closed_because
    assert bool(gate.closed_because) == bool(words)
    assert "does not close" in checked(settled).problems[0]


def played(merchant):
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)


def _flip(folder):
    path = folder / "results" / "breaks.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _edit_manifest(folder):
    path = folder / "results" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rules_digest": "0" * 64}))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_flip, "results/breaks.parquet is not the file that was sealed"),
        (_edit_manifest, "results/manifest.json of the archive"),
        (lambda night: night.rename(f"{night}-moved"), "inputs/manifest.json of the archive"),
        (shutil.rmtree, "put it back from a backup of the archive"),
        (
            lambda night: (night / "note.txt").write_text("mine"),
            "/note.txt lies there, and nobody sealed it",
        ),
        (
            lambda night: shutil.copytree(night / "results", night / "more"),
            "/more/manifest.json lies there, and nobody sealed it",
        ),
    ],
    ids=["a file", "a manifest", "moved", "gone", "a file more", "a step more"],
)
def test_whatever_happens_to_a_sealed_night_is_found_and_named(change, named, begun):
    merchant = begun(played)
    assert checked(merchant, BUSINESS_DATE).problems == ()
    assert checked(merchant).problems == ()

    change(run_folder(merchant))

    problems = checked(merchant, BUSINESS_DATE).problems
    assert any(named in problem for problem in problems), problems


def test_a_database_from_before_the_night_does_not_know_its_folder(begun):
    """The archive remembers what a restored database forgot."""
    merchant = begun(played)
    database = merchant.sqlite_path
    older = database.with_suffix(".older")
    shutil.copy(database, older)
    merchant.night(mode=Mode.DRY_RUN)
    folder = run_folder(merchant)
    for path in database.parent.glob(f"{database.name}-*"):
        path.unlink()
    shutil.copy(older, database)

    problems = checked(merchant).problems
    assert any(folder.name in one and "is older than the archive" in one for one in problems), (
        problems
    )


def test_an_archive_that_cannot_be_reached_is_a_problem_and_no_crash(begun):
    """The rest is looked at all the same."""
    merchant = begun(played)
    root = Path(archive_of(merchant).shown)
    root.rename(root.with_name("elsewhere"))
    root.write_text("")

    assert any("archive" in problem for problem in checked(merchant).problems)


def test_a_decision_of_nobody_is_named(merchant):
    """A case that was closed, and a doubt that was decided, by two people whom no desk heard."""
    merchant.sqlite_path  # noqa: B018 - on PostgreSQL the night's login may not write there
    with merchant.environment() as environment, environment.store.writing() as connection:
        now = environment.clock()
        closed = {"instruction_id": "i1", "merchant_id": "1", "account_id": "2"}
        at = {"noted_at": now, "closed_at": now}
        connection.execute(insert(contradiction).values(**closed, **at, verdict="applied"))
        decided = Event("instruction", "i2", "resolved_applied", {DECIDED: "applied"})
        append(connection, [decided], at=now)
        told = unendorsed(connection, environment=environment)
    nobody = "counts as decided (applied), but the desk endorsed it for nobody"
    assert told == [f"instruction {each} {nobody}" for each in ("i1", "i2")]
