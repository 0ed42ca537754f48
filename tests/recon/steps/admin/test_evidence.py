"""What an auditor takes away proves itself, and whatever is the matter with it is named."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import openpyxl
import pytest
from cryptography.fernet import Fernet

from recon import cli
from recon.desk.endorsement import Kind
from recon.model.errors import FolderError, UsageError
from recon.privacy.card_numbers import holds_card
from recon.steps.admin.evidence import Span, write_evidence
from recon.steps.runtime.environment import named_accounts
from recon.store.database import history
from recon.store.nights import runs
from reports.reading.evidence_workbook import evidence_index
from tests.recon.resting import resting
from tests.recon.steps.admin.test_old_nights import (
    BROKEN,
    NEWEST,
    deleted,
    files_of,
    is_what_is_stored,
    night_folder,
    play_year,
)
from tests.recon.steps.conftest import ACCOUNT, BUSINESS_DATE, MERCHANT, archive_of
from tests.recon.steps.runtime.test_night_folder import edit
from tests.recon.store import decided

pytestmark = pytest.mark.xdist_group("closes")
DAYS = (date(2026, 11, 1), date(2026, 11, 30))
HASH = re.compile(r"\b[0-9a-f]{64}\b")
CARD, SECRET = "4000056655665556", "JBSWY3DPEHPK3PXPCANARY"

SEAL_KEY = Fernet.generate_key().decode()


@pytest.fixture
def aged(begun):
    """Three nights of a closed November, the first of which was let go; one of December."""
    merchant = begun(play_year)
    deleted(merchant)
    return merchant


def copied(merchant, out, *, days=DAYS, account="", crash_point=lambda _: None, **variables):
    """`recon verify --copy --from 2026-11-01 --to 2026-11-30 --out DIR`."""
    with merchant.environment(**variables) as opened:
        environment = replace(opened, crash_point=crash_point)
        span = Span(*days, named_accounts(environment.settings, merchant="", account=account))
        return write_evidence(span, out=out, drawn=evidence_index, environment=environment)


def asked(folder, script):
    """The answers of a script that is run in a folder, as `duckdb < script` gives them."""
    with chdir(folder), duckdb.connect() as connection:
        statements = connection.extract_statements((folder / script).read_text())
        answers = (connection.execute(each).fetchall() for each in statements)
        return [
            rows
            for each, rows in zip(statements, answers, strict=True)
            if "SELECT" in each.type.name
        ]


def is_summed(folder):
    """Whether `sha256sum -c --quiet files.sha256` is content."""
    checked = subprocess.run(
        ["sha256sum", "-c", "--quiet", "files.sha256"],
        cwd=folder,
        check=False,
        capture_output=True,
    )
    return checked.returncode == 0


def sheets(folder):
    book = openpyxl.load_workbook(folder / "index.xlsx")
    return {
        sheet.title: [
            row for row in sheet.iter_rows(min_row=5, values_only=True) if row[0] != "None."
        ]
        for sheet in book
    }


def state_of(merchant):
    root = Path(archive_of(merchant).shown)
    with merchant.environment() as environment, environment.store.reading() as connection:
        head = history.head(connection)
    return {name: (root / name).stat().st_mtime_ns for name in files_of(root)} | {"": head}


def test_the_folder_proves_itself_without_anything_of_ours(aged, tmp_path):
    """Sums, the chain, each night's figures and the close; the manifest names every file."""
    out, before = tmp_path / "out", state_of(aged)
    written = copied(aged, out)

    assert state_of(aged) == before
    assert written.index.faults == []
    document = json.loads((out / "manifest.json").read_text())
    named = {each["name"]: each for each in document["files"]}
    assert {*named, "manifest.json"} == files_of(out)
    for name, entry in named.items():
        content = (out / name).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
    assert hashlib.sha256((out / "manifest.json").read_bytes()).hexdigest() == written.manifest
    assert is_summed(out)
    problems, (head,) = asked(out, "history.sql")
    with aged.environment() as environment, environment.store.reading() as connection:
        newest = history.head(connection)
    assert (problems, head[2:4]) == ([], (newest.sequence, newest.hash))
    for day in (BROKEN, "2026-11-30"):
        (night,) = out.glob(f"nights/{MERCHANT}/{ACCOUNT}/{day}/*")
        assert files_of(night) == files_of(night_folder(aged, day))
        *_, ((*_, verdict),) = asked(night, "proof/verify.sql")
        assert verdict == "PROVEN"
    (gone,) = out.glob(f"nights/{MERCHANT}/{ACCOUNT}/{BUSINESS_DATE}/*")
    assert is_what_is_stored(files_of(gone))
    assert not [*out.glob(f"nights/*/*/{NEWEST}")]
    assert (out / f"periods/{MERCHANT}/{ACCOUNT}/2026-11/close-1/manifest.json").is_file()


