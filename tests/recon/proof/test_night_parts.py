"""A night that is judged in parts of its order numbers comes to the same as one that is not."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.frames.sources import KEY_COLUMNS, Basis, Previous, Sources, frame_of
from recon.model.errors import StoreError
from recon.proof.ledger_bridge import ledger_steps, steps_of
from recon.proof.proven import compared
from tests.injected import planted
from tests.injected.injected_files import AS_OF
from tests.injected.shifted_zone import zone_shifted
from tests.recon.matching.conftest import LONG_AGO
from tests.recon.matching.turned import turned
from tests.recon.proof.in_parts import reconciled_in_buckets
from tests.recon.proof.spoilt_nights import (
    RULES_OF_NIGHTS,
    assert_same,
    random_night,
    with_open_sets,
)
from tests.recon.proof.test_items import BY_MATCH, WITH_ITEMS

SOON = {"valid_days": 365, "warn_days": 365}
"""Every authorisation ends soon."""


def open_set(case):
    return case.order("authorised").payment("authorised")


BOUND: dict[str, Callable[[Any], Any]] = {
    "payment-of-another-order": lambda c: open_set(c).payment(
        "authorised", order_no="B", transaction_id="T1"
    ),
    "payment-of-another-order-entered": lambda c: (
        c.order().payment().entry(order_no="B", transaction_id="T1").order(order_no="B")
    ),
    "keyless-entry": lambda c: open_set(c).entry("refund", order_no="", transaction_id="T1"),
    "keyless-of-the-same-name": lambda c: open_set(c).entry(
        "refund", order_no="", transaction_id="A1"
    ),
    "keyless-move": lambda c: open_set(c).move("capture", "withdrawn", order_no=""),
    "rejected-row": lambda c: open_set(c).reject(),
    "write-off": lambda c: c.order().payment().entry().entry("write_off", amount=5, entry_id="W1"),
    "adjustment": lambda c: c.order().payment().entry().entry("adjustment", amount=5),
    "entry-number-of-a-fee-elsewhere": lambda c: (
        c.order()
        .payment()
        .entry("fee", amount=5, entry_id="E3")
        .order(order_no="B")
        .entry("refund", amount=7, entry_id="E3", order_no="B", transaction_id="T9")
    ),
    "entry-of-two-orders": lambda c: (
        c.order()
        .payment()
        .entry(entry_id="E1")
        .order(order_no="B")
        .entry(entry_id="E1", order_no="B", transaction_id="T9")
    ),
}
"""Sets that another row names, or that are counted together: no bucket compares them."""
ROUTINE: dict[str, Callable[[Any], Any]] = {
    "exact": lambda c: c.order().payment().entry(),
    "authorised": open_set,
    "cancelled": lambda c: c.order("cancelled").payment("cancelled"),
    "asked": lambda c: open_set(c).asked("A1"),
    "ends-soon": lambda c: open_set(c).ruled(authorisation=SOON),
    "other-date": lambda c: c.order(ordered_at=LONG_AGO - timedelta(days=1)).payment().entry(),
    "break": lambda c: c.order().payment("cancelled"),
    "break-of-the-books": lambda c: c.order().payment().entry(amount=9_000),
    "other-reference": lambda c: c.order("authorised", transaction_id="T9").payment("authorised"),
    "beside-a-keyless-entry": lambda c: open_set(c).entry(
        "refund", order_no="", transaction_id="T2"
    ),
    "order-twice": lambda c: open_set(c).order("authorised"),
    "payment-twice": lambda c: open_set(c).payment("authorised", transaction_id="T2"),
    "answer-twice": lambda c: open_set(c).answer("failed"),
    "not-found": lambda c: c.order("authorised").answer("not_found"),
    "unmapped": lambda c: c.order("authorised").payment("unmapped"),
    "our-move": lambda c: open_set(c).move("capture", "withdrawn"),
    "paid-under-another-number": lambda c: c.order(transaction_id="TZ").answer("not_found"),
    "paid-under-another-number-of-two-accounts": lambda c: (
        c.order(transaction_id="TZ")
        .answer("not_found")
        .order(account_id="2")
        .payment(account_id="2")
    ),
    "of-two-accounts": lambda c: c.order().payment(account_id="2"),
    "over-captured": lambda c: c.order().payment(captured_amount=20_000, refunded_amount=30_000),
}
"""Sets whose rows are all of one order number."""
NAMED = {**WITH_ITEMS, **BY_MATCH, **BOUND, **ROUTINE}
"""Sets that agree, stand by themselves, or are spoken of from elsewhere."""
SEEDS = int(os.environ.get("PARTS_SEEDS", "4"))
"""Nights whose rows are spoilt at random; `make test-truths` plays more."""
INJECTED = [(True, 3), (True, 64), (False, 5)][: 1 if SEEDS <= 4 else 3]
"""A ledger or none, and buckets; half a minute for 64 of them, which `make test-truths` plays."""


def items_of(result):
    rows = result.items.to_pylist()
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])


def assert_same_in_parts(night, *, buckets, rules=RULES_OF_NIGHTS, as_of=AS_OF, previous=None):
    """Hold the night in parts against the whole one; how many orders of it were aside."""
    told: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": previous}
    whole = compared(night, basis=Basis(rules, as_of, previous))
    ours = reconciled_in_buckets(night, buckets=buckets, **told)
    assert_same(ours.result, whole)
    assert items_of(ours.result) == items_of(whole)
    pd.testing.assert_frame_equal(ours.result.held, whole.held)
    assert ours.result.gateway_holds == whole.gateway_holds
    steps = [steps_of(ours.last, rules=rules), *(each.steps for each in ours.figures)]
    assert ledger_steps(night, rules=rules, pieces=steps) == ledger_steps(night, rules=rules)
    others = reconciled_in_buckets(turned(night), buckets=buckets, **told)
    assert others.result.digest == ours.result.digest
    return sum(each.rows["orders"] for each in ours.figures)


@pytest.mark.parametrize(("ledger", "buckets"), INJECTED)
def test_planted_nights_in_parts_come_to_the_same(buckets, *, ledger):
    night = with_open_sets(planted(size=120, broken=60).sources)
    aside = assert_same_in_parts(night if ledger else replace(night, ledger=None), buckets=buckets)

    assert aside > 50


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_nights_in_parts_come_to_the_same(seed):
    night, previous = random_night(seed)

    assert_same_in_parts(night, buckets=(3, 11)[seed % 2], previous=previous)


@pytest.mark.parametrize("buckets", [2, 9, 64])
@pytest.mark.parametrize(("budget", "breaks"), [(9, 0), (8, 3)])
def test_the_budget_of_rounding_is_of_all_buckets(case, budget, breaks, buckets):
    """Three cents of each of three orders are within nine, and each is a break within eight."""
    for name in ("R", "S", "T"):
        other = {"order_no": name, "transaction_id": f"T{name}", "amount": 10003}
        case.order(order_no=name).payment(**other).entry(**other, entry_id=f"E{name}")
    tolerance = {"absolute_minor_units": 5, "night_budget_minor_units": budget}
    told = case.ruled(tolerance={"EUR": tolerance})

    assert_same_in_parts(told.sources(), buckets=buckets, rules=told.rules, as_of=told.as_of)

    assert len(told.run().breaks) == breaks


@pytest.mark.parametrize("name", {**BOUND, **ROUTINE})
def test_a_bucket_compares_what_no_other_row_names(case, name):
    """Whatever its rows say, a set is final in its bucket; what is bound is compared last."""
    told = {**BOUND, **ROUTINE}[name](case)

    in_buckets = assert_same_in_parts(
        told.sources(), buckets=2, rules=told.rules, previous=told.previous, as_of=told.as_of
    )

    assert bool(in_buckets) is (name in ROUTINE)


def test_a_break_that_a_bucket_reopens_refers_to_the_closed_one(case):
    """It was closed before, and its set is compared in a bucket."""
    told = ROUTINE["break"](case)
    first = told.run()
    closed = frozenset(first.breaks["break_id"])
    nothing = frame_of((), columns=KEY_COLUMNS)
    previous = Previous(first.as_of, first.breaks.iloc[:0], nothing, closed=closed)
    night: Any = {"rules": told.rules, "as_of": told.as_of, "previous": previous}

    assert_same_in_parts(told.sources(), buckets=2, **night)
    ours = reconciled_in_buckets(told.sources(), buckets=2, **night).result

    assert {*ours.movements["reopens"]} == closed


def test_a_run_that_cannot_be_cut_is_refused(case, killed_at):
    """Compared whole it would need the memory of all its rows."""
    killed_at("CREATE TEMP VIEW entries")

    with pytest.raises(StoreError, match="nothing was compared"):
        reconciled_in_buckets(
            open_set(case).sources(), buckets=2, rules=case.rules, as_of=AS_OF, previous=None
        )


@pytest.mark.parametrize("name", NAMED)
def test_sets_of_one_number_a_part_come_to_the_same(case, name):
    """A row that speaks of another number's set is heard although it stands in another part."""
    told = NAMED[name](case)
    night = told.sources()
    beside = {"order_no": "Z", "transaction_id": "TZ"}
    told.order(order_no="Z").payment(**beside)
    if night.ledger is not None:
        told.entry(**beside, entry_id="EZ")

    whole = told.sources()
    assert_same_in_parts(whole, buckets=64, rules=told.rules, previous=told.previous)


