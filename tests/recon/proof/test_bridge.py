from dataclasses import replace
from datetime import UTC, datetime

from recon.model.terms import SourceKind
from recon.proof.ledger_bridge import NOT_CURRENT, OTHER_ACCOUNTS, bridge_of


def test_what_the_comparison_sets_aside_is_counted(case):
    """A repeat and an older version are set aside; other content without a date is not."""
    old, new = datetime(2026, 11, 1, 8, tzinfo=UTC), datetime(2026, 11, 1, 9, tzinfo=UTC)
    case.order().order()
    case.order(order_no="B", updated_at=old).order(order_no="B", amount=1, updated_at=new)
    case.order(order_no="C").order(order_no="C", amount=1)
    case.entry(entry_id="E").entry(entry_id="E").entry(entry_id="F")

    assert bridge_of(case.sources()) == {
        SourceKind.ORDERS: {NOT_CURRENT: -2},
        SourceKind.LEDGER: {NOT_CURRENT: -1},
    }


def test_orders_without_a_number_are_counted_too(case):
    """Only numbers that stand twice are looked at, and blank ones are such."""
    case.order(order_no="").order(order_no="").order(order_no="A", account_id="2")
    case.order(order_no="A", account_id="3")

    assert bridge_of(case.sources())[SourceKind.ORDERS] == {NOT_CURRENT: -1}


def test_steps_before_the_comparison_are_kept(case):
    """What became of the rows on their way stands beside what the comparison set aside."""
    steps = {SourceKind.ORDERS: {OTHER_ACCOUNTS: -42}}
    sources = replace(case.order().sources(), arrived=steps)

    assert bridge_of(sources) == {SourceKind.ORDERS: {OTHER_ACCOUNTS: -42, NOT_CURRENT: 0}}