DUCKDB = """#!{python}
import sys
import duckdb
with duckdb.connect() as connection:
    for statement in connection.extract_statements(sys.stdin.read()):
        rows = connection.execute(statement).fetchall()
        if "SELECT" in statement.type.name:
            print(rows)
"""
"""As much of the program duckdb as the scripts need, by its library."""


def test_the_commands_of_the_readme_do_what_it_says(aged, tmp_path):
    """As whoever has the folder types them: sums say nothing, each kept night is PROVEN."""
    copied(aged, tmp_path / "out")
    program = tmp_path / "bin" / "duckdb"
    program.parent.mkdir()
    program.write_text(DUCKDB.format(python=sys.executable))
    program.chmod(0o700)
    lines = (tmp_path / "out" / "README.txt").read_text().splitlines()
    commands = "\n".join(line for line in lines if line.startswith("     "))

    ran = subprocess.run(
        ["sh", "-c", commands],
        cwd=tmp_path / "out",
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )

    problems, head, *nights = ran.stdout.splitlines()
    with aged.environment() as environment, environment.store.reading() as connection:
        assert history.head(connection).hash in head
    assert problems == "[]"
    assert [line.startswith("nights/") for line in nights].count(True) == 3
    assert [line.split("'")[-2] for line in nights if "PROVEN" in line] == ["PROVEN"] * 2
    assert "verify.sql" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1  # of the night that was let go

    (path,) = (tmp_path / "out").glob(f"nights/*/*/{BROKEN}/*/results/breaks.parquet")
    path.write_bytes(path.read_bytes() + b"x")
    assert not is_summed(tmp_path / "out")


def test_the_index_has_a_row_a_night_what_went_and_who_said_what(aged, tmp_path):
    written = copied(aged, tmp_path / "out", account=f"{MERCHANT}/{ACCOUNT}")

    shown = sheets(tmp_path / "out")
    assert [f"{row[0]:%Y-%m-%d}" for row in shown["Nights"]] == [
        BUSINESS_DATE,
        BROKEN,
        "2026-11-30",
    ]
    night = written.index.nights[1]
    row = shown["Nights"][1]
    assert (row[5], row[10], row[12]) == (night.run.verdict, "none", night.run.run_id)
    assert all(sha256 in row[14] for sha256 in night.copy.manifests.values())
    assert len(night.copy.manifests) >= 5
    book = openpyxl.load_workbook(tmp_path / "out" / "index.xlsx")
    link = book["Nights"].cell(row=7, column=12).hyperlink
    assert (tmp_path / "out" / str(link.target)).is_file()
    assert len(shown["Totals"]) == sum(len(each.totals) for each in written.index.nights)
    assert [row[3] for row in shown["Let go"]] == ["Otto Ops"]
    assert {row[0] for row in shown["People"]} >= {"Anna Berg", "Dan Orr"}
    assert any("Anna Berg" in row[2] and row[4] == "period" for row in shown["Words"])
    assert [row[0] for row in shown["Closes"]] == ["2026-11"]


def test_the_release_of_a_night_is_among_the_links(aged, tmp_path):
    """Also where it is the last word on these nights, and nights of later came after it."""
    with aged.environment() as environment:
        at = environment.clock()
        with environment.store.writing() as connection:
            (run_id, *_) = (
                run.run_id for run in runs.finished(connection) if f"{run.business_date}" == BROKEN
            )
            about, says = (Kind.RELEASE, run_id, "Jo Ahn", "Kim Bell"), {"reason": "looked at"}
            decided.said(connection, *about, at=at, says=says)
            history.append(connection, [history.Event("run", "later", "started", {})], at=at)

    written = copied(aged, tmp_path / "out")

    by = {
        each["by"].partition(" (")[0]
        for each in written.index.statements
        if each["entity_id"] == run_id
    }
    assert by >= {"Jo Ahn", "Kim Bell"}