def of_a_late_clock(source):
    """Three dates of which one source's times are eight hours ahead; some entries are lost."""
    files = zone_shifted(source, hours=8)
    ledger = files.sources.ledger
    at = ledger["booked_at"].dt.tz_convert(UTC)
    is_lost = at.dt.day.eq(2) & at.dt.hour.eq(3) & at.dt.minute.gt(20)
    return replace(files.sources, ledger=ledger[~is_lost].reset_index(drop=True))


def of_a_thin_day(source):
    """One source has a record of only one in eight payments of a day."""
    night = zone_shifted("ledger", hours=0).sources
    frame = getattr(night, source)
    at = frame["booked_at" if source == "ledger" else "ordered_at"].dt.tz_convert(UTC)
    kept = at.dt.day.ne(2) | (frame.index % 8 == 0)
    return replace(night, **{source: frame[kept].reset_index(drop=True)})


def in_cents(night):
    """A few orders of the file of all others are a hundred times too large."""
    amount = night.orders["amount"].where(
        night.orders.index % 40 != 0, night.orders["amount"] * 100
    )
    return replace(night, orders=night.orders.assign(amount=amount))


def unpaid(night):
    """The gateway knows nothing of some orders of a file."""
    gone = night.gateway.index % 24 == 0
    return replace(
        night,
        gateway=night.gateway[~gone].reset_index(drop=True),
        ledger=night.ledger[~gone].reset_index(drop=True) if night.ledger is not None else None,
    )


