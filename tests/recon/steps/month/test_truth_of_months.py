import os
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from recon.config.rules import JournalAccounts
from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.model.errors import ReconError
from recon.month import stated as in_sql
from recon.month.close import month_files
from recon.month.stated import StatedMonth, equations_of, month_in_sql, statement_of
from recon.month.statement import (
    DIFFERENCES,
    IN_TRANSIT,
    ITEMS,
    MOVEMENTS,
    STRADDLES,
    TRANSIT,
    WAITS,
    MonthFrame,
    MonthNight,
    MonthStatement,
    blocks_of,
    entry_label,
)
from tests.recon.steps.month.month_folders import (
    CLEARING,
    FEES,
    NightFolders,
    account_of,
    due_of,
    earlier_of,
    nights_of,
)
from tests.recon.steps.month.month_truth import PLACE, Calendar, Entry, MonthTruth, moves

pytestmark = pytest.mark.xdist_group("truth of months")
PLAYED = {
    "summer time ends": MonthTruth(date(2026, 10, 1), 2, Calendar("Europe/London", 18), 3),
    "UTC": MonthTruth(date(2026, 11, 1)),
    "summer time begins": MonthTruth(date(2026, 3, 1), 3, Calendar("America/New_York", 24), 3),
    "first month": MonthTruth(date(2026, 11, 1), 4, per_day=3, is_first=True),
}
MONTHS = [*PLAYED][: int(os.environ.get("MONTHS_PLAYED", "1"))]
"""Of these; `make test-truths` plays all."""
CASES = 2 if len(MONTHS) == 1 else None
"""Changes of a kind, each of which states a month anew, so that every equation fails once at least;
`make test-truths` plays all."""
LATER_NIGHTS = 30 if len(MONTHS) == 1 else 100
ACCOUNTS = JournalAccounts(
    clearing=CLEARING,
    fees=FEES,
    sales="sales",
    refunds="refunds",
    chargebacks="chargebacks",
    payouts="payouts",
    reserves="reserves",
)
SMALL = MonthTruth(date(2026, 11, 1), 5, per_day=2)


def stated(truth, nights, *, due=None, earlier=()):
    return statement_of(framed(truth, nights, due=due, earlier=earlier), nights=nights)


def framed(truth, nights, *, due=None, earlier=()):
    cut_off = f"{truth.calendar.hour}:00"
    calendar = BusinessCalendar.of(timezone=truth.calendar.zone, cut_off=cut_off)
    return MonthFrame(
        month=BusinessMonth.named(f"{truth.first:%Y-%m}"),
        account=PLACE,
        calendar=calendar,
        due=due_of(truth, nights) if due is None else due,
        accounts=ACCOUNTS,
        earlier=earlier,
    )


@pytest.fixture(scope="module", params=MONTHS)
def played(request, tmp_path_factory):
    truth = PLAYED[request.param]
    folder = tmp_path_factory.mktemp("month")
    earlier = earlier_of(truth, folder)
    return truth, stated(truth, nights_of(truth, folder), earlier=earlier)


@dataclass(frozen=True)
class SmallMonth:
    """A small month as it was played, for whoever changes something of it."""

    truth: MonthTruth
    nights: list[MonthNight]
    """Some of them."""
    statement: MonthStatement


Bent = Callable[[SmallMonth, Path], list[MonthNight]]
"""Its nights, with something changed, in a folder."""


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    """Small months, each played and stated once, whoever asks."""

    @cache
    def played_once(first):
        truth = MonthTruth(first, SMALL.seed, per_day=SMALL.per_day)
        nights = nights_of(truth, tmp_path_factory.mktemp("small"), every=7)
        return SmallMonth(truth, nights, stated(truth, nights))

    return played_once


@pytest.fixture(scope="module")
def small(months):
    return months(SMALL.first).nights


@pytest.fixture(scope="module")
def unchanged(months):
    return months(SMALL.first).statement


@pytest.fixture(scope="module")
def tables(small):
    with month_in_sql(framed(SMALL, small), nights=small) as month:
        yield month


def by_currency(items, *, what=""):
    """Currency -> the sum of a list, of one class where it is named; none that is 0."""
    chosen = items[items["what"].eq(what)] if what else items
    sums = {
        str(key): int(value) for key, value in chosen.groupby("currency")["amount"].sum().items()
    }
    return {currency: amount for currency, amount in sums.items() if amount}


