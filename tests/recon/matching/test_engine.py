"""What the engine makes of single sets."""

import csv
import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recon.cli import main
from recon.config.rules import Rules
from recon.matching.classifying.severity import risk_of_break
from recon.matching.frames.sources import SettledDays
from recon.matching.sets.residuals import tolerance_of
from recon.model.terms import Verdict
from tests.proving import failed, reconcile_proven

JUST_NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)


def test_money_in_another_account_nets_to_zero(case):
    """One break under the order's account; the effects stand in both."""
    result = case.order().payment(account_id="2", transaction_date=JUST_NOW).proven()

    row = result.breaks.iloc[0]
    assert len(result.breaks) == 1
    assert (row["account_id"], row["effect_orders"], row["exposure"]) == ("1", 0, 10000)
    assert (row["state_gateway"], row["transaction_id"]) == ("paid", "T1")
    effects = zip(result.effects["account_id"], result.effects["amount"].tolist(), strict=True)
    assert list(effects) == [("1", -10000), ("2", 10000)]
    assert failed(result) == []


def test_second_currencies_have_their_own_effects(case):
    """Currencies are never netted: each has its line."""
    effects = case.order().payment(currency="JPY", amount=500).run().effects

    lines = zip(effects["currency"], effects["amount"].tolist(), strict=True)
    assert sorted(lines) == [("EUR", -10000), ("JPY", 500)]


@pytest.mark.parametrize(
    ("amount", "days", "severity"),
    [
        (99_999, 20, "LOW"),
        (100_000, 20, "MEDIUM"),
        (1_000_000, 20, "HIGH"),
        (10_000_000, 20, "CRITICAL"),
        (99_999, 13, "MEDIUM"),
    ],
)
def test_severity_by_amount_and_age(case, amount, days, severity):
    """Thresholds are major units; more than three business days raise one step."""
    at = datetime(2026, 11, days, 1, tzinfo=UTC)
    result = case.order("cancelled", amount=amount, ordered_at=at)
    result = result.payment(amount=amount, transaction_date=at).run()

    assert result.breaks["severity"].tolist() == [severity]


@pytest.mark.parametrize(("back", "severity"), [(99_999, "LOW"), (100_000, "MEDIUM")])
def test_severity_goes_by_the_money_at_risk(case, back, severity):
    """Of a large payment only a part is still to be refunded: what it is about is that part."""
    whole, at = 10_000_000, datetime(2026, 11, 20, 1, tzinfo=UTC)
    part = {"amount": whole, "refund_amount": back, "ordered_at": at}
    result = case.order("partially_refunded", **part)
    result = result.payment(amount=whole, transaction_date=at).entry(amount=whole).run()
    row = result.breaks.iloc[0]

    assert row["code"] == "REFUND_DUE"
    assert row["exposure"] == whole
    assert abs(row["effect_orders"]) == back
    assert row["severity"] == severity


@pytest.mark.parametrize(("booked", "severity"), [(9_999_000, "LOW"), (9_000_000, "HIGH")])
def test_what_we_captured_ourselves_is_not_at_risk_where_the_books_alone_are_wrong(
    case, booked, severity
):
    """An order that is still open and our capture of it are explained; the booking is not."""
    whole, at = 10_000_000, datetime(2026, 11, 20, 1, tzinfo=UTC)
    result = case.order("authorised", amount=whole, ordered_at=at)
    result = result.payment(amount=whole, transaction_date=at).entry(amount=booked)
    (row,) = result.move("capture", "confirmed", amount=whole).run().breaks.to_dict("records")

    assert (row["code"], row["flags"]) == ("LEDGER_AMOUNT_MISMATCH", "instructed")
    assert (row["effect_orders"], row["exposure"]) == (whole, whole)
    assert risk_of_break(row) == whole - booked
    assert row["severity"] == severity


def test_without_a_ledger_severity_goes_by_the_leg_that_is_known(case):
    """What no ledger could tell is no effect, and does not make the whole payment the risk."""
    at = datetime(2026, 11, 20, 1, tzinfo=UTC)
    part = {"amount": 10_000_000, "refund_amount": 100, "ordered_at": at}
    result = case.order("partially_refunded", **part)
    result = result.payment(amount=10_000_000, transaction_date=at).run()

    assert any("no ledger" in labels for labels in result.not_covered)
    assert result.breaks["severity"].tolist() == ["LOW"]


def test_money_in_doubt_is_never_below_high(case):
    """A small refund in doubt is urgent all the same, though the amounts agree."""
    result = case.order(amount=100).payment(amount=100)
    result = result.move("refund", "in_doubt", amount=100, sent_at=JUST_NOW).run()

    assert result.breaks["severity"].tolist() == ["HIGH"]


