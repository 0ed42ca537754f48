"""The rows of every file, and the payments behind them; the field names are the columns, in order.

Amounts are minor units. Written from the truth outwards: what happened stands in `TruePayment`.
"""

import csv
import io
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from operator import attrgetter
from typing import Any, Literal

from recon.model.business_date import Grace
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag, GatewayState, UnverifiedReason
from recon.sandbox.book import Effect

BOOKING_GRACE = Grace(2, "bd")
"""How long the ledger may be without a movement, as in the bundled rules."""
DAYS_BEFORE = 8
"""Calendar days before the business date whose batches and statements are told."""
PAYOUT = "payout"
AUTHORISATION_LIVES = timedelta(days=7)
"""The sandbox's own choice; older authorisations without a capture are expired."""
STORIES: Mapping[str, Any] = tomllib.loads(
    files("recon.sandbox.world").joinpath("stories.toml").read_text("utf-8")
)
"""What is planted."""

Finding = BreakCode | Flag | UnverifiedReason | Literal["pending"]
"""A break, a match with a flag, a set that cannot be judged, or one still within its grace."""


def finding_of(word: str) -> Finding | None:
    """The finding that a row of the stories names; "" is none."""
    for kind in (BreakCode, Flag, UnverifiedReason):
        if word in {*kind}:
            return kind(word)
    return "pending" if word == "pending" else None


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One row of an order file of the inbox."""

    merchant_id: str
    account_id: str
    order_no: str
    currency: str
    amount: int
    status: str
    ordered_at: datetime
    transaction_id: str = ""
    expected_captured_amount: int | None = None
    refund_amount: int | None = None
    updated_at: datetime | None = None
    action: str = ""
    action_amount: int | None = None
    action_reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One ledger entry."""

    entry_id: str
    merchant_id: str
    account_id: str
    order_no: str
    entry_type: str
    currency: str
    amount: int
    booked_at: datetime
    transaction_id: str = ""
    reference_no: str = ""
    reverses_entry_id: str = ""


@dataclass(frozen=True, slots=True)
class SettlementLine:
    """One row of a settlement file; amounts are signed."""

    batch_id: str
    merchant_id: str
    account_id: str
    settled_on: str
    entry_type: str
    order_no: str
    transaction_id: str
    reference_no: str
    currency: str
    gross: int
    fee: int
    net: int
    own_reference: str = ""
    """What the merchant named a refund or payout by; "" on what the batch comes to."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What must be found of a batch, a payout, or a group of the books."""

    finding: BreakCode | Flag
    """A break, or the flag of what matches."""
    why: str
    about: str
    """The batch, or the key of the group as rules.md has it."""
    currency: str
    effect: int

    @property
    def is_break(self) -> bool:
        """Not a match with a flag."""
        return isinstance(self.finding, BreakCode)

    @property
    def text(self) -> str:
        """The effect as the answer key has it."""
        return format_minor_units(self.effect, currency=self.currency)


Line = OrderLine | LedgerLine | SettlementLine
Row = Sequence[str]


def columns_of(kind: type[Line]) -> tuple[str, ...]:
    """The header of a file of such rows."""
    return tuple(field.name for field in fields(kind))


def cells_of(line: Line) -> tuple[str, ...]:
    """A row as the texts of its columns."""

    def text(value: str | int | datetime | None) -> str:
        if isinstance(value, datetime):
            return value.isoformat(timespec="seconds")
        if isinstance(value, int):
            return format_minor_units(value, currency=line.currency)
        return value or ""

    return tuple(text(getattr(line, name)) for name in columns_of(type(line)))


def csv_text(header: Row, rows: Iterable[Row]) -> str:
    """A CSV file with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def file_text(kind: type[Line], lines: Iterable[Line]) -> str:
    """A CSV file of such rows."""
    return csv_text(columns_of(kind), map(cells_of, lines))


@dataclass(frozen=True, slots=True)
class TruePayment:
    """One payment of the population as it stands before the night."""

    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    currency: str
    state: GatewayState
    authorised: int
    authorised_at: datetime
    last_at: datetime
    """When the newest effect happened."""
    captured: int = 0
    captured_at: datetime | None = None
    refunded: int = 0
    refund_reference_id: str = ""

    @property
    def net(self) -> int:
        """The money that the gateway holds for the merchant, as its query can show it."""
        if self.state is GatewayState.CHARGEBACK:
            return 0
        return self.captured - self.refunded


def payments_of(effects: Iterable[Effect], *, now: datetime) -> tuple[TruePayment, ...]:
    """The seeded payments that have effects, in the order of their authorisation."""
    truth: dict[str, TruePayment] = {}
    for effect in effects:
        if effect.origin == "seed":
            key = effect.transaction_id
            truth[key] = _after(truth.get(key), effect)
    for key, payment in truth.items():
        lapsed = payment.authorised_at + AUTHORISATION_LIVES <= now
        if payment.state is GatewayState.AUTHORISED and lapsed:
            truth[key] = replace(payment, state=GatewayState.EXPIRED)
    return tuple(sorted(truth.values(), key=attrgetter("authorised_at", "order_no")))


def instant_of(effect: Effect) -> datetime:
    """When it took place, UTC."""
    return datetime.fromtimestamp(effect.committed_at, UTC)


def _after(payment: TruePayment | None, effect: Effect) -> TruePayment:
    """The payment with one more effect; its first one authorises it."""
    at, amount = instant_of(effect), effect.amount or 0
    if payment is None:
        ids = (effect.merchant_id, effect.account_id, effect.order_no, effect.transaction_id)
        return TruePayment(*ids, effect.currency, GatewayState.AUTHORISED, amount, at, at)
    changes: dict[str, Any] = {"last_at": max(at, payment.last_at)}
    match effect.operation:
        case "capture":
            changes |= {"state": GatewayState.PAID, "captured": amount, "captured_at": at}
        case "refund":
            refunded = payment.refunded + amount
            whole = refunded == payment.captured
            state = GatewayState.REFUNDED if whole else GatewayState.PARTIALLY_REFUNDED
            changes |= {"state": state, "refunded": refunded}
            changes["refund_reference_id"] = effect.refund_reference_id
        case "cancel":
            changes["state"] = GatewayState.CANCELLED
        case "chargeback":
            changes["state"] = GatewayState.CHARGEBACK
    return replace(payment, **changes)
