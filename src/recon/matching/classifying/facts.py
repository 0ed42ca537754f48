"""Derives the facts of a set from its sides and from our own instructions."""

import numpy as np

from recon.config.rules import Rules
from recon.matching.classifying.table import Unverified
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.grouping import Bools, Ints
from recon.matching.sets.residuals import MONEY_STATES, STATES_REFUND, Ours, bits, ints
from recon.matching.sides.gateway_side import NUMBER
from recon.matching.sides.orders_side import ORDER_STATES
from recon.matching.sides.payouts import KnownPayout, paid_out
from recon.matching.sides.settlement_side import in_time
from recon.model.terms import GatewayState

PAYOUT_FACTS = {
    "payout": KnownPayout.PAYOUT,
    **{f"payout_{bit.name}".lower(): bit for bit in KnownPayout if bit.name != "PAYOUT"},
}
"""Facts about a payout of ours; all are false where there is no payout."""


def unseen_moves(sets: Arrays) -> dict[str, Bools]:
    """Return masks of our instructions without a visible effect, by kind and status."""
    reported = ints(sets["gateway_refunded"])
    confirmed, doubtful = ints(sets["refund_confirmed"]), ints(sets["refund_doubtful"])
    rejected = ints(sets["refund_rejected"] + sets["refund_failed_later_sum"])
    unknown = sets["refund_unknown"]
    unseen = {
        "refund_confirmed": (confirmed > reported) | (unknown & (confirmed > 0)),
        "refund_doubtful": sets["refund_doubtful_any"] & (confirmed + doubtful > reported),
        "refund_rejected": sets["refund_rejected_any"]
        & (confirmed + doubtful + rejected > reported),
        "refund_failed_later": sets["refund_failed_later"]
        & (confirmed + doubtful + rejected > reported),
        "refund_waiting": sets["refund_waiting_any"],
    }
    for kind in ("capture", "cancel"):
        for status in ("confirmed", "rejected", "doubtful", "waiting"):
            unseen[f"{kind}_{status}"] = sets[f"{kind}_{status}_any"]
    return unseen


def our_moves(sets: Arrays, *, refund_late: Bools, rules: Rules) -> tuple[dict[str, Ints], Ours]:
    """Return facts about our instructions, and the amounts that they explain.

    Args:
        sets: the joined sides (grain: set).
        refund_late: sets whose confirmed refund should be visible by now.
        rules: which states the query can show.
    """
    unseen = unseen_moves(sets)
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    sure = ints(sets["refund_confirmed"])
    in_full = sure + ints(sets["refund_doubtful"]) >= ints(sets["gateway_captured"])
    hidden = sets["refund_unknown"] | ~_can_show(in_full, rules=rules)
    reply_only = unseen["refund_confirmed"] & hidden & money
    explained = _explained(sets, money=money)
    more = np.maximum(sure - ints(sets["gateway_refunded"]), 0)
    ours = Ours(
        hidden=more * reply_only,
        running=more * (money & ~reply_only & ~refund_late),
        uncaptured=_uncaptured(sets, explained=explained),
        explained=explained,
    )
    moves = {name: bits(mask) for name, mask in unseen.items()}
    moves["refund_doubt_shown"] = _doubt_reported(sets, reported=~unseen["refund_doubtful"])
    moves["reply_only"] = bits(reply_only)
    moves["refund_running"] = bits(ours.running > 0)
    moves["tells_refund"] = bits(np.isin(sets["order_state"], STATES_REFUND))
    moves["explained"] = bits(explained)
    return moves, ours


def _doubt_reported(sets: Arrays, *, reported: Bools) -> Ints:
    """Return 1 where the gateway may show a doubtful refund, 2 where it shows more than ours."""
    ours = ints(sets["refund_confirmed"]) + ints(sets["refund_doubtful"])
    doubt = sets["refund_doubtful_any"] & (reported | sets["refund_unknown"])
    return bits(doubt) + bits(doubt & (ours < ints(sets["gateway_refunded"])))


def _can_show(in_full: Bools, *, rules: Rules) -> Bools:
    """Return whether the query can show the state that the refund would lead to."""
    partly, full = GatewayState.PARTIALLY_REFUNDED, GatewayState.REFUNDED
    return np.where(in_full, rules.shows(full), rules.shows(partly))