@pytest.mark.parametrize(
    ("build", "verdict"),
    [
        (lambda c: c.order().payment().entry(), Verdict.RECONCILED),
        (lambda c: c.order().payment(), Verdict.INCOMPLETE),
        (lambda c: c.order().payment(amount=1).entry(amount=1), Verdict.BREAKS_OPEN),
        (lambda c: c.order().payment().entry().reject(order_no=""), Verdict.BREAKS_OPEN),
        (lambda c: c.order().ledger(), Verdict.INCOMPLETE),
        (
            lambda c: (
                c.order()
                .payment()
                .entry()
                .reject()
                .ruled(verdict={"max_unverified_rows": 2, "max_unverified_share": 0})
            ),
            Verdict.INCOMPLETE,
        ),
    ],
    ids=["clean", "no ledger", "break", "reject", "no answers", "too much unverified"],
)
def test_verdict(case, build, verdict):
    """The worst that applies."""
    assert build(case).run().verdict is verdict


def test_unmapped_codes_are_listed(case):
    """A code that the rules do not know is named with a sample."""
    assert case.order().payment("unmapped").run().unmapped_codes == (
        {"field": "payment_status", "code": "9999", "count": 1, "order_no": "A1"},
    )


def test_tolerance_is_the_smaller_bound_rounded_down():
    """Basis points are rounded down and never leave int64."""
    import numpy as np
    import pandas as pd

    rules = Rules.of(
        {"tolerance": {"EUR": {"absolute_minor_units": 10**12, "basis_points": 3}}}, source="test"
    )
    base = np.array([9_999, 10**17 - 1, 3_333])
    currency = pd.Series(["EUR", "EUR", "JPY"], dtype="str")

    assert tolerance_of(base, currency=currency, rules=rules).tolist() == [2, 10**12, 0]


WORTH = {"EUR": "60.00", "USD": "70.00", "JPY": "8000", "KWD": "9.000"}
"""Currency -> what each side of a payment says in it; none is a sum or difference of others."""
NOTHING = {"EUR": "0.00", "USD": "0.00", "JPY": "0", "KWD": "0.000"}
HEADERS = {
    "orders": "merchant_id,account_id,order_no,currency,amount,status,ordered_at",
    "gateway": "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
    "query_result,reference_no,transaction_date",
    "ledger": "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
    "transaction_id",
    "settlement": "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id,"
    "reference_no,currency,gross,fee,net",
}
AT = "2026-11-02T10:00:00Z"


def test_no_figure_is_a_difference_across_currencies(tmp_path, monkeypatch):
    """Whichever sides of a payment disagree, the whole of the order is at risk, in its currency."""
    rows: dict[str, list[str]] = {name: [header] for name, header in HEADERS.items()}
    for number, sides in enumerate(itertools.product(WORTH, repeat=4)):
        if len({*sides}) == 1:
            continue
        (o, g, b, s), key = sides, f"K{number}"
        worth = WORTH[s]
        rows["orders"].append(f"M,A,{key},{o},{WORTH[o]},paid,{AT}")
        rows["gateway"].append(f"M,A,{key},T{number},{g},{WORTH[g]},3000,1,,{AT}")
        rows["ledger"].append(f"L{number},M,A,{key},capture,{b},{WORTH[b]},{AT},T{number}")
        rows["settlement"].append(
            f"B-{s},M,A,2026-11-03,capture,{key},T{number},,{s},{worth},{NOTHING[s]},{worth}"
        )
    for name, lines in rows.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    files = [label for name in HEADERS for label in (f"--{name}", f"{name}.csv")]

    assert main(["reconcile", *files, "--as-of", "2026-11-20", "--out", "out"]) == 3
    with (tmp_path / "out" / "breaks.csv").open(newline="") as file:
        breaks = [row for row in csv.DictReader(file) if row["order_no"]]
    assert len(breaks) == len(WORTH) ** 4 - len(WORTH)
    wrong = [row for row in breaks if row["exposure"] != WORTH[row["currency"]]]
    assert wrong == []


def test_what_the_ledger_lacks_of_a_part_capture_in_doubt_is_the_part(new_case):
    """The gateway shows 100.00 EUR as paid, of which our capture in doubt is 40.00 EUR."""
    case = new_case().ruled(gateway={"amount_means": "authorised"}).ledger()

    (row,) = (
        case.order()
        .payment()
        .move("capture", "in_doubt", amount=4000)
        .run()
        .breaks.to_dict("records")
    )

    assert (row["code"], row["exposure"]) == ("MISSING_IN_LEDGER", 4000)
    assert row["reason"] == "Gateway captured 40.00 EUR, the ledger has no capture of it."


PAID_AT = datetime(2026, 11, 11, 12, tzinfo=UTC)
"""A Wednesday: settled by Monday the 16th at noon."""


def compared(case, **days):
    """The case as a night compares it, its files telling of some days."""
    told = SettledDays(**{"first": "2026-11-10", **days})
    sources = replace(case.sources(), settled=told)
    return reconcile_proven(sources, rules=case.rules, as_of=case.as_of)


