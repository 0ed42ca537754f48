"""The folder of a night goes when its month is closed, nothing of it is open, and it is whole."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, update

from recon.archive.step_folder import MANIFEST, look_through
from recon.desk.endorsement import Kind
from recon.files.formats.named_bytes import sha256_of
from recon.model.errors import ArchiveError, NightPurgedError
from recon.model.terms import InstructionState, Verdict
from recon.steps.admin import housekeeping as keeping
from recon.steps.admin import verify
from recon.steps.admin.housekeeping import NIGHTS, _Nights
from recon.steps.admin.sql_questions import answer
from recon.steps.approvals.sign_off import write_signature
from recon.steps.compare.rebuild import rebuild_night
from recon.steps.compare.what_if import difference, what_if
from recon.steps.night.report import rebuild
from recon.steps.runtime.gateway_answers import still_stored
from recon.steps.runtime.night_folder import STORED_FILES, StoredResult, record_sealed
from recon.store.database import history
from recon.store.database.night_lock import account_lock
from recon.store.nights import answer_parts, runs
from recon.store.nights.runs import all_purged, purged_run_ids
from recon.store.nights.sign_off_rows import Signature
from recon.store.schema import (
    answer_part,
    contradiction,
    exported_journal,
    instruction,
    run_source,
)
from tests.recon.steps.admin.test_housekeeping import case_of
from tests.recon.steps.approvals.test_sign_off import PEOPLE
from tests.recon.steps.approvals.test_sign_off import signed as signed_as
from tests.recon.steps.conftest import (
    ACCOUNT,
    BUSINESS_DATE,
    MERCHANT,
    ON_POSTGRESQL,
    Merchant,
    archive_of,
    capture,
    checked,
    plain_workbooks,
)
from tests.recon.steps.month.test_signed_closes import close, reopened
from tests.recon.store import decided

pytestmark = pytest.mark.xdist_group("closes")
DAYS_STORED = 400
BROKEN, LAST, NEWEST = "2026-11-27", "2026-11-30", "2026-12-01"
"""Nights after BUSINESS_DATE: one with a break that stays open, the month's last, the newest."""