def _explained(sets: Arrays, *, money: Bools) -> Bools:
    """Mark sets where our confirmed instructions exactly explain what the gateway shows.

    An instruction for more than the order expects explains nothing.
    """
    captured, refunded = ints(sets["gateway_captured"]), ints(sets["gateway_refunded"])
    capture, refund = ints(sets["capture_confirmed"]), ints(sets["refund_confirmed"])
    ordered_refund = ints(sets["order_refunded"])
    # Where the query shows only the authorised amount, a smaller capture cannot be seen.
    is_seen = (capture == captured) | (~sets["captured_known"] & (capture <= captured))
    by_capture = (capture > 0) & is_seen & (capture <= _to_be_captured(sets))
    is_expected = ~np.isin(sets["order_state"], STATES_REFUND) | (refund <= ordered_refund)
    by_refund = (refund > 0) & (refund == refunded) & is_expected
    capture_ties = by_capture | (captured == ints(sets["order_captured"]))
    refund_ties = by_refund | (refunded == ordered_refund)
    ordered = (sets["order_state"] != 0) & ~sets["order_duplicate"]
    single = (ints(sets["payments_with_money"]) == 1) & (ints(sets["currencies"]) == 1)
    plain = single & ~(sets["refund_unknown"] | sets["moves_foreign"])
    by_money = money & ordered & plain & (by_capture | by_refund) & capture_ties & refund_ties
    cancelled = (sets["gateway_state"] == NUMBER["cancelled"]) & ordered
    return np.asarray(by_money | (cancelled & sets["cancel_confirmed_any"]), dtype=np.bool_)


def _to_be_captured(sets: Arrays) -> Ints:
    """Return the most that an order lets us capture: nothing once it is cancelled or failed."""
    waits = sets["order_state"] == ORDER_STATES.index("pending")
    return np.where(waits, ints(sets["order_amount"]), ints(sets["order_captured"]))


def _uncaptured(sets: Arrays, *, explained: Bools) -> Ints:
    """Return the authorised amount shown beyond the capture that explains the set."""
    confirmed, reported = ints(sets["capture_confirmed"]), ints(sets["gateway_captured"])
    less = explained & ~sets["captured_known"] & (confirmed > 0) & (confirmed < reported)
    return np.where(less, reported - confirmed, 0).astype(np.int64)


def beyond_doubt(sets: Arrays) -> Ints:
    """Return the authorised amount shown beyond a capture of ours that is in doubt."""
    ours = ints(sets["capture_confirmed"]) + ints(sets["capture_doubtful"])
    reported = ints(sets["gateway_captured"])
    partly = ~sets["captured_known"] & (ints(sets["capture_doubtful"]) > 0) & (ours < reported)
    return np.where(partly, reported - ours, 0).astype(np.int64)


def plain_facts(sets: Arrays, *, ours: Ours, covered: bool) -> dict[str, Ints]:
    """Return facts that are read off the sides without comparing the amounts of two sides."""
    state = sets["gateway_state"]
    present = (sets["order_state"] != 0) | ~np.isin(state, _ABSENT) | sets["ledger_present"]
    present |= sets["settled_any"] | (sets["payout"] != 0) | _end_not_taken(sets)
    foreign = (sets["gateway_currency"] != "") & (sets["gateway_currency"] != sets["currency"])
    mismatch = ((sets["currencies"] > 1) & ~_both_dead(sets)) | sets["moves_foreign"]
    twice = _booked_twice(sets, ours=ours)
    refunds = np.maximum(
        sets["gateway_refunded"], sets["refund_confirmed"] + sets["refund_doubtful"]
    )
    bounded = np.isin(state, BOUNDED)
    masks = {
        "anything": present,
        "ambiguous": np.logical_or.reduce([sets[name] for name in _AMBIGUOUS]),
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
        "refund_unknown": sets["refund_unknown"],
        "covered": np.full(len(sets), covered),
        "ledger_net": sets["ledger_any"] != 0,
        "ledger_captured": (sets["ledger_capture"] != 0) | (sets["ledger_adjustment"] != 0),
        "booked_twice": twice & covered,
        "refund_evidence": _refund_evidence(sets),
        "chargeback_before": sets["chargeback_before"],
    }
    facts = {name: bits(np.asarray(mask)) for name, mask in masks.items()}
    return {
        **facts,
        **_beyond_the_legs(sets, ours=ours),
        "ledger_refunded": np.sign(ints(sets["ledger_refund"])),
        "ledger_chargeback": np.sign(ints(sets["ledger_chargeback"])),
        "order_state": ints(sets["order_state"]),
        "gateway_state": state.astype(np.int64),
    }