WITH_CAUSES: dict[str, Callable[[], Sources]] = {
    **{f"late clock: {name}": lambda n=name: of_a_late_clock(n) for name in ("orders", "ledger")},  # type: ignore[misc]  # mypy infers no default of a lambda
    "thin ledger": lambda: of_a_thin_day("ledger"),
    "thin orders": lambda: of_a_thin_day("orders"),
    "cents": lambda: in_cents(zone_shifted("ledger", hours=0).sources),
    "unpaid": lambda: unpaid(zone_shifted("ledger", hours=0).sources),
}
"""Nights in which what agrees speaks for or against a cause of breaks."""


@pytest.mark.parametrize("name", WITH_CAUSES)
def test_what_is_aside_speaks_about_causes(name):
    """A cause is told, or not, whether sets that agree stand beside the breaks or in parts."""
    files = zone_shifted("ledger", hours=8)

    aside = assert_same_in_parts(
        WITH_CAUSES[name](), buckets=6, rules=files.rules, as_of=files.as_of
    )

    assert aside > 100


@pytest.mark.parametrize("name", WITH_CAUSES)
def test_without_what_is_aside_another_cause_would_be_told(name, monkeypatch):
    """Each of these nights has a cause that hangs on the sets of the parts."""
    files = zone_shifted("ledger", hours=8)
    told: dict[str, Any] = {"rules": files.rules, "as_of": files.as_of, "previous": None}
    night = WITH_CAUSES[name]()
    whole = reconciled_in_buckets(night, buckets=6, **told).result

    monkeypatch.setattr("recon.matching.engine.added_evidence", lambda parts: parts[0])
    deaf = reconciled_in_buckets(night, buckets=6, **told).result

    assert whole.breaks["cause"].tolist() != deaf.breaks["cause"].tolist()


def abroad(night, *, rate):
    """Every fourth entry is booked in another currency, some days of which no rate holds."""
    ledger = night.ledger
    foreign = ledger.index % 4 == 0
    stated = ledger["amount"].astype("Int64").where(foreign)
    booked = ledger["amount"].where(~foreign, ledger["amount"] * 2)
    ledger = ledger.assign(
        transaction_currency=ledger["currency"].where(foreign, ""),
        transaction_amount=stated,
        currency=ledger["currency"].where(~foreign, "CHF"),
        amount=booked,
    )
    own = {"rate": {"EUR.CHF": {"valid_days": 1, "on": {rate: "2"}}}}
    rules = Rules.of(
        {**RULES_OF_NIGHTS.model_dump(exclude_unset=True), **own}, source="nights abroad"
    )
    return replace(night, ledger=ledger), rules


@pytest.mark.parametrize("day", ["2026-10-01", "2020-01-01"])
def test_entries_abroad_come_to_the_same(day):
    night = replace(planted(size=120, broken=30).sources, settlement=None)
    night, rules = abroad(night, rate=day)

    assert assert_same_in_parts(night, buckets=3, rules=rules) > 30


def test_an_entry_abroad_that_names_its_payment_alone_is_counted_once():
    """The first entry of the ledger, which every part needs and none counts."""
    night = replace(planted(size=120, broken=30).sources, settlement=None)
    ledger, gateway = night.ledger, night.gateway
    own = gateway["order_no"].eq(ledger["order_no"].iloc[0])
    ledger = ledger.assign(
        order_no=ledger["order_no"].where(ledger.index > 0, ""),
        transaction_id=ledger["transaction_id"].where(
            ledger.index > 0, gateway["transaction_id"][own].iloc[0]
        ),
    )
    night, rules = abroad(replace(night, ledger=ledger), rate="2026-10-01")

    assert assert_same_in_parts(night, buckets=3, rules=rules) > 0
