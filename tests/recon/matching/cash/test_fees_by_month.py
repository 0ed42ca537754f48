"""Tiers by what a month came to, against DuckDB's own sums over the same lines."""

import os
import random
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from recon.config.fee_contract import FACTS, FeeContract, contract_of
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    TEXT,
    SettledDays,
    Sources,
    frame_of,
)
from recon.matching.sides.agreed_fees import volumes_of_lines
from tests.recon.matching.cash.contract_truth import pay_outs_of

SEEDS = int(os.environ.get("CONTRACT_SEEDS", "1"))
"""Of each shape; `make test-truths` plays more."""
FIRST, DAYS = date(2026, 10, 1), 70
BASE = {"from": date(2026, 1, 1), "type": "capture", "currency": "EUR"}
BY_AMOUNT = [
    {"up_to_minor_units": 400_000, "basis_points": 200},
    {"up_to_minor_units": 900_000, "basis_points": 150, "fixed_minor_units": 4},
    {"basis_points": 90},
]
BY_COUNT = [{"up_to_lines": 5, "fixed_minor_units": 30}, {"fixed_minor_units": 20}]
BRANDS = {"visa": "visa", "mastercard": "mastercard"}
SHAPES: dict[str, list[dict[str, Any]]] = {
    "amount": [{"name": "all", "tiers": BY_AMOUNT, "tiers_by": "month"}],
    "count": [{"name": "all", "tiers": BY_COUNT, "tiers_by": "month"}],
    "month before": [{"name": "all", "tiers": BY_AMOUNT, "tiers_by": "month_before"}],
    "each brand": [
        {"name": brand, "brand": brand, "tiers": BY_AMOUNT, "tiers_by": "month"} for brand in BRANDS
    ],
    "brands together": [
        {"name": brand, "brand": brand, "tiers": BY_AMOUNT, "tiers_by": "month"}
        | {"volume_of": [*BRANDS]}
        for brand in BRANDS
    ],
}
OF_BRAND = {"each brand": "o.brand = l.brand"}
SPAN = {
    "month before": "o.day >= date_trunc('month', l.day) - interval 1 month "
    "and o.day < date_trunc('month', l.day)"
}
QUERY = """
with l as (
    select *, (
        select MEASURE from raw o where o.account_id = l.account_id and BRAND and DURING
    ) as reached
    from raw l
)
select PRICE from l order by place
"""
FIRST_PRICED = {"month before": "2026-11-01"}
UNPRICED = {"month before": ["all needs what 2026-09 came to, of which no line is reported"]}
PRICE = {
    "count": "case when reached <= 5 then 30 else 20 end",
    "amount": "case when reached <= 400000 then gross * 200 // 10000 "
    "when reached <= 900000 then gross * 150 // 10000 + 4 else gross * 90 // 10000 end",
}


def prices(rows, *, shape):
    """What each line should cost, by DuckDB."""
    raw = pd.DataFrame(rows)
    raw["day"] = pd.to_datetime(raw["settled_on"])
    raw["place"] = range(len(raw))
    during = SPAN.get(shape, "o.day >= date_trunc('month', l.day) and o.day < l.day")
    measure = "count(*)" if shape == "count" else "coalesce(sum(o.gross), 0)"
    price = PRICE["count" if shape == "count" else "amount"]
    with duckdb.connect() as engine:
        engine.register("raw", raw)
        sums = QUERY.replace("MEASURE", measure).replace("DURING", during)
        sums = sums.replace("BRAND", OF_BRAND.get(shape, "true")).replace("PRICE", price)
        priced = engine.execute(sums).fetchall()
    return [int(row[0]) for row in priced]