def play_year(merchant):
    """Three nights of November, which two people close; one of December; then more than a year."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    capture(merchant)
    merchant.night()
    merchant.wait(hours=24 * 7)
    merchant.night(date=BROKEN, skip="the cluster was down")
    merchant.wait(hours=24 * 3)
    merchant.night(date=LAST)
    close(merchant)
    merchant.wait(hours=24)
    merchant.night(date=NEWEST)
    merchant.wait(hours=24 * (DAYS_STORED + 30))
    keep_nights(merchant, days=DAYS_STORED)


def keep_nights(merchant, *, days):
    file = merchant.folder / "config" / "retention.toml"
    file.write_text(f"[retention]\nnights_days = {days}\n")


@pytest.fixture
def aged(begun):
    """Nights that are older than they are kept."""
    return begun(play_year)


def expired(merchant):
    with merchant.environment() as environment:
        ((of_nights,), _) = keeping.housekeeping(environment)
    assert of_nights.kind == NIGHTS
    return of_nights


def dates(merchant):
    return [str(run.business_date) for run in expired(merchant).nights]


def deleted(merchant, *, crash_point=None):
    """`recon housekeeping --delete --as "Otto Ops"`; a sentence for each that could not go."""
    with merchant.environment() as environment:
        passes = crash_point or environment.crash_point
        own = replace(environment, crash_point=passes)
        return keeping.housekeeping(own, by="Otto Ops")[1]


def said(merchant):
    with merchant.environment() as environment:
        (of_nights,), stayed = keeping.housekeeping(environment, by="Otto Ops")
    return "\n".join((*of_nights.notes, *stayed))


def night_folder(merchant, business_date=BUSINESS_DATE):
    root = Path(archive_of(merchant).shown)
    found = [*root.glob(f"nights/{MERCHANT}/{ACCOUNT}/{business_date}/*")]
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def is_what_is_stored(files):
    manifests = {name for name in files if name.endswith(f"/{MANIFEST}")}
    return files - manifests == STORED_FILES and len(manifests) >= 5


def test_only_a_night_that_nobody_needs_goes_and_the_rest_says_why_it_stays(aged):
    root = Path(archive_of(aged).shown)
    before = files_of(root)

    assert dates(aged) == [BUSINESS_DATE]
    told = "\n".join(expired(aged).notes)
    assert f"({BROKEN}): a break that it shows is still open" in told
    assert f"({LAST}): nights of {MERCHANT}/{ACCOUNT} from {LAST} on are read" in told
    assert f"({NEWEST}): 2026-12 of {MERCHANT}/{ACCOUNT} is not closed" in told
    assert files_of(root) == before

    keep_nights(aged, days=DAYS_STORED + 100)
    assert (dates(aged), expired(aged).notes) == ([], ())


def test_what_goes_is_in_the_history_and_manifests_breaks_totals_and_words_stay(aged):
    """Who, when, how many, bytes and the hash of the list; what stays still verifies."""
    folder, others = night_folder(aged), files_of(night_folder(aged, BROKEN))
    went = {name: (folder / name).stat().st_size for name in files_of(folder)}

    assert deleted(aged) == ()

    assert is_what_is_stored(files_of(folder))
    assert files_of(night_folder(aged, BROKEN)) == others
    for name in files_of(folder):
        went.pop(name)
    with aged.environment() as environment, environment.store.reading() as connection:
        first, last = history.links_of(connection, [folder.name], entity=runs.ENTITY)[-2:]
        breaks = StoredResult(connection, folder.name, environment).open_breaks()
    said = first.data
    assert (first.event, last.event) == ("purges a night", "purged a night")
    assert (said["by"], said["files"], said["size_bytes"]) == (
        "Otto Ops",
        len(went),
        sum(went.values()),
    )
    assert (len(said["list_sha256"]), said["days"]) == (64, DAYS_STORED)
    assert breaks is not None
    for found in (checked(aged), checked(aged, folder.name)):
        assert found.problems == ()
        assert "was purged on 2028-" in "".join(found.purged)
    assert dates(aged) == []


def signed(merchant, folder):
    with merchant.environment() as environment, environment.store.writing() as connection:
        at = environment.clock()
        run = runs.get(connection, folder.name)
        digest = sha256_of(Path(run.workbook))
        names = [Signature("reviewer", "Anna", authenticated=False, at=at, workbook_sha256=digest)]
        sealed = write_signature(
            run,
            signatures=names,
            answers={},
            copy=lambda content, **_: content,
            environment=environment,
        )
        says = {"role": "reviewer", "workbook_sha256": digest}
        decided.said(connection, Kind.SIGN_OFF, run.run_id, "Anna", at=at, says=says)
        record_sealed(connection, run, sealed=[sealed], environment=environment)


def test_what_people_put_their_names_under_stays(aged):
    """Their name is under that very file."""
    folder = night_folder(aged)
    signed(aged, folder)
    deleted(aged)

    assert (folder / "proof" / "workbook.xlsx").is_file()
    files = ("answers.jsonl", "signatures.json", "workbook.xlsx")
    of_signature = {f"signed-reviewer/{name}" for name in files}
    assert of_signature < files_of(folder)
    assert is_what_is_stored(files_of(folder) - {"proof/workbook.xlsx"} - of_signature)
    assert checked(aged, folder.name).problems == ()
    (folder / "signed-reviewer" / "answers.jsonl").write_text("another")
    assert "signed-reviewer/answers.jsonl has" in "".join(checked(aged, folder.name).problems)
    (folder / "proof" / "workbook.xlsx").write_text("another")
    assert "proof/workbook.xlsx has" in checked(aged, folder.name).problems[0]


def asked(environment, run_id):
    november = (date(2026, 11, 20), date(2026, 11, 30))
    yield lambda: rebuild(run_id, environment=environment, workbooks=plain_workbooks())
    yield lambda: rebuild_night(run_id, out=None, environment=environment)
    yield lambda: difference(run_id, BROKEN, environment=environment)
    yield lambda: what_if(
        environment.settings.rules,
        account=(MERCHANT, ACCOUNT),
        first=november[0],
        last=november[1],
        environment=environment,
    )


def test_whoever_asks_for_a_night_that_went_is_told_so_in_one_sentence(aged):
    """Workbook, compare-again, diff, what-if, sql and statement; none calls it lost."""
    run_id = night_folder(aged).name
    deleted(aged)
    sentence = (
        r"^run \S+ of 2026-11-20: the folder of this night was purged on 2028-\d\d-\d\d "
        "by Otto Ops under retention; its totals and manifests are kept: "
        "look at a later night, or the close of its month$"
    )
    with aged.environment() as environment:
        for question in asked(environment, run_id):
            with pytest.raises(NightPurgedError, match=sentence):
                question()
        answered = answer("SELECT DISTINCT run_id FROM totals", environment=environment)
        assert run_id in answered.rows["run_id"].to_pylist()
        assert [run_id in each for each in answered.purged] == [True]
        orders = answer("SELECT DISTINCT run_id FROM orders", environment=environment)
        assert run_id not in orders.rows["run_id"].to_pylist()
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
            parts = answer_parts.of_account(connection, run)
            kept = still_stored(connection, parts)
        assert {run_id in part.path for part in parts} == {True, False}
        assert {run_id in part.path for part in kept} == {False}


def test_a_folder_that_is_only_missing_is_lost(aged):
    """Nothing in the history lets it go, so it is no retention; of one that went the same holds."""
    shutil.rmtree(night_folder(aged, BROKEN))
    deleted(aged)
    problems = "\n".join(checked(aged).problems)
    assert f"{BROKEN}/" in problems
    assert BUSINESS_DATE not in problems

    (night_folder(aged) / "proof" / "totals.parquet").unlink()
    assert "is gone from the archive" in checked(aged, night_folder(aged).name).problems[0]
    shutil.rmtree(night_folder(aged))
    assert any(BUSINESS_DATE in each for each in checked(aged).problems)


def test_a_month_that_is_open_again_keeps_its_nights(aged):
    """Its statement reads them."""
    reopened(aged, name="dan")
    reopened(aged, name="anna")
    assert dates(aged) == []

    assert f"({BUSINESS_DATE} to {LAST}): 2026-11 of {MERCHANT}/{ACCOUNT} is not clos" in said(aged)
    assert checked(aged, BUSINESS_DATE).purged == ()


class EndedError(Exception):
    """The process ends here."""


def ending(point, *, count):
    """Ends at some pass of a point."""
    passes = iter(range(1, 1_000))

    def pass_by(at):
        if at == point and next(passes) == count:
            raise EndedError

    return pass_by


@pytest.mark.parametrize(
    ("point", "count", "days"),
    [
        ("purged a night", 1, DAYS_STORED),
        ("removed a file of a night", 1, DAYS_STORED),
        ("removed a file of a night", 1, DAYS_STORED * 10),
        ("removed a file of a night", 9, DAYS_STORED),
    ],
)
def test_whoever_is_killed_in_between_is_finished_by_the_next_call(point, count, days, aged):
    """The word stands before the first byte goes; the night counts as let go from there on.

    Also under a longer retention: what is kept then is of nights that are there.
    """
    with pytest.raises(EndedError):
        deleted(aged, crash_point=ending(point, count=count))
    keep_nights(aged, days=days)
    assert not is_what_is_stored(files_of(night_folder(aged)))
    assert checked(aged).problems == checked(aged, BUSINESS_DATE).problems == ()
    assert dates(aged) == [BUSINESS_DATE]

    assert deleted(aged) == ()

    assert is_what_is_stored(files_of(night_folder(aged)))
    with aged.environment() as environment, environment.store.reading() as connection:
        assert [each.run_id for each in all_purged(connection)] == [*purged_run_ids(connection)]


def test_of_a_night_that_was_let_go_files_are_left_and_no_folder_stays(aged):
    """An archive that fails after the word stood: the sentence says which of both it is."""

    def fail(point):
        if point == "removed a file of a night":
            msg = "the archive cannot be written"
            raise ArchiveError(msg)

    (sentence,) = deleted(aged, crash_point=fail)
    assert re.match(rf"files of {BUSINESS_DATE} \(\S+\) are left: the archive", sentence)
    assert deleted(aged) == ()


def test_a_live_night_after_one_was_let_go_is_proven(aged):
    """No step of a night reads what went: it asks, compares, is proven by SQL, and verifies."""
    assert deleted(aged) == ()
    kept = files_of(night_folder(aged))
    paid = aged.payments("captured")[0]
    aged.drop("later.csv", aged.order(paid))
    day = aged.now.date() - timedelta(days=1)

    verdict = aged.night(date=day.isoformat(), skip="nobody sold anything for a year")

    totals = aged.result().control_totals
    assert verdict is not Verdict.NOT_PROVEN
    assert [total for total in totals if not total.passed] == []
    assert any(total.id == "T14" for total in totals)
    assert checked(aged).problems == checked(aged, day.isoformat()).problems == ()
    assert files_of(night_folder(aged)) == kept


SIBLING = "100042002"
Change = Callable[[Merchant], object]


def notes(merchant):
    return "\n".join(expired(merchant).notes)


def went(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        return len(all_purged(connection))


def add_byte(merchant, file="inputs/orders.parquet"):
    path = min(night_folder(merchant).glob(file))
    path.write_bytes(path.read_bytes() + b"x")


def change_history(merchant):
    """Past the program."""
    drop = "DROP TRIGGER IF EXISTS history_no_update"
    merchant.as_owner(
        "ALTER TABLE history DISABLE TRIGGER USER" if ON_POSTGRESQL else drop,
        "UPDATE history SET event = 'begun' WHERE sequence = 1",
    )


def hand_out(merchant):
    """A journal of the night, which no books show yet."""
    row = {
        "journal_id": "J1",
        "merchant_id": MERCHANT,
        "account_id": ACCOUNT,
        "break_id": "B1",
        "currency": "EUR",
        "version": 1,
        "run_id": night_folder(merchant).name,
        "exported_at": merchant.now,
        "booked_in": "",
    }
    merchant.as_owner(insert(exported_journal).values(row))


CHANGES: dict[str, tuple[Change, str]] = {
    "a byte": (add_byte, "orders.parquet has"),
    "a reply": (partial(add_byte, file="answers-1/replies-*.parquet"), "parquet has"),
    "a file": (
        lambda merchant: (night_folder(merchant) / "note.txt").write_text("mine"),
        "nobody sealed it",
    ),
    "a case": (
        lambda merchant: merchant.as_owner(case_of(merchant)),
        "an instruction or a case of",
    ),
    "a link": (change_history, "does not close"),
    "a journal": (hand_out, "a journal of it is not in the ledger yet"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_speaks_against_it_keeps_the_night(what, aged):
    """Every byte is looked at before the first file goes; who only looks is told the same."""
    change, reason = CHANGES[what]
    before = files_of(night_folder(aged))
    change(aged)

    assert reason in notes(aged)
    assert reason in said(aged)
    assert files_of(night_folder(aged)) >= before
    assert (went(aged), dates(aged)) == (0, [])


MEANWHILE = {
    **{name: CHANGES[name] for name in ("a case", "a journal")},
    "a signature": (
        lambda merchant: signed(merchant, night_folder(merchant)),
        "somebody signed it meanwhile",
    ),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_what_happens_while_its_bytes_are_read_keeps_the_night(what, aged, monkeypatch):
    """Reading a folder holds nobody up who writes: the transaction that lets it go asks again."""
    change, reason = MEANWHILE[what]

    def read_and_changed(*args, **named):
        monkeypatch.setattr(verify, "look_through", look_through)
        change(aged)
        return look_through(*args, **named)

    monkeypatch.setattr(verify, "look_through", read_and_changed)

    assert reason in said(aged)
    assert went(aged) == 0


def test_a_night_at_work_keeps_the_folders_of_its_account(aged):
    """It may read them, and may open what they are the evidence of."""
    with (
        aged.environment() as environment,
        account_lock(environment.store, (MERCHANT, ACCOUNT)),
    ):
        assert "a night of the account is at work" in "".join(deleted(aged))
    assert went(aged) == 0

    with pytest.raises(EndedError):
        deleted(aged, crash_point=ending("removed a file of a night", count=1))
    left = files_of(night_folder(aged))
    with (
        aged.environment() as environment,
        account_lock(environment.store, (MERCHANT, ACCOUNT)),
    ):
        assert "a night of the account is at work" in "".join(deleted(aged))
    assert files_of(night_folder(aged)) == left


@pytest.mark.parametrize("what", ["a byte", "a file"])
def test_what_was_not_let_go_does_not_go_with_what_an_ended_call_left(what, aged):
    """The word was given for what was sealed; another file, or other bytes, stay and are named."""
    with pytest.raises(EndedError):
        deleted(aged, crash_point=ending("purged a night", count=1))
    change, reason = CHANGES[what]
    change(aged)
    before = files_of(night_folder(aged))

    assert reason in said(aged)
    assert files_of(night_folder(aged)) == before


def test_a_night_that_was_let_go_is_not_signed_any_more(aged):
    """Nobody puts a name under what nobody can look at."""
    run_id = night_folder(aged).name
    deleted(aged)
    with pytest.raises(NightPurgedError, match="was purged on"):
        signed_as(aged, run_id, role="reviewer", name="dan")
    assert checked(aged, run_id).problems == ()


def test_only_so_many_nights_go_at_once(aged, monkeypatch):
    monkeypatch.setattr(keeping, "NIGHTS_AT_ONCE", 0)
    assert dates(aged) == []
    assert "0 nights go at once, the next time takes the rest" in notes(aged)


def test_a_night_is_old_a_day_after_its_last_day(aged):
    """By its business date; and by when it ran, which is later."""
    day = datetime.fromisoformat(BUSINESS_DATE).replace(tzinfo=UTC)
    age = (aged.now - day).days
    keep_nights(aged, days=age)
    assert dates(aged) == []
    assert BUSINESS_DATE not in notes(aged)
    keep_nights(aged, days=age - 2)
    assert dates(aged) == [BUSINESS_DATE]
    assert age > DAYS_STORED


def test_the_books_that_are_the_newest_keep_the_night_that_read_them(aged):
    """A night without books asks them what shoppers' banks took back."""
    run_id = night_folder(aged).name
    aged.as_owner(delete(run_source).where(run_source.c.run_id != run_id))

    assert dates(aged) == []
    assert f"({BUSINESS_DATE}): its ledger is the newest that was read" in notes(aged)


