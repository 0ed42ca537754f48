from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.model.errors import SourceUnreadableError, UsageError
from recon.model.resolutions import FROM_CAUSE, THIS_BREAK, WHOLE_CAUSE
from recon.steps.admin.verify import verify
from recon.steps.approvals import people
from recon.steps.approvals.returned_answers import import_resolutions, listed, sentence_of
from recon.steps.approvals.verdicts import agree_write_off, decisions_taken_back
from recon.steps.night.report import rebuild, rebuild_answered
from recon.steps.runtime.identity import identify
from recon.store.people import resolution_rows
from reports.reading.workbook_check import run_of
from reports.workbook_io import form, reading, workbooks
from tests.recon.steps.conftest import archive_of
from tests.recon.steps.people import declared
from tests.recon.steps.signing import sign_seen

HEADER_ROW = 4

pytestmark = pytest.mark.xdist_group("returned workbooks")
"""They share what takes longer to make than to look at."""


class Returned:
    """A workbook on somebody's desk: written by a night, opened and filled in."""

    def __init__(self, path):
        self.path = path
        self.book: Any = load_workbook(path)
        self.sheet: Any = self.book["Breaks"]
        self.columns = {cell.value: cell.column for cell in self.sheet[HEADER_ROW]}

    def write(self, title, value, *, row=0):
        """Fill one cell of the n-th break; gives its break key."""
        self.sheet.cell(HEADER_ROW + 1 + row, self.columns[title]).value = value
        return self.key(row)

    def cells(self, title):
        """A column of the list."""
        rows = range(HEADER_ROW + 1, self.sheet.max_row + 1)
        return [self.sheet.cell(row, self.columns[title]).value for row in rows]

    def key(self, row):
        """The break of the n-th row."""
        key = str(self.sheet.cell(HEADER_ROW + 1 + row, self.columns["Key"]).value)
        return key.partition(".")[0]

    def answer(self, resolution, *, row=0, comment="seen in the portal"):
        """A whole answer."""
        self.write("Owner", "Jo Hill", row=row)
        self.write("Comment", comment, row=row)
        return self.write("Resolution", resolution, row=row)

    def save(self, name=""):
        """Saved under the same name, or another."""
        self.path = self.path.with_name(name) if name else self.path
        self.book.save(self.path)
        return self.path


CARD = "4929-7801-6452-3877"
PEOPLE = (
    declared(jo="Jo Hill", kim="Kim Day", limit="EUR = 1000, USD = 1000, GBP = 1000")
    + declared(lee="Lee Fox", role="reviewer", limit="EUR = 1000, USD = 1000, GBP = 1000")
    + declared(max="Max Ott", limit="EUR = 1, USD = 1, GBP = 1")
)


def wrong_amounts(merchant):
    """A night with three orders whose amounts are not what the gateway holds."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    paid = merchant.payments("captured")[:3]
    rows = [merchant.order(one, amount=str(int(float(one.amount)) + 7) + ".00") for one in paid]
    merchant.drop("orders.csv", *[row for row in rows if row["currency"] != "JPY"])
    merchant.night(workbooks=workbooks())


@pytest.fixture
def desk(begun):
    """A merchant after that night."""
    return begun(wrong_amounts)


@pytest.fixture
def workbook(desk):
    """What that night wrote."""
    return newest_workbook(desk)


def newest_workbook(merchant):
    """What the last night wrote."""
    written = merchant.folder.joinpath("reports").glob("reconciliation-*.xlsx")
    return max(written, key=lambda path: path.stat().st_mtime_ns)


def rebuilt(merchant):
    """The night's workbook, written again with the answers."""
    run_id = merchant.newest().run_id
    with merchant.environment() as environment:
        rebuild(run_id, environment=environment, workbooks=workbooks())


def take(merchant, path, *, by="jo"):
    """Import a workbook as `jo`."""
    with merchant.environment() as environment:
        person = identify(by, code=None, environment=environment)
        return import_resolutions(path, person=person, form=form())


