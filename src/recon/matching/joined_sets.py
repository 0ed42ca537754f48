"""All sides of every set beside each other: the frame that everything is judged on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.matching.gateway_side import NUMBER, gateway_side
from recon.matching.grouping import NO_INSTANT, Bools, Rows, present
from recon.matching.instruction_side import instruction_side, of_other_currency
from recon.matching.ledger_side import JUDGED, compared, entry_versions, ledger_side
from recon.matching.nets import nets_of, primary
from recon.matching.orders_side import Side, orders_side
from recon.matching.payouts import Payouts, payout_facts, payouts_of
from recon.matching.sets import BY_ORDER, BY_PAYOUT, NO_SET, SetKeys, build_sets
from recon.matching.settlement_side import movements, settlement_side
from recon.matching.sources import (
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.versions import CONFLICT
from recon.model import InstructionKind, Quarantined, Reject
from recon.rules import Rules


@dataclass(frozen=True, slots=True)
class Joined:
    """The sets with what each side says."""

    sets: pd.DataFrame
    """One row per set, amounts in the set's currency."""
    nets: pd.DataFrame
    """One row per set and currency (see nets.nets_of)."""
    orders: Side
    gateway: Side
    ledger: Side
    keys: SetKeys
    covered: bool
    """Whether a ledger was given."""
    payouts: pd.DataFrame
    """See payouts.Payouts.items; `set` counts as in `sets`."""
    settled: pd.DataFrame
    """One row per line of a settlement file that is no pay-out: row, set, currency, amount, net."""


def join_sides(sources: Sources, *, rules: Rules, previous: Previous | None) -> Joined:
    """Build the sets and put the sides together."""
    ledger = sources.ledger
    covered = ledger is not None
    if ledger is None:
        ledger = frame_of([], columns=LEDGER_COLUMNS)
    keys, payouts = _keys(sources, ledger=ledger, previous=previous)
    size, first = keys.size, keys.size - len(payouts.frame)
    orders = orders_side(sources.orders, sets=keys.of["orders"], size=size)
    gateway = gateway_side(sources.gateway, sets=keys.of["gateway"], size=size, rules=rules)
    books = ledger_side(ledger, sets=keys.of["ledger"], size=size, rules=rules)
    ours = instruction_side(sources.instructions, sets=keys.of["instructions"], size=size)
    lines = movements(sources.settlement)
    settled = settlement_side(
        lines,
        sets=keys.of["settlement"],
        keys=keys.frame,
        rules=rules,
        days=sources.settled,
    )
    paid = payout_facts(payouts, first=first, size=size)
    sides = [keys.frame, orders.sets, gateway.sets, books.sets, ours, settled, paid]
    sets = pd.concat(sides, axis=1)
    paid_items = payouts.items.assign(set=payouts.items["set"] + first)
    nets = nets_of(
        {
            "order": orders.items,
            "gateway": gateway.items,
            "ledger": books.items,
            "payout": paid_items,
        }
    )
    sets["currency"] = _currency(sets)
    sets = sets.assign(**primary(nets, currency=sets["currency"]))
    sets["key_ambiguous"] = keys.ambiguous
    sets["moves_foreign"] = of_other_currency(
        sources.instructions, sets=keys.of["instructions"], currency=sets["currency"]
    )
    _mark_evidence(sets, sources=sources, keys=keys)
    settled_items = _settled_items(lines, sets=keys.of["settlement"])
    return Joined(sets, nets, orders, gateway, books, keys, covered, paid_items, settled_items)


def _settled_items(lines: pd.DataFrame, *, sets: Rows) -> pd.DataFrame:
    items = lines[["currency"]].assign(row=np.arange(len(lines)), set=sets)
    return items.assign(amount=lines["gross"], net=lines["gross"])


def _keys(
    sources: Sources, *, ledger: pd.DataFrame, previous: Previous | None
) -> tuple[SetKeys, Payouts]:
    """The numbered sets, those of the payouts last."""
    judged = np.zeros(len(ledger), dtype=np.bool_)
    if JUDGED in ledger.columns:
        judged = ledger[JUDGED].to_numpy(dtype=np.bool_)
    belongs = (compared(ledger) | (entry_versions(ledger) == CONFLICT)) & ~judged
    payouts = payouts_of(sources, judged=judged)
    moves = sources.instructions
    alone = np.zeros(0 if moves is None else len(moves), dtype=np.bool_)
    if moves is not None:
        alone = moves["kind"].eq(InstructionKind.PAYOUT).to_numpy()
        moves = moves[~alone]
    frames = _keyed_frames(sources, ledger=ledger[belongs], moves=moves, previous=previous)
    keys = build_sets(frames)
    entry_sets = np.full(len(ledger), NO_SET, dtype=np.intp)
    entry_sets[belongs] = keys.of["ledger"]
    entry_sets[judged] = payouts.ledger[judged] + keys.size
    move_sets = np.where(payouts.instructions < 0, NO_SET, payouts.instructions + keys.size)
    move_sets[~alone] = keys.of["instructions"]
    behind = payouts.frame.assign(kind=BY_PAYOUT)
    frame = pd.concat([keys.frame, behind], ignore_index=True) if len(behind) else keys.frame
    ambiguous = np.append(keys.ambiguous, np.zeros(len(behind), dtype=np.bool_))
    of = {**keys.of, "ledger": entry_sets, "instructions": move_sets.astype(np.intp)}
    return SetKeys(frame, of, ambiguous), payouts


