"""Why a break is open, as one sentence that finance can read.

codes.toml has one sentence for each way in which a set comes to a code; the first whose condition
holds is told. Every number in it is one of the set's own rows, or the sum of such, of the side that
the sentence names.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple

import pandas as pd

from recon.matching.causes.reason_rows import (
    FACTS,
    NETS,
    NOTHING,
    Facts,
    GatewayPayment,
    Rival,
    SideRow,
    facts_of,
    money,
    rows_of_sets,
)
from recon.matching.codes import CODES, Condition, Template, condition_of
from recon.matching.frames.sources import Sources
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.instruction_side import STANDINGS
from recon.model.errors import Defect
from recon.model.words import BreakCode, InstructionState

SHOWN_MAX = 4
"""So many records are named one by one; how many more there are is counted."""
MONEY = frozenset({"paid", "partially refunded", "refunded"})

Clause = Callable[[Facts], str]


def words_of(state: str) -> str:
    """A state as people read it."""
    return state.replace("_", " ")


def listed(items: Sequence[str]) -> str:
    """`a, b and c`; of many the first, and how many more."""
    if len(items) > SHOWN_MAX:
        items = [*items[: SHOWN_MAX - 1], f"{len(items) - SHOWN_MAX + 1} more"]
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def order_says(facts: Facts) -> str:
    """The order's state with its amount."""
    state = words_of(facts.state_orders)
    if state == "none":
        return "no order is there"
    captured = facts.money(facts.order_captured)
    if state in {"partially refunded", "refunded"}:
        return f"the order is {state} with {facts.money(facts.order_refunded)} of {captured}"
    if state == "paid":
        return f"the order is paid with {captured}"
    return f"the order is {state} with {facts.money(facts.ordered)} ordered"


def gateway_says(facts: Facts) -> str:
    """The gateway's state with its amounts."""
    if facts.currencies > 1 and facts.rows.payments:
        return f"the gateway says {_each_payment(facts)}"
    state, captured = words_of(facts.state_gateway), facts.money(facts.gateway_captured)
    together = " in several payments" if facts.payments_with_money > 1 else ""
    if state == "none":
        elsewhere = f"has the payment under order {facts.paid_under}"
        return f"the gateway {elsewhere if facts.paid_under else 'does not know the payment'}"
    if state == "chargeback":
        also = " and others" if facts.payments_with_money else ""
        return f"the gateway reports a chargeback of the payment{also} of {captured}"
    if state not in MONEY:
        return f"the gateway says {state} with {facts.money(facts.stated)}"
    sentence = f"the gateway says {state} with {captured} captured{together}"
    if facts.uncaptured:
        sentence = f"the gateway says {state} with {captured} authorised"
    if state == "paid" and not facts.gateway_refunded:
        return sentence
    return f"{sentence} and {_given_back(facts)} refunded"


def _each_payment(facts: Facts) -> str:
    sentences = [
        f"{words_of(payment.state)} with {money(payment.amount, currency=payment.currency)}"
        for payment in facts.rows.payments
    ]
    return listed(sentences)


def refund_seen(facts: Facts) -> str:
    """What the gateway shows of refunds."""
    if words_of(facts.state_gateway) not in MONEY:
        return gateway_says(facts)
    if facts.refund_hidden and _given_back(facts) == NOTHING:
        return "the gateway's answers cannot show a refund"
    return f"the gateway shows {_given_back(facts)} refunded"


def _taken(facts: Facts) -> str:
    """What was captured, as far as it is known: the whole, or our part of it."""
    return facts.money(facts.gateway_captured - facts.uncaptured)


def _given_back(facts: Facts) -> str:
    if facts.refund_unknown:
        return "an untold amount"
    return facts.money(facts.gateway_refunded) if facts.gateway_refunded else NOTHING