def _line_out(path):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))


def _reported_otherwise(path):
    path.write_text(path.read_text().replace('"started"', '"stopped"', 1))


def _swapped(path):
    path.write_bytes(path.read_bytes() + b" ")


def _added(path):
    path.with_name("more.parquet").write_bytes(b"x")


def summed_anew(folder):
    """The list of sums as somebody makes it who would hide what was changed."""
    names = sorted(files_of(folder) - {"files.sha256", "manifest.json"})
    sums = ((hashlib.sha256((folder / name).read_bytes()).hexdigest(), name) for name in names)
    (folder / "files.sha256").write_text("".join(f"{sha256}  {name}\n" for sha256, name in sums))


NIGHT = f"nights/*/*/{BROKEN}/*"


@pytest.mark.parametrize(
    ("pattern", "change", "problem"),
    [
        ("history.jsonl", _reported_otherwise, "does not close with its own hash"),
        (f"{NIGHT}/results/manifest.json", _swapped, "no link binds its manifest"),
        ("history.jsonl", _line_out, "the link before it is not in this folder"),
        (f"nights/*/*/{BROKEN}", shutil.rmtree, "proof: its manifest is not in this folder"),
        ("periods/*/*/*", shutil.rmtree, "close-1: its manifest is not in this folder"),
        (f"{NIGHT}/proof/workbook.xlsx", _swapped, "it is not the file that its manifest names"),
        (f"{NIGHT}/proof/rules.json", _swapped, "it is not the file that its manifest names"),
        ("periods/*/*/*/*/close.json", _swapped, "it is not the file that its manifest names"),
        ("periods/*/*/*/*/manifest.json", _swapped, "no link binds its manifest"),
        (f"{NIGHT}/results/journals.parquet", Path.unlink, "and it is not in this folder"),
        (f"{NIGHT}/results/journals.parquet", _added, "more.parquet: nobody sealed it"),
        ("facts/*/*/*/*.parquet", _swapped, "it is not the file that its name says"),
    ],
)
def test_what_was_changed_under_sums_made_anew_is_found_by_the_links(
    pattern, change, problem, aged, tmp_path
):
    """Who hands the folder over can make its list of sums anew, and not what the history binds."""
    copied(aged, tmp_path / "out")
    change(next((tmp_path / "out").glob(pattern)))
    summed_anew(tmp_path / "out")

    assert is_summed(tmp_path / "out")
    problems = [str(row[1]) for row in asked(tmp_path / "out", "history.sql")[0]]
    assert any(problem in each for each in problems), problems


def test_a_file_that_the_sums_do_not_name_is_found(aged, tmp_path):
    copied(aged, tmp_path / "out")
    _added(next((tmp_path / "out").glob(f"{NIGHT}/results/journals.parquet")))

    assert is_summed(tmp_path / "out")
    ((_, problem),) = asked(tmp_path / "out", "history.sql")[0]
    assert problem.endswith("more.parquet: files.sha256 does not name it")


@pytest.mark.parametrize("change", ["flipped", "gone", "added", "folder"])
def test_a_night_that_does_not_verify_is_copied_with_its_fault_named(
    change, aged, tmp_path, monkeypatch
):
    folder = night_folder(aged, BROKEN)
    path = folder / "results" / "breaks.parquet"
    match change:
        case "flipped":
            path.write_bytes(path.read_bytes()[:-1] + b"x")
        case "gone":
            path.unlink()
        case "added":
            path = folder / "results" / "more.parquet"
            path.write_bytes(b"x")
        case _:
            path = folder / "results" / "manifest.json"
            path.write_text(path.read_text() + " ")
    for name, value in aged.variables.items():
        monkeypatch.setenv(name, value)

    out = tmp_path / "out"
    days = ["--from", "2026-11-01", "--to", "2026-11-30"]
    assert cli.main(["verify", "--copy", *days, "--out", str(out)]) == 1

    document = json.loads((out / "manifest.json").read_text())
    assert any(f"{BROKEN}/{folder.name}/results" in fault for fault in document["faults"])
    shown = sheets(out)["Nights"]
    assert [row[10] == "none" for row in shown] == [True, False, True]
    copy = out / path.relative_to(Path(archive_of(aged).shown))
    assert copy.is_file() == path.is_file()
    assert is_summed(out)


