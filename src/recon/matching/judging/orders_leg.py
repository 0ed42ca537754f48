"""Leg A: what the order says against what the gateway says, and our own moves between them."""

from collections.abc import Iterator

from recon.matching.judging.finding import Finding, Leg
from recon.matching.judging.pattern import SHOWN_EXACTLY, Pattern
from recon.matching.judging.state_table import Due, StateCell, cell_of
from recon.model.words import BreakCode

DEAD = frozenset({"cancelled", "expired", "failed"})
MONEY = frozenset({"paid", "partially_refunded", "refunded"})
SHOWN_MONEY = MONEY | {"chargeback"}
WAITING = frozenset({Due.CAPTURE_WAITING, Due.CANCEL_WAITING, Due.REFUND_WAITING})


def order_findings(pattern: Pattern) -> Iterator[Finding]:
    """Findings of the order against the gateway."""
    if pattern.over_authorised:
        yield Finding(BreakCode.OVER_CAPTURE, Leg.ORDERS)
    if pattern.gateway == "chargeback":
        if pattern.order == "none":
            yield Finding(BreakCode.MISSING_IN_ORDERS, Leg.ORDERS)
        elif pattern.residual_orders:
            yield _over_or_under(pattern.residual_orders)
        return
    booked = pattern.covered and pattern.ledger_net and not pattern.closed_ledger
    if pattern.gateway == "none" and booked:
        return
    if not pattern.explained:
        states, amounts = [*_table_findings(pattern)], [*_amount_findings(pattern)]
        other_refund = [*_other_refund(pattern)]
        if _is_still_to_move(pattern):
            states = [finding for finding in states if finding.code is None]
            if _lacks_only_refunds(pattern):
                amounts = other_refund = []
        yield from _with_shown_doubts([*states, *amounts], pattern=pattern)
        yield from other_refund


def _is_still_to_move(pattern: Pattern) -> bool:
    """An instruction of ours is not sent and not late: until then the states say nothing yet."""
    ours = instruction_findings(pattern)
    return any(each.due in WAITING and not pattern.is_late(each.due) for each in ours)


def _lacks_only_refunds(pattern: Pattern) -> bool:
    """The order expects more refunded than is shown, a refund waits, and nothing else differs."""
    only = not pattern.captured_sign and not pattern.several_payments
    return bool(pattern.refund_waiting and pattern.refunded_sign < 0 and only)


def _table_findings(pattern: Pattern) -> Iterator[Finding]:
    cell = cell_of(pattern.order, pattern.gateway)
    if cell.code in _replaced_codes(pattern):
        return
    if _net_is_left(cell, pattern=pattern):
        yield Finding(BreakCode.STATUS_CONFLICT, Leg.ORDERS)
    elif cell.code is not None or cell.due is not Due.NOW:
        side = "orders" if pattern.order == "none" else "gateway"
        yield Finding(cell.code, Leg.ORDERS, cell.due, side, cell.flag)
    elif cell.flag is not None:
        yield Finding(None, Leg.ORDERS, flag=cell.flag)


def _net_is_left(cell: StateCell, *, pattern: Pattern) -> bool:
    if cell.net_zero_side == "order":
        return bool(pattern.order_net)
    return cell.net_zero_side == "gateway" and bool(pattern.gateway_net)


def _replaced_codes(pattern: Pattern) -> frozenset[BreakCode]:
    """Codes of the table that our own moves say more precisely."""
    codes = set()
    if any(finding.code for finding in _capture_findings(pattern)):
        codes.add(BreakCode.CAPTURE_DUE)
    if any(finding.code for finding in _cancel_findings(pattern)):
        codes.add(BreakCode.CANCEL_DUE)
    if any(finding.code for finding in _refund_findings(pattern)):
        codes.add(BreakCode.REFUND_DUE)
    if pattern.reply_only:
        # The refund is our own, confirmed by its reply; its amount is compared by itself.
        codes |= {BreakCode.REFUND_DUE, BreakCode.REFUND_UNEXPECTED}
    return frozenset(codes)


def _amount_findings(pattern: Pattern) -> Iterator[Finding]:
    """Captured and refunded compare gross, each; several payments compare by their sum."""
    money = pattern.order in MONEY and pattern.gateway in MONEY
    if pattern.order != "none" and pattern.several_payments:
        if pattern.net_sign > 0:
            yield Finding(BreakCode.DUPLICATE_PAYMENT, Leg.ORDERS)
        elif pattern.net_sign < 0 and money:
            yield Finding(BreakCode.SPLIT_INCOMPLETE, Leg.ORDERS)
        return
    if not money or pattern.order_duplicate or pattern.foreign_payment:
        return
    if pattern.captured_sign and pattern.both_known:
        over = pattern.captured_sign > 0
        code = BreakCode.OVER_CAPTURE if over else BreakCode.PARTIAL_CAPTURE_UNEXPECTED
        yield Finding(code, Leg.ORDERS)
    elif pattern.captured_sign:
        yield _over_or_under(pattern.net_sign or pattern.captured_sign)
    only_together = pattern.net_sign and not pattern.captured_sign
    if (pattern.refunded_sign or only_together) and _same_refund_state(pattern):
        yield _over_or_under(pattern.net_sign or pattern.captured_sign or -pattern.refunded_sign)


def _over_or_under(sign: int) -> Finding:
    return Finding(BreakCode.AMOUNT_OVER if sign > 0 else BreakCode.AMOUNT_UNDER, Leg.ORDERS)


