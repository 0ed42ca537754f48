"""Two months made from the truth: one is closed, files come late for it, and it is reopened."""

import os
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.month.stated import earlier_query, statement_of
from recon.month.statement import (
    WAITS,
    ClosedPeriod,
    MonthFrame,
    prior_items,
)
from tests.recon.steps.month.month_folders import (
    as_earlier,
    days_of,
    earlier_of,
    nights_of,
)
from tests.recon.steps.month.month_truth import PLACE, MonthTruth
from tests.recon.steps.month.test_truth_of_months import ACCOUNTS, by_currency, by_payment

pytestmark = pytest.mark.xdist_group("late files")
ORDERS_A_DAY = int(os.environ.get("MONTHS_ORDERS", "2"))
"""More at campaign `months-truth`."""
NOVEMBER, DECEMBER = BusinessMonth.named("2026-11"), BusinessMonth.named("2026-12")
FIRST, LAST = NOVEMBER.first, NOVEMBER.last
KNOWN_BY = DECEMBER.first.isoformat()
"""The night by which November is closed."""
LATE = (("JPY", 1), ("EUR", 3), ("KWD", 2))
"""Currency and days before the last one: batches whose files come after it."""
NAMED = ("order_no", "entry_id")


def asked(month, nights, *, closed_by=""):
    frame, own = as_asked(month, nights, closed_by=closed_by)
    return statement_of(frame, nights=own)


def as_asked(month, nights, *, closed_by=""):
    before = [night for night in nights if night.business_date < month.first.isoformat()]
    own = nights[max(len(before) - 1, 0) :]
    first, last = month.first.isoformat(), month.last.isoformat()
    frame = framed(month, closed_by=closed_by)
    frame = replace(
        frame,
        due=[night.business_date for night in own if first <= night.business_date <= last],
        earlier=as_earlier(before[:-1]),
    )
    return frame, own


def framed(month, *, closed_by):
    return MonthFrame(
        month=month,
        account=PLACE,
        calendar=BusinessCalendar.of(),
        accounts=ACCOUNTS,
        closed=[ClosedPeriod(NOVEMBER, closed_by)] if closed_by else [],
    )


def moved(statement):
    return {
        (figure.currency, figure.name): (figure.count, figure.amount)
        for figure in statement.figures
        if figure.at == "moved" and figure.of in {"gateway", "reserve"}
    }


def truly(truth, *, first, last):
    counts: Counter[tuple[str, str]] = Counter()
    sums: Counter[tuple[str, str]] = Counter()
    for kind, currency, amount, day in truth.events():
        if first <= day <= last:
            counts[currency, kind] += 1
            sums[currency, kind] += amount
    return {place: (count, sums[place]) for place, count in counts.items()}