@pytest.mark.parametrize("resolution", ["Order corrected", "Written off (approved)"])
def test_an_answer_to_what_is_no_longer_so_is_refused_and_the_others_are_kept(
    desk, workbook, resolution
):
    """A later night shows the break with another code and other money: the answer was to neither.

    The refusal says what it is and what it was; the break waits without an answer, and what is as
    it was keeps the answer that it got.
    """
    back = Returned(workbook)
    back.answer(resolution)
    same = back.answer("Refunded", row=1)
    order_no = back.sheet.cell(HEADER_ROW + 1, back.columns["Order or batch"]).value
    (paid,) = [one for one in desk.payments("captured") if one.order_no == order_no]
    saved = back.save("answered.xlsx")
    desk.drop("more.csv", desk.order(paid, updated_at="2026-11-21T10:00:00Z"))
    desk.wait(hours=24)
    desk.night(date="2026-11-21", workbooks=workbooks())

    done = take(desk, saved)
    with desk.environment() as environment, environment.store.reading() as connection:
        kept = resolution_rows.stored_answers(connection, ("100042", "100042001"))
        waiting = resolution_rows.waiting_write_offs(connection)
    (refusal,) = done.refusals

    assert [one.break_id for one in done.taken] == [same]
    assert [*kept] == [same]
    assert waiting == []
    assert refusal.cell.startswith("Breaks!")
    assert "the night of 2026-11-21 shows this break otherwise" in refusal.reason
    assert "Code is MISSING_IN_LEDGER, was AMOUNT_UNDER" in refusal.reason
    assert f"Orders is {paid.amount}, was " in refusal.reason
    assert "1 cells refused" in sentence_of(done)


def test_a_write_off_waits_though_the_folder_of_its_night_is_lost(desk, workbook):
    """What needs a person is said without its order; no later night is stopped by it."""

    def waiting():
        with desk.environment() as environment:
            ((_, entries),) = people.status(environment)
        return [entry for entry in entries if entry.what == "write-off waits"]

    back = Returned(workbook)
    back.answer("Written off (approved)")
    take(desk, back.save("answered.xlsx"))
    (before,) = waiting()
    sealed = [*Path(archive_of(desk).shown).glob("nights/**/results/breaks.parquet")]
    for path in sealed:
        path.unlink()
    (after,) = waiting()

    assert before.subject
    assert sealed
    assert after == replace(before, order_no="", subject="")


def test_an_answer_to_a_break_that_ended_since_stands_under_its_own_night(desk, workbook):
    """A later night has it no more: what was said of it is kept with the night that showed it."""
    back = Returned(workbook)
    key = back.answer("Order corrected")
    back.book.save(back.path.with_name("answered.xlsx"))
    order_no = back.sheet.cell(HEADER_ROW + 1, back.columns["Order or batch"]).value
    (paid,) = [one for one in desk.payments("captured") if one.order_no == order_no]
    with (desk.folder / "ledger.csv").open("a") as ledger:
        booked = f"{paid.currency},{paid.amount},{paid.ordered_at}"
        ledger.write(f"L-1,100042,100042001,{order_no},capture,{booked}\n")
    desk.drop("more.csv", desk.order(paid, updated_at="2026-11-21T10:00:00Z"))
    desk.wait(hours=24)
    desk.night(date="2026-11-21", workbooks=workbooks())

    done = take(desk, back.path.with_name("answered.xlsx"))

    assert [one.break_id for one in done.taken] == [key]
    assert done.refusals == ()