_AMBIGUOUS = ("gateway_ambiguous", "key_ambiguous", "account_ambiguous", "moves_reported_apart")
_ABSENT = [NUMBER["none"], NUMBER["unverified"]]
_DEAD = [NUMBER[label] for label in ("cancelled", "expired", "failed")]
BOUNDED = [*MONEY_STATES, NUMBER["authorised"]]


def _beyond_the_legs(sets: Arrays, *, ours: Ours) -> dict[str, Ints]:
    """Return facts about reviews, exchange rates, settlement and payouts."""
    review = sets["gateway_state"] == NUMBER["in_review"]
    same = sets["settled_currency"] == sets["currency"]
    captured = sets["settled_captured"] != sets["gateway_captured"] - ours.uncaptured
    refunded = sets["settled_refund_any"] & ~sets["refund_unknown"]
    refunded &= sets["settled_refunded"] != sets["gateway_refunded"] + ours.hidden
    masks = {
        **{
            f"review_{status}": review & sets[f"review_{status}_any"]
            for status in ("confirmed", "rejected", "doubtful")
        },
        "subscription_stands": _end_not_taken(sets) & ~sets["cancel_subscription_confirmed_any"],
        "exchange_differs": sets["exchange_gap"] != 0,
        "settled": sets["settled_any"],
        "settled_capture": sets["settled_capture_any"],
        "settled_differs": ~same | captured | refunded,
        "settlement_owed": in_time(sets),
        "fee_differs": sets["fee_gap"] != 0,
    }
    facts = {name: bits(np.asarray(mask)) for name, mask in masks.items()}
    known = paid_out(sets)
    return {**facts, **{name: bits(known & bit != 0) for name, bit in PAYOUT_FACTS.items()}}


def _end_not_taken(sets: Arrays) -> Bools:
    """Mark sets where our request to end a subscription was rejected or is in doubt."""
    requested = sets["cancel_subscription_rejected_any"] | sets["cancel_subscription_doubtful_any"]
    return np.asarray(requested, dtype=np.bool_)


def _both_dead(sets: Arrays) -> Bools:
    closed = np.isin(sets["order_state"], [ORDER_STATES.index(w) for w in ("cancelled", "failed")])
    return np.asarray(closed & np.isin(sets["gateway_state"], _DEAD) & (sets["ledger_any"] == 0))


def _booked_twice(sets: Arrays, *, ours: Ours) -> Bools:
    """Mark sets with a movement booked twice whose type sums to more than the gateway's."""
    charged = sets["gateway_state"] == NUMBER["chargeback"]
    bounds = {
        "capture": sets["gateway_captured"],
        "refund": sets["gateway_refunded"] + ours.hidden + ours.running,
        "chargeback": np.where(charged, sets["gateway_captured"], 0),
    }
    twice = np.zeros(len(sets), dtype=np.bool_)
    for kind, limit in bounds.items():
        twice |= sets[f"booked_twice_{kind}"] & (sets[f"ledger_{kind}"] > limit)
    return twice


def _refund_evidence(sets: Arrays) -> Bools:
    refunded = (sets["gateway_refunded"] > 0) | (sets["refund_confirmed"] > 0)
    refunded |= (sets["order_refunded"] > 0) | (sets["ledger_refund"] > 0)
    return np.asarray(refunded, dtype=np.bool_)


def unverified_reasons(sets: Arrays) -> Ints:
    """Return the first reason of each set (see table.Unverified).

    A refund of unknown amount that may be our own doubtful one is left to people to decide.
    """
    ours = sets["refund_confirmed_any"] | sets["refund_doubtful_any"]
    unknown = sets["refund_unknown"] & ~ours
    causes = {
        Unverified.ROW_QUARANTINED: sets["quarantined"],
        Unverified.ENTRY_ID_CONFLICT: sets["entry_conflict"],
        Unverified.QUERY_FAILED: sets["no_answer"],
        Unverified.QUERY_RESULT_UNMAPPED: sets["answer_unmapped_only"],
        Unverified.REFUND_AMOUNT_UNKNOWN: unknown
        & (sets["gateway_state"] == NUMBER["partially_refunded"]),
    }
    chosen = np.select([*causes.values()], [*causes], default=Unverified.NO)
    return np.asarray(chosen, dtype=np.int64)