def lines(seed, *, size=120):
    """Captures of ten weeks in two accounts, by brand; the fee is still to come."""
    draw = random.Random(seed)
    rows = []
    for number in range(size):
        day = FIRST + timedelta(days=draw.randrange(DAYS))
        row: dict[str, Any] = {"merchant_id": "M1", "account_id": draw.choice("12")}
        row |= {"batch_id": f"B-{day}", "settled_on": day.isoformat(), "entry_type": "capture"}
        row |= {"order_no": f"SO-{number}", "transaction_id": f"T-{number}", "currency": "EUR"}
        row |= {"gross": draw.choice((100_000, draw.randrange(1, 90_000)))}
        row |= {"brand": draw.choice([*BRANDS]), "source": "s.csv", "line": number + 2}
        rows.append(row)
    return rows


def with_fees(rows, fees):
    """The lines with what was charged."""
    return [
        {**row, "fee": fee, "net": row["gross"] - fee} for row, fee in zip(rows, fees, strict=True)
    ]


def contract_for(shape, **more):
    """The contract of a shape."""
    made = [{**BASE, **line} for line in SHAPES[shape]]
    tables = {"rounding": "down", "volumes_from": date(2026, 9, 1), "lines": made, **more}
    contract = contract_of(tables, source="fees.toml")
    assert isinstance(contract, FeeContract)
    return contract


def sources_of(rows: list[dict[str, Any]], *, late: set[str] = frozenset()) -> Sources:  # type: ignore[assignment]
    """Orders and payments of the lines, each batch paid out; `late` are told after later days."""
    columns = {**SETTLEMENT_COLUMNS, **dict.fromkeys(FACTS, TEXT)}
    every = [*rows, *pay_outs_of(rows)]
    frame = frame_of(every, columns=columns)
    at = {"ordered_at": "2026-09-30T12:00:00Z", "status": "paid", "source": "o.csv", "line": 2}
    orders = [{**row, "amount": row["gross"], **at, "transaction_id": ""} for row in rows]
    answer = {"query_result": "1", "answer": "found", "payment_status": "3000"}
    answer |= {"transaction_date": "2026-09-30T12:00:00Z"}
    return Sources(
        orders=frame_of(orders, columns=ORDER_COLUMNS),
        gateway=frame_of(
            [{**row, "amount": row["gross"], **answer} for row in rows], columns=GATEWAY_COLUMNS
        ),
        ledger=None,
        instructions=None,
        settlement=frame,
        volumes=volumes_of_lines(frame, late=np.array([r["order_no"] in late for r in every])),
    )


def fees_of(sources, *, contract):
    """What was charged beside the contract."""
    charged = charged_fees(sources, contract=contract)
    assert charged is not None
    return charged


