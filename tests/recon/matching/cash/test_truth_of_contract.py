"""The fee contract against months made from the truth: every wrong fee, and no other."""

import os
from datetime import UTC, date, datetime

import pytest

from recon.config.fee_contract import FACTS, FeeContract, contract_of
from recon.config.rules import Rules
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    TEXT,
    Sources,
    frame_of,
)
from tests.proving import reconcile_proven
from tests.recon.matching.cash.contract_truth import (
    FIRST,
    TARIFFS,
    Truth,
    add_line,
    add_order,
    truth_of,
)

SEEDS = int(os.environ.get("CONTRACT_SEEDS", "1"))
"""Of each shape; `make test-truths` plays more."""
LINE = {"from": date(2026, 1, 1), "currency": "EUR", "fixed_minor_units": 20}
AS_OF = datetime(2026, 11, 20, tzinfo=UTC)


def sources_of(truth):
    """The truth's files and its contract."""
    contract = contract_of(truth.contract, source="the truth")
    assert isinstance(contract, FeeContract)
    rules = Rules(fee_contract=contract)
    lines = frame_of(
        truth.rows["settlement"], columns={**SETTLEMENT_COLUMNS, **dict.fromkeys(FACTS, TEXT)}
    )
    sources = Sources(
        orders=frame_of(truth.rows["orders"], columns=ORDER_COLUMNS),
        gateway=frame_of(truth.rows["gateway"], columns=GATEWAY_COLUMNS),
        ledger=None,
        instructions=None,
        settlement=lines,
    )
    return sources, rules


def classified(truth):
    """What the engine says of the truth's files."""
    sources, rules = sources_of(truth)
    charged = charged_fees(sources, contract=rules.fee_contract)
    assert charged is not None
    return reconcile_proven(sources, rules=rules, as_of=AS_OF), charged


@pytest.mark.parametrize("name", TARIFFS)
def test_every_wrong_fee_is_a_break_of_its_size_and_no_right_one_is(name):
    """A fee beyond the contract is FEE_VARIANCE with what is left of it; a credit closes it.

    By contract + outside = all fees of the settlement; what payouts repeat is in neither.
    """
    for seed in range(SEEDS):
        truth = truth_of(name, seed=seed)
        result, charged = classified(truth)
        variances = result.breaks[result.breaks["code"] == "FEE_VARIANCE"]
        found = dict(zip(variances["order_no"], variances["exposure"].map(int), strict=True))
        assert found == {order: abs(left) for order, left in truth.differs.items()}, seed
        others = result.breaks[~result.breaks["code"].isin({"FEE_VARIANCE", "HELD_BACK"})]
        assert others.empty, seed
        assert all(total.passed for total in result.control_totals), seed
        claims = charged.claims.groupby("order_no")["claimed"].sum().to_dict()
        assert claims == dict(truth.claimed), seed
        lines = [row for row in truth.rows["settlement"] if row["entry_type"] != "payout"]
        assert len(lines) < len(truth.rows["settlement"])
        parts = int(charged.by_line["charged"].sum() + charged.outside["charged"].sum())
        assert charged.totals == (("EUR", parts),) == (("EUR", sum(row["fee"] for row in lines)),)
        assert not any("name no payment" in labels for labels in result.not_covered)
        unknown = [one for one in result.not_covered if "the settlement does not state" in one]
        assert bool(unknown) == bool(truth.unknown), seed


def test_too_much_on_one_line_never_makes_up_for_too_little_on_another():
    """A capture 7 too dear and a refund 5 too cheap: the 7 are claimed."""
    truth = Truth(
        {
            "rounding": "down",
            "lines": [{**LINE, "name": kind, "type": kind} for kind in ("capture", "refund")],
        }
    )
    add_order(truth, "SO-1", 10_000, refunded=True)
    add_line(truth, "SO-1", "capture", 10_000, FIRST, fee=27)
    add_line(truth, "SO-1", "refund", -10_000, FIRST, fee=15)
    result, charged = classified(truth)
    variances = result.breaks[result.breaks["code"] == "FEE_VARIANCE"]
    assert variances["exposure"].tolist() == [7]
    assert charged.claims["claimed"].tolist() == [7]
