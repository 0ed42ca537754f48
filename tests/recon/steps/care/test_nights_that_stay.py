"""What keeps the folder of an old night, each by itself; also between showing and deleting."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from recon.model.errors import NightLetGoError
from recon.model.words import InstructionState
from recon.steps.care import housekeeping as keeping
from recon.steps.care.housekeeping import _Account
from recon.store.database.night_lock import account_lock
from recon.store.nights import runs
from recon.store.nights.runs import all_let_go
from recon.store.schema import (
    answer_part,
    contradiction,
    exported_journal,
    instruction,
    run_source,
)
from tests.recon.steps.care.test_housekeeping import case_of
from tests.recon.steps.care.test_old_nights import (
    DAYS_KEPT,
    LAST,
    NEWEST,
    EndedError,
    checked,
    dates,
    deleted,
    ending,
    files_of,
    keep_nights,
    night_folder,
    play_year,
    spared,
)
from tests.recon.steps.conftest import ACCOUNT, BUSINESS_DATE, MERCHANT, ON_POSTGRESQL, Merchant
from tests.recon.steps.people.test_sign_off import signed

pytestmark = pytest.mark.xdist_group("closes")
SIBLING = "100042002"
Change = Callable[[Merchant], None]


@pytest.fixture
def aged(begun: Callable[[Any], Merchant]) -> Merchant:
    """Nights that are older than they are kept, of which one may go."""
    return begun(play_year)


def notes(merchant: Merchant) -> str:
    """Why nights stay."""
    return "\n".join(spared(merchant).notes)


def delete_after(merchant: Merchant, change: Change) -> str:
    """What `--delete` says when something happens after it looked."""
    with merchant.environment() as environment:
        shown = keeping.housekeeping(environment)
    change(merchant)
    with merchant.environment() as environment:
        return "\n".join(keeping.delete(shown, by="Otto Ops", environment=environment)[1])


def went(merchant: Merchant) -> int:
    """How many nights the history lets go."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        return len(all_let_go(connection))


def add_byte(merchant: Merchant) -> None:
    """To a sealed file."""
    path = night_folder(merchant) / "inputs" / "orders.parquet"
    path.write_bytes(path.read_bytes() + b"x")


def add_note(merchant: Merchant) -> None:
    """A file that nobody sealed."""
    (night_folder(merchant) / "note.txt").write_text("mine")


def open_case(merchant: Merchant) -> None:
    """About the one instruction of the account."""
    merchant.as_owner(case_of(merchant))


def sign(merchant: Merchant) -> None:
    """The night that may go, as its reviewer."""
    signed(merchant, night_folder(merchant).name, role="reviewer", name="dan")


def change_history(merchant: Merchant) -> None:
    """Past the program."""
    drop = "DROP TRIGGER IF EXISTS history_no_update"
    merchant.as_owner(
        "ALTER TABLE history DISABLE TRIGGER USER" if ON_POSTGRESQL else drop,
        "UPDATE history SET event = 'begun' WHERE sequence = 1",
    )


def hand_out(merchant: Merchant) -> None:
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
    "a file": (add_note, "nobody sealed it"),
    "a case": (open_case, "an instruction or a case of"),
    "a name": (sign, "not those that were shown"),
    "a link": (change_history, "does not close"),
    "a journal": (hand_out, "a journal of it is not in the books yet"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_happens_between_showing_and_deleting_keeps_the_night(
    what: str, aged: Merchant
) -> None:
    """Everything is asked again, and every byte looked at again, before the first file goes.

    Whoever only looks from then on is told the same; a name alone keeps no night.
    """
    change, reason = CHANGES[what]
    before = files_of(night_folder(aged))

    told = delete_after(aged, change)

    assert f"the folder of {BUSINESS_DATE} (" in told
    assert reason in told
    assert files_of(night_folder(aged)) >= before
    assert went(aged) == 0
    assert (dates(aged) == []) is (what != "a name")
    assert (reason in notes(aged)) is (what != "a name")


def test_a_night_at_work_keeps_the_folders_of_its_account(aged: Merchant) -> None:
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
def test_what_was_not_let_go_does_not_go_with_what_an_ended_call_left(
    what: str, aged: Merchant
) -> None:
    """The word was given for what was sealed; another file, or other bytes, stay and are named."""
    with pytest.raises(EndedError):
        deleted(aged, crash_point=ending("let a night go", count=1))
    change, reason = CHANGES[what]
    change(aged)
    before = files_of(night_folder(aged))

    assert reason in "".join(deleted(aged))
    assert files_of(night_folder(aged)) == before


def test_a_night_that_was_let_go_is_not_signed_any_more(aged: Merchant) -> None:
    """Nobody puts a name under what nobody can look at."""
    run_id = night_folder(aged).name
    deleted(aged)
    with pytest.raises(NightLetGoError, match="was let go on"):
        signed(aged, run_id, role="reviewer", name="dan")
    assert checked(aged, run_id).problems == ()


def test_only_so_many_nights_go_at_once(aged: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are named, and go the next time."""
    monkeypatch.setattr(keeping, "NIGHTS_AT_ONCE", 0)
    assert dates(aged) == []
    assert f"({BUSINESS_DATE}): 0 nights go at once, the next time takes the rest" in notes(aged)


def test_a_night_is_old_a_day_after_its_last_day(aged: Merchant) -> None:
    """By its business date; and by when it ran, which is later."""
    day = datetime.fromisoformat(BUSINESS_DATE).replace(tzinfo=UTC)
    age = (aged.now - day).days
    keep_nights(aged, days=age)
    assert dates(aged) == []
    assert BUSINESS_DATE not in notes(aged)
    keep_nights(aged, days=age - 2)
    assert dates(aged) == [BUSINESS_DATE]
    assert age > DAYS_KEPT


def test_the_books_that_are_the_newest_keep_the_night_that_read_them(aged: Merchant) -> None:
    """A night without books asks them what shoppers' banks took back."""
    run_id = night_folder(aged).name
    aged.as_owner(delete(run_source).where(run_source.c.run_id != run_id))

    assert dates(aged) == []
    assert f"({BUSINESS_DATE}): its books are the newest that were read" in notes(aged)


def test_what_the_newest_night_carried_forward_stays(aged: Merchant) -> None:
    """Whoever makes the newest night again judges by it; and both are read by what is open."""
    newest, last = (night_folder(aged, day).name for day in (NEWEST, LAST))
    with aged.environment() as environment, environment.store.reading() as connection:
        account = _Account(connection, environment, runs.get(connection, newest), DAYS_KEPT)
        assert account._needed == {
            newest: "it is the newest of its account",
            last: "the newest night carried its breaks forward",
        }
        assert str(account._read_from) == LAST


def test_answers_about_another_account_stay_while_its_money_is_open(aged: Merchant) -> None:
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


def test_a_doubt_that_is_younger_than_the_nights_answers_keeps_them(aged: Merchant) -> None:
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
        reason = _Account(connection, environment, run, age)._undecided(run)
    assert "an instruction or a case of" in reason
