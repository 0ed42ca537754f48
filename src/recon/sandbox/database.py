"""The sandbox's SQLite database: one connection, one writer, one transaction per request.

Everything a request changes is committed before its reply is sent, or not at all. Payments, effects
and logged requests are immutable values; instants are whole seconds since 1970 on the virtual
clock, amounts are int minor units. The ledger of effects is the ground truth; the invariants are
computed from it.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, fields
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from recon.model.errors import ConfigurationError
from recon.model.money import wire_amount
from recon.model.terms import GatewayState
from recon.sandbox.options import iso

APPLICATION_ID = 0x52534258
"""SQLite application_id that identifies a file as a sandbox's state."""

BUSY_MILLISECONDS = 5_000
EFFECTS_PER_READ = 1_000

Origin = Literal["seed", "api", "portal", "gateway"]
"""Origin of an effect: the population, a client, a person in the portal, the gateway itself."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How a payment was requested, and what its shopper still has to do."""

    method: Literal["", "apm", "hosted"] = ""
    """Empty for a card payment."""
    stage: Literal["", "challenge", "issuer", "hosted"] = ""
    """Step that the shopper still has to complete, "" when none."""
    info: str = ""
    """Latest result as `<code>:<text>`."""
    tries: int = 0
    """Number of wrong one-time codes so far."""
    base_url: str = ""
    """Base URL at which this gateway was called, without the version."""
    return_url: str = ""
    cancel_url: str = ""
    notify_url: str = ""
    note: str = ""
    installments: str = ""
    installments_id: str = ""
    open3d: str = ""
    card: str = ""
    """First six and last four digits."""
    expires: str = ""
    """Expiry month such as `2030-05`, of a card that may be saved."""
    wants_token: bool = False
    token_id: str = ""
    threeds_result: str = ""
    risk_score: int = 0
    risk_action: str = ""
    subscription: dict[str, Any] = field(default_factory=dict)
    """As requested."""
    contract_name: str = ""
    recurring_id: str = ""
    recurring_deduction_period: str = ""
    recurring_deduction_time: str = ""


NO_DETAIL = Detail()
"""Detail of payments of the population."""
sqlite3.register_adapter(
    Detail,
    lambda detail: json.dumps(
        {} if detail is NO_DETAIL else {n: each for n, each in asdict(detail).items() if each}
    ),
)


@dataclass(frozen=True, slots=True)
class Payment:
    """One attempt to pay one order."""

    transaction_id: str
    order_no: str
    merchant_id: str
    account_id: str
    currency: str
    authorised: int
    state: GatewayState
    created_at: int
    captured: int = 0
    refunded: int = 0
    refunds: int = 0
    """Number of refund sequence numbers used."""
    captured_at: int = 0
    previous_state: str = ""
    """The state before the last change, used by replies that lag."""
    review_flag: str = ""
    reference_no: str = ""
    page_key: str = ""
    """Unguessable part of the address of its page, "" without a page."""
    detail: Detail = NO_DETAIL

    @property
    def page_url(self) -> str:
        """Address of the page on which its shopper continues."""
        return f"{self.detail.base_url}/v1/pay/{self.page_key}"

    @property
    def amount(self) -> str:
        """The authorised amount as written on the wire, whatever the state."""
        return on_wire(self.authorised, currency=self.currency)


@dataclass(frozen=True, slots=True)
class Effect:
    """One committed effect in the append-only ledger."""

    operation: str
    origin: Origin
    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    currency: str
    amount: int | None
    refund_reference_id: str = ""
    refund_reason: str = ""
    refund_reference: str = ""
    request_id: str = ""
    request_log_id: str = ""
    committed_at: int = 0
    position: int | None = None
    """Position in the ledger, None until it is written."""

    def table(self) -> dict[str, str]:
        """The effect as text by field name, every key present."""
        values = {name: getattr(self, name) for name in EFFECT_KEYS}
        amount = "" if self.amount is None else on_wire(self.amount, currency=self.currency)
        return values | {"amount": amount, "committed_at": iso(self.committed_at)}


EFFECT_KEYS = tuple(field.name for field in fields(Effect) if field.name != "position")
"""Keys of one line of `/_sandbox/effects`, in order."""


@dataclass(frozen=True, slots=True)
class RowReply:
    """What the client was answered about one row of a request."""

    transaction_id: str
    order_no: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request in the sandbox's log: without its body, so without card data."""

    request_log_id: str
    received_at: int
    operation: str
    merchant_id: str
    account_id: str
    outcome: str
    """return_status or order_status, or the HTTP status."""
    fault: str
    """Kinds of the faults applied, joined by a space."""


def on_wire(minor_units: int, *, currency: str) -> str:
    """Format an amount as the gateway writes it."""
    return str(wire_amount(minor_units, currency=currency))


def ids_of(source: object) -> dict[str, Any]:
    """The identifying fields that payments, effects and rows of files have in common."""
    names = ("merchant_id", "account_id", "transaction_id", "order_no", "currency")
    return {name: getattr(source, name) for name in names}


def effect_of(
    payment: Payment, operation: str, *, origin: Origin, amount: int | None, at: int, **more: str
) -> Effect:
    """Build an effect on a payment; `more` are further fields of the effect."""
    ids = ids_of(payment) | more
    return Effect(operation, origin, **ids, amount=amount, committed_at=at)


def columns_of(kind: type[Any]) -> str:
    """Column list, as SQL, of a table whose rows are values of `kind`."""
    return ", ".join(field.name for field in fields(kind))


def placeholders(values: Sized) -> str:
    """As many SQL placeholders as there are values."""
    return ", ".join("?" * len(values))