@pytest.mark.parametrize(
    ("title", "value", "said"),
    [
        ("Resolution", "Sorted", "not in the list"),
        ("Resolved on", "soon", "not a date"),
        ("Resolved on", 20261121, "not a date"),
        ("Comment", "x" * 501, "longer than 500"),
        ("Comment", '=HYPERLINK("x")', "a formula"),
        ("Comment", f"paid by {CARD}", "looks like a card number"),
        ("Resolution", f"Sorted {CARD}", "not in the list"),
    ],
)
def test_a_cell_that_is_no_answer_is_refused_by_name(desk, workbook, title, value, said):
    """Every refused cell is named with what stands there and why; other rows are taken."""
    back = Returned(workbook)
    back.answer("Order corrected", row=1)
    back.write(title, value)

    done = take(desk, back.save("answered.xlsx"))

    assert len(done.taken) == 1
    assert said in done.refusals[0].reason
    assert done.refusals[0].cell.startswith("Breaks!")
    assert CARD not in f"{done.refusals}{sentence_of(done)}"


def test_sorted_rows_are_accepted(desk, workbook):
    """People sort; answers are matched by key."""
    back = Returned(workbook)
    key = back.answer("Order corrected")
    first, last = HEADER_ROW + 1, HEADER_ROW + 2
    for column in range(1, back.sheet.max_column + 1):
        one, other = back.sheet.cell(first, column), back.sheet.cell(last, column)
        one.value, other.value = other.value, one.value

    done = take(desk, back.save("answered.xlsx"))

    assert [one.break_id for one in done.taken] == [key]


@pytest.mark.parametrize("title", ["Money at risk", "Why"])
def test_an_answer_beside_a_changed_cell_is_not_taken(desk, workbook, title):
    """Whoever answered it read something else; the cell is named, the other rows are taken."""
    back = Returned(workbook)
    back.answer("Order corrected")
    back.write(title, 1)
    other = back.answer("Refunded", row=1)

    done = take(desk, back.save("answered.xlsx"))

    assert [one.break_id for one in done.taken] == [other]
    assert [one.cell for one in done.refusals] == [f"Breaks!P{HEADER_ROW + 1}"]
    assert "nothing of the row was taken" in done.refusals[0].reason


def test_rows_of_which_a_part_was_sorted_are_not_taken(desk, workbook):
    """Each answer must stand beside its own break: cells that left theirs are seen."""
    back = Returned(workbook)
    back.answer("Order corrected")
    back.answer("Refunded", row=1)
    first, second = HEADER_ROW + 1, HEADER_ROW + 2
    for column in range(back.columns["Order or batch"], back.columns["Applies to"] + 1):
        one, other = back.sheet.cell(first, column), back.sheet.cell(second, column)
        one.value, other.value = other.value, one.value

    done = take(desk, back.save("answered.xlsx"))

    assert (len(done.taken), len(done.refusals)) == (0, 2)


@pytest.mark.parametrize("damage", ["deleted", "renamed", "doubled"])
def test_changed_rows_are_refused_whole(desk, workbook, damage):
    """Rows that were added, lost or renamed make the whole file unreadable."""
    back = Returned(workbook)
    back.answer("Order corrected")
    if damage == "deleted":
        back.sheet.delete_rows(HEADER_ROW + 2)
    elif damage == "renamed":
        back.write("Key", "0123456789abcdef.0.x", row=1)
    else:
        back.write("Key", f"{back.key(0)}.0.x", row=1)

    with pytest.raises(SourceUnreadableError, match="nothing was taken"):
        take(desk, back.save("answered.xlsx"))


def test_a_replaced_night_is_refused_with_its_successor(desk, workbook):
    """A workbook of a run that was run again names the run that counts now."""
    back = Returned(workbook)
    back.answer("Order corrected")
    path = back.save("answered.xlsx")
    desk.night(workbooks=workbooks())

    with pytest.raises(SourceUnreadableError, match="replaces it"):
        take(desk, path)