def test_answers_about_another_account_stay_while_its_money_is_open(aged):
    """A night asks its merchant's other accounts too: it may be what ends a doubt of theirs."""
    run_id = night_folder(aged).name
    with aged.environment() as environment, environment.store.reading() as connection:
        query = select(answer_part).where(
            answer_part.c.run_id == run_id, answer_part.c.answered > 0
        )
        part = dict(connection.execute(query.limit(1)).mappings().one())
        case = case_of(aged).compile().params
    del part["part_id"]
    aged.as_owner(
        insert(answer_part).values(
            part | {"account_id": SIBLING, "phase": f"baseline of {SIBLING}"}
        ),
        insert(contradiction).values(case | {"account_id": SIBLING}),
    )

    assert dates(aged) == []
    assert f"a case of {MERCHANT}/{SIBLING} from before is still open" in notes(aged)


def test_a_doubt_that_is_younger_than_the_nights_answers_keeps_them(aged):
    """A night that ran over the last instant: its instruction is younger, and so are answers."""
    run_id = night_folder(aged).name
    with aged.environment() as environment, environment.store.reading() as connection:
        query = select(answer_part.c.last_at).where(answer_part.c.run_id == run_id)
        newest = max(at for at in connection.execute(query).scalars() if at is not None)
    doubt = {
        "state": InstructionState.IN_DOUBT.value,
        "planned_at": newest - timedelta(seconds=1),
    }
    aged.as_owner(update(instruction).values(doubt))
    with aged.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        age = (aged.now - newest).days + 1
        before = aged.now - timedelta(days=age)
        nights = _Nights(environment, age, before, by=None)
        reasons = [*nights.needs(connection, run)]
    assert ["an instruction or a case of" in each for each in reasons] == [True]
