"""What the gateway owes at the close of a day, item by item.

A payment's captures less refunds and chargebacks that no line has settled; batches that are not
paid out, or with less than their lines; reserves.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from recon.matching.cash.batches import (
    BEYOND,
    DEBT,
    ITEM,
    NO_PAYOUT,
    OPENING,
    RESERVE,
    Batch,
    Listed,
    left_of_batches,
    left_of_reserves,
)
from recon.period.dated_facts import CAPTURE, CHARGEBACK, OF_PAYMENTS, REFUND, WON_BACK, DatedFacts
from recon.period.looked_up import currencies_of, is_among, words_at

NOT_SETTLED, NEVER_SHOWN = "not_settled", "never_shown"
CLASSES = (NOT_SETTLED, NEVER_SHOWN, OPENING, NO_PAYOUT, ITEM, DEBT, BEYOND, RESERVE)
"""Captured and not settled (below 0: given back and not settled), settled and never shown by the
gateway, owed from before the first line, settled and not paid out, held back, owed to the gateway,
paid beyond what there was, kept as a reserve."""
ITEM_COLUMNS = ("what", "currency", "key", "order_no", "since", "amount")
_BY_PAYMENTS = (CAPTURE, REFUND, CHARGEBACK, WON_BACK)


def open_items(
    facts: DatedFacts,
    *,
    at: str,
    account: tuple[str, str],
    opening: tuple[Mapping[str, int], Mapping[str, int]],
) -> pd.DataFrame:
    """What is open at the close of a business date, ITEM_COLUMNS (grain: item).

    Args:
        facts: all that is known.
        at: the date (ISO); what is dated later is not there yet.
        account: merchant and account.
        opening: currency -> payable and reserve from before the first line.
    """
    lines = facts.settled[facts.settled["counts_on"] <= at]
    rows = [*_held(lines, account=account, opening=opening)]
    held = pd.DataFrame(
        {
            "what": pd.Series([row.what for row in rows], dtype="str"),
            "currency": pd.Series([row.currency for row in rows], dtype="str"),
            "key": pd.Series([row.batch_id for row in rows], dtype="str"),
            "order_no": pd.Series(["" for _ in rows], dtype="str"),
            "since": pd.Series([row.settled_on for row in rows], dtype="str"),
            "amount": pd.Series([row.amount for row in rows], dtype="int64"),
        }
    )
    moved = facts.movements[(facts.movements["event_on"] <= at) & ~facts.movements["is_outside"]]
    payments = _not_settled(moved, lines=lines)
    whole = pd.concat([payments, held], ignore_index=True)
    return whole.sort_values(["currency", "what", "since", "key"], ignore_index=True)


def _not_settled(movements: pd.DataFrame, *, lines: pd.DataFrame) -> pd.DataFrame:
    """By payment: what took place less what was settled of it."""
    moved = movements[movements["kind"].isin(_BY_PAYMENTS)]
    settled = lines[lines["entry_type"].isin(OF_PAYMENTS)]
    both = pd.concat(
        [
            moved[["payment", "currency", "order_no", "event_on", "amount"]].assign(facts=1),
            settled[["payment", "currency", "order_no"]].assign(
                event_on=settled["settled_on"], amount=-settled["gross"], facts=0
            ),
        ]
    )
    both = both.assign(fact_on=both["event_on"].where(both["facts"].eq(1), ""))
    # What was settled whole is open no more, and most of a month.
    both = both[both.groupby(["payment", "currency"])["amount"].transform("sum").ne(0)]
    rows = both.groupby(["payment", "currency"], as_index=False).agg(
        amount=("amount", "sum"),
        order_no=("order_no", "max"),
        facts=("facts", "sum"),
        fact_on=("fact_on", "max"),
        event_on=("event_on", "min"),
    )
    has_facts = rows["facts"].gt(0)
    rows = rows.assign(
        what=pd.Series(NOT_SETTLED, rows.index, dtype="str").where(has_facts, NEVER_SHOWN),
        since=rows["fact_on"].where(has_facts, rows["event_on"]),
        key=rows["payment"],
    )
    return rows[[*ITEM_COLUMNS]].reset_index(drop=True)


def _held(
    lines: pd.DataFrame,
    *,
    account: tuple[str, str],
    opening: tuple[Mapping[str, int], Mapping[str, int]],
) -> Iterator[Listed]:
    """What batches left, and reserves, by currency."""
    for currency in sorted({*currencies_of(lines), *opening[0], *opening[1]}):
        own = lines[lines["currency"].eq(currency)]
        holder = (*account, currency)
        first = opening[0].get(currency, 0)
        yield from left_of_batches(_batches(own), holder=holder, opening=first)
        kept = own[own["entry_type"].eq("reserve")]
        days = {
            str(day): int(amount)
            for day, amount in (-kept.groupby("settled_on")["gross"].sum()).items()
        }
        yield from left_of_reserves(days, holder=holder, opening=opening[1].get(currency, 0))


def _batches(lines: pd.DataFrame) -> list[Batch]:
    """The batches of one currency, by day and name; one without a pay-out so far is open."""
    paid = lines["is_pay_out"].astype(bool)
    rows = pd.DataFrame(
        {
            "batch_id": lines["batch_id"],
            "settled": lines["net"].where(~paid, 0),
            "paid": lines["net"].where(paid, 0),
            "is_closed": paid,
        }
    )
    sums = rows.groupby("batch_id").agg(
        settled=("settled", "sum"), paid=("paid", "sum"), is_closed=("is_closed", "any")
    )
    is_closed = is_among(lines["batch_id"], sums.index[sums["is_closed"]])
    days = lines[is_closed.eq(paid)].groupby("batch_id")["settled_on"].max()
    settled_on = words_at(sums.index.to_series(), words=days)
    cells = [settled_on, sums.index, *(sums[name] for name in ("settled", "paid", "is_closed"))]
    return sorted(
        Batch(
            day,
            name,
            settled,
            paid,
            is_closed=closed or settled < 0,
            is_foreign=False,
            is_unsure=False,
        )
        for day, name, settled, paid, closed in zip(*(own.tolist() for own in cells), strict=True)
    )
