"""What the gateway told by itself: kept once, read as evidence; refused messages as cases."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update

from recon.store.schema import notification, notification_case
from recon.store.schema.columns import REASON_CHARACTERS, in_account, values_of

CASES_PER_ACCOUNT_MAX = 10_000
"""So many refused messages are kept; a flood beyond that only shows in the count of its kind."""

VARIANTS_MAX = 16
"""Messages about one thing in one state that say different things of it; more are cases only."""

IDS_PER_QUERY_MAX = 500

SIGNED_FIELDS = ("order_no", "transaction_id", "currency", "amount", "order_status")
"""What the signature must cover before a message is evidence of a payment's state."""

DONE_STATUSES = frozenset({"1", "COMPLETED"})
DONE_BY_KIND = frozenset({"refund received", "refund accepted"})
"""These kinds say by themselves that a refund was taken on, where they name no status."""


@dataclass(frozen=True, slots=True)
class Told:
    """A verified message in the form that is kept."""

    kind: str
    identity_sha256: str
    sha256: str
    order_no: str
    transaction_id: str
    currency: str
    amount: int | None
    status: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verified message says of a transaction. A hint for a doubt, signed in part only."""

    kind: str
    """payment, refund received, refund accepted, refund result, dispute result, payout …"""
    transaction_id: str
    currency: str
    amount: int | None
    """Minor units; of the refund or payout where it tells of one."""
    observed_at: datetime
    sha256: str
    status: str
    reference: str
    """refund_reference_id, "" where it has none."""
    own_reference: str
    """refund_reference or a payout's request_id: the merchant's own id, "" where it has none."""


@dataclass(frozen=True, slots=True)
class SignedState:
    """What a verified message about a payment says in the fields that its signature covers."""

    order_no: str
    transaction_id: str
    currency: str
    amount: str
    """Major units, as on the wire."""
    order_status: str
    observed_at: datetime


class Kept(Enum):
    """What became of a verified message."""

    ALONE = "nothing else was told of this"
    BESIDE_OTHERS = "kept, and another message says something else of the same"
    NOT_KEPT = "too many messages say different things of the same"


def keep(
    connection: Connection, message: Told, *, merchant_id: str, account_id: str, at: datetime
) -> Kept:
    """Keep a message once, also where a kept one says something else of the same.

    A signature covers little: whoever holds one message can write another that is signed as well.
    The first to come is therefore not truer than the next, and none keeps another away.

    The caller's transaction must be the only writer (SQLite), or may fail on the unique identity
    and be tried again (PostgreSQL).
    """
    mine = (
        notification.c.merchant_id == merchant_id,
        notification.c.account_id == account_id,
        notification.c.identity_sha256 == message.identity_sha256,
    )
    kept = set(connection.execute(select(notification.c.sha256).where(*mine)).scalars())
    if message.sha256 not in kept:
        if len(kept) >= VARIANTS_MAX:
            return Kept.NOT_KEPT
        values = {name: getattr(message, name) for name in Told.__dataclass_fields__}
        values["fields"] = json.dumps(dict(message.fields), sort_keys=True)
        row = {"merchant_id": merchant_id, "account_id": account_id, "received_at": at, **values}
        connection.execute(insert(notification), [row])
    else:
        again = {"times": notification.c.times + 1, "repeated_at": at}
        same = notification.c.sha256 == message.sha256
        connection.execute(update(notification).where(*mine, same).values(**again))
    return Kept.BESIDE_OTHERS if kept - {message.sha256} else Kept.ALONE


def keep_case(
    connection: Connection,
    case: Mapping[str, Any],
    *,
    merchant_id: str,
    account_id: str,
    at: datetime,
) -> None:
    """Keep a refused message (`problem`, `reason`, `body_sha256`, `fields`) once, bounded."""
    mine = (
        notification_case.c.merchant_id == merchant_id,
        notification_case.c.account_id == account_id,
    )
    same = (
        *mine,
        notification_case.c.problem == case["problem"],
        notification_case.c.body_sha256 == case["body_sha256"],
    )
    again = update(notification_case).where(*same).values(times=notification_case.c.times + 1)
    if connection.execute(again).rowcount:
        return
    count = connection.execute(
        select(func.count()).select_from(notification_case).where(*mine)
    ).scalar_one()
    if count >= CASES_PER_ACCOUNT_MAX:
        return
    row = {
        "merchant_id": merchant_id,
        "account_id": account_id,
        "problem": case["problem"],
        "reason": case["reason"][:REASON_CHARACTERS],
        "body_sha256": case["body_sha256"],
        "fields": json.dumps(dict(case["fields"]), sort_keys=True),
        "received_at": at,
    }
    connection.execute(insert(notification_case), [row])


def order_nos_told(
    connection: Connection, *, merchant_id: str, account_id: str, since: datetime
) -> set[str]:
    """Orders that verified messages named since an instant; they join the night's questions."""
    of_account = values_of(merchant_id, account_id)
    return set(connection.execute(_TOLD, of_account | {"since": since}).scalars())