def _keyed_frames(
    sources: Sources,
    *,
    ledger: pd.DataFrame,
    moves: pd.DataFrame | None,
    previous: Previous | None,
) -> dict[str, pd.DataFrame]:
    nothing = frame_of([], columns=KEY_COLUMNS)
    return {
        "orders": sources.orders,
        "gateway": sources.gateway,
        "ledger": ledger,
        "instructions": nothing if moves is None else moves,
        "settlement": movements(sources.settlement),
        "rejects": readable_rejects(sources.rejects),
        "quarantined": keyed_quarantine(sources.quarantined),
        "universe": nothing if sources.universe is None else sources.universe,
        "chargebacks": nothing if previous is None else previous.chargebacks[[*KEY_COLUMNS]],
    }


def readable_rejects(rejects: tuple[Reject, ...]) -> pd.DataFrame:
    """KEY_COLUMNS of the rejected rows whose merchant, account and order_no could be read."""
    readable = [
        {"merchant_id": r.merchant_id, "account_id": r.account_id, "order_no": r.order_no}
        for r in rejects
        if r.merchant_id and r.account_id and r.order_no
    ]
    return frame_of(readable, columns=KEY_COLUMNS)


def keyed_quarantine(rows: Sequence[Quarantined]) -> pd.DataFrame:
    """KEY_COLUMNS of the rows that still stand for an order and name all of its key."""
    named = [{name: getattr(row, name) for name in KEY_COLUMNS} for row in rows]
    kept = [key for key, row in zip(named, rows, strict=True) if row.names_its_key]
    return frame_of(kept, columns=KEY_COLUMNS)


def _currency(sets: pd.DataFrame) -> "pd.Series[str]":
    """The order's, else the gateway's or payout's, the ledger's, what was settled, instructed."""
    currency = sets["order_currency"]
    for side in ("gateway", "payout", "ledger", "settled", "instruction"):
        currency = currency.where(currency.ne(""), sets[f"{side}_currency"])
    return currency


def _mark_evidence(sets: pd.DataFrame, *, sources: Sources, keys: SetKeys) -> None:
    """What makes a set unverified: quarantined rows and answers that say nothing."""
    size = keys.size
    sets["quarantined"] = (
        _named(keys.of["rejects"], size=size)
        | _named(keys.of["quarantined"], size=size)
        | _named_in_part(sets, rows=sources.quarantined)
    )
    sets["chargeback_before"] |= _named(keys.of["chargebacks"], size=size)
    found = sets["gateway_state"].ne(NUMBER["none"])
    failed = sets["answer_failed"] & ~found
    if sources.universe is not None:
        asked = _named(keys.of["universe"], size=size) | sets["order_state"].ne(0)
        answered = _named(keys.of["gateway"], size=size)
        failed |= asked & ~answered & sets["kind"].eq(BY_ORDER)
    sets["no_answer"] = failed
    sets["answer_unmapped_only"] = sets["answer_unmapped"] & ~found & ~failed
    unclear = sets["no_answer"] | sets["answer_unmapped_only"]
    sets["gateway_state"] = sets["gateway_state"].mask(unclear, NUMBER["unverified"])


def _named_in_part(sets: pd.DataFrame, *, rows: Sequence[Quarantined]) -> Bools:
    """Sets without an order, of whose order number a row stands whose account is not known."""
    wanted = {row.order_no for row in rows if row.order_no and not row.names_its_key}
    ownerless = sets["order_no"].isin(wanted) & sets["order_state"].eq(0)
    return np.asarray(ownerless, dtype=np.bool_)


def _named(rows: Rows, *, size: int) -> Bools:
    return present(np.ones(len(rows), dtype=np.bool_), groups=rows, size=size)


def event_instants(sets: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """When each set began: ordered, else paid, else booked, else instructed."""
    instants = sets["ordered_at"].to_numpy(dtype=np.int64)
    for column in ("transaction_date", "booked_at", "instructed_at", "payout_at"):
        instants = np.where(instants == NO_INSTANT, sets[column].to_numpy(), instants)
    return instants
