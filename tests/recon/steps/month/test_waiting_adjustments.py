"""Adjustments of no order: each waits for its other half, and is listed until it is there."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from recon.month import stated as in_sql
from recon.month.statement import WAITS
from tests.recon.steps.month.month_folders import days_of, nights_of
from tests.recon.steps.month.month_truth import MonthTruth
from tests.recon.steps.month.test_late_files import FIRST, LAST, NOVEMBER, asked, broken

DAY = date(2026, 11, 27)
AFTER = LAST + timedelta(days=1)
"""The night by which the month is stated."""
NOT_IN_BATCH, NOT_BOOKED = WAITS
Row = tuple[str, str, int]


def played(*, is_late=False):
    """A month with an adjustment of a batch of the 27th, which may come after the month."""
    known = AFTER + timedelta(days=3) if is_late else DAY
    truth = MonthTruth(FIRST, 12, per_day=1, late={("EUR", DAY): known})
    for entry in filter(of_adjustment, truth.entries):
        entry.day = DAY
    return truth


def of_adjustment(entry):
    """Whether it is booked for the batches of the 27th."""
    return entry.key == "adjustments" and DAY <= entry.day <= DAY + timedelta(days=2)


def stated(truth, folder):
    days = [*days_of(truth.first_close, LAST)[::9], AFTER]
    return asked(NOVEMBER, nights_of(truth, folder, days=days))


def waiting(statement):
    rows = statement.ledger[
        statement.ledger["what"].isin(WAITS) & statement.ledger["currency"].eq("EUR")
    ]
    return [*rows[["what", "key", "amount"]].itertuples(index=False, name=None)]


IN_NO_BATCH = (NOT_IN_BATCH, f"adjustments, not in batch, {DAY}")
SETTLED = (NOT_BOOKED, f"adjustments, not booked, {DAY}")


def as_it_is(entries, entry):
    """Nothing is changed."""


def other(entries, entry):
    """It is booked with another amount."""
    entries[entries.index(entry)] = replace(entry, amount=entry.amount + 7)


def taken_back(entries, entry):
    """It is booked twice, and once taken back."""
    entries += [replace(entry), replace(entry, kind="adjustment_reversal")]


@pytest.mark.parametrize(
    ("is_late", "change", "rows"),
    [
        (False, as_it_is, []),
        (True, as_it_is, [(*IN_NO_BATCH, -777)]),
        (False, list.remove, [(*SETTLED, 777)]),
        (False, other, [(*SETTLED, 777), (*IN_NO_BATCH, -770)]),
        (False, list.append, [(*IN_NO_BATCH, -777)]),
        (False, taken_back, []),
    ],
)
def test_what_has_no_other_half_is_listed_and_the_month_is_proven(
    tmp_path, *, is_late, change, rows
):
    """Each with its day and money; what has it is not."""
    truth = played(is_late=is_late)
    (entry,) = (each for each in truth.entries if of_adjustment(each) and each.currency == "EUR")
    change(truth.entries, entry)

    statement = stated(truth, tmp_path)

    assert sorted(waiting(statement)) == sorted(rows)
    assert broken(statement) == []


def test_a_month_that_forgets_them_is_found(tmp_path, monkeypatch):
    """P5 and P6 fail where what waits is taken for a difference that is shown."""
    read, text = in_sql._text, "WHERE w.is_entry"
    assert text in "".join(map(read, in_sql.TABLES))
    monkeypatch.setattr(in_sql, "_text", lambda name: read(name).replace(text, "WHERE false"))

    statement = stated(played(is_late=True), tmp_path)

    assert {each.id for each in broken(statement)} == {"P5", "P6"}


EARLIER_DAY = date(2026, 11, 9)
BATCH_OF_DAY = f"B-EUR-{DAY}"
LINE_OF_EARLIER = (NOT_BOOKED, f"adjustments, not booked, {EARLIER_DAY}", 777)


def booked_for(truth, *, references):
    """The line of the earlier batch is not booked; entries of its amount name something else."""
    own = f"B-EUR-{EARLIER_DAY}"
    (entry,) = (each for each in truth.entries if own == each.reference and "adj" in each.kind)
    truth.entries.remove(entry)
    for reference in references:
        truth.entries.append(replace(entry, day=DAY, reference=reference))


@pytest.mark.parametrize(
    ("references", "rows"),
    [
        ([BATCH_OF_DAY], [LINE_OF_EARLIER, (*IN_NO_BATCH, -777)]),
        ([""], []),
        (["ADJ-7 of nobody"], []),
        ([BATCH_OF_DAY, ""], [(*IN_NO_BATCH, -777)]),
    ],
    ids=["of another batch", "of none", "of none that a night told", "of another, and of none"],
)
def test_by_amount_no_batch_answers_another(tmp_path, *, references, rows):
    """Rows of different batches wait, both; a reference to no batch of a night names none."""
    truth = played()
    in_time(truth)
    booked_for(truth, references=references)

    statement = stated(truth, tmp_path)

    assert sorted(waiting(statement)) == sorted(rows)
    assert broken(statement) == []


def in_time(truth):
    """Each adjustment is booked on the day of its batch."""
    for entry in truth.entries:
        if entry.key == "adjustments" and entry.reference:
            entry.day = date.fromisoformat(entry.reference[-len("2026-11-09") :])


def test_of_two_alike_the_one_whose_batch_is_late_waits(tmp_path):
    """The name of the batch comes before the amount: without names the oldest is answered."""
    truth = MonthTruth(FIRST, 12, per_day=1, late={("EUR", EARLIER_DAY): AFTER + timedelta(days=3)})
    in_time(truth)

    assert waiting(stated(truth, tmp_path)) == [
        (NOT_IN_BATCH, f"adjustments, not in batch, {EARLIER_DAY}", -777)
    ]


@pytest.mark.parametrize("booked", [date(2026, 10, 28), FIRST])
def test_an_adjustment_of_a_batch_from_before_the_first_window_is_settled(tmp_path, booked):
    """Its line lies in the sum of the batch that it names: it waits for nothing."""
    truth = MonthTruth(FIRST, 12, per_day=1, window=3)
    (entry,) = (
        each
        for each in truth.entries
        if each.reference == "B-EUR-2026-10-27" and each.key[0] == "a"
    )
    entry.day = booked
    days = [*days_of(truth.first_close, LAST)[::3], AFTER]

    statement = asked(NOVEMBER, nights_of(truth, tmp_path, days=days))

    assert waiting(statement) == []
    assert broken(statement) == []
