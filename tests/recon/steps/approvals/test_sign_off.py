import hashlib
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from recon.desk.endorsement import Kind
from recon.model.errors import OutputError, UsageError
from recon.model.nights import FINISH
from recon.model.terms import DIGITS_READ
from recon.steps.approvals.sign_off import file_to_sign, nights, to_sign
from recon.steps.approvals.verdicts import decisions_taken_back
from recon.steps.money.gate import stop_sending
from recon.steps.night.report import Workbooks, rebuild
from recon.steps.night.whole_night import run
from recon.steps.runtime.identity import identify
from recon.store.database.history import Event, append, links_of
from recon.store.nights import runs
from recon.store.schema import endorsement
from reports.workbook_io import workbooks
from tests.recon.steps.people import declared
from tests.recon.steps.signing import desk_with_keys, sign_seen
from tests.recon.store import decided

pytestmark = pytest.mark.xdist_group("signatures")
"""They share what takes longer to make than to look at."""

PEOPLE = declared(anna="Anna Berg", ben="Ben Roy") + declared(dan="Dan Orr", role="reviewer")
DAY = date(2026, 11, 20)


def prove(merchant):
    """One night whose breaks are all small."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + "\n[authorisation]\nvalid_days = 365\n")
    merchant.night(workbooks=workbooks())


@pytest.fixture
def proven(begun):
    """A merchant with one night whose breaks are all small."""
    return begun(prove)


def seen_by(merchant, run_id):
    """SHA-256 of the workbook that lies there now."""
    with merchant.environment() as environment:
        return file_to_sign(run_id, environment=environment)[1]


def signed(merchant, run_id, *, role, name, seen=""):
    """One signature, of the file that lies there now unless another was looked at."""
    with merchant.environment() as environment:
        person = identify(name, code=None, environment=environment)
        return sign_seen(run_id, role=role, person=person, environment=environment, seen=seen)


def listed(merchant, *, days=1):
    """The nights up to the one that ran."""
    with merchant.environment() as environment:
        return nights(DAY - timedelta(days=days - 1), last=DAY, environment=environment)


def test_a_reviewer_then_an_approver_sign_the_workbook(proven):
    """Two different people, in this order; a workbook written later takes no name over."""
    run_id = proven.newest().run_id
    signed(proven, run_id, role="reviewer", name="dan")
    night = signed(proven, run_id, role="approver", name="anna")
    with proven.environment() as environment, environment.store.reading() as connection:
        events = [row.event for row in links_of(connection, [run_id], entity="endorsement")]

    assert [(one.role, one.by) for one in night.signed] == [
        ("reviewer", "Dan Orr"),
        ("approver", "Anna Berg"),
    ]
    assert night.unsigned_days == 0
    assert events == ["sign_off", "sign_off"]
    with proven.environment() as environment:
        stop_sending(by="Anna", reason="a note for page one", environment=environment)
        later = rebuild(run_id, environment=environment, workbooks=workbooks())
    (after,) = listed(proven)
    assert later.name.endswith("-v2.xlsx")
    assert (after.workbook, len(after.signed)) == (night.workbook, 2)


def test_a_role_that_there_is_not_is_told(proven):
    """The desk's own form refuses it before; no command comes so far."""
    with pytest.raises(UsageError, match="a role is one of"):
        signed(proven, proven.newest().run_id, role="preparer", name="anna")


def test_a_changed_workbook_cannot_be_signed(proven):
    """What is signed is the file that the run wrote."""
    (path,) = proven.folder.joinpath("reports").glob("reconciliation-*.xlsx")
    path.write_bytes(path.read_bytes() + b" ")

    with pytest.raises(UsageError, match="is not the file that run"):
        signed(proven, proven.newest().run_id, role="reviewer", name="dan")


def test_an_earlier_night_that_ends_after_the_signature_voids_it(proven):
    """What counts is when a night came to its end: it had begun, and stopped, before the name."""

    def full(*_):
        raise OSError(28, "No space left on device")

    first, earlier = (
        proven.newest().run_id,
        replace(proven.request, business_date=DAY - timedelta(days=1)),
    )
    with pytest.raises(OutputError, match="No space left"):
        proven.night(date=f"{earlier.business_date}", workbooks=Workbooks(write=full, totals=full))
    signed(proven, first, role="reviewer", name="dan")
    with proven.environment() as environment:
        back = run(
            earlier,
            environment=environment,
            workbooks=workbooks(),
            progress=lambda _: None,
            plan=FINISH,
        ).run_id

    (night,) = listed(proven)
    assert (night.run_id, night.signed) == (first, ())
    assert night.void_because == f"run {back} replaced it"


