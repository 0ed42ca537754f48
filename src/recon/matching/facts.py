"""From the sides to the facts of a set: comparisons within tolerance, what our moves explain."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recon.matching.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.grouping import Bools, Ints
from recon.matching.orders_side import ORDER_STATES
from recon.matching.pattern import CLOCKS
from recon.matching.payouts import paid_out
from recon.matching.settlement_side import in_time
from recon.matching.state_table import Due
from recon.matching.tolerance import sign, tolerance_of
from recon.rules import Rules

_MONEY_STATES = [NUMBER[word] for word in ("paid", "partially_refunded", "refunded")]
_ORDER_MONEY = [ORDER_STATES.index(word) for word in ("paid", "partially_refunded", "refunded")]


def comparisons(sets: pd.DataFrame, *, rules: Rules, strict: Bools) -> dict[str, Ints]:
    """Signs of the differences of both legs, and which of them are rounding.

    Args:
        sets: the joined sides (grain: set), amounts in the set's currency.
        rules: the tolerances.
        strict: sets for which nothing is rounding, because the night's budget is spent.
    """
    free = ~strict
    order_bound = tolerance_of(_ints(sets["order_net"]), currency=sets["currency"], rules=rules)
    book_bound = tolerance_of(_ints(sets["gateway_net"]), currency=sets["currency"], rules=rules)
    order_bound, book_bound = order_bound * free, book_bound * free
    money = np.isin(sets["gateway_state"], _MONEY_STATES)
    pair = money & np.isin(sets["order_state"], _ORDER_MONEY)
    captured = _ints(sets["gateway_captured"] - sets["order_captured"])
    refunded = _ints(sets["gateway_refunded"] - sets["order_refunded"])
    net = _ints(sets["gateway_net"] - sets["order_net"])
    booked = _ints(sets["ledger_capture"] + sets["ledger_adjustment"])
    capture_gap = _ints(sets["gateway_captured"]) - booked
    refund_gap = _ints(sets["gateway_refunded"] - sets["ledger_refund"])
    signs = {
        "net_sign": sign(net, within=order_bound),
        "captured_sign": sign(captured, within=order_bound),
        "refunded_sign": sign(refunded, within=order_bound),
        "ledger_capture_differs": np.abs(sign(capture_gap, within=book_bound)),
        "ledger_refund_differs": np.abs(sign(refund_gap, within=book_bound)),
    }
    small = (signs["net_sign"] == 0) & (net != 0)
    signs["rounded"] = _bits(
        pair & small & (signs["captured_sign"] == 0) & (signs["refunded_sign"] == 0)
    )
    several = _ints(sets["payments_with_money"]) > 1
    signs["rounded"] |= _bits(pair & small & several)
    leg = _ints(sets["gateway_net"] - sets["ledger_net"])
    booked_any = (_ints(sets["ledger_capture"]) != 0) | (_ints(sets["ledger_adjustment"]) != 0)
    ties = (signs["ledger_capture_differs"] == 0) & (signs["ledger_refund_differs"] == 0)
    signs["ledger_rounded"] = _bits(
        money & ties & (leg != 0) & booked_any & (_ints(sets["ledger_chargeback"]) == 0)
    )
    return signs


def our_moves(sets: pd.DataFrame, *, rules: Rules) -> dict[str, Ints]:
    """What our instructions explain, and which have no visible effect."""
    shown, taken = _ints(sets["gateway_refunded"]), _ints(sets["gateway_captured"])
    confirmed, doubtful = _ints(sets["refund_confirmed"]), _ints(sets["refund_doubtful"])
    rejected = _ints(sets["refund_rejected"] + sets["refund_failed_later_sum"])
    unknown = sets["refund_unknown"].to_numpy()
    unseen = {
        "refund_confirmed": (confirmed > shown) | (unknown & (confirmed > 0)),
        "refund_doubtful": sets["refund_doubtful_any"].to_numpy() & (confirmed + doubtful > shown),
        "refund_rejected": sets["refund_rejected_any"].to_numpy()
        & (confirmed + doubtful + rejected > shown),
        "refund_failed_later": sets["refund_failed_later"].to_numpy()
        & (confirmed + doubtful + rejected > shown),
        "refund_waiting": sets["refund_waiting_any"].to_numpy(),
    }
    for kind in ("capture", "cancel"):
        for standing in ("confirmed", "rejected", "doubtful", "waiting"):
            unseen[f"{kind}_{standing}"] = sets[f"{kind}_{standing}_any"].to_numpy()
    money = np.isin(sets["gateway_state"], _MONEY_STATES)
    hidden = unknown | ~_can_show(confirmed + doubtful >= taken, rules=rules)
    reply_only = unseen["refund_confirmed"] & hidden & money
    moves = {name: _bits(mask) for name, mask in unseen.items()}
    moves["reply_only"] = _bits(reply_only)
    covers = confirmed >= _ints(sets["order_refunded"])
    moves["reply_covers_order"] = _bits(reply_only & covers)
    moves["refund_covers_ledger"] = _bits(confirmed >= _ints(sets["ledger_refund"]))
    moves["explained"] = _bits(_explained(sets, money=money))
    return moves


def _can_show(in_full: Bools, *, rules: Rules) -> Bools:
    """Whether some code of the status map means the state that the refund would lead to."""
    states = set(rules.payment_status.values())
    return np.where(in_full, "refunded" in states, "partially_refunded" in states)


def _explained(sets: pd.DataFrame, *, money: Bools) -> Bools:
    """Our confirmed moves account exactly for what the gateway shows beyond the order."""
    confirmed = _ints(sets["capture_confirmed"])
    shown = _ints(sets["gateway_captured"])
    hidden = ~sets["captured_known"].to_numpy() & (confirmed <= shown)
    by_capture = (confirmed > 0) & ((confirmed == shown) | hidden)
    refunds = _ints(sets["refund_confirmed"])
    by_refund = (refunds > 0) & (refunds == _ints(sets["gateway_refunded"]))
    captured_ties = shown == _ints(sets["order_captured"])
    refunded_ties = _ints(sets["gateway_refunded"]) == _ints(sets["order_refunded"])
    ordered = (sets["order_state"].to_numpy() != 0) & ~sets["order_duplicate"].to_numpy()
    single = (_ints(sets["payments_with_money"]) == 1) & (_ints(sets["currencies"]) == 1)
    pair = money & ordered & single & ~sets["refund_unknown"].to_numpy()
    moved = (by_capture | by_refund) & (by_capture | captured_ties) & (by_refund | refunded_ties)
    cancelled = (sets["gateway_state"].to_numpy() == NUMBER["cancelled"]) & ordered
    by_cancel = cancelled & sets["cancel_confirmed_any"].to_numpy()
    return np.asarray((pair & moved) | by_cancel, dtype=np.bool_)


def late_bits(due: Mapping[Due, Ints], *, as_of: int) -> Ints:
    """Bit n is set where the n-th clock has run out; due exactly at as-of is late."""
    bits = np.zeros(len(next(iter(due.values()))), dtype=np.int64)
    for place, clock in enumerate(CLOCKS):
        bits |= (due[clock] <= as_of).astype(np.int64) << place
    return bits


def plain_facts(sets: pd.DataFrame, *, covered: bool) -> dict[str, Ints]:
    """Facts that are read off the sides without comparing amounts."""
    state = sets["gateway_state"].to_numpy()
    present = (sets["order_state"] != 0) | ~np.isin(state, _ABSENT) | sets["ledger_present"]
    present |= sets["settled_any"] | (sets["payout"] != 0)
    foreign = (sets["gateway_currency"] != "") & (sets["gateway_currency"] != sets["currency"])
    mismatch = (sets["currencies"] > 1) & ~_both_dead(sets)
    twice = _booked_twice(sets)
    refunds = np.maximum(
        sets["gateway_refunded"], sets["refund_confirmed"] + sets["refund_doubtful"]
    )
    bounded = np.isin(state, BOUNDED)
    masks = {
        "anything": present,
        "ambiguous": sets["gateway_ambiguous"] | sets["key_ambiguous"] | sets["account_ambiguous"],
        "order_duplicate": sets["order_duplicate"],
        "wrong_account": sets["wrong_account"],
        "currency_mismatch": mismatch,
        "foreign_payment": foreign,
        "unmapped": sets["unmapped"],
        "several_payments": sets["payments_with_money"] > 1,
        "both_known": sets["both_known"],
        "over_authorised": sets["over_authorised"],
        "over_refund": bounded & ((refunds > sets["gateway_captured"]) | sets["refund_excess"]),
        "order_net": sets["order_net"] != 0,
        "gateway_net": sets["gateway_net"] != 0,
        "captured": sets["gateway_captured"] > 0,
        "refunded": sets["gateway_refunded"] > 0,
        "refund_unknown": sets["refund_unknown"],
        "covered": np.full(len(sets), covered),
        "ledger_net": sets["ledger_any"] != 0,
        "ledger_captured": (sets["ledger_capture"] != 0) | (sets["ledger_adjustment"] != 0),
        "ledger_refunded": sets["ledger_refund"] > 0,
        "ledger_chargeback": sets["ledger_chargeback"] > 0,
        "booked_twice": twice & covered,
        "refund_evidence": _refund_evidence(sets),
        "chargeback_before": sets["chargeback_before"],
    }
    facts = {name: _bits(np.asarray(mask)) for name, mask in masks.items()}
    return {
        **facts,
        **_beyond_the_legs(sets),
        "order_state": _ints(sets["order_state"]),
        "gateway_state": state.astype(np.int64),
    }


_ABSENT = [NUMBER["none"], NUMBER["unverified"]]
_DEAD = [NUMBER[word] for word in ("cancelled", "expired", "failed")]
BOUNDED = [*_MONEY_STATES, NUMBER["authorised"]]


def _beyond_the_legs(sets: pd.DataFrame) -> dict[str, Ints]:
    """Reviews, exchange, settlement and payouts."""
    review = sets["gateway_state"].eq(NUMBER["in_review"])
    same = sets["settled_currency"].eq(sets["currency"])
    captured = sets["settled_captured"].ne(sets["gateway_captured"])
    refunded = sets["settled_refund_any"] & ~sets["refund_unknown"]
    refunded &= sets["settled_refunded"].ne(sets["gateway_refunded"])
    masks = {
        **{
            f"review_{standing}": review & sets[f"review_{standing}_any"]
            for standing in ("confirmed", "rejected", "doubtful")
        },
        "exchange_differs": sets["exchange_gap"] != 0,
        "settled": sets["settled_any"],
        "settled_capture": sets["settled_capture_any"],
        "settled_differs": ~same | captured | refunded,
        "settlement_owed": in_time(sets),
        "fee_differs": sets["fee_gap"] != 0,
    }
    facts = {name: _bits(np.asarray(mask)) for name, mask in masks.items()}
    return {**facts, "payout": paid_out(sets)}


def _both_dead(sets: pd.DataFrame) -> Bools:
    closed = np.isin(sets["order_state"], [ORDER_STATES.index(w) for w in ("cancelled", "failed")])
    return np.asarray(closed & np.isin(sets["gateway_state"], _DEAD) & (sets["ledger_any"] == 0))


def _booked_twice(sets: pd.DataFrame) -> Bools:
    """A movement stands twice and its type sums to more than the gateway's."""
    charged = sets["gateway_state"].eq(NUMBER["chargeback"])
    bounds = {
        "capture": sets["gateway_captured"],
        "refund": sets["gateway_refunded"],
        "chargeback": sets["gateway_captured"].where(charged, 0),
    }
    twice = np.zeros(len(sets), dtype=np.bool_)
    for kind, bound in bounds.items():
        twice |= (sets[f"booked_twice_{kind}"] & (sets[f"ledger_{kind}"] > bound)).to_numpy()
    return twice


