"""The whole result: ids, effects per account, exposure, severity, order of rows, verdicts."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from recon.config.rules import Rules
from recon.matching.codes import PRECEDENCE
from recon.matching.frames.tolerance import tolerance_of
from recon.matching.judging.severity import risk_of_break
from recon.model.words import BreakCode, Verdict

JUST_NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)


def test_first_seen_is_carried_when_the_code_changes(
    case: Any, new_case: Callable[[], Any]
) -> None:
    """A reclassified break keeps its id and its first date."""
    earlier = new_case().order()
    earlier.as_of = datetime(2026, 11, 10, tzinfo=UTC)
    first = earlier.run()

    later = case.order().payment(amount=12000).after(first).run()

    assert first.breaks["code"].tolist() == ["MISSING_AT_GATEWAY"]
    assert later.breaks["code"].tolist() == ["AMOUNT_OVER"]
    assert later.breaks["first_seen"].tolist() == ["2026-11-09"]
    assert later.breaks["break_id"].tolist() == first.breaks["break_id"].tolist()


def test_an_earlier_chargeback_answer_counts(case: Any, new_case: Callable[[], Any]) -> None:
    """What an earlier run saw charged back was won back, not unproven."""
    case.order().payment().entry().entry("chargeback")

    assert (
        case.after(new_case().run(), charged_back=("A1",))
        .outcome()
        .startswith("CHARGEBACK_REVERSED_NOT_BOOKED")
    )


def test_money_in_another_account_nets_to_zero(case: Any) -> None:
    """One break under the order's account; the effects stand in both."""
    result = case.order().payment(account_id="2", transaction_date=JUST_NOW).run()

    row = result.breaks.iloc[0]
    assert len(result.breaks) == 1
    assert (row["account_id"], row["effect_orders"], row["exposure"]) == ("1", 0, 10000)
    assert (row["state_gateway"], row["transaction_id"]) == ("paid", "T1")
    effects = zip(result.effects["account_id"], result.effects["amount"].tolist(), strict=True)
    assert list(effects) == [("1", -10000), ("2", 10000)]
    assert [total for total in result.control_totals if not total.passed] == []


def test_second_currencies_have_their_own_effects(case: Any) -> None:
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
def test_severity_by_amount_and_age(case: Any, amount: int, days: int, severity: str) -> None:
    """Thresholds are major units; more than three business days raise one step."""
    at = datetime(2026, 11, days, 1, tzinfo=UTC)
    result = case.order("cancelled", amount=amount, ordered_at=at)
    result = result.payment(amount=amount, transaction_date=at).run()

    assert result.breaks["severity"].tolist() == [severity]


@pytest.mark.parametrize(("back", "severity"), [(99_999, "LOW"), (100_000, "MEDIUM")])
def test_severity_goes_by_the_money_at_risk(case: Any, back: int, severity: str) -> None:
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
    case: Any, booked: int, severity: str
) -> None:
    """An order that is still open and our capture of it are explained; the booking is not."""
    whole, at = 10_000_000, datetime(2026, 11, 20, 1, tzinfo=UTC)
    result = case.order("authorised", amount=whole, ordered_at=at)
    result = result.payment(amount=whole, transaction_date=at).entry(amount=booked)
    (row,) = result.move("capture", "confirmed", amount=whole).run().breaks.to_dict("records")

    assert (row["code"], row["flags"]) == ("LEDGER_AMOUNT_MISMATCH", "instructed")
    assert (row["effect_orders"], row["exposure"]) == (whole, whole)
    assert risk_of_break(row) == whole - booked
    assert row["severity"] == severity


def test_without_a_ledger_severity_goes_by_the_leg_that_is_known(case: Any) -> None:
    """What no ledger could tell is no effect, and does not make the whole payment the risk."""
    at = datetime(2026, 11, 20, 1, tzinfo=UTC)
    part = {"amount": 10_000_000, "refund_amount": 100, "ordered_at": at}
    result = case.order("partially_refunded", **part)
    result = result.payment(amount=10_000_000, transaction_date=at).run()

    assert any("no ledger" in words for words in result.not_covered)
    assert result.breaks["severity"].tolist() == ["LOW"]


def test_money_in_doubt_is_never_below_high(case: Any) -> None:
    """A small refund in doubt is urgent all the same, though the amounts agree."""
    result = case.order(amount=100).payment(amount=100)
    result = result.move("refund", "in_doubt", amount=100, sent_at=JUST_NOW).run()

    assert result.breaks["severity"].tolist() == ["HIGH"]


def test_pending_says_for_whom_it_waits(case: Any) -> None:
    """The side whose word is missing, and until when."""
    pending = case.order(ordered_at=JUST_NOW).run().pending.iloc[0]

    assert pending["expected_side"] == "gateway"
    assert pending["due_at"] == datetime(2026, 11, 21, 20, tzinfo=UTC)


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
def test_verdict(case: Any, build: Callable[[Any], Any], verdict: Verdict) -> None:
    """The worst that applies."""
    assert build(case).run().verdict is verdict


def test_unmapped_codes_are_listed(case: Any) -> None:
    """A code that the rules do not know is named with a sample."""
    assert case.order().payment("unmapped").run().unmapped_codes == (
        {"field": "payment_status", "code": "9999", "count": 1, "order_no": "A1"},
    )


def test_precedence_is_the_contract_order() -> None:
    """The primary code is the first of the published list."""
    assert tuple(BreakCode) == PRECEDENCE
    assert PRECEDENCE[0] == "WRONG_ACCOUNT"
    assert PRECEDENCE[-1] == "STALE_PENDING"


def test_tolerance_is_the_smaller_bound_rounded_down() -> None:
    """Basis points are rounded down and never leave int64."""
    import numpy as np
    import pandas as pd

    rules = Rules.of(
        {"tolerance": {"EUR": {"absolute_minor_units": 10**12, "basis_points": 3}}}, source="test"
    )
    base = np.array([9_999, 10**17 - 1, 3_333])
    currency = pd.Series(["EUR", "EUR", "JPY"], dtype="str")

    assert tolerance_of(base, currency=currency, rules=rules).tolist() == [2, 10**12, 0]