def test_a_month_of_few_rows_comes_to_what_it_does_as_one_of_many(small, unchanged, monkeypatch):
    monkeypatch.setattr(in_sql, "SMALL_BYTES", -1)

    as_of_many = stated(SMALL, small)

    assert [ways_of(each) for each in (unchanged, as_of_many)] == [{"python"}, {"pyarrow"}]
    files = [
        month_files(StatedMonth(each, (), "", is_first=False, rules={}))
        for each in (unchanged, replace(as_of_many, sql=unchanged.sql))
    ]
    assert files[0] == files[1]
    assert as_of_many.unknown_refunds == unchanged.unknown_refunds


def ways_of(statement):
    """How the texts of its lists are held."""
    return {str(frame["currency"].dtype.storage) for frame in lists_of(statement)}


def lists_of(statement):
    """Every list of a statement that has a transit and books, those of its journals among them."""
    values = (getattr(statement, each.name) for each in fields(statement))
    return [value for value in values if isinstance(value, pd.DataFrame)]


def test_movements_are_true_to_the_unit(played):
    truth, statement = played
    moved = {
        (figure.currency, figure.name): (figure.count, figure.amount)
        for figure in statement.figures
        if figure.at == "moved" and figure.of in {"gateway", "reserve"}
    }

    assert moved == truth.moved()


def test_every_movement_has_its_own_day_and_amount(played):
    truth, statement = played
    facts = statement.facts[~statement.facts["is_outside"].astype(bool)]
    names = ["kind", "currency", "amount", "event_on"]

    assert Counter(facts[names].itertuples(index=False, name=None)) == Counter(
        (kind, currency, amount, f"{day}")
        for kind, currency, amount, day in truth.events()
        if truth.within(day)
    )


def test_what_is_owed_is_true_at_both_closes(played):
    """Opening and closing items, and of them reserves and what was held back, are the truth's."""
    truth, statement = played

    for items, day in (
        (statement.opening_items, truth.first_close),
        (statement.closing_items, truth.last),
    ):
        assert by_payment(items) == truth.unsettled(day)
    moved, items = moved_by_key(truth), statement.closing_items
    for row in items[items["what"].eq("not_settled")].itertuples():
        days = [day for day, _ in moved[str(row.currency), str(row.order_no)] if day <= truth.last]
        # What moved before the month, and that no night of it tells, is dated by its payment.
        assert max(days) < truth.first or row.since == f"{max(days)}"
    assert by_currency(statement.opening_items) == truth.owed(truth.first_close)
    assert by_currency(statement.closing_items) == truth.owed(truth.last)
    assert by_currency(statement.closing_items, what="reserve") == truth.in_reserve(truth.last)
    assert by_currency(statement.closing_items, what="item") == truth.held_back(truth.last)


def by_payment(items):
    """Currency and payment -> what is listed of it as not settled."""
    rows = items[items["what"].isin(["not_settled", "never_shown"])]
    assert not rows.duplicated(["currency", "key"]).any()
    keys = zip(rows["currency"], rows["key"], strict=True)
    return {place: int(amount) for place, amount in zip(keys, rows["amount"], strict=True)}


def test_cash_in_transit_is_true_at_the_close(played):
    truth, statement = played
    sums = statement.transit.groupby("currency")["amount"].sum()

    assert {str(key): int(value) for key, value in sums.items() if value} == truth.in_transit(
        truth.last
    )


def test_what_came_twice_hides_no_payout_that_never_came(small, tmp_path):
    """Of two payouts of one currency one is not at the bank, and the other there twice."""
    paid, received = (pq.read_table(small[-1].files[name]) for name in ("paid", "received"))
    payouts, entries = paid.to_pylist(), received.to_pylist()
    alone = Counter(row["result_id"] for row in payouts + entries)
    never, twice, *_ = (
        row["result_id"]
        for row in entries
        if alone[row["result_id"]] == 2 and row["currency"] == "EUR" and row["amount"] > 0
    )
    amounts = {row["result_id"]: row["amount"] for row in entries}
    entries = [row for row in entries if row["result_id"] != never]
    entries += [{**row, "entry_no": "again"} for row in entries if row["result_id"] == twice]
    for row in payouts:
        if row["result_id"] in {never, twice}:
            row["state"] = "BREAK"
    files = {}
    for name, table, rows in (("paid", paid, payouts), ("received", received, entries)):
        files[name] = tmp_path / f"{name}.parquet"
        pq.write_table(table.from_pylist(rows, schema=table.schema), files[name])
    nights = [*small[:-1], replace(small[-1], files={**small[-1].files, **files})]

    _, block, _ = blocks_of(stated(SMALL, nights), currency="EUR")

    listed = {row.name: row.amount for row in block if row.kind == "listed"}
    assert listed["missing"] == amounts[never]
    assert listed["beyond"] == -amounts[twice]


