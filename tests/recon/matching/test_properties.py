"""What holds for any rows: order does not matter, nothing falls between, no float anywhere."""

import random
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.config.rules import Rules
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    Sources,
    frame_of,
)
from recon.proof.engine import reconcile
from tests.proving import reconcile_proven

AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
STATES = {
    "1000": "pending",
    "2000": "authorised",
    "3000": "paid",
    "4000": "partially_refunded",
    "4100": "refunded",
    "5000": "cancelled",
    "6000": "failed",
    "6100": "expired",
    "7000": "chargeback",
}
RULES = Rules.of(
    {
        "payment_status": STATES,
        "tolerance": {
            "EUR": {"absolute_minor_units": 2, "basis_points": 10, "night_budget_minor_units": 3}
        },
    },
    source="properties",
)
amounts = st.sampled_from([0, 1, 9998, 9999, 10000, 10001, 30000])
keys = st.fixed_dictionaries(
    {
        "merchant_id": st.just("M"),
        "account_id": st.sampled_from(["1", "1", "2"]),
        "order_no": st.sampled_from(["A", "B", "C", "D"]),
        "currency": st.sampled_from(["EUR", "EUR", "EUR", "JPY"]),
        "amount": amounts,
        "source": st.just("rows"),
        "line": st.integers(2, 99),
    }
)
instants = st.integers(0, 30 * 24).map(lambda hours: AS_OF - timedelta(hours=hours))
blank_or_instant = st.none() | instants
unkeyed_ids = st.sampled_from(["", "T1", "T2"])


def rows_of(**cells):
    """Up to five rows with these cells."""
    return st.lists(
        st.builds(lambda key, rest: {**key, **rest}, keys, st.fixed_dictionaries(cells)),
        max_size=5,
    )


orders = rows_of(
    status=st.sampled_from(
        ["paid", "paid", "authorised", "pending", "cancelled", "failed", "refunded"]
    ),
    refund_amount=st.none() | amounts,
    expected_captured_amount=st.none() | amounts,
    ordered_at=instants,
    updated_at=blank_or_instant,
    transaction_id=unkeyed_ids,
)
payments = rows_of(
    transaction_id=st.sampled_from(["T1", "T2", "T3"]),
    payment_status=st.sampled_from([*STATES, "3000", "3000", "9999"]),
    query_result=st.just("1"),
    answer=st.sampled_from(["found", "found", "found", "found", "not_found", "failed", "unmapped"]),
    transaction_date=instants,
    authorised_amount=st.none() | amounts,
    captured_amount=st.none() | amounts,
    refunded_amount=st.none() | amounts,
    queried_at=blank_or_instant,
    reference_no=unkeyed_ids,
)
entries = rows_of(
    entry_id=st.sampled_from(["E1", "E2", "E3", "E4", "E5", "E6", "E7"]),
    entry_type=st.sampled_from(
        [
            "capture",
            "capture",
            "refund",
            "chargeback",
            "adjustment",
            "write_off",
            "fee",
            "capture_reversal",
            "refund_reversal",
        ]
    ),
    booked_at=instants,
    transaction_id=unkeyed_ids,
    reference_no=unkeyed_ids,
)
moves = rows_of(
    instruction_id=st.sampled_from(["I1", "I2", "I3"]),
    kind=st.sampled_from(["capture", "refund", "cancel", "review"]),
    state=st.sampled_from(
        ["confirmed", "confirmed", "rejected", "in_doubt", "approved", "withdrawn"]
    ),
    transaction_id=unkeyed_ids,
    approved_at=instants,
    outcome_at=blank_or_instant,
    refund_reference_id=st.sampled_from(["", "T1-01"]),
)


def keyless(rows):
    """Every row of account 2 loses its order key, as ledgers do."""
    return [
        {**row, "order_no": "" if row["account_id"] == "2" else row["order_no"]} for row in rows
    ]


def sources_of(drawn):
    """Typed frames of the drawn rows."""
    ledger = drawn["ledger"]
    return Sources(
        orders=frame_of(drawn["orders"], columns=ORDER_COLUMNS),
        gateway=frame_of(drawn["gateway"], columns=GATEWAY_COLUMNS),
        ledger=None if ledger is None else frame_of(keyless(ledger), columns=LEDGER_COLUMNS),
        instructions=frame_of(drawn["moves"], columns=INSTRUCTION_COLUMNS),
    )


drawn_sources = st.fixed_dictionaries(
    {"orders": orders, "gateway": payments, "ledger": st.none() | entries, "moves": moves}
).map(sources_of)


def frames_of(result):
    """The frames of a result by name."""
    named = {field.name: getattr(result, field.name) for field in fields(result)}
    frames = {name: value for name, value in named.items() if isinstance(value, pd.DataFrame)}
    return {**frames, "matches": result.matches}


@settings(max_examples=20)
@given(drawn_sources, st.integers(0, 10_000))
def test_totals_hold_for_any_rows_in_any_order(sources, seed):
    """Totals hold, no column is a float; permuted and with nothing set aside it is the same."""
    generator = random.Random(seed)

    def shuffled(frame):
        if frame is None:
            return None
        places = list(range(len(frame)))
        generator.shuffle(places)
        return frame.iloc[places].reset_index(drop=True)

    moved = replace(
        sources,
        orders=shuffled(sources.orders),
        gateway=shuffled(sources.gateway),
        ledger=shuffled(sources.ledger),
        instructions=shuffled(sources.instructions),
    )

    one = reconcile_proven(sources, rules=RULES, as_of=AS_OF)
    assert [total for total in one.control_totals if not total.passed] == []
    kinds = {
        f"{name}.{column}": str(kind)
        for name, frame in frames_of(one).items()
        for column, kind in frame.dtypes.items()
    }
    assert {n: k for n, k in kinds.items() if "float" in k.lower() or k == "object"} == {}
    other = reconcile(moved, rules=RULES, as_of=AS_OF)

    for name, frame in frames_of(one).items():
        pd.testing.assert_frame_equal(frame, frames_of(other)[name], obj=name)
    assert one.digest == other.digest
