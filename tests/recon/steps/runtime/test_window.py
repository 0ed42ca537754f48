"""Which entries of the ledger are compared with the payouts of a window."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import (
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    SETTLEMENT_COLUMNS,
    frame_of,
)
from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.proof.engine import reconcile
from recon.steps.compare.rebuild import OpeningLine, opening_of, write_opening
from recon.steps.compare.selected_entries import with_payouts
from recon.steps.night.report import skipped_nights
from recon.steps.runtime.window import (
    BeforeOpening,
    in_window,
    ledger_start,
    looked_back,
    window_start,
)
from recon.store.nights.runs import Run
from tests.recon.matching.conftest import Case

AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
GRACE = '\n[grace]\ngateway_to_ledger = "30bd"\nhard_limit = "30bd"\n'
LONG_AGO = AS_OF - timedelta(days=40)
HEADER = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"


def run_of(as_of):
    """A run that closes at an instant."""
    names = dict.fromkeys(Run.__dataclass_fields__, "")
    return Run(**{**names, "mode": Mode.LIVE, "started_at": as_of, "as_of": as_of})  # type: ignore[arg-type]


def newest(merchant):
    """The result of the run that finished last."""
    result: Reconciliation = merchant.result()
    return result


def told(merchant):
    """What page one of the newest night says of nights that never ran."""
    run = merchant.newest()
    with merchant.environment() as environment:
        return skipped_nights(run, environment=environment)


def wide_night(merchant):
    """A first night whose window reaches back a year; those after it look back as ever."""
    path = merchant.folder / "config" / "rules.toml"
    text = path.read_text()
    assert "[window]" in text
    path.write_text(text.replace("[window]", "[window]\norders_days = 366"))
    merchant.night()
    path.write_text(text)


def judged(merchant, order_no):
    """What the newest night says of one order: a code or a state, "" when it has none."""
    result = newest(merchant)
    frames = {"matched": result.matches, "pending": result.pending, "unverified": result.unverified}
    for code in result.breaks.loc[result.breaks["order_no"].eq(order_no), "code"]:
        return str(code)
    return next((word for word, f in frames.items() if f["order_no"].eq(order_no).any()), "")


def test_an_order_that_left_the_window_with_its_break_is_still_compared(merchant):
    """What is asked about is compared with its order, however old that is."""
    one = merchant.payments("captured")[0]
    too_little = merchant.order(one, amount="900000.00", currency="EUR")
    merchant.drop("orders.csv", too_little | {"ordered_at": LONG_AGO.isoformat()})
    wide_night(merchant)
    before = judged(merchant, one.order_no)
    merchant.wait(hours=96)
    with pytest.raises(UsageError, match="no finished night of 2026-11-23"):
        merchant.night(date="2026-11-24")
    merchant.night(date="2026-11-24", skip="the machine was away")

    (note,) = told(merchant)
    assert note.startswith(
        "No night ran for 2026-11-23 (the machine was away): what came in on this"
    )
    assert before != ""
    assert judged(merchant, one.order_no) == before


def test_old_entries_are_opening_balance_unless_somebody_asks(merchant):
    """An entry before the window is told, never a break; that of an open order is compared.

    What has the id of one that is compared is no entry of its own, in the count as in the list.
    """
    one = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    merchant.drop("orders.csv", merchant.order(one))
    entries = [("E0", one.order_no, one.amount), ("E1", "OLD-1", "5.00"), ("E0", "OLD-2", "7.00")]
    rows = [
        f"{name},100042,100042001,{order},capture,EUR,{amount},{LONG_AGO.isoformat()}"
        for name, order, amount in entries
    ]
    Path(merchant.folder / "ledger.csv").write_text(HEADER + "\n".join(rows) + "\n")
    merchant.night()

    assert judged(merchant, one.order_no) == "matched"
    assert judged(merchant, "OLD-1") == ""
    assert [t for t in newest(merchant).control_totals if not t.passed] == []
    scope = [line for line in newest(merchant).scope_of_assurance if "opening" in line["statement"]]
    assert [(line["currency"], line["count"], line["amount"]) for line in scope] == [
        ("EUR", 1, 500)
    ]
    with merchant.environment() as environment:
        found = opening_of("2026-11-20", environment=environment)
        path = write_opening(found, folder=merchant.folder / "opening")
    day = f"{LONG_AGO:%Y-%m-%dT%H:%M:%SZ}"
    assert found.lines == (OpeningLine("ledger entries", "EUR", 1, 500, day, day),)
    assert found.run.predecessor == "opening"
    assert path.read_text().splitlines()[1:] == [f"ledger entries,E1,OLD-1,EUR,5.00,{day}"]


@pytest.mark.parametrize(("opening", "said"), [("2026-11-20", ""), ("2026-11-01", "LEDGER_ONLY")])
def test_payments_before_the_opening_date_are_opening_balance(merchant, opening, said):
    """Without an order of ours nobody can judge them; from the opening date on they are breaks."""
    one = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    merchant.configure("rules.toml", opening, instead_of="2026-01-01")
    row = f"E1,100042,100042001,{one.order_no},capture,EUR,{one.amount},{AS_OF.isoformat()}"
    Path(merchant.folder / "ledger.csv").write_text(HEADER + row + "\n")
    merchant.night()

    found = judged(merchant, one.order_no)
    assert (found == "") == (said == "")
    assert [t for t in newest(merchant).control_totals if not t.passed] == []


def test_orders_are_asked_about_again_as_they_grow_old(merchant):
    """A matched order is looked at once more at 90 and 180 days, between them left in peace.

    What the gateway shows otherwise by then opens a break.
    """
    one, other, changed = [p for p in merchant.payments("captured") if p.currency == "EUR"][:3]
    ages = {one: 90, other: 91, changed: 180}
    orders = [
        merchant.order(p)
        | {"ordered_at": (AS_OF + timedelta(hours=12) - timedelta(days=days)).isoformat()}
        for p, days in ages.items()
    ]
    merchant.drop("orders.csv", *orders)
    rows = [
        f"E{p.order_no},100042,100042001,{p.order_no},capture,EUR,{p.amount},{LONG_AGO.isoformat()}"
        for p in (one, other, changed)
    ]
    Path(merchant.folder / "ledger.csv").write_text(HEADER + "\n".join(rows) + "\n")
    wide_night(merchant)
    first = [judged(merchant, p.order_no) for p in (one, other, changed)]
    merchant.post("/_sandbox/portal", {"action": "refund", "key": changed.transaction_id})
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21")

    assert first == ["matched"] * 3
    again = [judged(merchant, p.order_no) for p in (one, other, changed)]
    assert again == ["matched", "", "REFUND_UNEXPECTED"]


def test_rows_that_come_late_are_compared_however_old_their_orders_are(merchant):
    """A forgotten order and a new word on an old one are asked about and judged, each once."""
    one, late, gone, early = [p for p in merchant.payments("captured") if p.currency == "EUR"][:4]
    old = {"ordered_at": LONG_AGO.isoformat()}
    changed = merchant.order(one) | old
    merchant.drop("orders.csv", changed, merchant.order(gone) | old)
    merchant.night()
    assert judged(merchant, one.order_no) == ""
    too_old = {"ordered_at": "2020-01-01T00:00:00+00:00"}
    merchant.drop("orders.csv", changed | {"status": "cancelled"}, merchant.order(gone) | old)
    merchant.drop("late.csv", merchant.order(late, amount="900000.00") | old)
    merchant.drop("early.csv", merchant.order(early) | too_old)
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21")

    told = [judged(merchant, p.order_no) for p in (one, late, gone, early)]
    assert told == ["STATUS_CONFLICT", "AMOUNT_UNDER", "", ""]
    assert [t for t in newest(merchant).control_totals if not t.passed] == []


def test_an_old_order_without_an_answer_is_asked_about_the_next_night(merchant):
    """An outage on the one night that looks at it again heals like any other."""
    one = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    of_age = AS_OF + timedelta(hours=12) - timedelta(days=90)
    merchant.drop("orders.csv", merchant.order(one) | {"ordered_at": of_age.isoformat()})
    row = f"E1,100042,100042001,{one.order_no},capture,EUR,{one.amount},{LONG_AGO.isoformat()}"
    Path(merchant.folder / "ledger.csv").write_text(HEADER + row + "\n")
    wide_night(merchant)
    merchant.fault({"operation": "retrievalTrans", "kind": "html"})
    told = []
    for date in ("2026-11-21", "2026-11-22"):
        merchant.wait(hours=24)
        merchant.night(date=date)
        told.append(judged(merchant, one.order_no))
        merchant.fault()

    assert told == ["unverified", "matched"]


def test_what_waits_is_asked_about_until_it_is_late(merchant):
    """Also when its order left a window that is shorter than the grace."""
    path = merchant.folder / "config" / "rules.toml"
    text = path.read_text()
    assert "[window]" in text
    path.write_text(text.replace("[window]", "[window]\norders_days = 1") + GRACE)
    one = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    recent = {"ordered_at": (AS_OF - timedelta(hours=12)).isoformat()}
    merchant.drop("orders.csv", merchant.order(one) | recent)
    Path(merchant.folder / "ledger.csv").write_text(HEADER)
    told = []
    for date in ("2026-11-20", "2026-11-21", "2026-11-22"):
        merchant.night(date=date)
        told.append(judged(merchant, one.order_no))
        merchant.wait(hours=24)

    assert told == ["pending"] * 3


def test_what_we_moved_is_not_denied_by_a_gateway_that_nobody_asked(merchant):
    """A cancel confirmed long ago, whose order left the window, is no finding of a later night."""
    merchant.configure("rules.toml", "[window]\norders_days = 1", instead_of="[window]")
    one = next(p for p in merchant.payments("authorised") if p.currency == "EUR")
    recent = {"ordered_at": (AS_OF - timedelta(hours=12)).isoformat()}
    merchant.drop("orders.csv", merchant.order(one, status="cancelled", action="cancel") | recent)
    told = []
    for day in range(20, 25):
        merchant.night(date=f"2026-11-{day}")
        told.append(judged(merchant, one.order_no))
        merchant.wait(hours=24)

    assert told == ["matched", "matched", "matched", "", ""]


def test_nights_that_were_skipped_are_caught_up():
    """The spans of a night begin where the night before ended."""
    spans = list(looked_back(run_of(AS_OF), before=run_of(AS_OF - timedelta(days=3))))

    assert spans[0] == (AS_OF - timedelta(days=4), AS_OF - timedelta(days=1))
    assert spans[-1] == (AS_OF - timedelta(days=183), AS_OF - timedelta(days=180))
    first = list(looked_back(run_of(AS_OF), before=None))
    assert first[0] == (AS_OF - timedelta(days=2), AS_OF - timedelta(days=1))


def test_each_window_has_its_days_and_none_begins_before_the_opening():
    """Midnight of the opening date is local."""
    rules = Rules.of({"window": {"orders_days": 5, "ledger_days": 9}}, source="x")
    opened = Rules.of(
        {"window": {"opening_date": "2026-11-15"}, "calendar": {"timezone": "Asia/Tokyo"}},
        source="x",
    )

    assert window_start(run_of(AS_OF), rules=rules) == AS_OF - timedelta(days=5)
    assert ledger_start(run_of(AS_OF), rules=rules) == AS_OF - timedelta(days=9)
    assert window_start(run_of(AS_OF), rules=opened) == datetime(2026, 11, 14, 15, tzinfo=UTC)


@pytest.mark.parametrize("fees_per", ["balance", "payment", "batch", "day", "month"])
@pytest.mark.parametrize("name", [{"order_no": "OLD-1"}, {"order_no": "", "transaction_id": "T1"}])
def test_what_the_books_say_of_fees_stays_where_the_fees_of_the_settlement_stay(fees_per, name):
    """A payment from before the opening, settled after it: its fee is compared on both sides."""
    booked = {"amount": 200, "booked_at": datetime(2026, 6, 2, 12, tzinfo=UTC)}
    case = Case().ruled(window={"opening_date": "2026-06-01"}, ledger={"fees_per": fees_per})
    case.payment(order_no="OLD-1", transaction_date=datetime(2026, 5, 31, 12, tzinfo=UTC))
    case.line(order_no="OLD-1", settled_on="2026-06-02", fee=200)
    case.line("payout", order_no="", transaction_id="", settled_on="2026-06-02", gross=9800)
    case.entry("payout", order_no="B1", **{**booked, "amount": 9800})
    case.entry("fee", reference_no="B1", **{**booked, **name})
    before, whole = BeforeOpening(frozenset({"OLD-1"}), frozenset({"T1"})), case.sources()
    assert whole.settlement is not None
    assert whole.ledger is not None
    sources = replace(
        whole,
        gateway=before.without(whole.gateway),
        settlement=before.lines(whole.settlement),
        ledger=before.entries(whole.ledger, is_settled=True),
    )

    result = reconcile(sources, rules=case.rules, as_of=AS_OF)
    assert [total for total in result.control_totals if not total.passed] == []
    assert [*result.breaks["code"]] == []


SINCE = datetime(2026, 10, 21, tzinfo=UTC)


def entry(name, day, **cells):
    """A payout in the ledger."""
    plain = {"entry_id": name, "entry_type": "payout", "currency": "EUR", "amount": 1, "line": 2}
    return {**plain, "booked_at": f"2026-{day}T12:00:00Z", **cells}


ENTRIES = (
    entry("batch of before the window", "10-22", reference_no="B0"),
    entry("batch of the window", "10-22", reference_no="B1"),
    entry("names nothing, later", "11-05", reference_no="B9"),
    entry("of ours, long ago", "06-01", reference_no="P1"),
    entry(
        "reversal of it",
        "06-02",
        entry_type="payout_reversal",
        reverses_entry_id="of ours, long ago",
    ),
    entry("capture long ago", "06-01", entry_type="capture", reference_no="P1"),
    entry("capture", "10-22", entry_type="capture"),
)


def kept(settlement):
    """The entries that a night compares."""
    entries = frame_of(ENTRIES, columns=LEDGER_COLUMNS)
    ours = [{"kind": "payout", "request_id": "P1", "amount": 1, "line": 0}]
    found = with_payouts(
        pd.concat(in_window([entries], since=SINCE, queried=set())),
        entries=entries,
        settlement=settlement,
        instructions=frame_of(ours, columns=INSTRUCTION_COLUMNS),
        since=SINCE,
        rules=Rules.of({}, source="test"),
    )
    return list(found["entry_id"])


def test_a_payout_is_held_against_its_entry_however_old_that_is():
    """Without settlement files: the window's entries, and those that name a payout of ours."""
    assert kept(None) == [
        "batch of before the window",
        "batch of the window",
        "names nothing, later",
        "capture",
        "of ours, long ago",
        "reversal of it",
    ]


