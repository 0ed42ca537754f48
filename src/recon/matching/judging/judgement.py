"""What a set came to: findings of both legs, of our own moves and of multiplicity, then one word.

Pure functions of a Pattern. A finding whose grace still runs makes the set PENDING; one that has
run out, or had none, makes it a BREAK; precedence picks the primary code.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from recon.matching.codes import CODES, PRECEDENCE
from recon.matching.judging.finding import Finding, Leg
from recon.matching.judging.ledger_leg import ledger_findings
from recon.matching.judging.orders_leg import SHOWN_MONEY, instruction_findings, order_findings
from recon.matching.judging.pattern import UNVERIFIED_REASONS, Pattern
from recon.matching.judging.settlement_leg import payout_findings, settlement_findings
from recon.matching.judging.state_table import Due
from recon.matching.sets.residuals import BOOKED_EXACTLY
from recon.model.words import BreakCode, Flag, SetState, UnverifiedReason

ABSENT = ""
"""Neither side says anything: no row anywhere."""

_FIRM = frozenset(code for code, row in CODES.items() if row.firm)
"""A write-off does not close these: they are doubts, not differences."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome for every set of one pattern."""

    state: str
    """A SetState, or ABSENT."""
    codes: tuple[BreakCode, ...] = ()
    """In order of precedence; the first is the primary code."""
    flags: tuple[Flag, ...] = ()
    waits: tuple[Finding, ...] = ()
    """What a PENDING set waits for."""
    rule: str = ""
    """Why a set is MATCHED."""
    reason: str = ""
    """Why a set is UNVERIFIED."""


def judge(pattern: Pattern) -> Judgement:
    """The judgement of a pattern."""
    if pattern.unverified:
        reason = UNVERIFIED_REASONS[pattern.unverified - 1]
        return Judgement(SetState.UNVERIFIED, reason=reason.value)
    findings = tuple(_kept(pattern))
    late = [finding for finding in findings if pattern.is_late(finding.due)]
    if pattern.wrong_account:
        late.append(Finding(BreakCode.WRONG_ACCOUNT, Leg.ORDERS))
    elif not any(finding.code for finding in late):
        findings = (*findings, *_unexplained(pattern, findings=findings))
        late = [finding for finding in findings if pattern.is_late(finding.due)]
    codes = tuple(sorted({f.code for f in late if f.code}, key=PRECEDENCE.index))
    waits = tuple(finding for finding in findings if not pattern.is_late(finding.due))
    flags = tuple(sorted({*_flags(pattern), *(f.flag for f in late if f.flag)}))
    if pattern.orders_lack and BreakCode.MISSING_IN_ORDERS in codes and not _FIRM & {*codes}:
        return Judgement(SetState.UNVERIFIED, reason=UnverifiedReason.ORDERS_MISSING.value)
    if codes:
        return Judgement(SetState.BREAK, codes, flags)
    if waits:
        return Judgement(SetState.PENDING, flags=flags, waits=waits)
    if not pattern.anything:
        return Judgement(ABSENT)
    return Judgement(SetState.MATCHED, flags=flags, rule=_rule(flags, pattern=pattern))


def _kept(pattern: Pattern) -> Iterator[Finding]:
    """All findings that nothing closes or replaces."""
    closed = {
        leg
        for leg, is_closed in (
            (Leg.ORDERS, pattern.closed_orders),
            (Leg.LEDGER, pattern.closed_ledger),
        )
        if is_closed
    }
    for finding in _all(pattern):
        if finding.leg in closed and finding.code not in _FIRM:
            continue
        yield finding