def ledger_has(facts: Facts) -> str:
    """What is booked, by kind."""
    kinds = {
        "captures": facts.ledger_capture,
        "refunds": facts.ledger_refund,
        "chargebacks": facts.ledger_chargeback,
        "adjustments": facts.ledger_adjustment,
        "write-offs": facts.ledger_write_off,
    }
    parts = [f"{kind} of {facts.money(amount)}" for kind, amount in kinds.items() if amount]
    if not facts.covered:
        return "no ledger was given"
    if facts.currencies > 1:
        return f"the ledger has {_each_kind(facts) or NOTHING}"
    return f"the ledger has {listed(parts) or NOTHING}"


def _each_kind(facts: Facts) -> str:
    """What is booked by kind and currency."""
    entries = [entry for entry in facts.rows.entries if entry.amount]
    return listed([f"{entry.words.replace('_', '-')}s of {_said(entry)}" for entry in entries])


def _here(facts: Facts) -> str:
    return f"account {facts.account_id} has {_sides(facts.rows.sides)}"


def _there(facts: Facts) -> str:
    other = facts.rows.other
    if other is None:
        return "another account has the other side"
    return f"account {other.account_id} has {_sides(facts.rows.other_sides)}"


def _sides(sides: Iterable[str]) -> str:
    return listed([f"the {side}" for side in sides]) or "its other side"


def _order_rows(facts: Facts) -> str:
    rows = facts.rows.orders
    return listed([f"{words_of(row.words)} with {_said(row)}" for row in rows])


def _said(spoken: SideRow) -> str:
    return money(spoken.amount, currency=spoken.currency)


def _payments(facts: Facts) -> str:
    live = [payment for payment in facts.rows.payments if payment.captured]
    return listed([f"{payment.transaction_id or 'one'} {_net(payment)}" for payment in live])


def _held(facts: Facts) -> str:
    """What is left of all payments, by currency."""
    return _sums(
        SideRow("", payment.currency, payment.captured - payment.refunded)
        for payment in facts.rows.payments
        if payment.state != "chargeback"
    )


def _net(paid: GatewayPayment) -> str:
    net = money(paid.captured - paid.refunded, currency=paid.currency)
    back = money(paid.refunded, currency=paid.currency)
    return f"{net} after {back} refunded" if paid.refunded else net


def _answers(facts: Facts) -> str:
    rows = [
        payment for payment in facts.rows.payments if payment.transaction_id == _twice_told(facts)
    ]
    sentences = [
        f"{words_of(row.state)} with {money(row.amount, currency=row.currency)}" for row in rows
    ]
    return listed(sentences)


def _twice_told(facts: Facts) -> str:
    ids = [payment.transaction_id for payment in facts.rows.payments]
    return next((id_ for id_ in ids if ids.count(id_) > 1), "")


def _by_currency(facts: Facts) -> str:
    """What each side is over, in its own currencies."""
    rows = facts.rows
    sides = {
        "the order": [*rows.orders],
        "a payout": [*rows.payouts],
    }
    clauses = {side: _sums(amounts) for side, amounts in sides.items()}
    clauses |= {"the gateway": _each_payment(facts), "the ledger": _each_kind(facts)}
    clauses["our instructions"] = _sums(
        SideRow("", move.currency, move.amount)
        for move in rows.moves
        if move.kind in _MOVED_BY and move.state in _MOVED and move.currency != facts.currency
    )
    return listed([f"{side} {words}" for side, words in clauses.items() if words])


_MOVED_BY = frozenset({"capture", "refund"})
_MOVED = STANDINGS["confirmed"] | STANDINGS["doubtful"]


def _sums(amounts: Iterable[SideRow]) -> str:
    sums: dict[str, int] = {}
    for part in amounts:
        sums[part.currency] = sums.get(part.currency, 0) + part.amount
    return listed([money(amount, currency=currency) for currency, amount in sorted(sums.items())])


def _codes(facts: Facts) -> str:
    codes = {payment.code for payment in facts.rows.payments if payment.state == "unmapped"}
    return listed(sorted(codes)) or "a code"