@pytest.mark.parametrize(
    "rules", ["UPDATE rules_version SET document = '1'", "DELETE FROM rules_version"]
)
def test_what_was_changed_in_the_database_is_shown_as_the_nights_sealed_it(rules, aged, tmp_path):
    """Totals and rules are those of the folders, which the history binds."""
    copied(aged, tmp_path / "before")
    edit(aged, 'UPDATE control_total SET "left" = 77, "right" = 77', rules)

    written = copied(aged, tmp_path / "after")

    assert written.index.faults == []
    before, after = (sheets(tmp_path / name)["Totals"] for name in ("before", "after"))
    assert after == before
    assert len(after) > 30
    for night in written.index.nights:
        text = (tmp_path / "after" / night.copy.folder / "proof" / "rules.json").read_text()
        canonical = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(canonical.encode()).hexdigest() == night.rules_digest


def test_totals_and_rules_that_no_folder_has_as_sealed_are_refused_by_name(aged, tmp_path):
    """Never those of the database in their place."""
    edit(aged, "DELETE FROM rules_version")
    for night in Path(archive_of(aged).shown).glob("nights/*/*/2026-11-*/*"):
        for name in ("totals.parquet", "rules.json"):
            _swapped(night / "proof" / name)

    written = copied(aged, tmp_path / "out")

    assert sheets(tmp_path / "out")["Totals"] == []
    for night in written.index.nights:
        *faults, totals = night.copy.faults
        assert totals.startswith(f"run {night.run.run_id}: none of its control totals is shown: ")
        assert "proof/totals.parquet" in totals
        assert any("proof/rules.json has " in each for each in faults)


def test_a_close_that_does_not_verify_is_named(aged, tmp_path):
    (path,) = Path(archive_of(aged).shown).glob("periods/*/*/2026-11/close-1/close.json")
    path.write_text(path.read_text() + " ")

    (fault,) = copied(aged, tmp_path / "out").index.faults
    assert "close.json has " in fault


class EndedError(Exception):
    """The process ends here."""


@pytest.mark.parametrize("point", ["copied the nights", "copied all but the manifest"])
def test_a_copy_that_was_ended_half_way_has_no_manifest_and_says_so(point, aged, tmp_path):
    """A folder that has anything in it is never written to."""

    def ended(at):
        if at == point:
            raise EndedError

    with pytest.raises(EndedError):
        copied(aged, tmp_path / "out", crash_point=ended)
    before = files_of(tmp_path / "out")
    assert "manifest.json" not in before

    with pytest.raises(FolderError, match="was not finished"):
        copied(aged, tmp_path / "out")
    assert files_of(tmp_path / "out") == before


def test_a_folder_that_is_not_empty_and_days_without_a_night_write_nothing(aged, tmp_path):
    copied(aged, tmp_path / "out")
    with pytest.raises(FolderError, match="is not empty; nothing was written"):
        copied(aged, tmp_path / "out")
    with pytest.raises(UsageError, match="no night is finished"):
        copied(aged, tmp_path / "other", days=(date(2025, 1, 1), date(2025, 1, 2)))
    with pytest.raises(UsageError, match="no declared account is 1/2"):
        copied(aged, tmp_path / "other", account="1/2")
    assert not (tmp_path / "other").exists()


def test_no_secret_and_no_card_number_is_in_any_file(merchant, tmp_path):
    """Neither of the environment nor of the people nor of a row that was refused."""
    people = merchant.folder / "config" / "approvers.toml"
    people.write_text('[approvers.cy]\nname = "Cy"\ncode_secret_env = "CODE"\n')
    merchant.variables |= {"CODE": SECRET, "RECON_SEAL_KEY": SEAL_KEY}
    payment = merchant.payments("authorised")[0]
    rows = [merchant.order(payment), merchant.order(payment, order_no=CARD)]
    merchant.drop("orders.csv", *rows)
    merchant.night()
    copied(merchant, tmp_path / "out")

    for place, text in resting(tmp_path / "out"):
        for secret in (SECRET, CARD, SEAL_KEY):
            assert secret.encode() not in text, place
        if place.endswith((".json", ".jsonl", ".gz:lines", ".txt", ".sql")):
            # Of the digits of a hash one run in some thousands has a check digit by chance.
            assert not holds_card(HASH.sub("", text.decode())), place
