"""The pages for people at `/_sandbox/`: search, what must be 0, the plan, and one transaction.

Of a transaction: what its client was told beside what is true, call by call.
"""

from dataclasses import dataclass, field
from typing import Any

from recon.sandbox.faults.fault_plan import planned_faults
from recon.sandbox.ground.book import on_wire
from recon.sandbox.ground.clock import iso
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.truth import invariants
from recon.sandbox.ground.wire import rendered
from recon.sandbox.notify.notify_rows import notification_tables
from recon.sandbox.operations.order_query import state_of

PAYMENTS_SHOWN = 100
CALLS_SHOWN = 20
SEARCH_LENGTH_MAX = 100
STATUSES_DONE = frozenset({"1", "COMPLETED"})
MOVES_NOTHING = frozenset({"retrievalTrans", "retrievalRefund"})
COMPANIONS = frozenset({("authorise", "capture"), ("pay", "capture"), ("review", "authorise")})
"""Operations with the effect that they have beside their own: one answer tells of both."""

_SEARCH = (
    "SELECT transaction_id FROM payment WHERE order_no LIKE ? ESCAPE '!'"
    " OR transaction_id LIKE ? ESCAPE '!' ORDER BY created_at DESC, transaction_id LIMIT ?"
)
_WITHOUT_PAYMENT = (
    "SELECT committed_at, operation, transaction_id, request_id FROM effect"
    " WHERE origin <> 'seed' AND transaction_id NOT IN (SELECT transaction_id FROM payment)"
    " AND (transaction_id LIKE ? ESCAPE '!' OR request_id LIKE ? ESCAPE '!')"
    " ORDER BY position DESC LIMIT ?"
)
_CALLS = (
    "SELECT request_log_id, received_at, operation, outcome, fault FROM request"
    " ORDER BY request_log_id DESC LIMIT ?"
)
_TOLD = (
    "SELECT q.request_log_id, q.received_at, q.operation, q.fault, r.status, r.message"
    " FROM request_row r JOIN request q ON q.request_log_id = r.request_log_id"
    " WHERE r.transaction_id = ? ORDER BY q.request_log_id, r.position"
)
_TRUE = (
    "SELECT request_log_id, committed_at, operation, origin, amount, currency,"
    " refund_reference_id, CASE origin WHEN 'seed' THEN '' ELSE coalesce((SELECT b.request_log_id"
    " FROM effect b WHERE b.position <= e.position AND b.request_log_id <> ''"
    " ORDER BY b.position DESC LIMIT 1), '') END"
    " FROM effect e WHERE transaction_id = ? ORDER BY position"
)


def overview(sandbox: Sandbox, *, searched: str) -> str:
    """The first page; `searched` is a part of an order, a transaction or a payout's request_id."""
    book, now = sandbox.book, sandbox.clock.now()
    text = searched[:SEARCH_LENGTH_MAX]
    pattern = "%" + text.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
    asked = (pattern, pattern, PAYMENTS_SHOWN)
    payments = book.payments("transaction_id", keys=[row[0] for row in book.select(_SEARCH, asked)])
    own = {"kind", "operation"}
    return rendered(
        "overview",
        options=sandbox.options,
        now=iso(now),
        broken={name: count for name, count in invariants(book).items() if count},
        searched=text,
        length_max=SEARCH_LENGTH_MAX,
        payments_max=PAYMENTS_SHOWN,
        # Payouts, and what subscriptions came to, belong to no payment.
        found=[(payment, state_of(sandbox, payment, now=now)) for payment in reversed(payments)],
        others=book.select(_WITHOUT_PAYMENT, asked),
        planned=[
            (entry, entry.rule.model_dump_json(exclude_defaults=True, exclude=own))
            for entry in planned_faults(book)
        ],
        calls_max=CALLS_SHOWN,
        calls=book.select(_CALLS, (CALLS_SHOWN,)),
    )


@dataclass(slots=True)
class _Moment:
    """One call, or one thing that happened without a call."""

    at: int
    behind: str
    """The call it is, or the last one that took effect before it: instants may be the same."""
    what: tuple[str, ...]
    operation: str = ""
    fault: str = ""
    statuses: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    companions: int = 0
    """Effects that came with another one of the same row."""

    @property
    def moves_nothing(self) -> bool:
        """Whether it is a query; answers to one are kept only where a fault made them lie."""
        return self.operation in MOVES_NOTHING

    @property
    def differs(self) -> bool:
        """Whether the client was left with another belief than the truth."""
        if not self.operation or self.moves_nothing:
            return self.moves_nothing
        done = sum(status in STATUSES_DONE for status in self.statuses)
        return done != len(self.true) - self.companions


def timeline(sandbox: Sandbox, *, transaction_id: str) -> str | None:
    """The story of one transaction; None when nothing is known of it."""
    payment = sandbox.book.payment(transaction_id)
    moments = _moments(sandbox, transaction_id)
    if payment is None and not moments:
        return None
    now = sandbox.clock.now()
    return rendered(
        "timeline",
        transaction_id=transaction_id,
        payment=(payment, state_of(sandbox, payment, now=now)) if payment else None,
        moments=moments,
        notifications=[*notification_tables(sandbox.book, transaction_id=transaction_id)],
    )


def _moments(sandbox: Sandbox, transaction_id: str) -> list[_Moment]:
    """Calls and effects in order of time; an effect stands beside the call that caused it."""
    states = sandbox.terms.payment_status
    calls: dict[str, _Moment] = {}
    for log_id, at, operation, fault, status, message in sandbox.book.select(
        _TOLD, (transaction_id,)
    ):
        moment = calls.setdefault(
            log_id, _Moment(at, log_id, (operation, log_id), operation, fault)
        )
        moment.statuses.append(status)
        state = f"({states[status]})" if status in states else ""
        moment.told.append(" ".join(part for part in (status, state, message) if part))
    others: list[_Moment] = []
    for log_id, at, operation, origin, amount, currency, reference, behind in sandbox.book.select(
        _TRUE, (transaction_id,)
    ):
        true = _effect(operation, amount, currency=currency, reference=reference)
        if log_id in calls:
            calls[log_id].true.append(true)
            calls[log_id].companions += (calls[log_id].operation, operation) in COMPANIONS
        else:
            others.append(_Moment(at, behind, (_ORIGINS.get(origin, origin),), true=[true]))
    return sorted([*calls.values(), *others], key=lambda moment: (moment.at, moment.behind))


_ORIGINS = {
    "seed": "before the sandbox started",
    "portal": "by hand in the portal",
    "gateway": "by the gateway itself",
}


def _effect(operation: str, amount: Any, *, currency: str, reference: str) -> str:
    paid = f"{on_wire(amount, currency=currency)} {currency}" if amount is not None else ""
    return " ".join(part for part in (operation, paid, reference) if part)
