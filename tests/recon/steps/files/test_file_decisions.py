"""What people say of files: read it again after a corrected layout, or let a stray one go."""

from dataclasses import replace

import pyotp
import pytest
from pydantic import SecretStr

from recon.acts import ActContext, DismissFile, submit
from recon.model.errors import UsageError
from recon.model.terms import Verdict
from recon.steps.admin.verify import verify
from recon.steps.files import file_decisions
from recon.steps.files.file_decisions import AGAIN, DISMISSED, FileDecision
from recon.steps.runtime.identity import speaker
from recon.store.database import history
from recon.store.nights import order_rows, runs
from reports.workbook_io import drawings
from tests.recon.steps.conftest import SECRETS, UNREAD

pytestmark = pytest.mark.xdist_group("a stray file")
"""They begin with one night, which is played once."""


PLACE = ("100042", "100042001")
LAYOUT = """
[[accounts."100042/100042001".layouts]]
files = "orders*.csv"
words = { status = { bezahlt = "paid", paid = "paid" } }
"""


def _echo(merchant, what, name, *, reason="the layout was wrong"):
    with merchant.environment() as environment:
        ann = speaker("Ann", code=None, environment=environment)
        decide = getattr(file_decisions, what)
        return decide(name, account=PLACE, person=ann, reason=reason)  # type: ignore[no-any-return] - one of two functions


def _files(merchant):
    with merchant.environment() as environment:
        return {
            one.source.name: one for one in file_decisions.files_of(PLACE, environment=environment)
        }


def _stray(merchant):
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:2]))
    stray = merchant.inbox / "notes.csv"
    stray.write_text("dear colleague;please look\n")
    return stray


def tampered(merchant):
    """The night of these, which lacks what it could not read."""
    _stray(merchant)
    assert merchant.night() is Verdict.INCOMPLETE


def test_a_file_is_read_again_after_its_layout_was_corrected(merchant):
    capture, paid = merchant.payments("authorised")[0], merchant.payments("captured")[0]
    rows = (
        merchant.order(paid, status="bezahlt"),
        merchant.order(capture, status="paid", action="capture"),
    )
    merchant.drop("orders.csv", *rows)
    merchant.night()
    refused = _files(merchant)["orders.csv"].source.rows_rejected
    merchant.configure("merchants.toml", LAYOUT)
    merchant.night()
    known = merchant.said("ingest")
    _echo(merchant, "read_again", "orders.csv")
    verdict = merchant.night()

    assert refused == 1
    assert "1 files were known already" in known
    assert "1 new order files with 2 rows accepted and 0 rejected" in merchant.said("ingest")
    assert verdict is not Verdict.INCOMPLETE
    assert [row["operation"] for row in merchant.effects()] == ["capture"]
    assert merchant.instruction_states() == {"confirmed": 1}


def test_a_stray_file_that_was_let_go_leaves_its_night_whole(begun):
    """INCOMPLETE until somebody says why it is no file of ours; the history keeps who and why."""
    merchant = begun(tampered)
    _echo(merchant, "dismiss", "notes.csv", reason="a colleague's note")
    verdict = merchant.night()

    assert verdict is not Verdict.INCOMPLETE
    assert "notes.csv was not read: somebody dismissed it" in merchant.said("ingest")
    word = _files(merchant)["notes.csv"].decision
    assert (word.data["by"], word.data["reason"]) == ("Ann", "a colleague's note")
    with merchant.environment() as environment, environment.store.reading() as connection:
        assert history.verify(connection)[1] == ""


def test_another_content_under_the_name_counts_again(begun):
    """Who lets a file go says nothing of the next one that bears its name."""
    merchant = begun(tampered)
    _echo(merchant, "dismiss", "notes.csv")
    (merchant.inbox / "notes.csv").write_text("something else that is no order file\n")

    assert merchant.night() is Verdict.INCOMPLETE


