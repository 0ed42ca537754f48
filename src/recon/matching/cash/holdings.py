"""What the gateway holds and what it took as fees, per account and currency: for page one."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from recon.matching.cash.batches import ITEM, OPENING, RESERVE
from recon.matching.cash.before_books import BEFORE_BOOKS
from recon.matching.cash.book_groups import FEES
from recon.matching.cash.result import CashResult
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY, Place, added, sums
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import booked_forward, entry_versions, is_base_type
from recon.matching.sides.settlement_side import pay_outs
from recon.model.gateway_holds import BEFORE_FIRST, FeesTaken, GatewayHolds, HeldPart, Holding
from recon.model.words import EntryType

_HELD_BACK = frozenset({OPENING, ITEM})
"""What paid-out batches left; what the gateway owed before the first line is the oldest of it."""


def gateway_holds(
    held: pd.DataFrame, *, sources: Sources, cash: CashResult | None = None
) -> GatewayHolds | None:
    """Payable, held back and reserve as they are listed, and the fees of lines and books.

    Args:
        held: HELD_COLUMNS of the result.
        sources: the lines and the entries that were compared.
        cash: the groups; fees from before the books begin are compared with nothing.

    Returns:
        None where no settlement was given.
    """
    if sources.settlement is None:
        return None
    charged, taken = _charged(sources.settlement, cash=cash), _booked(sources.ledger)
    holders: list[Place] = sorted({*charged, *(taken or ())})
    fees = [
        FeesTaken(
            *holder,
            charged=charged.get(holder, 0),
            booked=None if taken is None else taken.get(holder, 0),
        )
        for holder in holders
    ]
    return GatewayHolds(_holdings(held), tuple(fees))


def _holdings(held: pd.DataFrame) -> tuple[Holding, ...]:
    by_place: dict[Place, Holding] = {}
    for row in held.to_dict("records"):
        holder = (row["merchant_id"], row["account_id"], row["currency"])
        known = by_place.get(holder, Holding(*holder))
        # A debt has its day, too, but the oldest money is what somebody waits for.
        day = row["settled_on"] or BEFORE_FIRST
        piece = HeldPart(int(row["amount"]), day if row["amount"] > 0 else "")
        if row["what"] == RESERVE:
            by_place[holder] = replace(known, reserve=known.reserve + piece)
            continue
        known = replace(known, payable=known.payable + piece)
        if row["what"] in _HELD_BACK:
            known = replace(known, held_back=known.held_back + piece)
        by_place[holder] = known
    return tuple(by_place[holder] for holder in sorted(by_place))


def _charged(lines: pd.DataFrame, *, cash: CashResult | None) -> Mapping[Place, int]:
    every = sums(lines[~pay_outs(lines)], column="fee")
    if cash is None:
        return every
    groups = cash.books.groups
    before = groups.take((groups["name"] == BEFORE_BOOKS) & (groups["kind"] == FEES))
    rows = before.rows(*ACCOUNT_CURRENCY, "settled")
    return added(every, {(*holder,): amount for *holder, amount in rows})


def _booked(ledger: pd.DataFrame | None) -> Mapping[Place, int] | None:
    """Fees less their reversals, each entry once."""
    if ledger is None:
        return None
    mine = is_base_type(ledger["entry_type"], EntryType.FEE) & (entry_versions(ledger) == NEW)
    currency, forward = booked_forward(ledger)
    columns = {name: ledger[name].to_numpy()[mine] for name in ACCOUNT_CURRENCY[:2]}
    columns |= {"currency": currency.to_numpy()[mine], "amount": forward[mine]}
    return sums(pd.DataFrame(columns))