def test_what_was_booked_is_true(played):
    truth, statement = played
    booked = {
        (figure.currency, figure.name): (figure.count, figure.amount)
        for figure in statement.figures
        if figure.at == "moved" and figure.of == "ledger"
    }

    assert booked == truth.booked(since=truth.first, to=truth.last)


def test_late_facts_are_named(played):
    """What a file brought after the last night is late, and nothing else of the settlement is."""
    truth, statement = played
    facts = statement.facts
    lined = facts[facts["is_late"] & facts["dated_by"].eq("settled") & facts["batch_id"].ne("")]

    assert {*lined["batch_id"]} == {
        line.batch for line in truth.lines if truth.within(line.day) and line.known > truth.last
    }


def test_every_equation_holds(played):
    _, statement = played

    assert [each for each in statement.equations if not each.holds] == []
    assert {each.id for each in statement.equations} == {f"P{number}" for number in range(1, 9)}


def test_every_class_of_straddling_items_is_there(played):
    _, statement = played
    dates = defaultdict(list)
    for row in statement.straddling.itertuples():
        dates[str(row.what)].append((str(row.first_on)[:7], str(row.then_on)[:7]))

    assert {*dates} == {"sold", "settled", "at_bank", "old_sale", "late"}
    for what in ("sold", "settled", "at_bank", "old_sale"):
        assert all(first != then for first, then in dates[what])


def test_an_entry_that_was_deleted_is_taken_back_by_the_night_that_has_it_no_more(tmp_path):
    """One of every kind, and an old one of an order that is asked about: each is named."""
    truth = MonthTruth(SMALL.first, SMALL.seed, per_day=SMALL.per_day)
    days = NightFolders(truth).nights()
    played = [*days[:-1:7], days[-1]]
    is_open = {sale.order for sale in truth.sales if sale.settled is None} - truth.unbooked
    sale = next(sale for sale in truth.sales if sale.order in truth.unbooked)
    names = {"order": sale.order, "key": sale.order}
    truth.entries.append(Entry("write_off", sale.currency, 500, truth.first, **names))
    gone: dict[str, Entry] = {}
    for entry in truth.entries:
        kind = "old" if entry.order in is_open else entry.kind
        nights = [night for night in played if night >= entry.day][1:]
        nights = nights[2:] if kind == "old" else nights
        if truth.within(entry.day) and nights and truth.within(nights[0]) and kind not in gone:
            entry.gone, gone[kind] = nights[0], entry
    statement = stated(truth, nights_of(truth, tmp_path, days=played))
    own = statement.straddling
    rows = own[own["what"].eq("entry_vanished")].to_dict("records")
    told = {(row["key"], row["order_no"], row["then_on"], row["amount"]) for row in rows}

    assert broken_ids(statement) == set()
    assert {*gone} == {"old", *(entry.kind for entry in truth.entries)}
    assert told == {
        (
            f"E{truth.entries.index(each)}",
            each.order,
            f"{each.gone}",
            -each.amount if each.kind == "write_off" else -moves(each),
        )
        for each in gone.values()
    }


def changed(nights, name, folder, *, night=-1, **cells):
    other = nights[night]
    frame = pq.read_table(other.files[name])
    rows = frame.to_pylist()
    at = next(
        n
        for n, row in enumerate(rows)
        if row.get("account_id", PLACE[1]) == PLACE[1]
        and all(row[key] for key in cells if key in {"exposure", "debit", "credit"})
        and ("net" not in cells or row["settled_on"] == other.business_date)
    )
    rows[at] = {**rows[at], **cells}
    path = folder / f"{name}.parquet"
    pq.write_table(frame.from_pylist(rows, schema=frame.schema), path)
    told = replace(other, files={**other.files, name: path})
    return [told if each is other else each for each in nights]


def broken_ids(statement):
    return {each.id for each in statement.equations if not each.holds}


def test_a_small_month_holds(unchanged):
    assert unchanged.holds