def test_an_expected_file_that_never_came_is_let_go(merchant):
    """Its night lacks it no longer; the next night expects its own."""
    declared = merchant.folder / "config" / "merchants.toml"
    expected = 'expected = [{ file = "x-{date}.csv", sender = "shop", expected_by = "01:00" }]\n'
    declared.write_text(declared.read_text() + expected)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    assert merchant.night() is Verdict.INCOMPLETE
    _echo(merchant, "dismiss", "x-2026-11-20.csv", reason="shop was closed")

    assert merchant.night() is not Verdict.INCOMPLETE


@pytest.mark.parametrize(
    ("what", "name", "reason", "words"),
    [
        ("dismiss", "orders.csv", "not ours", "only a file that was refused whole"),
        ("dismiss", "nothing.csv", "not ours", "no night of 100042/100042001 has met a file"),
        ("dismiss", "notes.csv", "because", "say why in words"),
        ("read_again", "notes.csv", " ", "say why in words"),
    ],
)
def test_a_word_that_does_not_fit_changes_nothing(begun, what, name, reason, words):
    """Rows that were taken cannot be let go; no file and no reason are no word."""
    merchant = begun(tampered)
    with pytest.raises(UsageError, match=words):
        _echo(merchant, what, name, reason=reason)
    assert all(one.decision is None for one in _files(merchant).values())


def test_where_people_are_declared_only_one_of_them_speaks_of_a_file(paying_merchant):
    """A free name, and a declared one without its code, change nothing; the code counts."""
    _stray(paying_merchant)
    paying_merchant.night()
    which = {"merchant_id": PLACE[0], "account_id": PLACE[1]}
    word = DismissFile(file="notes.csv", reason="a colleague's note", **which)
    with paying_merchant.environment() as environment:
        here = ActContext(environment, drawings)
        for name, code, why in (
            ("Ann", None, "approvers.toml declares no 'Ann'"),
            ("anna", None, "proves to be anna with the current one-time code"),
            ("anna", SecretStr("000000"), "the code of anna is not right"),
        ):
            with pytest.raises(UsageError, match=why):
                submit(word, who=(name, code), context=here)
        assert all(one.decision is None for one in _files(paying_merchant).values())
        right = SecretStr(pyotp.TOTP(SECRETS["anna"]).at(int(paying_merchant.now.timestamp())))
        submit(word, who=("Anna", right), context=here)
    noted = _files(paying_merchant)["notes.csv"].decision
    assert noted.data["by"] == "anna"


def _forge(merchant, file, *, said, reason):
    """A word in the history that the desk did not sign; a version of no row for one that went."""
    with merchant.environment() as environment, environment.store.writing() as connection:
        file_id = file.file_id
        if said == DISMISSED:
            run = runs.get(connection, file.run_id)
            nothing = replace(file.source, sha256="0" * 64, rows_read=0, rows_rejected=0)
            file_id = order_rows.insert_file(connection, run, source=nothing, at=run.as_of)
        about = (file.source.sha256, "/".join(PLACE), file.source.name)
        word = FileDecision(f"file-{file_id}", said, "Ann", reason, *about)
        file_decisions.record_decision(
            connection, word, at=environment.clock(), identity=file.source.sha256
        )


@pytest.mark.parametrize("event", [AGAIN, DISMISSED])
def test_a_word_that_the_desk_did_not_sign_is_none(begun, event):
    """With the night's login alone no file is read again and none is let go; verify names it."""
    merchant = begun(tampered)
    known = _files(merchant)
    name = "orders.csv" if event == AGAIN else "notes.csv"
    _forge(merchant, known[name], said=event, reason="for me")
    verdict = merchant.night()
    assert verdict is Verdict.INCOMPLETE
    assert "1 files were known already" in merchant.said("ingest")
    with merchant.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems
    assert [one for one in problems if f"file {name} counts as {event} by Ann" in one]


def test_a_word_counts_once_and_for_its_version_alone(merchant):
    """Said again in the history for a newer version, the same words count for nothing."""
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()
    _echo(merchant, "read_again", "orders.csv")
    merchant.night()
    newer = _files(merchant)["orders.csv"]
    assert newer.version == 2
    merchant.night()
    assert "1 files were known already" in merchant.said("ingest")
    _forge(merchant, newer, said=AGAIN, reason="the layout was wrong")
    merchant.night()
    assert "1 files were known already" in merchant.said("ingest")