def test_a_pay_out_booked_early_in_the_window_may_be_of_a_batch_before_it():
    """Where files tell of payouts: only later entries that name none are somebody's error."""
    paid = [{"batch_id": "B1", "entry_type": "payout", "gross": 1, "fee": 0, "net": 1, "line": 2}]
    assert kept(frame_of(paid, columns=SETTLEMENT_COLUMNS)) == [
        "batch of the window",
        "names nothing, later",
        "capture",
        "of ours, long ago",
        "reversal of it",
    ]


def test_what_closes_a_group_stays_as_long_as_the_group_does():
    """A break that was written off does not come back when the window moves on."""
    entries = frame_of(
        [
            entry("by its batch", "06-01", entry_type="write_off", reference_no="B0"),
            entry("adjusted", "06-01", entry_type="adjustment", reference_no="bank:EUR"),
            entry("of a payment", "06-01", entry_type="write_off", transaction_id="T"),
            entry("of an order", "06-01", entry_type="write_off", order_no="O"),
            entry("at the bank", "06-01", entry_type="bank", reference_no="B0"),
        ],
        columns=LEDGER_COLUMNS,
    )
    found = pd.concat(in_window([entries], since=SINCE, queried=set(), settled_from=SINCE))
    assert list(found["entry_id"]) == ["by its batch", "adjusted", "at the bank"]


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ([("early", "10-22", 100)], []),
        ([("early", "10-22", 900)], ["early"]),
        ([("as soon as it is late", "10-23", 100)], ["as soon as it is late"]),
        ([("booked before it is settled", "10-21", 900)], ["booked before it is settled"]),
        ([("booked before anything is", "10-20", 900)], ["booked before anything is"]),
        ([("longer before", "10-19", 900)], []),
        ([("of another amount", "10-20", 100)], []),
        ([("before", "10-21", 900), ("after", "10-22", 900)], ["after"]),
        ([("before", "10-20", 900), ("at once", "10-21", 900)], ["before"]),
        ([("first", "10-22", 900), ("second", "10-22", 900)], ["first"]),
        ([("given back", "10-22", -900)], []),
        ([("by its name", "10-22", 900, "B2"), ("beside it", "10-22", 900)], ["by its name"]),
    ],
)
def test_an_entry_without_a_batch_is_of_one_from_before_unless_a_pay_out_has_its_amount(
    entries, named
):
    """Only while such a batch may still be booked: two business days by the rules.

    So long before its day a payout may be booked, too.
    """
    rows = [
        entry(
            name,
            day,
            amount=abs(amount),
            entry_type="payout" if amount > 0 else "payout_reversal",
            reference_no=batch[0] if batch else "",
        )
        for name, day, amount, *batch in entries
    ]
    paid = [
        {"batch_id": "B2", "entry_type": "payout", "currency": "EUR", "settled_on": "2026-10-22"}
        | {"gross": 900, "fee": 0, "net": 900, "line": 2}
    ]
    books = frame_of(rows, columns=LEDGER_COLUMNS)
    found = with_payouts(
        pd.concat(in_window([books], since=SINCE, queried=set(), settled_from=SINCE)),
        entries=books,
        settlement=frame_of(paid, columns=SETTLEMENT_COLUMNS),
        instructions=frame_of([], columns=INSTRUCTION_COLUMNS),
        since=SINCE,
        rules=Rules.of({}, source="test"),
    )
    assert list(found["entry_id"]) == named
