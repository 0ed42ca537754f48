"""Notifications in the book: what is to be told, to which address, and what came of each attempt.

Instants are whole seconds on the virtual clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl

from recon.sandbox.ground.book import Book, columns_of
from recon.sandbox.ground.clock import iso

State = Literal["waiting", "acknowledged", "given up", "dropped", "not sent"]
"""`not sent`: its address is not on this machine. `dropped`: by the fault plan."""

ROWS_PER_READ = 1_000


@dataclass(frozen=True, slots=True)
class Notification:
    """One message to one address."""

    type: str
    """As the gateway names it; a payout's message names none."""
    operation: str
    """Of the gateway, for the fault plan: what the message tells of."""
    merchant_id: str
    account_id: str
    transaction_id: str
    order_no: str
    about: str
    """refund_reference_id or request_id, "" for a payment."""
    url: str
    body: str
    """The form, signed."""
    fault: str
    created_at: int
    first_at: int
    """Of the first attempt; repetitions count from here."""
    due_at: int
    rank: int = 0
    """Of two that are due at once the lower goes first."""
    retried: int = 1
    """0: sent once, whatever the answer."""
    attempts: int = 0
    state: State = "waiting"


_COLUMNS = columns_of(Notification)


def add(book: Book, notification: Notification) -> None:
    """Write a notification; what waited for the next one goes after it."""
    book.write("notification", [notification], kind=Notification)


def release_held(book: Book, *, account_id: str, at: int) -> None:
    """Let those that were held back for the sake of their order follow what is due at `at`."""
    book.execute(
        "UPDATE notification SET due_at = ?, first_at = ?, rank = 1 WHERE rank = -1"
        " AND state = 'waiting' AND attempts = 0 AND account_id = ?",
        (at, at, account_id),
    )


def withdraw(book: Book, *, type_: str, about: str) -> None:
    """Take back what was planned and never tried."""
    book.execute(
        "DELETE FROM notification WHERE type = ? AND about = ? AND state = 'waiting'"
        " AND attempts = 0",
        (type_, about),
    )


def next_due(book: Book, *, now: int) -> tuple[int, Notification] | None:
    """The notification that is sent next, with its number; None when nothing is due."""
    rows = book.select(
        f"SELECT notification_id, {_COLUMNS} FROM notification"  # noqa: S608 - our own names
        " WHERE state = 'waiting' AND due_at <= ? ORDER BY due_at, rank, notification_id LIMIT 1",
        (now,),
    )
    return (rows[0][0], Notification(*rows[0][1:])) if rows else None


def next_instant(book: Book) -> int | None:
    """When the next attempt is due, None when nothing waits."""
    due = book.select("SELECT min(due_at) FROM notification WHERE state = 'waiting'")[0][0]
    return None if due is None else int(due)


def note_attempt(
    book: Book, number: int, *, sent: Notification, outcome: str, state: State, due_at: int
) -> None:
    """Remember what came of an attempt, unless everything was forgotten meanwhile."""
    if not book.select("SELECT 1 FROM notification WHERE notification_id = ?", (number,)):
        return
    attempt = sent.attempts + 1
    book.execute(
        "INSERT OR REPLACE INTO notification_attempt VALUES (?, ?, ?, ?)",
        (number, attempt, sent.due_at, outcome),
    )
    book.execute(
        "UPDATE notification SET attempts = ?, state = ?, due_at = ? WHERE notification_id = ?",
        (attempt, state, due_at, number),
    )


def notification_tables(book: Book, *, transaction_id: str = "") -> Iterator[dict[str, Any]]:
    """Notifications with their attempts as plain values, oldest first; all, or of a transaction."""
    after = 0
    while rows := book.select(
        f"SELECT notification_id, {_COLUMNS} FROM notification WHERE notification_id > ?"  # noqa: S608
        " AND (? = '' OR transaction_id = ?) ORDER BY notification_id LIMIT ?",
        (after, transaction_id, transaction_id, ROWS_PER_READ),
    ):
        for number, *values in rows:
            yield _table(book, number, notification=Notification(*values))
        after = rows[-1][0]


def _table(book: Book, number: int, *, notification: Notification) -> dict[str, Any]:
    tried = book.select(
        "SELECT at, outcome FROM notification_attempt WHERE notification_id = ? ORDER BY attempt",
        (number,),
    )
    return {
        "notification_id": number,
        "type": notification.type,
        "operation": notification.operation,
        "merchant_id": notification.merchant_id,
        "account_id": notification.account_id,
        "transaction_id": notification.transaction_id,
        "order_no": notification.order_no,
        "about": notification.about,
        "url": notification.url,
        "fault": notification.fault,
        "state": notification.state,
        "created_at": iso(notification.created_at),
        "due_at": iso(notification.due_at) if notification.state == "waiting" else "",
        "fields": dict(parse_qsl(notification.body, keep_blank_values=True)),
        "attempts": [{"at": iso(at), "outcome": outcome} for at, outcome in tried],
    }