def _unmapped_money(facts: Facts) -> str:
    rows = [payment for payment in facts.rows.payments if payment.state == "unmapped"]
    return _sums(SideRow("", row.currency, row.amount) for row in rows) or NOTHING


def _excess(facts: Facts) -> GatewayPayment | None:
    excessive = (payment for payment in facts.rows.payments if payment.refunded > payment.captured)
    return next(excessive, None)


def _excess_payment(facts: Facts) -> str:
    payment = _excess(facts)
    if payment is None:
        return "a payment is refunded beyond what it captured"
    back, taken = (
        money(amount, currency=payment.currency) for amount in (payment.refunded, payment.captured)
    )
    return f"payment {payment.transaction_id} has {back} refunded of {taken} captured"


def _over_authorised(facts: Facts) -> str:
    payment = next((payment for payment in facts.rows.payments if payment.over_authorised), None)
    if payment is None:
        return "a payment is captured beyond its authorisation"
    taken, held = (
        money(amount, currency=payment.currency)
        for amount in (payment.captured, payment.authorised)
    )
    return f"payment {payment.transaction_id} has {taken} captured of {held} authorised"


def _evidence_of_refund(facts: Facts) -> str:
    amounts = {
        "the gateway shows {} refunded": facts.gateway_refunded,
        "our refund of {} was confirmed": facts.refund_confirmed,
        "the order says {} refunded": facts.order_refunded,
        "the ledger has refunds of {}": facts.ledger_refund,
    }
    return listed(
        [words.format(facts.money(amount)) for words, amount in amounts.items() if amount]
    )


def _booked_more_than_once(facts: Facts) -> str:
    kinds = {
        "capture": facts.booked_twice_capture,
        "refund": facts.booked_twice_refund,
        "chargeback": facts.booked_twice_chargeback,
    }
    return listed([kind for kind, twice in kinds.items() if twice]) or "movement"


def _rivals(facts: Facts) -> str:
    """The other records; those of other accounts with their account."""
    names = [_name(rival, at=facts.account_id) for rival in facts.rows.rivals]
    return listed(names) or "other records"


def _name(rival: Rival, *, at: str) -> str:
    return rival.name if rival.account_id == at else f"{rival.name} of account {rival.account_id}"


def _not_done(kind: str) -> Clause:
    """Whether the gateway refused, or a person found that it took no effect."""

    def clause(facts: Facts) -> str:
        states = {move.state for move in facts.rows.moves if move.kind == kind}
        refused = InstructionState.REJECTED in states
        found_out = InstructionState.RESOLVED_NOT_APPLIED in states
        if found_out:
            return "was refused or did not take effect" if refused else "did not take effect"
        return "was refused by the gateway"

    return clause


def _waits_for(kind: str) -> Clause:
    """Whether somebody is to approve it first."""

    def clause(facts: Facts) -> str:
        planned = (kind, InstructionState.PLANNED)
        if any((move.kind, move.state) == planned for move in facts.rows.moves):
            return "for a person's approval"
        return "to be sent"

    return clause


def _ours(kind: str, column: str, states: frozenset[InstructionState]) -> Clause:
    """What we instructed of one kind and standing, in the currency that we instructed it in."""

    def clause(facts: Facts) -> str:
        mine = [move for move in facts.rows.moves if move.kind == kind and move.state in states]
        if any(move.currency != facts.currency for move in mine):
            return _sums(SideRow("", move.currency, move.amount) for move in mine)
        return facts.money(getattr(facts, column))

    return clause


def _payout(standing: str) -> Clause:
    def clause(facts: Facts) -> str:
        return _sums(payout for payout in facts.rows.payouts if payout.words == standing) or NOTHING

    return clause


def _paid_out(facts: Facts) -> str:
    sums = [payout for payout in facts.rows.payouts if payout.words == "confirmed"]
    return f"we paid out {_sums(sums)}"


