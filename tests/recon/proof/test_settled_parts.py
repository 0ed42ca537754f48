"""Nights with a settlement in parts: its lines belong to sets and to groups, in whichever part."""

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from recon.proof.engine import reconcile
from recon.proof.exact_sums import SUM_MAX
from tests.injected import planted
from tests.recon.matching.cash import truth
from tests.recon.matching.cash.contract_truth import FIRST, TARIFFS, add_line
from tests.recon.matching.cash.contract_truth import truth_of as truth_of_contract
from tests.recon.matching.cash.month_files import month_of
from tests.recon.matching.cash.test_truth_of_contract import AS_OF as AS_OF_CONTRACT
from tests.recon.matching.cash.test_truth_of_contract import sources_of
from tests.recon.proof.in_parts import reconciled_in_buckets
from tests.recon.proof.spoilt_nights import RULES_OF_NIGHTS
from tests.recon.proof.test_night_parts import assert_same_in_parts

SEEDS = range(int(os.environ.get("PARTS_SEEDS", "4")))
"""Months made from the truth; `make test-truths` plays more."""
AS_OF = datetime(2026, 11, 28, tzinfo=UTC)
OF_PAYMENTS = "payment"
"""Groups of fees as many as payments: such a night is compared whole."""
BACK = {"entry_type": "refund", "gross": -4000}
Change = Callable[[Any], Any]


@pytest.mark.parametrize("seed", [n for n in SEEDS if truth.truth_of(n).fees_per != OF_PAYMENTS])
def test_months_of_fees_reserves_and_pay_outs_come_to_the_same(seed, tmp_path):
    """Held back, booked late, written off, released too far: nothing of the result differs."""
    month, chance = truth.truth_of(seed), random.Random(seed)
    sources, rules = month_of(month, chance=chance, folder=tmp_path)

    aside = assert_same_in_parts(sources, buckets=(3, 24)[seed % 2], rules=rules, as_of=AS_OF)

    assert aside > 3


@pytest.mark.parametrize("name", TARIFFS)
def test_prices_of_a_contract_come_to_the_same(name):
    """What is charged, given back and not covered is told once; a monthly fee is of no part."""
    months = truth_of_contract(name, seed=1)
    add_line(months, "", "fee", 0, FIRST, fee=9_900, transaction_id="")
    sources, rules = sources_of(months)

    aside = assert_same_in_parts(sources, buckets=9, rules=rules, as_of=AS_OF_CONTRACT)

    assert aside > 3


def settled(case):
    for name in ("A1", "B"):
        own = {"order_no": name, "transaction_id": f"T-{name}"}
        case.order(order_no=name).payment(**own).entry(**own).line(**own)
    return case


AMONG: dict[str, Change] = {
    "refund told under the other order": lambda c: c.line(
        **BACK, order_no="B", transaction_id="T-C"
    ),
    "refund told under an order that is not verified": lambda c: c.order(order_no="D").payment(
        "partially_refunded", order_no="D", transaction_id="T-D"
    ).entry(order_no="D").line(order_no="D", transaction_id="T-D").line(
        **BACK, order_no="D", transaction_id="T-C"
    ),
    "refund told without an order": lambda c: c.line(**BACK, order_no="", transaction_id="T-C"),
    "refund told under the own order alone": lambda c: c.line(
        **BACK, order_no="C", transaction_id=""
    ),
    "fee given back": lambda c: c.line("fee", order_no="B", transaction_id="T-B", gross=0, fee=-9),
    "reserve of an order": lambda c: c.line(
        "reserve", order_no="B", transaction_id="T-B", gross=-500
    ).entry("reserve", order_no="B", amount=500),
    "fee booked under an order": lambda c: c.line(
        order_no="D", transaction_id="T-D", fee=30
    ).entry("fee", order_no="B", amount=30),
    "write-off of a group under an order": lambda c: c.line(
        order_no="D", transaction_id="T-D", fee=30
    ).entry("write_off", order_no="B", reference_no="fees:EUR", amount=30),
    "adjustment of a group under an order": lambda c: c.line(
        order_no="D", transaction_id="T-D", fee=30
    ).entry("adjustment", order_no="B", reference_no="fees:EUR", amount=30),
    "adjustment of a group under an order that is not verified": lambda c: c.order(
        order_no="D"
    ).payment("partially_refunded", order_no="D", transaction_id="T-D").entry(order_no="D").line(
        order_no="D", transaction_id="T-D", fee=30
    ).entry("adjustment", order_no="D", reference_no="fees:EUR", amount=30),
    "line without an order": lambda c: c.line(order_no="", transaction_id="T-B", gross=5),
    "line that has a reference alone": lambda c: c.order(order_no="R").payment(
        order_no="R", transaction_id="T-R", reference_no="REF-R"
    ).entry(order_no="R", transaction_id="T-R").line(
        order_no="", transaction_id="", reference_no="REF-R"
    ),
    "line of an order that nobody has": lambda c: c.line(order_no="Z", transaction_id="T-Z"),
    "the first day": lambda c: c.line(
        order_no="Z", transaction_id="T-Z", settled_on="2026-09-01"
    ).order(order_no="Q").payment(order_no="Q", transaction_id="T-Q").entry(
        order_no="Q", transaction_id="T-Q"
    ),
    "payout": lambda c: c.line("payout", order_no="", transaction_id="", gross=0, net=20000),
    "payout under an order": lambda c: c.line(
        "payout", order_no="B", transaction_id="T-B", gross=0, net=20000
    ),
    "another account": lambda c: c.line(order_no="B", transaction_id="T-B", account_id="2"),
}  # fmt: skip
"""Lines and entries that say something of what stands in another part."""


@pytest.mark.parametrize("name", AMONG)
def test_a_line_that_speaks_of_another_part_is_heard(case, name):
    """A refund, a fee or a write-off counts once and where it belongs."""
    told = AMONG[name](settled(case))
    told.order(order_no="C").payment(
        "partially_refunded", order_no="C", transaction_id="T-C"
    ).entry(order_no="C").line(order_no="C", transaction_id="T-C")

    assert_same_in_parts(told.sources(), buckets=64, rules=told.rules, as_of=told.as_of)


def test_the_lines_of_a_part_go_on_as_sums():
    """What is left has as few rows as there are batches, and their items all the same."""
    night = planted(size=240, broken=20, settled=True).sources
    assert night.settlement is not None
    told: dict[str, Any] = {"rules": RULES_OF_NIGHTS, "previous": None}
    as_of = datetime(2026, 11, 20, tzinfo=UTC)

    ours = reconciled_in_buckets(night, buckets=5, as_of=as_of, **told)

    lines = ours.last.settlement
    stood_for = int(lines["stands_for"].sum())
    summed = lines["stands_for"].gt(0)
    assert int((~summed).sum()) + stood_for == len(night.settlement)
    assert int(summed.sum()) < stood_for / 3
    whole = reconcile(night, as_of=as_of, **told)
    assert ours.result.digest == whole.digest


def test_amounts_that_parts_have_bounded_are_not_counted_twice(case):
    """A sum of lines stands where its lines did: they were bounded in their part."""
    much = {"amount": SUM_MAX // 2 + 1}
    told = case.order(**much).payment(**much).entry(**much).line(gross=SUM_MAX // 2 + 1)

    assert assert_same_in_parts(told.sources(), buckets=64, rules=told.rules, as_of=told.as_of) == 1