def test_every_answer_is_signed_by_who_did_not_bring_it(desk, workbook):
    """Who brought answers may review; what comes after a signature is looked at by its person."""
    back = Returned(workbook)
    back.answer("Order corrected")
    run_id = take(desk, back.save("answered.xlsx"), by="lee").run_id

    def sign(role, name):
        with desk.environment() as environment:
            person = identify(name, code=None, environment=environment)
            return sign_seen(run_id, role=role, person=person, environment=environment)

    sign("reviewer", "lee")
    desk.now += timedelta(minutes=1)
    later = Returned(workbook)
    later.answer("Order corrected", row=1)
    take(desk, later.save("later.xlsx"), by="kim")
    with pytest.raises(UsageError, match="Kim Day brought answers in after Lee Fox had signed"):
        sign("approver", "kim")
    with desk.environment() as environment:
        lee = identify("lee", code=None, environment=environment)
        decisions_taken_back(run_id, person=lee)
    desk.now += timedelta(minutes=1)
    assert sign("approver", "kim").unsigned_days > 0
    assert sign("reviewer", "lee").unsigned_days == 0


def test_answers_saved_into_the_delivered_workbook_are_signed(desk, workbook):
    """As finance is told to: nothing calls it changed, and what is signed has the answers."""
    back = Returned(workbook)
    key = back.answer("Order corrected")
    in_place, unbrought = back.save(), checked(desk)
    done = take(desk, in_place)
    with desk.environment() as environment:
        first = rebuild_answered(done, environment=environment, workbooks=workbooks())
        again = rebuild_answered(done, environment=environment, workbooks=workbooks())
    new = newest_workbook(desk)
    with desk.environment() as environment:
        people = [identify(name, code=None, environment=environment) for name in ("lee", "jo")]
        for role, person in zip(("reviewer", "approver"), people, strict=True):
            night = sign_seen(done.run_id, role=role, person=person, environment=environment)

    assert unbrought.problems == ()
    assert "bring them in" in unbrought.answered[0]
    assert (f"is {new}: sign it" in first, again) == (True, "")
    assert (new.name.endswith("-v2.xlsx"), night.unsigned_days) == (True, 0)
    assert (checked(desk).problems, checked(desk).answered) == ((), ())
    assert in_place.read_bytes() != new.read_bytes()
    rows = Returned(new)
    assert key in {rows.key(row) for row in range(rows.sheet.max_row - HEADER_ROW)}


def test_an_amount_changed_in_the_delivered_workbook_is_found(desk, workbook):
    """Only the cells of answers may differ; nobody signs such a file."""
    back = Returned(workbook)
    back.answer("Order corrected")
    back.write("Money at risk", 1)
    done = take(desk, back.save())
    assert any("not the workbook that was written" in one for one in checked(desk).problems)
    with desk.environment() as environment:
        lee = identify("lee", code=None, environment=environment)
        with pytest.raises(UsageError, match="bring them in"):
            sign_seen(done.run_id, role="reviewer", person=lee, environment=environment)


def test_a_signed_workbook_that_was_answered_in_its_place_is_told(desk, workbook):
    """What somebody signed is gone then: they take their name back before anything is written."""
    back = Returned(workbook)
    back.answer("Order corrected")
    run_id = run_of(workbook)
    with desk.environment() as environment:
        lee = identify("lee", code=None, environment=environment)
        sign_seen(run_id, role="reviewer", person=lee, environment=environment)
        done = take(desk, back.save())
        told = rebuild_answered(done, environment=environment, workbooks=workbooks())
        assert "is not the file that Lee Fox signed any more" in told
        decisions_taken_back(run_id, person=lee)
        told = rebuild_answered(done, environment=environment, workbooks=workbooks())
        assert "-v2.xlsx: sign it" in told


def checked(desk):
    """What `recon verify` finds."""
    with desk.environment() as environment:
        return verify(environment, reading=reading())


