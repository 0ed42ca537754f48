"""One transaction for people: what its client was told beside what is true, call by call."""

from dataclasses import dataclass, field
from typing import Any

from recon.sandbox.ground.book_records import Payment, on_wire
from recon.sandbox.ground.clock import iso
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.notify.notify_rows import notification_tables
from recon.sandbox.operations.order_query import state_of
from recon.sandbox.pages.markup import (
    Amount,
    Cell,
    PageLink,
    document,
    heading,
    links,
    paragraph,
    table,
)

HOME = PageLink("All payments", "/_sandbox/")
STATUSES_DONE = frozenset({"1", "COMPLETED"})
MOVES_NOTHING = frozenset({"retrievalTrans", "retrievalRefund"})
COMPANIONS = frozenset({("authorise", "capture"), ("pay", "capture"), ("review", "authorise")})
"""Operations with the effect that they have beside their own: one answer tells of both."""

PAYMENT_NAMES = ("Order", "Transaction", "Account", "Amount", "", "State", "Authorised (UTC)")

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


@dataclass(slots=True)
class _Moment:
    """One call, or one thing that happened without a call."""

    at: int
    behind: str
    """The call it is, or the last one that took effect before it: instants may be the same."""
    what: str
    operation: str = ""
    fault: str = ""
    statuses: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    companions: int = 0
    """Effects that came with another one of the same row."""

    @property
    def differs(self) -> bool:
        """Whether the client was left with another belief than the truth."""
        if not self.operation:
            return False
        if self.operation in MOVES_NOTHING:
            return True  # answers to a query are kept only where a fault made them lie
        done = sum(status in STATUSES_DONE for status in self.statuses)
        return done != len(self.true) - self.companions


def timeline(sandbox: Sandbox, *, transaction_id: str) -> str | None:
    """The story of one transaction; None when nothing is known of it."""
    payment = sandbox.book.payment(transaction_id)
    moments = _moments(sandbox, transaction_id)
    if payment is None and not moments:
        return None
    differing = frozenset(index for index, moment in enumerate(moments) if moment.differs)
    rows = [_cells(moment) for moment in moments]
    names = ("When (UTC)", "Call", "What its client was told", "What is true", "", "Fault played")
    return document(
        f"Transaction {transaction_id}",
        links(HOME),
        table(PAYMENT_NAMES, [payment_cells(sandbox, payment)]) if payment else "",
        heading("RowReply beside true"),
        _verdict(len(differing)),
        table(names, rows, bad=differing),
        _told_by_itself(sandbox, transaction_id),
    )


def _told_by_itself(sandbox: Sandbox, transaction_id: str) -> str:
    """The notifications about a transaction, with what was answered; "" when there are none."""
    rows = [
        (
            notification["created_at"].replace("T", " ").rstrip("Z"),
            notification["type"] or notification["operation"],
            notification["url"],
            notification["state"],
            "\n".join(
                f"{tried['at'][:-1]} {tried['outcome']}" for tried in notification["attempts"]
            ),
            notification["fault"],
        )
        for notification in notification_tables(sandbox.book, transaction_id=transaction_id)
    ]
    names = ("Planned (UTC)", "Type", "Address", "State", "Attempts", "Fault played")
    return heading("Notifications") + table(names, rows) if rows else ""


def _verdict(differing: int) -> str:
    if not differing:
        return paragraph("The client was told the truth, every time.")
    calls = "1 call" if differing == 1 else f"{differing} calls"
    return paragraph(f"In {calls} the client was told something else than the truth.", name="bad")


def in_words(instant: int) -> str:
    """An instant in UTC as people read it: `2026-11-20 22:00:00`."""
    return iso(instant).replace("T", " ").rstrip("Z")


def payment_cells(sandbox: Sandbox, payment: Payment) -> tuple[Cell, ...]:
    """A payment as it truly stands, in one row."""
    state = state_of(sandbox, payment, now=sandbox.clock.now())
    return (
        payment.order_no,
        payment.transaction_id,
        payment.account_id,
        Amount(payment.amount),
        payment.currency,
        state.value,
        in_words(payment.created_at),
    )


def _moments(sandbox: Sandbox, transaction_id: str) -> list[_Moment]:
    """Calls and effects in order of time; an effect stands beside the call that caused it."""
    terms = sandbox.terms
    calls: dict[str, _Moment] = {}
    for log_id, at, operation, fault, status, message in sandbox.book.select(
        _TOLD, (transaction_id,)
    ):
        moment = calls.setdefault(
            log_id, _Moment(at, log_id, f"{operation}\n{log_id}", operation, fault)
        )
        moment.statuses.append(status)
        state = f"({terms.payment_status[status]})" if status in terms.payment_status else ""
        moment.lines.append(" ".join(part for part in (status, state, message) if part))
    others: list[_Moment] = []
    for log_id, at, operation, origin, amount, currency, reference, behind in sandbox.book.select(
        _TRUE, (transaction_id,)
    ):
        true = _effect(operation, amount, currency=currency, reference=reference)
        if log_id in calls:
            calls[log_id].true.append(true)
            calls[log_id].companions += (calls[log_id].operation, operation) in COMPANIONS
        else:
            others.append(_Moment(at, behind, _ORIGINS.get(origin, origin), true=[true]))
    return sorted([*calls.values(), *others], key=lambda moment: (moment.at, moment.behind))


_ORIGINS = {
    "seed": "before the sandbox started",
    "portal": "by hand in the portal",
    "gateway": "by the gateway itself",
}


def _effect(operation: str, amount: Any, *, currency: str, reference: str) -> str:
    paid = f"{on_wire(amount, currency=currency)} {currency}" if amount is not None else ""
    return " ".join(part for part in (operation, paid, reference) if part)


def _cells(moment: _Moment) -> tuple[Cell, ...]:
    still = "a query moves nothing" if moment.operation in MOVES_NOTHING else "nothing happened"
    return (
        in_words(moment.at),
        moment.what,
        "\n".join(moment.lines) or ("nothing was asked" if not moment.operation else "nothing"),
        "\n".join(moment.true) or still,
        "≠" if moment.differs else "=" if moment.operation else "",
        moment.fault or "",
    )