def unsettled(case):
    """One payment that is settled, and one that is not; its batch may take its time."""
    case.ruled(grace={"settlement": "3bd", "held_back": "60bd"})
    case.order().payment().entry().line(settled_on="2026-11-10")
    case.order(order_no="B").payment(order_no="B", transaction_id="TB", transaction_date=PAID_AT)
    return case.entry(order_no="B")


@pytest.mark.parametrize(
    ("last", "state"),
    [("2026-11-10", "pending"), ("2026-11-15", "pending"), ("2026-11-16", "broken")],
)
def test_a_payment_is_unsettled_only_where_files_prove_the_day_it_was_due(case, last, state):
    """Before, it is looked for again the next day, however long its grace has been over."""
    result = compared(unsettled(case), last=last)
    assert list(result.breaks["code"]) == ["SETTLEMENT_MISSING"] * (state == "broken")
    assert list(result.pending["order_no"]) == [""] + ["B"] * (state == "pending")
    assert all(due > case.as_of for due in result.pending["due_at"])


def test_a_payment_from_before_the_first_day_owes_nothing(case):
    """The first day is that of all files ever read, not of the lines in the window."""
    result = compared(unsettled(case), first="2026-11-12", last="2026-11-19")
    assert list(result.breaks["code"]) == []
    assert list(result.pending["entry_id"]) == ["held:EUR:B1"]


def test_a_missing_file_is_told_as_the_end_of_the_proof(case):
    """What is not covered names the file and the last day that is."""
    result = compared(unsettled(case), last="2026-11-10", waits_for="S11.csv")
    assert "settlement due after 2026-11-10: S11.csv is missing" in result.not_covered


def _replied(case, *, order=None, in_ledger):
    """A refund of 30.00 that the reply confirmed and the query can't show."""
    if order is None:
        case.order()
    else:
        case.order("partially_refunded", refund_amount=order)
    case.payment().move("refund", "confirmed", amount=3000).ruled(payment_status={"3000": "paid"})
    case.entry()
    return case.entry("refund", amount=in_ledger) if in_ledger else case


def test_exposure_and_severity_are_the_worst_of_all_findings(case):
    """Two rows of one cancelled order hide nothing of the authorisation that is still open."""
    result = (
        case.order("cancelled", amount=10_000_000)
        .order("cancelled", amount=1)
        .payment("authorised", amount=10_000_000)
        .run()
    )

    row = result.breaks.iloc[0]
    assert (row["code"], row["flags"]) == ("DUPLICATE_ORDER_ROW", "CANCEL_DUE")
    assert (row["exposure"], row["severity"]) == (10_000_001, "CRITICAL")


def test_a_refund_known_from_its_reply_counts_as_money_at_risk(case):
    """The ledger lacks 30.00 that we know went out, though the query shows nothing of it."""
    row = _replied(case, in_ledger=0).run().breaks.iloc[0]

    assert (row["code"], row["effect_ledger"], row["exposure"]) == ("REFUND_NOT_BOOKED", 0, 3000)


def test_who_is_owed_follows_what_we_know_went_out(case):
    """30.00 went back where the order tells of 10.00: the merchant is owed, not the shopper."""
    row = _replied(case, order=1000, in_ledger=3000).run().breaks.iloc[0]

    assert (row["effect_orders"], row["owed_to"], row["exposure"]) == (1000, "merchant", 3000)


def test_a_break_of_an_instruction_alone_has_its_currency(case):
    """No other record has the key, so the instruction says in which currency it stands."""
    moved = case.ledger().move("capture", "confirmed", order_no="Z9", transaction_id="Z")

    assert moved.run().breaks[["currency", "exposure"]].to_numpy().tolist() == [["EUR", 10000]]


def test_an_instruction_told_twice_is_one_move(case):
    """The same row in two files refunds once; T2 counts the repeat."""
    case.order().payment("partially_refunded", refunded_amount=6000)
    for line in (2, 3):
        case.move("refund", "confirmed", instruction_id="I", amount=6000, line=line)

    assert case.outcome() == "MATCHED instructed"
    told = [
        total for total in case.proven().control_totals if total.name.startswith("instructions")
    ]
    assert [(total.id, total.left, total.right) for total in told] == [("T2", 2, 2)]


def test_a_later_word_of_an_instruction_counts(case):
    """It was approved in one file and confirmed in the next."""
    case.order().payment("partially_refunded", refunded_amount=6000)
    case.move("refund", "approved", instruction_id="I", amount=6000)
    case.move("refund", "confirmed", instruction_id="I", amount=6000, outcome_at=JUST_NOW)

    assert case.outcome() == "MATCHED instructed"


def test_an_instruction_told_in_two_ways_is_not_chosen(case):
    """Two amounts of one instruction at one time exclude each other."""
    case.order().payment("partially_refunded", refunded_amount=6000)
    for amount in (6000, 600):
        case.move("refund", "confirmed", instruction_id="I", amount=amount)

    assert "AMBIGUOUS_MATCH" in case.outcome()