class Database:
    """The open database of one sandbox."""

    def __init__(self, state: Path | None) -> None:
        """Open or create the state; None keeps it in memory.

        Raises:
            ConfigurationError: the file is not a sandbox's state or cannot be opened.
        """
        self.name = str(state) if state else "memory"
        self.after_commit: Callable[[], None] = lambda: None
        """Called after each commit; wakes the dispatcher of notifications."""
        try:
            self._connection = _open(state)
        except sqlite3.Error as error:
            msg = f"{self.name} cannot be used as a sandbox's state ({error}); name another file"
            raise ConfigurationError(msg) from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one transaction that holds the write lock from the start."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        self.after_commit()

    def clear(self) -> None:
        """Delete everything; the only way in which effects may leave the ledger."""
        self.write_note("resetting", value="yes")  # deleted last
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        for (table,) in self.select(f"{tables} ORDER BY name = 'note'"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def note(self, name: str) -> str:
        """A named value of the state, "" when it was never written."""
        row = self._connection.execute("SELECT value FROM note WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def write_note(self, name: str, *, value: str) -> None:
        """Store a named value of the state."""
        self._connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, value))

    def next_number(self, name: str) -> int:
        """Next number of a named sequence, from 1."""
        number = int(self.note(name) or 0) + 1
        self.write_note(name, value=str(number))
        return number

    def next_request(self) -> str:
        """Id of the next request in the log."""
        return f"RL{self.next_number('requests'):08d}"

    def plan(self, kind: str, *, at: float, **what: str) -> None:
        """Schedule an action in the agenda at an instant of the virtual clock."""
        values = (at, kind, json.dumps(what))
        self.execute("INSERT INTO agenda (due_at, kind, what) VALUES (?, ?, ?)", values)

    def due(self, *, now: int) -> list[Any]:
        """Agenda entries that are due, ordered by time."""
        return self.select(
            "SELECT number, kind, due_at, what FROM agenda WHERE due_at <= ?"
            " ORDER BY due_at, number",
            (now,),
        )

    def select(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Fetch the rows of a query written in this package."""
        return self._connection.execute(statement, parameters).fetchall()

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement written in this package."""
        self._connection.execute(statement, parameters)

    def payment(self, transaction_id: str) -> Payment | None:
        """The payment with a transaction_id, or None."""
        payments = self.payments("transaction_id", keys=(transaction_id,))
        return payments[0] if payments else None

    def payments(self, column: str, *, keys: Sequence[str]) -> list[Payment]:
        """Payments whose transaction_id, order_no or page_key is one of the keys, oldest first."""
        return list(self._payments(f"WHERE {column} IN ({placeholders(keys)})", keys))

    def every_payment(self) -> Iterator[Payment]:
        """All payments, oldest first."""
        return self._payments("", ())

    def _payments(self, where: str, keys: Sequence[str]) -> Iterator[Payment]:
        statement = f"SELECT {columns_of(Payment)} FROM payment {where}"  # noqa: S608
        ordered = f"{statement} ORDER BY created_at, transaction_id"
        for row in self._connection.execute(ordered, keys):
            payment = Payment(*row)
            detail = Detail(**json.loads(row[-1])) if row[-1] != "{}" else NO_DETAIL
            object.__setattr__(payment, "detail", detail)
            object.__setattr__(payment, "state", GatewayState(payment.state))
            yield payment

    def write(self, table: str, values: Iterable[Any], *, kind: type[Any]) -> None:
        """Insert values of one kind into their table, replacing rows with the same key."""
        columns = columns_of(kind)
        self._connection.executemany(
            f"INSERT OR REPLACE INTO {table} ({columns})"  # noqa: S608 - our own names
            f" VALUES ({placeholders(fields(kind))})",
            map(attrgetter(*columns.split(", ")), values),
        )

    def write_payments(self, payments: Iterable[Payment]) -> None:
        """Insert payments, or replace existing ones."""
        self.write("payment", payments, kind=Payment)

    def append_effects(self, effects: Iterable[Effect]) -> None:
        """Append effects to the ledger."""
        self.write("effect", effects, kind=Effect)

    def every_effect(self, after: int = 0) -> Iterator[Effect]:
        """Iterate over the effects after a position in commit order, a thousand per read."""
        statement = f"SELECT {columns_of(Effect)} FROM effect WHERE position > ?"  # noqa: S608
        ordered = f"{statement} ORDER BY position LIMIT {EFFECTS_PER_READ}"
        while rows := self.select(ordered, (after,)):
            yield from (Effect(*row) for row in rows)
            after = rows[-1][-1]

    def write_request(self, logged: LoggedRequest, *, rows: Iterable[RowReply]) -> None:
        """Log a request and the replies to its rows."""
        self.write("request", [logged], kind=LoggedRequest)
        self._connection.executemany(
            "INSERT OR REPLACE INTO request_row VALUES (?, ?, ?, ?, ?, ?)",
            [
                (logged.request_log_id, position, *astuple(row))
                for position, row in enumerate(rows, start=1)
            ],
        )

    def invariants(self) -> dict[str, int]:
        """Count of violations by invariant, from the ledger alone, never the payments' states."""
        return dict(self.select("SELECT name, broken FROM invariant"))


def _open(state: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        state or ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    connection.execute("PRAGMA synchronous = NORMAL")  # survives a killed process
    known = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    if not known and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.close()
        msg = "it is another program's database"
        raise sqlite3.DatabaseError(msg)
    connection.execute("PRAGMA journal_mode = WAL")
    schema = files("recon.sandbox").joinpath("schema.sql").read_text()
    marked = f"PRAGMA application_id = {APPLICATION_ID};"
    connection.executescript(f"BEGIN IMMEDIATE; {schema} {marked} COMMIT;")
    return connection