def test_one_answer_covers_every_break_of_its_cause(merchant):
    """A file in minor units is one line, and one answer for the cause answers all of its breaks."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:4]
    rows = [merchant.order(one, amount=f"{Decimal(one.amount) * 100:.2f}") for one in paid[:3]]
    short = merchant.order(paid[3], amount=f"{Decimal(paid[3].amount) + 7:.2f}")
    merchant.drop("minor.csv", *rows)
    merchant.drop("other.csv", short)
    merchant.night(workbooks=workbooks())
    back = Returned(next(merchant.folder.joinpath("reports").glob("reconciliation-*.xlsx")))
    orders = [
        back.sheet.cell(HEADER_ROW + 1 + row, back.columns["Order or batch"]).value
        for row in range(4)
    ]
    chosen = orders.index(paid[0].order_no)
    back.answer("Order corrected", row=chosen)
    back.write("Applies to", WHOLE_CAUSE, row=chosen)
    at_risk = {
        order: back.sheet.cell(HEADER_ROW + 1 + row, back.columns["Money at risk"]).value
        for row, order in enumerate(orders)
    }

    answered = back.save("answered.xlsx")
    with merchant.environment() as environment:
        _, rows = listed(answered, form=form(), environment=environment)
    done = take(merchant, answered)

    shown = {order: money.removesuffix(" EUR").replace(",", "") for _, order, money, *_ in rows}
    assert {order: Decimal(money) for order, money in shown.items()} == {
        one.order_no: Decimal(str(at_risk[one.order_no])) for one in paid[:3]
    }
    assert {one.order_no for one in done.taken} == {one.order_no for one in paid[:3]}
    assert {one.answer.resolution for one in done.taken} == {"Order corrected"}
    assert not done.refusals
    assert "3 answers taken, 2 of them with the answer to another break" in sentence_of(done)
    assert "1 without an answer" in sentence_of(done)


def in_minor_units(merchant, *, count):
    """A night with a file in minor units, whose breaks have one cause; their orders, as listed."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:count]
    rows = [merchant.order(one, amount=f"{Decimal(one.amount) * 100:.2f}") for one in paid]
    merchant.drop("minor.csv", *rows)
    merchant.night(workbooks=workbooks())
    return Returned(newest_workbook(merchant)).cells("Order or batch")


def test_an_answer_to_a_whole_cause_is_given_once_and_leaves_its_trace(merchant):
    """The next workbook says of each break how its answer came; a second one is told by name.

    What has an answer of its own keeps it, and what the first answer brought goes with a later one.
    """
    orders = in_minor_units(merchant, count=4)
    back = Returned(newest_workbook(merchant))
    for row, comment in ((0, "the first"), (2, "another")):
        back.answer("Order corrected", row=row, comment=comment)
        back.write("Applies to", WHOLE_CAUSE, row=row)
    first = take(merchant, back.save("first.xlsx"))
    (twice,) = first.refusals
    rebuilt(merchant)
    shown = Returned(newest_workbook(merchant)).cells("Applies to")
    again = Returned(newest_workbook(merchant))
    untouched = take(merchant, again.save("untouched.xlsx"))
    again.write("Comment", "of its own", row=1)
    own = take(merchant, again.save("own.xlsx"))
    rebuilt(merchant)
    last = Returned(newest_workbook(merchant))
    last.write("Comment", "for all", row=0)
    later = take(merchant, last.save("later.xlsx"))

    assert [(one.order_no, one.answer.comment) for one in first.taken] == [
        *((orders[0], "the first"), (orders[2], "another")),
        *((orders[1], "the first"), (orders[3], "the first")),
    ]
    assert (twice.cell, twice.value) == ("Breaks!K7", WHOLE_CAUSE)
    assert "row 5 answers every break of this cause already" in twice.reason
    assert shown == [WHOLE_CAUSE, FROM_CAUSE, WHOLE_CAUSE, FROM_CAUSE]
    assert (untouched.taken, untouched.unchanged) == ((), 4)
    assert [(one.order_no, one.scope) for one in own.taken] == [(orders[1], THIS_BREAK)]
    assert {one.order_no for one in later.taken} == {orders[0], orders[2], orders[3]}
    assert {one.answer.comment for one in later.taken} == {"for all"}
    (kept,) = later.refusals
    assert kept.reason.startswith(f"{orders[1]} has an answer of its own, which counts")


