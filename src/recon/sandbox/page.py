"""The page for people at `/_sandbox/`: search, and what is true beside what a client was told."""

from collections.abc import Iterable, Sequence
from html import escape

from recon.sandbox.clock import iso
from recon.sandbox.query import state_of
from recon.sandbox.records import Payment, on_wire
from recon.sandbox.request import Sandbox
from recon.sandbox.truth import invariants

PAYMENTS_SHOWN = 100
SEARCH_LENGTH_MAX = 100

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
       color: #1c2430; background: #fff }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 2rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d8dde4 }
th { font-weight: 600; color: #55606e } td.number { text-align: right; font-variant-numeric:
tabular-nums } .bad { color: #b3261e; font-weight: 600 } input { font: inherit; padding: .3rem }
"""
_SEARCH = (
    "SELECT transaction_id FROM payment WHERE order_no LIKE ? ESCAPE '!'"
    " OR transaction_id LIKE ? ESCAPE '!' ORDER BY created_at DESC, transaction_id LIMIT ?"
)
_TOLD = (
    "SELECT q.received_at, q.operation, q.request_log_id, r.status, r.message, q.fault"
    " FROM request_row r JOIN request q ON q.request_log_id = r.request_log_id"
    " WHERE r.transaction_id = ? ORDER BY q.request_log_id"
)
_TRUE = (
    "SELECT committed_at, operation, origin, amount, currency, refund_reference_id, request_log_id"
    " FROM effect WHERE transaction_id = ? ORDER BY position"
)


def overview(sandbox: Sandbox, *, searched: str) -> str:
    """The first page: invariants, and the payments whose order or transaction fits a search."""
    text = searched[:SEARCH_LENGTH_MAX]
    pattern = "%" + text.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
    keys = [row[0] for row in sandbox.book.select(_SEARCH, (pattern, pattern, PAYMENTS_SHOWN))]
    payments = sandbox.book.payments("transaction_id", keys=keys)
    rows = [_payment_cells(sandbox, payment) for payment in reversed(payments)]
    form = (
        '<form><label>Order or transaction <input name="q" maxlength="100"'
        f' value="{escape(text)}" autofocus></label> <button>Search</button></form>'
    )
    names = ("Order", "Transaction", "Account", "Amount", "", "State", "Authorised at")
    shown = f"<p>The newest {PAYMENTS_SHOWN} at most.</p>"
    return _page(
        "Sandbox gateway", _standing(sandbox) + form + _table(names, rows, numbers=(3,)) + shown
    )


def timeline(sandbox: Sandbox, *, transaction_id: str) -> str | None:
    """What happened to one transaction and what its client was told; None when it is not known."""
    payment = sandbox.book.payment(transaction_id)
    if payment is None:
        return None
    facts = _table(
        ("Order", "Transaction", "Account", "Amount", "", "State", "Authorised at"),
        [_payment_cells(sandbox, payment)],
        numbers=(3,),
    )
    return _page(
        f"Transaction {transaction_id}",
        '<p><a href="/_sandbox/">All payments</a></p>'
        + facts
        + _heading("What is true")
        + _true_table(sandbox, transaction_id)
        + _heading("What its client was told")
        + _told_table(sandbox, transaction_id),
    )


def _heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def _true_table(sandbox: Sandbox, transaction_id: str) -> str:
    rows = [
        (
            iso(at),
            operation,
            origin,
            "" if amount is None else on_wire(amount, currency=currency),
            currency,
            reference,
            log_id,
        )
        for at, operation, origin, amount, currency, reference, log_id in sandbox.book.select(
            _TRUE, (transaction_id,)
        )
    ]
    names = ("Committed", "Effect", "Origin", "Amount", "", "Refund", "Request")
    return _table(names, rows, numbers=(3,))


def _told_table(sandbox: Sandbox, transaction_id: str) -> str:
    rows = [
        (iso(row[0]), *row[1:5], row[5] or "none")
        for row in sandbox.book.select(_TOLD, (transaction_id,))
    ]
    names = ("Received", "Operation", "Request", "Status", "Message", "Fault on the way back")
    return _table(names, rows)


def _standing(sandbox: Sandbox) -> str:
    broken = {name: count for name, count in invariants(sandbox.book).items() if count}
    now = f"<p>Virtual clock {iso(sandbox.clock.now())}. "
    if not broken:
        return f"{now}Every invariant holds.</p>"
    listed = ", ".join(f"{name} {count}" for name, count in broken.items())
    return f'{now}<span class="bad">Broken: {escape(listed)}</span></p>'


def _payment_cells(sandbox: Sandbox, payment: Payment) -> tuple[str, ...]:
    state = state_of(sandbox, payment, now=sandbox.clock.now())
    return (
        payment.order_no,
        payment.transaction_id,
        payment.account_id,
        payment.amount,
        payment.currency,
        state.value,
        iso(payment.created_at),
    )


def _table(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{_cells(row, names=names, numbers=numbers)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Sequence[str], *, names: Sequence[str], numbers: Sequence[int]) -> str:
    cells: list[str] = []
    for index, (name, value) in enumerate(zip(names, row, strict=True)):
        text = escape(value)
        if name == "Transaction":
            text = f'<a href="/_sandbox/transactions/{text}">{text}</a>'
        cells.append(f'<td class="number">{text}</td>' if index in numbers else f"<td>{text}</td>")
    return "".join(cells)


def _page(title: str, content: str) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{content}</body></html>"
    )
