"""Two people close a month: what binds them, what is refused, and every point at which it ends."""

import json
import os
import shutil
import signal
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from functools import partial

import pytest

from flows.people import month_page
from recon.acts import ActContext, ReopenMonth, SignClose, submit
from recon.model.errors import NightHeldError, ReconError, UsageError
from recon.month import close as closed_view_module
from recon.month import signing as signed_closes
from recon.month.close import (
    PreparedClose,
    basis_of,
    closed_view,
    prepared_close,
    reviewed_close,
)
from recon.month.signing import MonthToSign, sign_close
from recon.steps.admin.verify import verify
from recon.steps.money.gate import ENTITY as DATABASE
from recon.steps.night import whole_night as night
from recon.steps.runtime.closed_folders import period_folder
from recon.steps.runtime.identity import identify
from recon.steps.runtime.night_folder import storage_at
from recon.store.database.history import Event, append
from recon.store.database.outside_heads import ACCEPTED_RESTORE
from recon.store.people import closed_months
from recon.store.people.closed_months import MonthState
from reports.month_workbook import close_workbook
from reports.workbook_io import drawings
from tests.recon.steps.approvals.test_sign_off import PEOPLE
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, UNREAD
from tests.recon.steps.month.test_month_closes import NOVEMBER, play

pytestmark = pytest.mark.xdist_group("closes")
"""They share a month that takes longer to make than to look at."""
OWN = (MERCHANT, ACCOUNT)
"""No workbook of a night is looked into here."""
PREPARED: dict[str, PreparedClose] = {}
"""By what it was prepared from: November is made of the same nights in most of these tests."""


def play_people(merchant):
    """A month that is over, and people who may sign it."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    play(merchant)


def prepared_once(month, *, account, environment):
    """As prepared_close, which is asked once for everything that it is prepared from."""
    with environment.store.reading() as connection:
        basis = basis_of(connection, account, month=month)
        state = closed_months.state_of(connection, account, month=month.name)
    known = PREPARED.get(basis)
    if known is None:
        known = prepared_close(month, account=account, environment=environment)
        PREPARED[basis] = known
    return replace(known, state=state)


@pytest.fixture
def ended(begun, monkeypatch):
    for module in (signed_closes, closed_view_module):
        monkeypatch.setattr(module, "prepared_close", prepared_once)
    return begun(play_people)


def drawn(close, seen):
    named = " ".join(sorted(seen.files))
    return f"workbook of {close.stated.statement.month.name} beside {named}".encode()


def context_of(environment):
    """A process whose workbooks of a close are quickly drawn."""
    return ActContext(environment, lambda: replace(drawings(), close=drawn))


def digest_of(merchant, month=NOVEMBER):
    with merchant.environment() as environment:
        prepared = signed_closes.prepared_close(month, account=OWN, environment=environment)
        return reviewed_close(prepared).digest


def signed(merchant, *, role, name, seen="", crash_point=None):
    seen = seen or digest_of(merchant)
    with merchant.environment() as environment:
        return said(environment, role=role, name=name, seen=seen, crash_point=crash_point)


def said(environment, *, role, name, seen, crash_point=None):
    """The same, of an environment that is open."""
    if crash_point is not None:
        environment = replace(environment, crash_point=crash_point)
    person = identify(name, code=None, environment=environment)
    wanted = MonthToSign(NOVEMBER, OWN, role, seen)
    return sign_close(wanted, person=person, drawn=drawn, environment=environment)


def close(merchant):
    signed(merchant, role="reviewer", name="dan")
    return signed(merchant, role="approver", name="anna")


def state(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        return closed_months.state_of(connection, OWN, month="2026-11")


def problems(merchant):
    with merchant.environment() as environment:
        return "\n".join(verify(environment, reading=UNREAD).problems)


@contextmanager
def folder_of(merchant):
    with merchant.environment() as environment:
        storage = storage_at(OWN, environment=environment)
        with storage.local(period_folder(OWN, "2026-11")) as folder:
            yield folder


def test_two_people_close_a_month_and_seal_its_folder(ended):
    first = signed(ended, role="reviewer", name="dan")
    assert (first.closed, state(ended).is_closed) == (None, False)

    word = signed(ended, role="approver", name="anna")

    closed = state(ended).closed
    assert closed == word.closed
    assert "Dan Orr" in closed.by
    assert "Anna Berg" in closed.by
    with folder_of(ended) as folder:
        names = {path.name for path in (folder / "close-1").iterdir()}
        names_under = json.loads((folder / "close-1" / "signatures.json").read_text())
    assert names >= {"figures.csv", "proof.csv", "statement.sql", "closing-items.csv"}
    assert names >= {"journals.csv", "open-breaks.csv", "close.json", "manifest.json"}
    assert f"close-{MERCHANT}-{ACCOUNT}-2026-11.xlsx" in names
    assert [(each["role"], each["digest"]) for each in names_under] == [
        ("reviewer", closed.digest),
        ("approver", closed.digest),
    ]
    assert problems(ended) == ""
    with ended.environment() as environment:
        view = closed_view(NOVEMBER, account=OWN, environment=environment)
    beside = names - {"close.json", "signatures.json", "manifest.json"}
    named = " ".join(sorted(name for name in beside if not name.endswith(".xlsx")))
    assert view.workbook == f"workbook of 2026-11 beside {named}".encode()
    assert view.differs == ()


def test_a_first_word_that_runs_out_while_the_second_is_said_closes_nothing(ended):
    """One person's word is no close, whatever moment it is said at."""
    until = signed(ended, role="reviewer", name="dan").valid_until
    assert until is not None

    def late(point):
        if point == "before a month is closed":
            ended.now = until

    with pytest.raises(UsageError, match=r"the word of Dan Orr.* counts no more; nothing was"):
        signed(ended, role="approver", name="anna", crash_point=late)

    assert not state(ended).is_closed
    assert signed(ended, role="approver", name="anna").closed is None