def test_a_workbook_that_was_swapped_since_somebody_looked_is_not_signed(proven):
    """A name stands under the bytes that its person saw, not under those that lie there later."""
    run_id = proven.newest().run_id
    before = seen_by(proven, run_id)
    with proven.environment() as environment:
        stop_sending(by="Anna", reason="a note for page one", environment=environment)
        rebuild(run_id, environment=environment, workbooks=workbooks())
    with pytest.raises(UsageError, match="not the file that you looked at"):
        signed(proven, run_id, role="reviewer", name="dan", seen=before)
    now = seen_by(proven, run_id)
    with pytest.raises(UsageError, match="the first 16 digits of its SHA-256"):
        signed(proven, run_id, role="reviewer", name="dan", seen=now[: DIGITS_READ - 1])
    night = signed(proven, run_id, role="reviewer", name="dan", seen=now[:DIGITS_READ])
    assert [one.workbook_sha256 for one in night.signed] == [now]


def test_a_workbook_that_the_history_does_not_know_is_not_signed(proven):
    """Who may write the run's row and its file could show people anything."""
    run_id = proven.newest().run_id
    with proven.environment() as environment:
        with environment.store.reading() as connection:
            path = Path(runs.get(connection, run_id).workbook)
        path.write_bytes(b"forged")
        forged = {"workbook_sha256": hashlib.sha256(b"forged").hexdigest()}
        with environment.store.writing() as connection:
            runs.note_result(connection, run_id, values=forged)
    with pytest.raises(UsageError, match="its workbook sha256 is another one"):
        signed(proven, run_id, role="reviewer", name="dan")


def test_a_name_that_an_old_key_signed_can_be_taken_back(proven, tmp_path):
    """It stands under the night after the desk got a new key; else nobody could sign again."""
    proven.variables |= desk_with_keys(tmp_path / "old")
    signed(proven, proven.newest().run_id, role="reviewer", name="dan")
    proven.variables |= desk_with_keys(tmp_path / "new")
    with proven.environment() as environment:
        person = identify("dan", code=None, environment=environment)
        decisions_taken_back(proven.newest().run_id, person=person)
    again = signed(proven, proven.newest().run_id, role="reviewer", name="dan")

    assert [each.role for each in again.signed] == ["reviewer"]


@pytest.mark.parametrize(
    ("is_noted", "number"), [(False, 1), (True, 1), (True, 0)], ids=["row", "link", "number 0"]
)
def test_a_name_that_the_desk_did_not_sign_stands_under_no_night(proven, is_noted, number):
    """A well-formed row without the desk's signature, also where the history was given its link.

    Numbers begin with 1: one below would be older than all that the desk signed.
    """
    run_id = proven.newest().run_id
    with proven.environment() as environment, environment.store.writing() as connection:
        at, digest = environment.clock(), runs.get(connection, run_id).workbook_sha256
        says = {"role": "reviewer", "workbook_sha256": digest}
        decided.said(connection, Kind.SIGN_OFF, run_id, "Dan Orr", at=at, says=says)
        key = connection.scalar(select(endorsement.c.key_id)) if number else "ab" * 8
        text = connection.scalar(select(endorsement.c.document))
        text = text.replace('"sequence":1', f'"sequence":{number}')
        forged = {"sequence": number, "key_id": key, "document": text, "signature": "00" * 64}
        if is_noted:
            (link,) = links_of(connection, [run_id], entity="endorsement")
            sha256 = hashlib.sha256(b"00" * 64).hexdigest()
            linked = {**link.data, "number": number, "key": key, "sha256": sha256}
            append(connection, [Event("endorsement", run_id, "sign_off", linked)], at=at)
    proven.as_owner(update(endorsement).values(forged))
    with proven.environment() as environment:
        told = to_sign(run_id, environment=environment)
    (night,) = listed(proven)

    assert night.signed == ()
    assert "as reviewer and approver" in told


@pytest.mark.parametrize("is_forged", [False, True])
def test_a_name_of_an_old_key_stands_if_the_history_has_it(proven, tmp_path, *, is_forged):
    """After the desk got a new key, a name that was signed before still stands; a forged one no."""
    proven.variables |= desk_with_keys(tmp_path / "old")
    signed(proven, proven.newest().run_id, role="reviewer", name="dan")
    if is_forged:
        proven.as_owner(update(endorsement).values(signature="00" * 64))
    proven.variables |= desk_with_keys(tmp_path / "new")
    (night,) = listed(proven)

    assert [each.by for each in night.signed] == ([] if is_forged else ["Dan Orr"])