def _payout_booked(facts: Facts) -> str:
    booked = [entry for entry in facts.rows.entries if entry.words == "payout" and entry.amount]
    if not booked:
        return "the ledger has no payout of it"
    if sum(entry.amount for entry in booked) < 0:
        return f"the ledger has {_sums(_unsigned(booked))} of payouts taken back"
    return f"the ledger has a payout of {_sums(booked)}"


def _unsigned(amounts: Iterable[SideRow]) -> list[SideRow]:
    return [part._replace(amount=abs(part.amount)) for part in amounts]


def _settled(facts: Facts) -> str:
    """What the settlement files say of the payment, in their own currency."""
    taken_back = facts.settled_refunded + facts.settled_charged
    rest = facts.settled_gross - facts.settled_captured + taken_back
    kinds = {
        "captures": facts.settled_captured,
        "refunds": facts.settled_refunded,
        "chargebacks": facts.settled_charged,
        "other lines": rest,
    }
    named = [
        f"{kind} of {money(amount, currency=facts.settled_currency)}"
        for kind, amount in kinds.items()
        if amount
    ]
    return listed(named) or NOTHING


def _our_moves() -> Mapping[str, Clause]:
    """`capture_doubtful` and the like, for each kind that moves money and each standing."""
    clauses = {
        f"{kind}_{standing}": _ours(kind, f"{kind}_{standing}", states)
        for kind in ("capture", "refund")
        for standing, states in STANDINGS.items()
    }
    failed = frozenset({InstructionState.RESOLVED_NOT_APPLIED})
    column = "refund_failed_later_sum"
    return {**clauses, column: _ours("refund", column, failed)}


def _confirmed_and_doubtful(facts: Facts) -> str:
    states = STANDINGS["confirmed"] | STANDINGS["doubtful"]
    mine = [move for move in facts.rows.moves if move.kind == "refund" and move.state in states]
    both = facts.money(facts.refund_confirmed + facts.refund_doubtful)
    if any(move.currency != facts.currency for move in mine):
        both = _sums(SideRow("", move.currency, move.amount) for move in mine)
    doubtful = CLAUSES["refund_doubtful"](facts)
    return f"{both}, of them {doubtful} in doubt," if facts.refund_doubtful else both


CLAUSES: Mapping[str, Clause] = {
    "order_says": order_says,
    "gateway_says": gateway_says,
    "refund_seen": refund_seen,
    "gateway_captured": _taken,
    "ledger_has": ledger_has,
    "here": _here,
    "there": _there,
    "order_rows": _order_rows,
    "payments": _payments,
    "held": _held,
    "twice_told": _twice_told,
    "answers": _answers,
    "by_currency": _by_currency,
    "codes": _codes,
    "unmapped_money": _unmapped_money,
    "excess_payment": _excess_payment,
    "over_authorised": _over_authorised,
    "evidence_of_refund": _evidence_of_refund,
    "booked_more_than_once": _booked_more_than_once,
    "rivals": _rivals,
    "rivals_by": lambda facts: facts.rows.rivals_by,
    "capture_not_done": _not_done("capture"),
    "cancel_not_done": _not_done("cancel"),
    "refund_not_done": _not_done("refund"),
    **{f"{kind}_waits_for": _waits_for(kind) for kind in ("capture", "cancel", "refund")},
    "payout_doubtful": _payout("doubtful"),
    "payout_rejected": _payout("rejected"),
    "paid_out": _paid_out,
    "payout_booked": _payout_booked,
    "settled": _settled,
    "our_refunds": _confirmed_and_doubtful,
    "gateway_refunds": _given_back,
    "fee_gap": lambda facts: facts.money(abs(facts.fee_gap)),
    "exchange_gap": lambda facts: facts.money(abs(facts.exchange_gap)),
    **_our_moves(),
    "moved": lambda facts: facts.money(
        facts.order_captured or facts.stated or facts.ledger_capture
    ),
}
"""Words that a reason may hold beside the plain amounts of the facts."""