@pytest.mark.parametrize(
    ("name", "cells", "broken"),
    [
        ("ledger", {"amount": 7}, {"P5", "P6"}),
        ("settlement", {"night": -3, "net": 7}, {"P2"}),
        ("held", {"amount": 7}, {"P3"}),
        ("effects", {"amount": 7}, {"P5"}),
        ("journals", {"debit": 7}, {"P7"}),
        ("journals", {"credit": 7}, {"P7"}),
        ("movements", {"night": -3, "exposure": 7}, {"P1"}),
        ("breaks", {"night": -2, "exposure": 7}, {"P1"}),
    ][:CASES],
)
def test_what_does_not_tie_is_found(small, tmp_path, name, cells, broken):
    assert broken_ids(stated(SMALL, changed(small, name, tmp_path, **cells))) == broken


def test_a_journal_of_another_amount_than_its_break_is_found(small, tmp_path):
    nights = [*small]
    for side in ("debit", "credit"):
        folder = tmp_path / side
        folder.mkdir()
        nights = changed(nights, "journals", folder, **{side: 7})

    assert broken_ids(stated(SMALL, nights)) == {"P6"}


def test_a_day_without_a_night_and_a_night_out_of_the_chain_are_found(small):
    due = ["2026-11-02", *due_of(SMALL, small)]
    tampered = [*small[:2], replace(small[2], predecessor="run-that-was-replaced"), *small[3:]]

    assert broken_ids(stated(SMALL, small, due=due)) == {"P1"}
    assert broken_ids(stated(SMALL, tampered)) == {"P1"}


def test_why_the_books_differ_at_a_close_is_true(played):
    """An order is listed by what differed there, as what later entries and later events answer.

    Fees and payouts are listed as what differed, and of nothing that was even is anything said.
    """
    truth, statement = played
    listed: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in statement.ledger.itertuples():
        listed[str(row.currency), str(row.key)][str(row.what)] = int(str(row.amount))
    booked, moved = booked_by_key(truth), moved_by_key(truth)
    gaps = {
        place: sum(amount for day, amount in booked[place] if day <= truth.last)
        - sum(amount for day, amount in moved[place] if day <= truth.last)
        for place in {*booked, *moved}
    }

    assert {place: sum(whats.values()) for place, whats in listed.items()} == {
        place: gap for place, gap in gaps.items() if gap
    }
    for place, whats in listed.items():
        if place[1] in {"fees", "payouts"}:
            assert {*whats} == {place[1]}
            continue
        since = {
            "booked_later": [amount for day, amount in booked[place] if day > truth.last],
            "booked_earlier": [-amount for day, amount in moved[place] if day > truth.last],
        }
        for what, amount in whats.items():
            if what in since:
                assert abs(amount) <= sum(abs(each) for each in since[what])
        gap, way = gaps[place], 1 if gaps[place] > 0 else -1
        later = -way * sum(since["booked_later"])
        assert whats.get("booked_later", 0) == way * min(max(later, 0), abs(gap))
        if not any(since.values()):
            assert {*whats} <= {"open", *WAITS}


Amounts = dict[tuple[str, str], list[tuple[date, int]]]


def booked_by_key(truth):
    """Currency and order or group -> days and amounts of its entries."""
    sums: Amounts = defaultdict(list)
    for entry in truth.entries:
        if entry.day <= truth.end and entry.key not in {"reserves", "adjustments"}:
            sums[entry.currency, entry.key].append((entry.day, moves(entry)))
    return sums


def moved_by_key(truth):
    """Currency and order or group -> days and amounts of what took place."""
    sums: Amounts = defaultdict(list)
    for sale in truth.sales:
        for _, amount, day in moves_of(sale):
            if day is not None and day <= truth.end and sale.sold <= truth.end:
                sums[sale.currency, sale.order].append((day, amount))
    for kind, currency, amount, day in truth.events():
        if kind.startswith("fee_"):
            sums[currency, "fees"].append((day, amount))
        elif kind == "pay_out":
            sums[currency, "payouts"].append((day, amount))
    return sums


def moves_of(sale):
    """Account, amount and day of what took place with an order; None: it did not."""
    yield "sales", sale.amount, sale.captured
    for amount, day, _ in sale.refunds:
        yield "refunds", -amount, day
    yield "chargebacks", -sale.amount, sale.charged
    yield "chargebacks", sale.amount, sale.won