def test_where_no_cause_is_known_all_breaks_of_its_code_are_answered(merchant):
    """Two breaks that the sheet counts as alike get one answer; one of another code stays open."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:3]
    rows = [merchant.order(one, amount=f"{Decimal(one.amount) * 100:.2f}") for one in paid[:2]]
    merchant.drop("minor.csv", *rows, merchant.order(paid[2], currency="USD"))
    merchant.night(workbooks=workbooks())
    back = Returned(next(merchant.folder.joinpath("reports").glob("reconciliation-*.xlsx")))
    orders = [
        back.sheet.cell(HEADER_ROW + 1 + row, back.columns["Order or batch"]).value
        for row in range(3)
    ]
    for chosen in (paid[0], paid[2]):
        back.answer("Order corrected", row=orders.index(chosen.order_no))
        back.write("Applies to", WHOLE_CAUSE, row=orders.index(chosen.order_no))

    done = take(merchant, back.save("answered.xlsx"))

    assert {one.order_no: one.covers_cause for one in done.taken} == {
        paid[0].order_no: False,
        paid[1].order_no: True,
        paid[2].order_no: False,
    }
    (refusal,) = done.refusals
    assert refusal.value == WHOLE_CAUSE
    assert "was taken for this break alone" in refusal.reason


def test_nobody_resolved_a_break_on_a_day_to_come(desk, workbook):
    """A date after today is refused with its cell, and its row is not taken."""
    back = Returned(workbook)
    back.answer("Refunded")
    back.write("Resolved on", date(2027, 1, 5))
    done = take(desk, back.save("answered.xlsx"))

    assert [(one.value, one.reason) for one in done.refusals] == [
        ("2027-01-05", "a day that is still to come: today is 2026-11-21; write when it was done")
    ]
    assert done.taken == ()


def test_a_write_off_that_two_people_brought_is_agreed_to_by_a_third(begun):
    """Their two answers are no agreement, and shut nobody out."""
    desk = begun(wrong_amounts)
    back = Returned(newest_workbook(desk))
    key = back.answer("Written off (approved)")
    take(desk, back.save("first.xlsx"), by="lee")
    rebuilt(desk)
    again = Returned(newest_workbook(desk))
    row = [again.key(each) for each in range(3)].index(key)
    again.answer("Written off (approved)", row=row, comment="seen by Jo")
    take(desk, again.save("second.xlsx"), by="jo")
    with desk.environment() as environment:
        with environment.store.reading() as connection:
            waiting = [w.answer_id for w in resolution_rows.waiting_write_offs(connection)]
        kim = identify("kim", code=None, environment=environment)
        assert len(waiting) == 2

        assert agree_write_off(waiting[0], person=kim)
        assert [p for p in verify(environment, reading=reading()).problems if "write" in p] == []


def test_of_two_write_offs_of_a_break_only_the_newer_is_agreed_to(begun):
    """Its amount changed in between: the older answer is no longer what was said last."""
    desk = begun(wrong_amounts)
    back = Returned(newest_workbook(desk))
    back.answer("Written off (approved)")
    order_no = back.sheet.cell(5, back.columns["Order or batch"]).value
    take(desk, back.save("answered.xlsx"), by="lee")
    (paid,) = [each for each in desk.payments("captured") if each.order_no == order_no]
    other = f"{int(float(paid.amount)) + 9}.00"
    at = "2026-11-21T10:00:00Z"
    desk.drop("more.csv", desk.order(paid, amount=other, updated_at=at))
    desk.wait(hours=24)
    desk.night(date="2026-11-21", workbooks=workbooks())
    again = Returned(newest_workbook(desk))
    again.answer("Written off (approved)", row=0, comment="seen again")
    take(desk, again.save("again.xlsx"), by="lee")
    with desk.environment() as environment:
        kim = identify("kim", code=None, environment=environment)
        with environment.store.reading() as connection:
            older, newer = (w.answer_id for w in resolution_rows.waiting_write_offs(connection))
        with pytest.raises(UsageError, match="nothing was agreed to"):
            agree_write_off(older, person=kim)
        agree_write_off(newer, person=kim)
        problems = verify(environment, reading=reading()).problems

    assert [each for each in problems if "written off" in each] == []