def late_by(days):
    return {
        (currency, LAST - timedelta(days=before)): LAST + timedelta(days=after)
        for (currency, before), after in zip(LATE, days, strict=True)
    }


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A night each day, and three batches of November that come in December."""
    truth = MonthTruth(FIRST, 11, per_day=ORDERS_A_DAY, late=late_by((2, 4, 3)), after=31)
    folder = tmp_path_factory.mktemp("late")
    return truth, [*earlier_of(truth, folder), *nights_of(truth, folder)]


@pytest.fixture(scope="module")
def closed(played):
    return asked(NOVEMBER, [night for night in played[1] if night.business_date <= KNOWN_BY])


@pytest.fixture(scope="module")
def again(played):
    return asked(NOVEMBER, played[1])


@pytest.fixture(scope="module")
def after_close(played):
    return asked(DECEMBER, played[1], closed_by=KNOWN_BY)


def test_files_that_came_late_are_in_the_month_that_is_stated_again(played, closed, again):
    """Short of them when it is closed, November is the truth once they are there, to the unit."""
    truth, _ = played
    true = truly(truth, first=FIRST, last=LAST)

    assert broken(closed) == broken(again) == []
    assert moved(closed) != true
    assert moved(again) == true
    assert by_currency(again.closing_items) == truth.owed(LAST)


def test_the_second_month_is_true(played):
    truth, nights = played
    statement = asked(DECEMBER, nights)

    assert broken(statement) == []
    assert not len(prior_items(statement.facts))
    assert moved(statement) == truly(truth, first=DECEMBER.first, last=DECEMBER.last)
    for items, day in ((statement.opening_items, LAST), (statement.closing_items, DECEMBER.last)):
        assert by_payment(items) == truth.unsettled(day)
        assert by_currency(items) == truth.owed(day)


def test_the_second_month_is_true_after_a_close(played, after_close):
    truth, _ = played
    late = Counter[tuple[str, str]]()
    for row in prior_items(after_close.facts).itertuples():
        late[str(row.currency), str(row.kind)] += int(str(row.amount))
    true = truly(truth, first=DECEMBER.first, last=DECEMBER.last)

    assert broken(after_close) == []
    assert by_payment(after_close.closing_items) == truth.unsettled(DECEMBER.last)
    assert by_currency(after_close.closing_items) == truth.owed(DECEMBER.last)
    own = {place: amount - late[place] for place, (_, amount) in moved(after_close).items()}
    assert {place: amount for place, amount in own.items() if amount} == {
        place: amount for place, (_, amount) in true.items() if amount
    }


def test_cash_in_transit_opens_with_what_the_month_before_was_closed_with(
    played, closed, after_close
):
    """A payout that is told after the close is paid out in the open month, as the gateway has it.

    What came of it to the bank before keeps its day: the bank told of it by then.
    """
    truth, _ = played
    late = {
        line.batch
        for line in truth.lines
        if line.kind == "payout" and line.day <= LAST and f"{line.known}" > KNOWN_BY
    }
    opens = Counter(in_transit(closed, at="closing"))
    for batch, currency, day, amount, _ in truth.at_bank:
        if batch in late and day <= LAST:
            opens[currency] -= amount

    assert late
    assert in_transit(after_close, at="opening") == {
        currency: amount for currency, amount in opens.items() if amount
    }
    paid = {
        (figure.currency, figure.name): (figure.count, abs(figure.amount))
        for figure in after_close.figures
        if (figure.of, figure.name) in {("transit", "paid"), ("gateway", "pay_out")}
    }
    for currency in after_close.currencies:
        assert paid[currency, "paid"] == paid[currency, "pay_out"]


def in_transit(statement, *, at):
    sums = {each: statement.sum_of(each, of="transit", at=at) for each in statement.currencies}
    return {currency: amount for currency, amount in sums.items() if amount}


@pytest.mark.parametrize("is_reported", [True, False])
def test_books_of_what_was_won_back_before_a_month_are_held_against_it(tmp_path, *, is_reported):
    """Where seven less are booked they are open in it, and unproven if no break of it says so."""
    truth = MonthTruth(FIRST, 12, per_day=1, after=31)
    sale = next(sale for sale in truth.sales if sale.is_booked_at_once)
    booked = next(each for each in truth.entries if each.order == sale.order)
    booked.amount -= 7
    if is_reported:
        truth.unbooked.add(sale.order)
    days = [*days_of(sale.sold, sale.won), LAST, *days_of(DECEMBER.first, truth.end)[::6]]
    nights = nights_of(truth, tmp_path, days=days)

    statement = asked(DECEMBER, nights)

    rows = statement.ledger[statement.ledger["key"].eq(sale.order)]
    assert [*zip(rows["what"], rows["amount"], rows["shown"], strict=True)] == [
        ("open", -7, -7 if is_reported else 0)
    ]
    unproven = {each.id for each in statement.equations if not each.holds}
    assert unproven == (set() if is_reported else {"P5", "P6"})


def test_entries_that_were_renumbered_before_a_month_are_in_its_books_once(tmp_path):
    """Of a payment that its own nights show, books of earlier nights do not count beside theirs."""
    truth = MonthTruth(FIRST, 12, per_day=1, after=31)
    sale = next(sale for sale in truth.sales if sale.is_booked_at_once)
    before = days_of(sale.sold, sale.won)
    days = [*before, LAST - timedelta(days=1), *days_of(DECEMBER.first, truth.end)[::6]]
    nights = nights_of(truth, tmp_path, days=days)
    for night in nights[: len(before)]:
        table = pq.read_table(night.files["ledger"])
        numbers = [
            f"{number}-old" if order == sale.order else number
            for order, number in zip(*(table[name].to_pylist() for name in NAMED), strict=True)
        ]
        at = table.schema.get_field_index("entry_id")
        table = table.set_column(at, table.schema.field(at), pa.array(numbers, pa.string()))
        pq.write_table(table, night.files["ledger"])

    assert broken(asked(DECEMBER, nights)) == []


def test_prior_items_are_what_the_late_files_told(played, after_close):
    """Fact by fact, also refunds and chargebacks that a line alone tells; and nothing else is."""
    truth, _ = played
    items = prior_items(after_close.facts)

    names = ["kind", "currency", "amount", "own_on"]
    true = truth.reported_after(DECEMBER.first, to=LAST)
    assert Counter(items[names].itertuples(index=False, name=None)) == Counter(
        {(*event, f"{day}"): count for (*event, day), count in true.items()}
    )
    late = {(f"B-{currency}-{day}", str(day)) for currency, day in truth.late}
    named = items[items["batch_id"].ne("")]
    assert {*zip(named["batch_id"], named["own_on"], strict=True)} == late


def test_the_second_month_opens_as_the_closed_one_was_closed(closed, after_close):
    """Item by item, whatever the late files told of it since."""
    names = ["what", "currency", "key", "order_no", "amount"]
    sides = [
        Counter(items[names].itertuples(index=False, name=None))
        for items in (closed.closing_items, after_close.opening_items)
    ]

    assert sides[0] == sides[1]


@pytest.mark.parametrize("closed_by", [KNOWN_BY, ""])
def test_earlier_nights_are_asked_about_what_comes_back_once_a_month_is_closed(played, closed_by):
    """Payments that November's last night shows no more, and a later one does again."""
    truth, nights = played
    own = [night for night in nights if night.business_date >= LAST.isoformat()]
    back = [
        sale
        for sale in truth.sales
        if sale.refunded == LAST + timedelta(days=3) and sale.is_booked_at_once
    ]
    frame = framed(DECEMBER, closed_by=closed_by)

    asked = earlier_query(frame, nights=own)

    assert len(back) == 2
    if not closed_by:
        assert asked.since is None
        return
    assert asked.payments >= len(back)
    assert asked.since is not None
    assert frame.calendar.business_date_of(asked.since) <= back[0].sold