def test_fees_to_accrue_are_true(played):
    truth, statement = played
    charged: dict[str, int] = defaultdict(int)
    for line in truth.known_lines(truth.end):
        if line.day <= truth.last and line.kind != "payout":
            charged[line.currency] += line.fee
    for entry in truth.entries:
        if entry.key == "fees" and entry.day <= truth.last:
            charged[entry.currency] -= entry.amount * (1 if entry.kind == "fee" else -1)
    lines = statement.journals
    accrued = lines[lines["account"].eq(FEES)]
    sums = accrued.assign(amount=accrued["debit"] - accrued["credit"])
    sums = sums.groupby(["kind", "date", "currency"])["amount"].sum().to_dict()
    true = {currency: amount for currency, amount in charged.items() if amount}
    first = truth.last + timedelta(days=1)

    assert sums == {
        **{("accrual", f"{truth.last}", name): amount for name, amount in true.items()},
        **{("reversal", f"{first}", name): -amount for name, amount in true.items()},
    }


@pytest.mark.parametrize("day", [f"{SMALL.last}", f"{SMALL.end}"])
def test_a_fee_that_a_journal_books_after_the_month_is_accrued(small, unchanged, tmp_path, day):
    """What a break's journal books in the month is not accrued; one dated after it changes none."""
    accrued = accrued_fees(unchanged)
    nights, currency, amount = with_fee_journal(small, tmp_path, day=day)

    statement = stated(SMALL, nights)

    booked = amount if day == f"{SMALL.last}" else 0
    assert amount
    assert accrued_fees(statement) == accrued | {currency: accrued.get(currency, 0) - booked}
    assert broken_ids(statement) == set()


def proposed_by_account(statement):
    """Currency, order and account -> the days of its journals, and how they move clearing."""
    sums: dict[tuple[str, str, str], dict[date, int]] = defaultdict(lambda: defaultdict(int))
    lines = statement.journals
    own = lines[lines["kind"].eq("permanent") & lines["account"].ne(CLEARING)]
    for row in own.itertuples():
        place = str(row.currency), str(row.order_no), str(row.account)
        day = date.fromisoformat(str(row.date))
        sums[place][day] += int(str(row.credit)) - int(str(row.debit))
    return sums


def moved_by_account(truth):
    """Currency, order and account -> days and amounts of what nights show by itself."""
    sums = defaultdict(list)
    for sale in truth.sales:
        if {"hidden", "instructed"} & {sale.refund_way, sale.charge_way}:
            continue
        for account, amount, day in moves_of(sale):
            if day is not None and day <= truth.end:
                sums[sale.currency, sale.order, account].append((day, amount))
    return sums


def booked_by_account(truth):
    """Currency, order and account -> days and amounts of its entries."""
    sums = defaultdict(list)
    for entry in truth.entries:
        if entry.order and entry.day <= truth.end:
            place = entry.currency, entry.order, account_of(entry.kind)
            sums[place].append((entry.day, moves(entry)))
    return sums


def test_what_moved_in_the_month_is_booked_on_its_last_day(played):
    """Journals make each order and account even at the close, and by the newest night.

    Of one with parts of both months each part has its own day.
    """
    truth, statement = played
    moved, booked = moved_by_account(truth), booked_by_account(truth)
    days_of_order, days_of_account = defaultdict(set), defaultdict(set)
    for place, days in proposed_by_account(statement).items():
        assert {*days} <= {truth.last, truth.end}
        days_of_order[place[1]] |= {*days}
        if place not in moved or any(day > truth.last for day, _ in booked[place]):
            continue
        days_of_account[place] |= {*days}
        for close in (truth.last, truth.end):
            sides = moved[place], booked[place], days.items()
            came, known, proposed = (
                sum(amount for day, amount in side if day <= close) for side in sides
            )
            assert known + proposed == came

    both = {truth.last, truth.end}
    assert "refunds" in {place[2] for place, days in days_of_account.items() if days == both}
    assert sum(days == both for days in days_of_order.values()) >= len(("sold", "twice"))


def of_pay_outs(age, *, beyond=0):
    """What is not booked of payouts is a break, and its journal books it, or more."""

    def bent(month, folder):
        currency, gap = not_booked(month.statement)
        assert gap > 0
        own = {"code": "PAYOUT_NOT_BOOKED", "currency": currency, "age_days": age}
        return with_journal(month.nights, folder, account="payouts", effect=-gap - beyond, **own)

    return bent


def of_what_was_booked_later(month, folder):
    """The ledger booked it even after the close: it needs no journal there."""
    late = month.statement.ledger[month.statement.ledger["what"].eq("booked_later")].iloc[0]
    own = {"code": "LEDGER_MISSING", "currency": late["currency"], "age_days": 9}
    own |= {"order_no": late["key"]}
    return with_journal(month.nights, folder, account="sales", effect=-int(late["amount"]), **own)