def reasons(charged):
    """Why lines are not covered, and how many."""
    return dict(zip(charged.outside["reason"], charged.outside["lines"].map(int), strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_what_duckdb_sums_up_is_what_the_contract_expects(shape):
    """Every planted wrong fee is a difference of its size and a claim, and no right one is."""
    for seed in range(SEEDS):
        draw, rows = random.Random(seed), lines(seed)
        right = prices(rows, shape=shape)
        wrong = [draw.choice((0, 0, 0, 0, draw.randrange(1, 50), -1)) for _ in rows]
        told = with_fees(rows, [fee + off for fee, off in zip(right, wrong, strict=True)])
        draw.shuffle(told)
        first = FIRST_PRICED.get(shape, "")
        planted = {
            row["order_no"]: off
            for row, off in zip(rows, wrong, strict=True)
            if off and row["settled_on"] >= first
        }
        charged = fees_of(sources_of(told), contract=contract_for(shape))
        differing = charged.differing
        found = dict(zip(differing["order_no"], differing["difference"].map(int), strict=True))
        assert found == planted, seed
        claims = dict(zip(charged.claims["order_no"], charged.claims["claimed"], strict=True))
        assert claims == {name: off for name, off in planted.items() if off > 0}, seed
        assert [*reasons(charged)] == UNPRICED.get(shape, [])
        parts = int(charged.by_line["charged"].sum() + charged.outside["charged"].sum())
        assert charged.totals == (("EUR", parts),) == (("EUR", sum(right) + sum(wrong)),)


def test_a_month_that_is_not_told_whole_prices_nothing_that_it_could_change():
    """Before volumes_from, after a missing file, without what it asks for: named, not guessed."""
    rows = [row for row in lines(3) if row["settled_on"] < "2026-11-01"]
    told = with_fees(rows, prices(rows, shape="amount"))
    late_start = contract_for("amount", volumes_from=date(2026, 10, 5))
    sources = sources_of(told)
    (why,) = reasons(fees_of(sources, contract=late_start))
    assert why == ("all needs what 2026-10 came to, which begins before volumes_from (2026-10-05)")
    missing = replace(sources, settled=SettledDays("2026-10-01", "2026-10-03", "S-2026-10-04.csv"))
    (why,) = reasons(fees_of(missing, contract=contract_for("amount")))
    assert why == "all needs what 2026-10 came to, of which the file after 2026-10-03 is missing"
    forgotten = replace(sources, volumes=None)
    (why,) = reasons(fees_of(forgotten, contract=contract_for("amount")))
    assert why.endswith("nothing of them was kept for this comparison")


def test_a_brand_that_is_not_told_matters_only_where_it_could_change_the_tier():
    """A small payment of no brand leaves the tier sure; one that could reach the next does not."""

    def outside(gross):
        day = {"settled_on": "2026-10-02", "account_id": "1"}
        first = {**lines(1)[0], **day, "brand": "", "gross": gross}
        later = {**first, "order_no": "SO-9", "transaction_id": "T-9", "settled_on": "2026-10-03"}
        later |= {"brand": "visa", "gross": 10_000, "line": 9}
        told = with_fees([first, later], [0, 200])
        return reasons(fees_of(sources_of(told), contract=contract_for("each brand")))

    needs = "visa needs brand, which the settlement does not state"
    assert outside(400_000) == {needs: 1}
    assert outside(400_001) == {
        needs: 1,
        "visa needs what 2026-10 came to, of which some lines do not state all that it asks for": 1,
    }


def test_a_late_line_says_how_many_lines_cost_otherwise_by_it():
    """What came late counts from its own day on; the sheet says what it changed, by month."""
    day = {"account_id": "1", "brand": "visa"}
    rows = [
        {**row, **day, "gross": 100_000, "settled_on": f"2026-10-{number + 1:02}"}
        for number, row in enumerate(lines(1, size=6))
    ]
    told = with_fees(rows, prices(rows, shape="amount"))
    charged = fees_of(sources_of(told, late={"SO-0"}), contract=contract_for("amount"))
    (month,) = charged.months.to_dict("records")
    assert month == {
        "name": "all", "account": "M1/1", "month": "2026-10", "currency": "EUR",
        "reached": "to 9000.00: 150.00 bp + 0.04", "lines": 6, "base": 600_000,
        "late_lines": 1, "late_base": 100_000, "otherwise": 1,
    }  # fmt: skip
    assert charged.differing.empty


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        ({"volumes_from": None}, "volumes_from: all has tiers by month and needs this day"),
        ({"tiers": [{"up_to_lines": 5}, {"up_to_minor_units": 9}, {}]}, "the last has none"),
        ({"tiers": [{"up_to_lines": 5, "up_to_minor_units": 9}, {}]}, "not both"),
        ({"tiers_of": "parts"}, "needs tiers, each for the whole of a line"),
        ({"type": "fee"}, "is for captures, refunds and chargebacks"),
        ({"volume_of": ["others"]}, "volume_of others: no line of its currency"),
        ({"tiers_by": "line", "volume_of": ["all"]}, "need tiers_by month or month_before"),
    ],
)
def test_a_contract_that_cannot_be_counted_is_refused(more, labels):
    """Each mistake by its key."""
    line = {**BASE, **SHAPES["amount"][0], **more}
    tables: dict[str, Any] = {"rounding": "down", "volumes_from": date(2026, 9, 1)}
    if "volumes_from" in more:
        tables.pop("volumes_from")
        line.pop("volumes_from")
    with pytest.raises(Exception, match=r"fees\.toml") as refused:
        contract_of({**tables, "lines": [line]}, source="fees.toml")
    assert labels in str(refused.value)