def _unexplained(pattern: Pattern, *, findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """What neither a flag nor anything that is waited for explains, leg by leg.

    Every difference has a finding of its own; this is the floor under them, so that no set is
    MATCHED or PENDING with money that does not add up.
    """
    explained = {finding.leg for finding in findings if finding.code or finding.due is not Due.NOW}
    if _BOTH_LEGS.intersection(finding.code for finding in findings):
        explained.add(Leg.ORDERS)
    if pattern.residual_orders and not explained & {Leg.ORDERS, Leg.OURS}:
        code = _of_orders(pattern)
        yield Finding(code, Leg.ORDERS, _ONE_SIDED.get(code, Due.NOW))
    if pattern.residual_ledger and Leg.LEDGER not in explained:
        code = _of_ledger(pattern)
        yield Finding(code, Leg.LEDGER, _ONE_SIDED.get(code, Due.NOW))


_BOTH_LEGS = frozenset({BreakCode.BOOKED_NOT_AT_GATEWAY, BreakCode.LEDGER_ONLY})
"""Findings of the ledger that say the same of the leg of orders: the gateway has nothing."""


_ONE_SIDED = {
    BreakCode.MISSING_AT_GATEWAY: Due.ORDER,
    BreakCode.MISSING_IN_ORDERS: Due.ORDER,
    BreakCode.BOOKED_NOT_AT_GATEWAY: Due.ORDER,
    BreakCode.LEDGER_ONLY: Due.BOOKED,
}


def _of_orders(pattern: Pattern) -> BreakCode:
    if pattern.gateway == "none":
        return BreakCode.MISSING_AT_GATEWAY
    if pattern.order == "none":
        return BreakCode.MISSING_IN_ORDERS
    if pattern.gateway not in SHOWN_MONEY:
        return BreakCode.STATUS_CONFLICT
    over = pattern.residual_orders > 0
    return BreakCode.AMOUNT_OVER if over else BreakCode.AMOUNT_UNDER


def _of_ledger(pattern: Pattern) -> BreakCode:
    if pattern.payout:
        return BreakCode.PAYOUT_AMOUNT_MISMATCH
    if pattern.gateway == "none":
        booked = BreakCode.BOOKED_NOT_AT_GATEWAY
        return BreakCode.LEDGER_ONLY if pattern.order == "none" else booked
    return BreakCode.LEDGER_AMOUNT_MISMATCH


def _all(pattern: Pattern) -> Iterator[Finding]:
    if pattern.payout:
        yield from payout_findings(pattern)
        return
    yield from _multiplicity(pattern)
    yield from order_findings(pattern)
    yield from instruction_findings(pattern)
    if pattern.covered or pattern.gateway == "chargeback":
        yield from ledger_findings(pattern)
    yield from settlement_findings(pattern)


def _multiplicity(pattern: Pattern) -> Iterator[Finding]:
    marks = {
        BreakCode.DUPLICATE_ORDER_ROW: pattern.order_duplicate,
        BreakCode.AMBIGUOUS_MATCH: pattern.ambiguous,
        BreakCode.CURRENCY_MISMATCH: pattern.currency_mismatch,
        BreakCode.STATUS_UNMAPPED: pattern.unmapped,
        BreakCode.OVER_REFUND: pattern.over_refund,
    }
    for code, marked in marks.items():
        if marked:
            yield Finding(code, Leg.ORDERS)
    if pattern.booked_twice:
        yield Finding(BreakCode.DUPLICATE_LEDGER_POSTING, Leg.LEDGER)


def _flags(pattern: Pattern) -> Iterator[Flag]:
    marks = {
        Flag.INSTRUCTED: pattern.explained,
        Flag.REPLY_ONLY: pattern.reply_only,
        Flag.ROUNDING: pattern.rounded or (pattern.ledger_rounded and pattern.covered),
        Flag.WRITTEN_OFF: pattern.closed_orders or pattern.closed_ledger,
        Flag.CHARGEBACK_BOOKED: pattern.charged_by_lines == BOOKED_EXACTLY
        or (pattern.gateway == "chargeback" and pattern.ledger_chargeback > 0),
    }
    for flag, marked in marks.items():
        if marked:
            yield flag


class _Rule(NamedTuple):
    flag: Flag
    word: str


_RULES = (
    _Rule(Flag.WRITTEN_OFF, "written_off"),
    _Rule(Flag.CHARGEBACK_BOOKED, "chargeback_booked"),
    _Rule(Flag.REPLY_ONLY, "reply_only"),
    _Rule(Flag.INSTRUCTED, "instructed"),
    _Rule(Flag.ROUNDING, "tolerance"),
)


def _rule(flags: tuple[Flag, ...], *, pattern: Pattern) -> str:
    for flag, word in _RULES:
        if flag in flags:
            return word
    if pattern.payout:
        return "payout"
    if pattern.several_payments:
        return "split_tender"
    return "exact" if pattern.order_net or pattern.gateway_net else "state_table"