def of_the_bank(age):
    """What arrived at the bank and is not booked there."""
    own = {"code": "BANK_NOT_BOOKED", "currency": "EUR", "age_days": age, "leg": "bank_ledger"}
    return lambda month, folder: with_journal(
        month.nights, folder, account="payouts", effect=900, against="bank", **own
    )


def of_reserves(*, is_due, beyond=0):
    """A reserve that was kept in the month, or after it, and is not booked."""

    def bent(_, folder):
        truth = MonthTruth(SMALL.first, SMALL.seed, per_day=SMALL.per_day)
        kept = max(
            (entry for entry in truth.entries if entry.kind == "reserve"),
            key=lambda entry: (entry.day <= truth.last) is is_due and entry.day <= truth.end,
        )
        truth.entries.remove(kept)
        own = {"code": "RESERVE_NOT_BOOKED", "currency": "EUR", "age_days": 9}
        nights = nights_of(truth, folder / "nights", every=7)
        effect = -kept.amount - beyond
        return with_journal(nights, folder, account="reserves", effect=effect, **own)

    return bent


JULY = date(2026, 7, 1)
"""Days off follow right after it."""
DATED: dict[str, tuple[date, Bent, bool]] = {
    "a payout as old as the month": (SMALL.first, of_pay_outs(4), True),
    "a reserve that was due": (SMALL.first, of_reserves(is_due=True), True),
    "a payout as old as the day after": (SMALL.first, of_pay_outs(3), False),
    "a payout as old as a day off after the month": (JULY, of_pay_outs(3), False),
    "a payout older than days off": (JULY, of_pay_outs(4), True),
    "more than differed at the close": (SMALL.first, of_pay_outs(9, beyond=1), False),
    "what the ledger booked even later": (SMALL.first, of_what_was_booked_later, False),
    "a reserve that was not due": (SMALL.first, of_reserves(is_due=False), False),
    "more than differs of reserves": (SMALL.first, of_reserves(is_due=True, beyond=5), False),
    "at the bank in the month": (SMALL.first, of_the_bank(4), True),
    "at the bank after it": (SMALL.first, of_the_bank(3), False),
}
SLOW = {"a payout as old as a day off after the month", "a payout older than days off"}
"""Of a month of their own: `make test-truths` plays them."""


@pytest.mark.parametrize("name", [name for name in DATED if CASES is None or name not in SLOW])
def test_a_journal_is_of_the_month_where_it_books_what_differed_at_its_close(
    months, tmp_path, name
):
    """By the age of its break, or the day on which its orders differed; else it keeps its day."""
    first, bent, is_of_month = DATED[name]
    month = months(first)

    statement = stated(month.truth, bent(month, tmp_path))

    lines = statement.journals
    day = month.truth.last if is_of_month else month.truth.end
    assert {*lines.loc[lines["break_id"].eq("own"), "date"]} == {f"{day}"}
    assert broken_ids(statement) == set()


def not_booked(statement):
    """A currency whose payouts are not all booked at the close, and by how much."""
    rows = statement.ledger[statement.ledger["key"].eq("payouts")]
    return str(rows["currency"].iloc[0]), int(rows["amount"].iloc[0])


def accrued_fees(statement):
    lines = statement.journals
    own = lines[lines["kind"].eq("accrual") & lines["account"].eq(FEES)]
    sums = (own["debit"] - own["credit"]).groupby(own["currency"]).sum()
    return {str(currency): int(amount) for currency, amount in sums.items()}


def with_fee_journal(nights, folder, *, day):
    """The nights whose newest has fees that waited as a break with a journal; currency, amount."""
    pending = pq.read_table(nights[-1].files["pending"]).to_pylist()
    waits = next(row for row in pending if row["entry_id"].startswith("fees:"))
    effect, currency = waits["effect_ledger"], waits["currency"]
    own = {"code": "FEE_NOT_BOOKED", "currency": currency, "date": day}
    return with_journal(nights, folder, account=FEES, effect=effect, **own), currency, -effect