_OF_ACCOUNT = in_account(notification)
_TOLD = (
    select(notification.c.order_no)
    .where(
        *_OF_ACCOUNT,
        notification.c.order_no != "",
        func.coalesce(notification.c.repeated_at, notification.c.received_at) >= bindparam("since"),
    )
    .distinct()
)
_OF_PAYMENTS = select(notification).where(
    *_OF_ACCOUNT, notification.c.transaction_id.in_(bindparam("wanted", expanding=True))
)
_SIGNED = (
    select(notification)
    .where(
        *_OF_ACCOUNT,
        notification.c.transaction_id == bindparam("of_payment"),
        notification.c.kind == "payment",
    )
    .order_by(notification.c.received_at, notification.c.notification_id)
)


def evidence_of(
    connection: Connection,
    *,
    merchant_id: str,
    account_id: str,
    transaction_ids: Collection[str],
) -> list[Evidence]:
    """What verified messages say was done to some transactions, oldest first.

    Messages of a failure, or of a status that nobody knows, are left out: they prove no effect.
    """
    wanted = sorted(set(transaction_ids))
    rows: list[Mapping[Any, Any]] = []
    for start in range(0, len(wanted), IDS_PER_QUERY_MAX):
        values = {
            **values_of(merchant_id, account_id),
            "wanted": wanted[start : start + IDS_PER_QUERY_MAX],
        }
        rows += connection.execute(_OF_PAYMENTS, values).mappings()
    ordered = sorted(rows, key=lambda row: (row["received_at"], row["notification_id"]))
    return [_evidence(row) for row in ordered if _tells_of_done(row)]


def _tells_of_done(row: Mapping[Any, Any]) -> bool:
    status = row["status"]
    return status in DONE_STATUSES or (not status and row["kind"] in DONE_BY_KIND)


def _evidence(row: Mapping[Any, Any]) -> Evidence:
    fields = json.loads(row["fields"])
    return Evidence(
        kind=row["kind"],
        transaction_id=row["transaction_id"],
        currency=row["currency"],
        amount=row["amount"],
        observed_at=row["received_at"],
        sha256=row["sha256"],
        status=row["status"],
        reference=fields.get("refund_reference_id", ""),
        own_reference=fields.get("refund_reference", "") or fields.get("request_id", ""),
    )


@dataclass(frozen=True, slots=True)
class About:
    """A verified message as people read it."""

    kind: str
    status: str
    transaction_id: str
    request_id: str
    """The merchant's own id of a payout, "" elsewhere."""
    recurring_id: str
    currency: str
    amount: int | None
    """Minor units; of the refund or payout where it tells of one."""
    received_at: datetime
    sha256: str


_WITHOUT_PAYMENT = ("payout", "subscription")
"""Kinds of messages that name no transaction of ours."""
MESSAGES_MAX = 10_000
"""Of an account that are looked through for one list; the newest."""


def about(
    connection: Connection,
    *,
    merchant_id: str,
    account_id: str,
    transaction_ids: Collection[str],
) -> list[About]:
    """Messages about these payments, and all about payouts and subscriptions, oldest first."""
    wanted = or_(
        notification.c.transaction_id.in_(sorted(transaction_ids)),
        notification.c.kind.in_(_WITHOUT_PAYMENT),
    )
    newest = (notification.c.received_at.desc(), notification.c.notification_id.desc())
    query = select(notification).where(*_OF_ACCOUNT, wanted).order_by(*newest).limit(MESSAGES_MAX)
    of_account = values_of(merchant_id, account_id)
    rows = connection.execute(query, of_account).mappings().all()
    return [_about(row) for row in reversed(rows)]


def _about(row: Mapping[Any, Any]) -> About:
    fields = json.loads(row["fields"])
    return About(
        kind=row["kind"],
        status=row["status"],
        transaction_id=row["transaction_id"],
        request_id=fields.get("request_id", ""),
        recurring_id=fields.get("recurring_id", ""),
        currency=row["currency"],
        amount=row["amount"],
        received_at=row["received_at"],
        sha256=row["sha256"],
    )


def signed_states(
    connection: Connection, *, merchant_id: str, account_id: str, transaction_id: str
) -> list[SignedState]:
    """What messages about a payment say under their signature, oldest first.

    Where two say different things of it in one state, neither is evidence: people see them.
    """
    of_account = values_of(merchant_id, account_id)
    rows = connection.execute(_SIGNED, of_account | {"of_payment": transaction_id})
    states = []
    for row in rows.mappings():
        fields = json.loads(row["fields"])
        named = {name: fields.get(name, "") for name in SIGNED_FIELDS}
        states.append(SignedState(**named, observed_at=row["received_at"]))
    sums = {(state.order_no, state.order_status): set[tuple[str, str]]() for state in states}
    for state in states:
        sums[state.order_no, state.order_status].add((state.currency, state.amount))
    return [state for state in states if len(sums[state.order_no, state.order_status]) == 1]


def counts(connection: Connection) -> dict[str, int]:
    """How many messages were kept, and how many refused, by problem."""
    kept = connection.execute(select(func.count()).select_from(notification)).scalar_one()
    refused = connection.execute(
        select(notification_case.c.problem, func.sum(notification_case.c.times))
        .group_by(notification_case.c.problem)
        .order_by(notification_case.c.problem)
    )
    return {"kept": kept, **{row[0]: int(row[1]) for row in refused}}