@pytest.mark.parametrize(
    ("role", "seen", "sentence"),
    [("boss", "0" * 64, "a role is one of"), ("reviewer", "abc", "the first 16 digits")],
)
def test_what_the_desk_never_passes_on_is_not_signed(ended, role, seen, sentence):
    with pytest.raises(UsageError, match=sentence):
        signed(ended, role=role, name="anna", seen=seen)

    assert state(ended) == MonthState()


@pytest.mark.parametrize("role", ["approver", "reviewer"])
def test_figures_that_move_between_the_words_end_the_first(ended, monkeypatch, role):
    signed(ended, role="reviewer", name="dan")
    move(monkeypatch)

    word = signed(ended, role=role, name="anna")

    assert "Dan Orr" in word.lapsed
    assert word.closed is None
    assert any("then, " in sentence for sentence in word.moved), word.moved
    assert not state(ended).is_closed
    who = state(ended).signed
    assert (who.says["role"], who.name) == (role, "Anna Berg")
    other = {"reviewer": "approver", "approver": "reviewer"}[role]
    assert signed(ended, role=other, name="ben").closed is not None


def move(monkeypatch):
    real = signed_closes.prepared_close

    def other(*args, **named):
        prepared = real(*args, **named)
        (first, *others) = prepared.stated.statement.figures
        figures = [replace(first, amount=first.amount + 1), *others]
        statement = replace(prepared.stated.statement, figures=figures)
        return replace(prepared, stated=replace(prepared.stated, statement=statement))

    monkeypatch.setattr(signed_closes, "prepared_close", other)


def test_a_night_of_the_next_month_that_moves_nothing_ends_no_signature(ended):
    """What was signed is what the month says, not how many nights know it."""
    before = digest_of(ended)
    signed(ended, role="reviewer", name="dan")
    ended.wait(hours=24)
    ended.night(date="2026-12-01")

    assert digest_of(ended) == before
    assert signed(ended, role="approver", name="anna").closed is not None


def test_a_night_that_ends_while_a_month_is_prepared_is_not_missed(ended, monkeypatch):
    """What was prepared from other nights than those that are there is signed by nobody."""
    real, ran = signed_closes.prepared_close, list[str]()

    def slow(*args, **named):
        prepared = real(*args, **named)
        if not ran:
            ran.append("a night")
            ended.as_owner(
                "UPDATE run SET verdict = 'NOT PROVEN' WHERE business_date = '2026-11-20'"
            )
        return prepared

    seen = digest_of(ended)
    monkeypatch.setattr(signed_closes, "prepared_close", slow)

    with pytest.raises(UsageError, match="rests on changed while it was signed"):
        signed(ended, role="reviewer", name="dan", seen=seen)
    with pytest.raises(UsageError, match="NOT READY: 2026-11-20"):
        signed(ended, role="reviewer", name="dan", seen=seen)

    assert state(ended) == MonthState()