def with_journal(nights, folder, *, account, effect, against=CLEARING, **cells):
    """The nights whose newest has a part of what waits of a group as a break with a journal."""
    newest = nights[-1]
    names = ("pending", "breaks", "effects", "journals")
    tables = {name: pq.read_table(newest.files[name]) for name in names}
    rows = {name: table.to_pylist() for name, table in tables.items()}
    own = {"order_no": "", "transaction_id": "", "break_id": "own", "journal_id": "own-1"}
    own |= {"leg": "ledger", "date": newest.business_date, **cells}
    own |= {"exposure": abs(effect), "amount": effect, "effect_ledger": effect}
    group = {FEES: "fees", "reserves": "reserves"}.get(account, "payout")
    waits = {**own, "entry_id": f"{group}:{cells['currency']}", "effect_ledger": -effect}
    sides = (max(effect, 0), max(-effect, 0))
    for name, booked_on, sums in (
        ("pending", "", sides),
        ("breaks", "", sides),
        ("effects", "", sides),
        ("journals", against, sides),
        ("journals", account, sides[::-1]),
    ):
        if name == "pending" and against != CLEARING:
            continue
        line = {"account": booked_on, "debit": sums[0], "credit": sums[1]}
        rows[name].append({**rows[name][0], **(waits if name == "pending" else own), **line})
    files = dict(newest.files)
    for name, table in tables.items():
        files[name] = folder / f"{name}.parquet"
        pq.write_table(table.from_pylist(rows[name], schema=table.schema), files[name])
    return [*nights[:-1], replace(newest, files=files)]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("P3.sql", "f.kind <> 'reserve'", "f.kind = 'capture'"),
        ("P4.sql", "WHERE m.counts_on <= before", "WHERE m.counts_on < '2000-01-01'"),
        (
            "P4.sql",
            "WHERE m.counts_on BETWEEN",
            "WHERE m.move <> 'received' AND m.counts_on BETWEEN",
        ),
        ("P1.sql", "SELECT code, currency, 1, exposure", "SELECT code, currency, 2, exposure"),
        ("P1.sql", "0, 0, 1, coalesce(exposure", "0, 0, 2, coalesce(exposure"),
        ("P1.sql", "WHERE chain.predecessor <> run_before", "WHERE true"),
        ("P1.sql", "WHERE day IN (SELECT business_date FROM own)", "WHERE day = ''"),
        ("P2.sql", "FROM straddling WHERE what = 'late'", "FROM straddling WHERE what = 'sold'"),
        ("P2.sql", "sum(times), sum(net * times)", "sum(times), sum(gross * times)"),
        ("P2.sql", "count(*), sum(l.net)", "count(*), sum(l.gross)"),
        ("P2.sql", "WHERE captured <> 0", "WHERE captured > 5000"),
        ("P6.sql", "booked_by AS", "booked_by + 1 AS"),
        ("P6.sql", "waits + shown", "waits"),
        ("P6.sql", "count(*), count(effect)", "count(*) + 1, count(effect)"),
        ("P7.sql", "sum(debit)::BIGINT, sum(credit)", "sum(debit)::BIGINT + 1, sum(credit)"),
        ("P7.sql", "sum(debit) <> sum(credit)", "sum(debit) = sum(credit)"),
        ("P7.sql", "FILTER (kind = 'accrual'), 0)::BIGINT", "FILTER (false), 0)::BIGINT"),
        ("P8.sql", "fee <> 0 AND counts_on", "fee > 0 AND counts_on"),
        ("P8.sql", "kind LIKE 'fee_%'", "kind LIKE 'fee_on%'"),
        ("P8.sql", "'amount', currency, 0, -sum(amount)", "'amount', currency, 0, 0"),
        ("P8.sql", "THEN amount ELSE -amount", "THEN amount ELSE amount"),
    ],
)
def test_an_equation_of_another_side_fails(tables, monkeypatch, name, before, after):
    """Each side of each equation is computed by itself: one that says something else is seen."""
    bend(monkeypatch, name, before, after)

    broken = {each.id for each in equations_of(tables) if not each.holds}

    assert broken == {name.removesuffix(".sql")}


def bend(monkeypatch, name, before, after):
    read = in_sql._text
    assert before in read(name)

    def bent(asked):
        return read(asked).replace(before, after) if asked == name else read(asked)

    monkeypatch.setattr(in_sql, "_text", bent)


