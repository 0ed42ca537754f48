"""The first page for people at `/_sandbox/`: search, what must be 0, the plan, the latest calls."""

from recon.sandbox.faults.fault_plan import planned_faults
from recon.sandbox.ground.clock import iso
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.truth import invariants
from recon.sandbox.pages.markup import (
    Amount,
    Cell,
    PageLink,
    document,
    heading,
    links,
    paragraph,
    search_form,
    table,
    to_transaction,
)
from recon.sandbox.pages.timeline import PAYMENT_NAMES, in_words, payment_cells

PAYMENTS_SHOWN = 100
CALLS_SHOWN = 20
SEARCH_LENGTH_MAX = 100

_DOORS = (
    PageLink("Effects", "/_sandbox/effects"),
    PageLink("Invariants", "/_sandbox/invariants"),
    PageLink("Payments", "/_sandbox/payments"),
    PageLink("Notifications", "/_sandbox/notifications"),
    PageLink("Fault plan", "/_sandbox/faults"),
    PageLink("Files to download", "/_sandbox/files/"),
    PageLink("Health", "/_sandbox/health"),
)
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


def overview(sandbox: Sandbox, *, searched: str) -> str:
    """The first page; `searched` is a part of an order, a transaction or a payout's request_id."""
    text = searched[:SEARCH_LENGTH_MAX]
    pattern = "%" + text.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
    return document(
        "Sandbox gateway",
        _standing(sandbox),
        links(*_DOORS),
        search_form("Order, transaction or payout", value=text, length_max=SEARCH_LENGTH_MAX),
        _payments(sandbox, pattern),
        _others(sandbox, pattern),
        _plan(sandbox),
        _calls(sandbox),
    )


def _standing(sandbox: Sandbox) -> str:
    options = sandbox.options
    facts = (
        f"Merchant {options.merchant}, accounts {' and '.join(options.accounts)}."
        f" Virtual clock {iso(sandbox.clock.now())}. Seed {options.seed}."
    )
    broken = {name: count for name, count in invariants(sandbox.book).items() if count}
    if not broken:
        return paragraph(facts, name="soft") + paragraph("Every invariant holds.")
    listed = ", ".join(f"{name} {count}" for name, count in broken.items())
    return paragraph(facts, name="soft") + paragraph(f"Broken: {listed}", name="bad")


def _payments(sandbox: Sandbox, pattern: str) -> str:
    keys = [row[0] for row in sandbox.book.select(_SEARCH, (pattern, pattern, PAYMENTS_SHOWN))]
    payments = sandbox.book.payments("transaction_id", keys=keys)
    rows: list[list[Cell]] = []
    for payment in reversed(payments):
        order_no, _, *others = payment_cells(sandbox, payment)
        rows.append([order_no, to_transaction(payment.transaction_id), *others])
    if not rows:
        return paragraph("No payment fits.")
    title = heading(f"Payments, the newest {PAYMENTS_SHOWN} at most")
    return title + table(PAYMENT_NAMES, rows)


def _others(sandbox: Sandbox, pattern: str) -> str:
    """Effects that belong to no payment: payouts, and what subscriptions came to."""
    requests = sandbox.book.select(_WITHOUT_PAYMENT, (pattern, pattern, PAYMENTS_SHOWN))
    rows = [
        (in_words(at), operation, to_transaction(key), given)
        for at, operation, key, given in requests
    ]
    names = ("Committed (UTC)", "Effect", "Transaction", "Request id")
    return heading("Payouts and others") + table(names, rows) if rows else ""


def _plan(sandbox: Sandbox) -> str:
    planned = planned_faults(sandbox.book)
    rows: list[list[Cell]] = [
        [
            entry.rule.name,
            entry.rule.operation,
            entry.rule.model_dump_json(exclude_defaults=True, exclude={"kind", "operation"}),
            Amount(str(entry.seen)),
            Amount(str(entry.played)),
        ]
        for entry in planned
    ]
    names = ("Kind", "Operation", "Rule", "Calls seen", "Played")
    return heading("Fault plan") + (table(names, rows) if rows else paragraph("None in force."))


def _calls(sandbox: Sandbox) -> str:
    rows = [
        (log_id, in_words(at), operation, outcome, fault)
        for log_id, at, operation, outcome, fault in sandbox.book.select(_CALLS, (CALLS_SHOWN,))
    ]
    names = ("Request", "Received (UTC)", "Operation", "Outcome", "Fault played")
    title = heading(f"The latest {CALLS_SHOWN} calls")
    return title + (table(names, rows) if rows else paragraph("None yet."))