def _refund_evidence(sets: pd.DataFrame) -> Bools:
    refunded = (sets["gateway_refunded"] > 0) | (sets["refund_confirmed"] > 0)
    refunded |= (sets["order_refunded"] > 0) | (sets["ledger_refund"] > 0)
    return refunded.to_numpy()


def closed_by_write_off(sets: pd.DataFrame, *, covered: bool) -> dict[str, Ints]:
    """Legs whose effect a write-off of exactly that amount closes."""
    written = _ints(sets["ledger_write_off"])
    orders = np.abs(_ints(sets["gateway_net"] - sets["order_net"]))
    ledger = np.abs(_ints(sets["gateway_net"] - sets["ledger_net"]))
    given = (written > 0) & covered
    return {
        "closed_orders": _bits(given & (written == orders)),
        "closed_ledger": _bits(given & (written == ledger)),
    }


def unverified_reasons(sets: pd.DataFrame) -> Ints:
    """Number of the first reason (pattern.UNVERIFIED_REASONS, from 1) or 0."""
    unknown = sets["refund_unknown"] & ~sets["refund_confirmed_any"]
    causes = [
        sets["quarantined"],
        sets["entry_conflict"],
        sets["no_answer"],
        sets["answer_unmapped_only"],
        unknown & (sets["gateway_state"] == GATEWAY_STATES.index("partially_refunded")),
    ]
    numbers = np.arange(1, len(causes) + 1)
    chosen = np.select([np.asarray(cause) for cause in causes], list(numbers), 0)
    return np.asarray(chosen, dtype=np.int64)


def _ints(column: "pd.Series[int]") -> Ints:
    return np.asarray(column.to_numpy(dtype=np.int64), dtype=np.int64)


def _bits(mask: Bools) -> Ints:
    return np.asarray(mask).astype(np.int64)