@pytest.mark.parametrize(
    ("name", "before", "after", "broken"),
    [
        (
            "facts.sql",
            "SELECT 'adjustment', currency, gross,",
            "SELECT 'adjustment', currency, fee,",
            "P3",
        ),
        ("facts.sql", "-fee, settled_on", "-fee - 1, settled_on", "P8"),
        (
            "facts.sql",
            "-net, settled_on, order_no, '', batch_id",
            "net, settled_on, order_no, '', batch_id",
            "P3",
        ),
        ("positions.sql", "AND l.counts_on <= c.day)", "AND l.counts_on < c.day)", "P3"),
        (
            "positions.sql",
            "m.counts_on <= c.day\n    GROUP BY c.side, m.f",
            "m.counts_on < c.day\n    GROUP BY c.side, m.f",
            "P4",
        ),
        ("differing.sql", "-effect - unseen END", "-effect END", "P5"),
        (
            "differing.sql",
            "way * (size - booked - moved) AS amount",
            "way * (size - booked) AS amount",
            "P5",
        ),
        ("differing.sql", "way * booked, 0 FROM answered", "booked, 0 FROM answered", "P5"),
        (
            "dated_journals.sql",
            "THEN part ELSE 0 END AS debit",
            "THEN part + 1 ELSE 0 END AS debit",
            "P7",
        ),
        ("lists.sql", "own_facts WHERE is_late", "own_facts WHERE NOT is_late", "P2"),
        ("lists.sql", "WHERE NOT is_late GROUP BY reported_on", "GROUP BY reported_on", "P2"),
    ],
)
def test_tables_that_say_something_else_fail(small, monkeypatch, name, before, after, broken):
    """What lists and facts are made of is held by an equation that is made of something else."""
    bend(monkeypatch, name, before, after)

    assert broken in broken_ids(stated(SMALL, small))


def test_a_month_without_movement_is_a_statement(small):
    """Of a month before all payments every figure is nothing, and every equation holds."""
    frame = MonthFrame(BusinessMonth.named("2026-01"), PLACE, BusinessCalendar.of())
    statement = statement_of(frame, nights=small[:1])

    assert statement.holds
    assert not len(statement.facts)
    assert not len(statement.closing_items)


def test_a_month_is_proven_many_nights_later(small, tmp_path):
    """However many nights know of it: what is read of each takes no memory of its own."""
    last, nights = small[-1], [*small]
    for number in range(len(small), len(small) + LATER_NIGHTS):
        files = {}
        for name, path in last.files.items():
            files[name] = tmp_path / str(number) / path.name
            files[name].parent.mkdir(exist_ok=True)
            files[name].hardlink_to(path)
        day = (date.fromisoformat(last.business_date) + timedelta(days=number)).isoformat()
        before = nights[-1].run_id
        nights.append(MonthNight(number, f"run-{day}", day, "rules", files, before))

    assert stated(SMALL, nights).figures


def test_sql_that_cannot_be_run_states_nothing(small):
    gone = {**small[-1].files, "ledger": small[-1].files["ledger"].with_name("gone.parquet")}
    nights = [*small[:-1], replace(small[-1], files=gone)]

    with pytest.raises(ReconError, match="could not be stated, so nothing of it is proven"):
        stated(SMALL, nights)


@pytest.mark.parametrize("name", [*in_sql.TABLES, *in_sql.EQUATIONS, in_sql.FIGURES])
def test_a_month_whose_sql_died_is_not_stated(small, killed_at, name):
    """Whatever was asked when DuckDB's process was killed, the month says what to do."""
    killed = killed_at(in_sql._text(name).partition("\n")[0])

    died = r"DuckDB says 'the process that asks DuckDB ended \(SIGKILL\)'; run the command again"
    with pytest.raises(ReconError, match=died):
        stated(SMALL, small)
    assert len(killed) == 1


def test_every_block_adds_up_as_people_read_it(unchanged):
    """Opening and movements come to the closing, and what is listed does, too."""
    for currency in unchanged.currencies:
        gateway, transit, ledger = blocks_of(unchanged, currency=currency)
        for block in (gateway, transit, ledger):
            sums = dict.fromkeys(("open", "move", "close", "listed", "note"), 0)
            for row in block:
                sums[row.kind] += row.amount
            assert sums["open"] + sums["move"] == sums["close"]
            assert sums["listed"] == sums["close"]


def test_every_word_has_its_label(unchanged):
    """No kind of movement and no class of items is shown by its inner name."""
    shown: dict[tuple[str, str], set[str]] = {}
    for each in unchanged.figures:
        shown.setdefault((each.of, "moved" if each.at == "moved" else "listed"), set()).add(
            each.name
        )

    assert shown["gateway", "moved"] == {*MOVEMENTS} - {"fee_on_others", "payee"}
    assert shown["gateway", "listed"] <= {*ITEMS}
    assert shown["transit", "moved"] <= {*TRANSIT}
    assert shown["transit", "listed"] <= {*IN_TRANSIT}
    assert shown["ledger", "listed"] <= {*DIFFERENCES}
    assert {*unchanged.straddling["what"]} <= {*STRADDLES}
    assert entry_label("capture_reversal") == "Capture reversal"