class Sentence(NamedTuple):
    """A sentence of codes.toml, ready to be put into words."""

    text: str
    holds: Condition
    named: tuple[str, ...]
    """What it says of a break: only that is put into words."""


def sentences_of(
    says: Mapping[BreakCode, tuple[Template, ...]],
    *,
    facts: Mapping[str, type],
    sayable: Collection[str],
) -> Mapping[BreakCode, tuple[Sentence, ...]]:
    """The sentences of every code, whose conditions and names are known.

    Args:
        says: the sentences as they are written.
        facts: what their conditions may name.
        sayable: what stands in braces.

    Raises:
        Defect: a sentence names a fact or a clause that is not there, with its code.
    """
    return {
        code: tuple(_ready(one, code, facts=facts, sayable=sayable) for one in written)
        for code, written in says.items()
    }


def _ready(
    written: Template, code: BreakCode, *, facts: Mapping[str, type], sayable: Collection[str]
) -> Sentence:
    named = tuple(name for _, name, _, _ in Formatter().parse(written.text) if name)
    if unknown := [name for name in named if name.lower() not in sayable]:
        msg = f"codes.toml, {code}: there is no clause or amount {unknown[0]!r}"
        raise Defect(msg)
    try:
        condition = condition_of(written.when or "True", facts=facts)
    except ValueError as error:
        msg = f"codes.toml, {code}: {error}"
        raise Defect(msg) from error
    return Sentence(written.text, condition, named)


def in_words(sentence: Sentence, *, facts: Any, words: Mapping[str, Callable[[Any], str]]) -> str:
    """A sentence in words; a name with a capital begins it.

    Args:
        sentence: of a code.
        facts: of the break.
        words: what each name says of the facts; only what is named is put into words.
    """
    shown = {}
    for name in sentence.named:
        text = words[name.lower()](facts)
        shown[name] = text if name.islower() else text[:1].upper() + text[1:]
    return sentence.text.format(**shown)


def _amount(name: str) -> Callable[[Facts], str]:
    return lambda facts: facts.money(getattr(facts, name))


_AMOUNTS = (*NETS, *(name for name, kind in FACTS.items() if kind is int))
_WORDS: Mapping[str, Callable[[Facts], str]] = {**{n: _amount(n) for n in _AMOUNTS}, **CLAUSES}
"""What a sentence may name: clauses and amounts."""
SENTENCES = sentences_of(
    {code: row.say for code, row in CODES.items()}, facts=FACTS, sayable=_WORDS
)


def with_reasons(
    breaks: pd.DataFrame, *, joined: Joined, sources: Sources, outcomes: Outcomes
) -> pd.DataFrame:
    """The breaks with their reason.

    Args:
        breaks: result.BREAK_COLUMNS, each with its set.
        joined: the sets that were judged.
        sources: what they were made of.
        outcomes: which break stands for two accounts.
    """
    codes = [BreakCode(code) for code in breaks["code"]]
    rows = rows_of_sets(
        codes, numbers=breaks["set"].to_numpy(), joined=joined, sources=sources, host=outcomes.host
    )
    facts = facts_of(breaks, joined=joined, rows=rows)
    sentences = [reason_of(code, facts=known) for code, known in zip(codes, facts, strict=True)]
    return breaks.assign(reason=pd.Series(sentences, index=breaks.index, dtype="str"))


def reason_of(code: BreakCode, *, facts: Facts) -> str:
    """The sentence for a code, amounts with their currency."""
    return in_words(sentence_of(code, facts=facts), facts=facts, words=_WORDS)


def sentence_of(code: BreakCode, *, facts: Facts) -> Sentence:
    """The first sentence of the code that holds."""
    return next(candidate for candidate in SENTENCES[code] if candidate.holds(facts))