def test_an_adjustment_of_a_batch_that_comes_late_waits_for_it(played, closed, again):
    """It is booked, and listed with its day and money until its batch is there."""
    truth, _ = played
    (line,) = (
        each
        for each in truth.lines
        if each.kind == "adjustment" and each.day <= LAST and each.known > DECEMBER.first
    )
    (entry,) = (
        each
        for each in truth.entries
        if each.key == "adjustments"
        and each.currency == line.currency
        and line.day <= each.day <= line.day + timedelta(days=2)
    )

    assert waiting(closed) == [
        (WAITS[0], line.currency, f"adjustments, not in batch, {entry.day}", line.gross)
    ]
    assert waiting(again) == []


def waiting(statement):
    rows = statement.ledger[statement.ledger["what"].isin(WAITS)]
    return [*rows[["what", "currency", "key", "amount"]].itertuples(index=False, name=None)]


def broken(statement):
    return [each for each in statement.equations if not each.holds]


@pytest.mark.parametrize("order", [*permutations((1, 2, 3))][1:], ids=str)
def test_late_files_give_the_same_totals_in_any_order(first_order, tmp_path, order):
    statement = in_order(order, folder=tmp_path)

    assert broken(statement) == []
    assert {*statement.figures} == {*first_order.figures}
    for name in ("opening_items", "closing_items", "ledger", "transit"):
        assert getattr(statement, name).equals(getattr(first_order, name)), name


@pytest.fixture(scope="module")
def first_order(tmp_path_factory):
    return in_order((1, 2, 3), folder=tmp_path_factory.mktemp("order"))


def in_order(order, *, folder):
    truth = MonthTruth(FIRST, 12, per_day=1, late=late_by(order))
    days = [*days_of(truth.first_close, LAST)[::5], *days_of(DECEMBER.first, truth.end)]
    return asked(NOVEMBER, nights_of(truth, folder, days=days))