def test_a_night_of_the_month_that_is_at_work_keeps_it_open(ended):
    """It may change the month: its run is named."""
    seen, request = digest_of(ended), replace(ended.request, business_date=date(2026, 11, 30))

    with (
        ended.environment() as environment,
        night.hold(request, environment=environment),
        pytest.raises(UsageError, match=r"of 2026-11-30 is at work .*sign when it has ended"),
    ):
        said(environment, role="reviewer", name="dan", seen=seen)


POINTS = (
    *(f"archived a part:{number}" for number in (1, 2, 8)),
    "archived a manifest:1",
    "before a month is closed:1",
    "after a month is closed:1",
)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_it_is_closed_with_its_folder_or_nothing(ended, point):
    """SIGKILL; then verify agrees, and the approver's word once more closes what is open."""
    signed(ended, role="reviewer", name="dan")
    seen = digest_of(ended)
    child = os.fork()
    if child == 0:
        with ended.environment(RECON_CRASH_AT=point) as environment:
            said(environment, role="approver", name="anna", seen=seen)
        os._exit(1)
    _, status = os.waitpid(child, 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    is_closed = state(ended).is_closed
    assert is_closed is point.startswith("after")
    assert problems(ended) == ""
    ended.now += timedelta(minutes=5)
    if not is_closed:
        word = signed(ended, role="approver", name="anna")
        assert word.closed is not None
    with folder_of(ended) as folder:
        assert [path.name for path in folder.iterdir() if any(path.iterdir())] == ["close-1"]
    assert problems(ended) == ""


def test_two_approvers_at_once_close_it_once(ended):
    signed(ended, role="reviewer", name="dan")
    seen, barrier = digest_of(ended), threading.Barrier(2)
    ends: list[object] = []

    def speak(name):
        try:
            with ended.environment() as environment:
                barrier.wait(timeout=60)
                ends.append(said(environment, role="approver", name=name, seen=seen).closed)
        except ReconError as error:
            ends.append(error)

    threads = [threading.Thread(target=speak, args=(name,)) for name in ("anna", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    refused = [end for end in ends if isinstance(end, NightHeldError | UsageError)]
    assert len(refused) == 1, ends
    assert len(state(ended).closes) == 1
    assert problems(ended) == ""


def test_a_close_that_the_desk_did_not_endorse_is_found(ended):
    """Whoever writes the history past the desk closes nothing that verify believes."""
    close(ended)
    with ended.environment() as environment, environment.store.writing() as connection:
        closed = closed_months.state_of(connection, OWN, month="2026-11").closed
        assert closed is not None
        forged = replace(closed, month="2026-10", digest="f" * 64)
        closed_months.note_closed(connection, forged)

    assert "2026-10 of 100042/100042001 counts as closed, but the desk endorsed it for nobody" in (
        problems(ended)
    )


def test_the_workbook_of_a_close_has_both_names(ended):
    from io import BytesIO

    import openpyxl

    with ended.environment() as environment:
        prepared = prepared_once(NOVEMBER, account=OWN, environment=environment)
    names = (
        signed_closes.CloseSignature("reviewer", "Dan Orr", ended.clock()),
        signed_closes.CloseSignature("approver", "Anna Berg", ended.clock()),
    )

    signed_close = replace(prepared, signatures=names)
    content = close_workbook(signed_close, reviewed_close(signed_close))

    sheet = openpyxl.load_workbook(BytesIO(content), data_only=True)["Close"]
    words = [str(cell.value) for row in sheet.iter_rows() for cell in row if cell.value]
    assert sheet["A3"].value == "CLOSED"
    assert {"Dan Orr", "Anna Berg", "reviewer", "approver"} <= {*words}
    assert not any("nothing is closed" in word for word in words)


def _changed(path):
    path.chmod(0o600)
    path.write_text(path.read_text().replace("1", "2"))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda folder: _changed(folder / "figures.csv"), "its content was changed"),
        (lambda folder: (folder / "journals.csv").unlink(), "is gone from the archive"),
        (lambda folder: _changed(folder / "manifest.json"), "is not what the history binds"),
        (shutil.rmtree, "is not in the archive"),
    ],
    ids=["a changed file", "a missing file", "another manifest", "no folder"],
)
def test_a_folder_of_a_close_that_is_not_as_it_was_sealed_is_found(ended, harm, why):
    """By verify, every byte; with month and file; what is bound is shown alone."""
    close(ended)
    assert problems(ended) == ""
    with folder_of(ended) as folder:
        harm(folder / "close-1")

    assert f"2026-11 of {MERCHANT}/{ACCOUNT}" in problems(ended)
    assert why in problems(ended)
    if "figures" not in problems(ended) and "journals" not in problems(ended):
        with ended.environment() as environment, pytest.raises(ReconError, match=why):
            closed_view(NOVEMBER, account=OWN, environment=environment)