def _same_refund_state(pattern: Pattern) -> bool:
    """Elsewhere the table already says that a refund is due or unexpected.

    Where the query tells no amount there is none to compare.
    """
    untold = pattern.reply_only or pattern.refund_running or pattern.refund_unknown
    return cell_of(pattern.order, pattern.gateway).compare and not untold


def _other_refund(pattern: Pattern) -> Iterator[Finding]:
    """A confirmed refund of ours that the query does not show, of more or less than the order."""
    if not pattern.tells_refund:
        return
    if pattern.refunded_sign > 0 and (pattern.reply_only or pattern.refund_running):
        yield Finding(BreakCode.REFUND_UNEXPECTED, Leg.ORDERS)
    elif pattern.refunded_sign < 0 and pattern.reply_only:
        yield Finding(BreakCode.REFUND_DUE, Leg.ORDERS)


def _with_shown_doubts(differing: list[Finding], *, pattern: Pattern) -> Iterator[Finding]:
    """What differs, and our doubts of which the gateway shows what may be their effect.

    Whose the effect is, nobody knows before the doubt is decided: it is no movement of somebody
    else's meanwhile, and no less urgent than a doubt without one.
    """
    doubts = _shown_doubts(pattern) if any(_differs(finding) for finding in differing) else {}
    replaced = frozenset().union(*doubts.values())
    yield from (finding for finding in differing if finding.code not in replaced)
    yield from (Finding(code, Leg.OURS) for code in doubts)


def _differs(finding: Finding) -> bool:
    return finding.code is not None and finding.due is Due.NOW


def _shown_doubts(pattern: Pattern) -> dict[BreakCode, frozenset[BreakCode]]:
    """By the code of the doubt the codes that it would explain, were it decided as applied."""
    doubts: dict[BreakCode, frozenset[BreakCode]] = {}
    conflict = frozenset({BreakCode.STATUS_CONFLICT})
    waits = pattern.order == "authorised"
    if pattern.capture_doubtful and pattern.gateway in MONEY:
        explains = waits and pattern.gateway == "paid"
        doubts[BreakCode.CAPTURE_UNCONFIRMED] = conflict if explains else frozenset()
    if pattern.cancel_doubtful and pattern.gateway == "cancelled":
        doubts[BreakCode.CANCEL_UNCONFIRMED] = conflict if waits else frozenset()
    if pattern.refund_doubt_shown:
        ours = pattern.refund_doubt_shown == SHOWN_EXACTLY
        unexpected = frozenset({BreakCode.REFUND_UNEXPECTED})
        doubts[BreakCode.REFUND_UNCONFIRMED] = unexpected if ours else frozenset()
    return doubts


def instruction_findings(pattern: Pattern) -> Iterator[Finding]:
    """Our own moves without a visible effect."""
    yield from _capture_findings(pattern)
    yield from _cancel_findings(pattern)
    yield from _refund_findings(pattern)
    yield from _review_findings(pattern)
    if pattern.subscription_stands:
        yield Finding(BreakCode.SUBSCRIPTION_NOT_ENDED, Leg.OURS)


def _capture_findings(pattern: Pattern) -> Iterator[Finding]:
    if pattern.gateway in SHOWN_MONEY:
        return
    if pattern.capture_doubtful:
        yield Finding(BreakCode.CAPTURE_UNCONFIRMED, Leg.OURS)
    if pattern.capture_rejected:
        yield Finding(BreakCode.CAPTURE_REJECTED, Leg.OURS)
    if pattern.capture_confirmed:
        yield Finding(BreakCode.CAPTURE_UNCONFIRMED, Leg.OURS, Due.CAPTURE)
    if pattern.capture_waiting:
        yield Finding(BreakCode.CAPTURE_DUE, Leg.OURS, Due.CAPTURE_WAITING)


def _cancel_findings(pattern: Pattern) -> Iterator[Finding]:
    if pattern.gateway in DEAD:
        return
    if pattern.cancel_doubtful:
        yield Finding(BreakCode.CANCEL_UNCONFIRMED, Leg.OURS)
    if pattern.cancel_rejected:
        yield Finding(BreakCode.CANCEL_REJECTED, Leg.OURS)
    if pattern.cancel_confirmed:
        yield Finding(BreakCode.CANCEL_UNCONFIRMED, Leg.OURS, Due.CANCEL)
    if pattern.cancel_waiting:
        yield Finding(BreakCode.CANCEL_DUE, Leg.OURS, Due.CANCEL_WAITING)


def _refund_findings(pattern: Pattern) -> Iterator[Finding]:
    if pattern.refund_doubtful:
        yield Finding(BreakCode.REFUND_UNCONFIRMED, Leg.OURS)
    if pattern.refund_rejected:
        yield Finding(BreakCode.REFUND_REJECTED, Leg.OURS)
    if pattern.refund_failed_later:
        yield Finding(BreakCode.REFUND_FAILED_AFTER_ACCEPT, Leg.OURS)
    if pattern.refund_confirmed and not pattern.reply_only:
        yield Finding(BreakCode.REFUND_UNCONFIRMED, Leg.OURS, Due.REFUND)
    if pattern.refund_waiting:
        yield Finding(BreakCode.REFUND_DUE, Leg.OURS, Due.REFUND_WAITING)


def _review_findings(pattern: Pattern) -> Iterator[Finding]:
    """We decided the review, and the gateway still shows it."""
    if pattern.review_doubtful or pattern.review_rejected:
        yield Finding(BreakCode.REVIEW_STUCK, Leg.OURS)
    elif pattern.review_confirmed:
        yield Finding(BreakCode.REVIEW_STUCK, Leg.OURS, Due.REVIEW)
