"""A signature has a folder of its own: the names, the answers and the copy, bound with the name."""

import json
import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from recon.model.errors import ArchiveError, UsageError
from recon.steps.admin.evidence import Span, write_evidence
from recon.steps.admin.verify import verify_night
from recon.steps.approvals.sign_off import NightToSign, file_to_sign, sign
from recon.steps.runtime.environment import named_accounts
from recon.steps.runtime.identity import identify
from recon.steps.runtime.night_folder import links
from recon.store.database.history import links_of
from recon.store.nights import sign_off_rows
from reports.reading.evidence_workbook import evidence_index
from reports.reading.signed_copy import signed_bytes, write_signed_copy
from tests.recon.steps.approvals.test_returned_answers import (
    Returned,
    newest_workbook,
    take,
    wrong_amounts,
)
from tests.recon.steps.approvals.test_sign_off import prove, signed
from tests.recon.steps.conftest import Merchant, run_folder

pytestmark = pytest.mark.xdist_group("signatures")

COMMAND = "from recon.cli import main; raise SystemExit(main())"


@pytest.fixture
def proven(begun):
    """A merchant with one night whose breaks are all small."""
    merchant: Merchant = begun(prove)
    return merchant


def wanted(environment, run_id, *, role="reviewer"):
    """The file that lies there now, to be signed."""
    return NightToSign(run_id, role, file_to_sign(run_id, environment=environment)[1])


def names_under(merchant, run_id):
    """The roles that signed, by the database; each has its link and its folder, or none has."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        roles = {*sign_off_rows.signatures(connection, run_id, desk=environment.desk)}
        steps = [link.step for link in links(connection, run_id) if link.step[:7] == "signed-"]
        events = [row.event for row in links_of(connection, [run_id], entity="endorsement")]
    assert sorted(steps) == sorted(f"signed-{role}" for role in roles)
    assert events == ["sign_off"] * len(roles)
    return roles


def problems(merchant, run_id):
    """What `recon verify RUN` says."""
    with merchant.environment() as environment:
        return verify_night(environment, name=run_id).problems


def evidence(merchant, out):
    """The faults that `recon verify --copy` names."""
    day = date(2026, 11, 20)
    with merchant.environment() as environment:
        span = Span(day, day, named_accounts(environment.settings, merchant="", account=""))
        done = write_evidence(span, out=out, drawn=evidence_index, environment=environment)
    return done.index.faults


def test_each_signature_has_its_names_its_answers_and_its_copy(proven, tmp_path):
    """Who signed, what had been answered to its breaks, and the copy that lies in the reports."""
    run_id = proven.newest().run_id
    for role, name, ending_of_copy in (
        ("reviewer", "dan", "reviewed"),
        ("approver", "anna", "approved"),
    ):
        night = signed(proven, run_id, role=role, name=name)
        folder = run_folder(proven) / f"signed-{role}"
        assert {path.name for path in folder.iterdir()} == {
            *("answers.jsonl", "manifest.json", "signatures.json", "workbook.xlsx")
        }
        under = json.loads((folder / "signatures.json").read_text())
        assert [(each["role"], each["by"]) for each in under] == [
            (each.role, each.by) for each in night.signed
        ]
        assert {each["workbook_sha256"] for each in under} == {night.workbook_sha256}
        beside = write_signed_copy(
            Path(night.workbook), signatures=night.signed, answers={}, timezone="Europe/London"
        )
        assert beside.stem.endswith(ending_of_copy)
        assert (folder / "workbook.xlsx").read_bytes() == beside.read_bytes()
    assert names_under(proven, run_id) == {"reviewer", "approver"}
    assert problems(proven, run_id) == ()
    assert evidence(proven, tmp_path / "out") == []
    copied = {path.name for path in (tmp_path / "out").rglob("signed-approver/*")}
    assert copied == {"answers.jsonl", "manifest.json", "signatures.json", "workbook.xlsx"}


@pytest.mark.process
@pytest.mark.parametrize("point", ["archived a manifest:1", "signed off:1"])
def test_a_process_that_is_killed_signs_nothing(proven, point):
    """The command itself, ended by the system between its folder and the end of its transaction."""
    run_id = proven.newest().run_id
    command = ["sign-off", run_id, "--role", "reviewer", "--as", "dan"]

    def played(**variables):
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *command],
            env={**os.environ, **proven.variables, **variables},
            capture_output=True,
            check=False,
        ).returncode

    assert played(RECON_CRASH_AT=point) == -signal.SIGKILL
    assert names_under(proven, run_id) == set()
    assert played() == 0
    assert names_under(proven, run_id) == {"reviewer"}
    assert problems(proven, run_id) == ()


def test_an_archive_that_cannot_be_written_takes_no_name(proven):
    """The sentence says that nobody signed and what to do."""
    run_id = proven.newest().run_id
    folder = run_folder(proven)
    (folder / "signed-reviewer").write_text("no folder")
    with pytest.raises(ArchiveError, match=r"nobody's name was put .* then sign again"):
        signed(proven, run_id, role="reviewer", name="dan")
    assert names_under(proven, run_id) == set()
    (folder / "signed-reviewer").unlink()
    signed(proven, run_id, role="reviewer", name="dan")
    assert names_under(proven, run_id) == {"reviewer"}


@pytest.mark.parametrize("name", ["answers.jsonl", "signatures.json", "workbook.xlsx"])
def test_a_folder_that_was_changed_is_named(proven, tmp_path, name):
    """By verification and by the evidence, whichever of its files it is."""
    run_id = proven.newest().run_id
    signed(proven, run_id, role="reviewer", name="dan")
    path = run_folder(proven) / "signed-reviewer" / name
    path.write_bytes(path.read_bytes() + b" ")
    assert f"signed-reviewer/{name} has" in "".join(problems(proven, run_id))
    assert f"signed-reviewer/{name} has" in "".join(evidence(proven, tmp_path / "out"))


def answered(merchant, *rows):
    """Jo answers these breaks of the newest workbook; the run that it is of."""
    back = Returned(newest_workbook(merchant))
    for row in rows:
        back.answer("Order corrected", row=row)
    path = back.save(f"answered-{rows[0]}.xlsx")
    run_id = take(merchant, path).run_id
    path.unlink()
    return run_id


def test_the_answers_to_the_breaks_of_the_night_are_kept(begun):
    """One line a break that was answered: its key, what was said, and whose word it is."""
    merchant: Merchant = begun(wrong_amounts)
    run_id = answered(merchant, 0, 1)
    signed(merchant, run_id, role="reviewer", name="kim")
    lines = (run_folder(merchant) / "signed-reviewer" / "answers.jsonl").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert len({each["break_id"] for each in kept}) == 2
    assert {(each["answer"]["resolution"], each["by"]) for each in kept} == {
        ("Order corrected", "Jo Hill")
    }


def test_what_is_answered_while_somebody_signs_is_looked_at_first(begun):
    """A name never stands under answers that its folder does not have."""
    merchant: Merchant = begun(wrong_amounts)
    run_id = answered(merchant, 0, 1)

    def beside(content, **more):
        answered(merchant, 2)
        return signed_bytes(content, **more)

    with merchant.environment() as environment:
        kim = identify("kim", code=None, environment=environment)
        with pytest.raises(UsageError, match="answered or signed at the same time"):
            sign(wanted(environment, run_id), person=kim, copy=beside)
    assert names_under(merchant, run_id) == set()
    assert problems(merchant, run_id) == ()