REASON = "the gateway sent a corrected file"


def reopened(merchant, *, name, reason=REASON):
    merchant_id, account_id = OWN
    month = NOVEMBER.name
    word = ReopenMonth(month=month, merchant_id=merchant_id, account_id=account_id, reason=reason)
    with merchant.environment() as environment:
        return submit(word, who=(name, None), context=context_of(environment))


def test_two_people_open_a_month_again_and_closing_it_makes_a_second_folder(ended):
    """Between the words it is closed; then its nights may run; the first folder stays whole."""
    close(ended)
    assert reopened(ended, name="dan").ending == "Noted"
    assert state(ended).is_closed
    assert reopened(ended, name="anna").ending == "REOPENED"

    opened = state(ended)
    assert (opened.is_closed, opened.reopened.reason) == (False, REASON)
    assert problems(ended) == ""
    word = close(ended)
    assert word.closed.folder.endswith("close-2")
    with folder_of(ended) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["close-1", "close-2"]
        manifest = (folder / "close-2" / "manifest.json").read_text()
    assert opened.closes[0].manifest in manifest
    assert problems(ended) == ""


@pytest.mark.parametrize("is_open", [False, True])
def test_of_two_months_the_later_is_opened_first(ended, *, is_open):
    """December begins with November's figures: neither is opened, nor closed anew, below it."""
    close(ended)
    closed = state(ended).closes[-1]
    with ended.environment() as environment, environment.store.writing() as connection:
        if is_open:
            word = closed_months.ReopenedMonth("both", closed.at, "to see", closed.manifest)
            closed_months.note_reopened(connection, closed, decision=word)
        closed_months.note_closed(connection, replace(closed, month="2026-12"))
    ended.wait(hours=31 * 24)

    closing, opening = partial(signed, role="reviewer", name="dan"), partial(reopened, name="anna")
    with pytest.raises(UsageError, match="reopen 2026-12 first"):
        (closing if is_open else opening)(ended)


def test_a_reopening_that_the_desk_did_not_endorse_is_found(ended):
    close(ended)
    closed = state(ended).closes[-1]
    word = closed_months.ReopenedMonth("nobody", closed.at, REASON, closed.manifest)
    with ended.environment() as environment, environment.store.writing() as connection:
        closed_months.note_reopened(connection, closed, decision=word)

    assert "a month was reopened" in problems(ended)


@pytest.mark.parametrize(
    ("entity", "happened"),
    [
        (closed_months.ENTITY, closed_months.CLOSED),
        (closed_months.ENTITY, closed_months.REOPENED),
        (DATABASE, ACCEPTED_RESTORE),
    ],
)
def test_a_malformed_event_is_a_finding(ended, entity, happened):
    """Whoever writes one into a chain that closes ends no check of the others by it."""
    with ended.environment() as environment, environment.store.writing() as connection:
        forged = Event(entity, entity, happened, {"by": 7, "lost": 7})
        append(connection, [forged], at=environment.clock())

    assert f"({entity} {entity}, {happened}) is malformed" in problems(ended)


def test_an_account_that_is_not_declared_is_refused(ended):
    fields = {"month": NOVEMBER.name, "merchant_id": MERCHANT, "account_id": f"{ACCOUNT}9"}
    word = SignClose(**fields, role="reviewer", digest="0" * 64)
    with (
        ended.environment() as environment,
        pytest.raises(UsageError, match="declares no account"),
    ):
        submit(word, who=("dan", None), context=context_of(environment))


def test_the_form_shows_a_month_as_the_command_does(ended):
    asked = {"month": NOVEMBER.name, "merchant_id": "", "account_id": ""}
    with ended.environment() as environment:
        sentence, lines = month_page(environment, asked)
    assert sentence.startswith("2026-11: READY")
    assert f"- Digest: {digest_of(ended)}" in lines

    close(ended)
    with ended.environment() as environment:
        sentence, lines = month_page(environment, asked)
    assert sentence == "2026-11: CLOSED."
    assert any("closed.xlsx" in line for line in lines)
