"""Gateway notifications: each stored once and read as evidence; refused messages as cases."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, or_, select, update

from recon.store.schema import notification, notification_case
from recon.store.schema.columns import REASON_CHARACTERS, Owner, account_of, among, in_account

CASES_PER_ACCOUNT_MAX = 10_000
"""Maximum number of refused messages stored per account; a flood beyond it is not stored."""

VARIANTS_MAX = 16
"""Maximum number of different messages about the same state; further ones are stored as cases."""

SIGNED_FIELDS = ("order_no", "transaction_id", "currency", "amount", "order_status")
"""Fields that the signature must cover for a message to be evidence of a payment's state."""

DONE_STATUSES = frozenset({"1", "COMPLETED"})
DONE_BY_KIND = frozenset({"refund received", "refund accepted"})
"""Kinds that confirm a refund even without a status."""


@dataclass(frozen=True, slots=True)
class GatewayMessage:
    """A verified message as it is stored; its signature covers only part of it."""

    kind: str
    """payment, refund received, refund accepted, refund result, dispute result, payout …"""
    identity_sha256: str
    sha256: str
    order_no: str
    transaction_id: str
    currency: str
    amount: int | None
    """Minor units; of the refund or payout if the message is about one."""
    status: str
    fields: Mapping[str, str]
    """Allow-listed fields only."""
    received_at: datetime


class Saved(Enum):
    """The result of storing a verified message."""

    ALONE = "nothing else was reported of this"
    CONTRADICTS_OTHERS = "kept, and another message says something else of the same"
    NOT_STORED = "too many messages say different things of the same"


def save(connection: Connection, owner: Owner, *, message: GatewayMessage) -> Saved:
    """Store a message once, even if it differs from a stored one about the same state.

    A signature covers little: whoever has one message can forge another with a valid signature. So
    the first message is no truer than the next, and none prevents another from being stored.

    The caller is the only writer (SQLite), or retries if the unique identity fails (PostgreSQL).
    """
    identity = notification.c.identity_sha256 == message.identity_sha256
    mine = (*in_account(notification, owner), identity)
    saved = set(connection.execute(select(notification.c.sha256).where(*mine)).scalars())
    if message.sha256 not in saved:
        if len(saved) >= VARIANTS_MAX:
            return Saved.NOT_STORED
        fields = json.dumps(dict(message.fields), sort_keys=True)
        row = {**asdict(message), **_place(owner), "fields": fields}
        connection.execute(insert(notification), [row])
    else:
        again = {"times": notification.c.times + 1, "repeated_at": message.received_at}
        same = notification.c.sha256 == message.sha256
        connection.execute(update(notification).where(*mine, same).values(**again))
    return Saved.CONTRADICTS_OTHERS if saved - {message.sha256} else Saved.ALONE


def save_case(
    connection: Connection, owner: Owner, *, case: Mapping[str, Any], at: datetime
) -> None:
    """Store a refused message, once; `case` has `problem`, `reason`, `body_sha256`, `fields`."""
    table = notification_case
    mine = in_account(table, owner)
    same = (*mine, *(table.c[name] == case[name] for name in ("problem", "body_sha256")))
    again = update(table).where(*same).values(times=table.c.times + 1)
    if connection.execute(again).rowcount:
        return
    count = connection.execute(select(func.count()).select_from(table).where(*mine)).scalar_one()
    if count >= CASES_PER_ACCOUNT_MAX:
        return
    cut = {"reason": case["reason"][:REASON_CHARACTERS]}
    fields = json.dumps(dict(case["fields"]), sort_keys=True)
    row = {**case, **cut, **_place(owner), "fields": fields, "received_at": at}
    connection.execute(insert(table), [row])


def _place(owner: Owner) -> dict[str, str]:
    return dict(zip(("merchant_id", "account_id"), account_of(owner), strict=True))


def order_nos_reported(connection: Connection, owner: Owner, *, since: datetime) -> set[str]:
    """Return orders that verified messages named since an instant; the night queries them too."""
    last = func.coalesce(notification.c.repeated_at, notification.c.received_at)
    named = *in_account(notification, owner), notification.c.order_no != "", last >= since
    return set(connection.execute(select(notification.c.order_no).where(*named)).scalars())


def _newest(
    connection: Connection, *which: ColumnElement[bool], count: int | None = None
) -> list[GatewayMessage]:
    """Return the newest messages that match all conditions, oldest first."""
    newest = (notification.c.received_at.desc(), notification.c.notification_id.desc())
    columns = (notification.c[name] for name in GatewayMessage.__dataclass_fields__)
    query = select(*columns).where(*which).order_by(*newest).limit(count)
    rows = [*connection.execute(query).mappings()]
    return [
        GatewayMessage(**{**row, "fields": json.loads(row["fields"])}) for row in reversed(rows)
    ]


def evidence_of(
    connection: Connection, owner: Owner, *, transaction_ids: Collection[str]
) -> list[GatewayMessage]:
    """Return messages that confirm an effect on some transactions, oldest first.

    Messages of failures or with an unknown status are left out, since they prove no effect.
    """
    chosen = among(connection, notification.c.transaction_id, sorted({*transaction_ids}))
    every = _newest(connection, *in_account(notification, owner), chosen)
    return [
        each
        for each in every
        if each.status in DONE_STATUSES or (not each.status and each.kind in DONE_BY_KIND)
    ]


_WITHOUT_PAYMENT = ("payout", "subscription")
"""Kinds of messages without a transaction of ours."""
MESSAGES_MAX = 10_000
"""Maximum number of messages of an account that are read for one list, the newest."""


def about(
    connection: Connection, owner: Owner, *, transaction_ids: Collection[str]
) -> list[GatewayMessage]:
    """Return messages about these payments, and all on payouts and subscriptions, oldest first."""
    related = or_(
        among(connection, notification.c.transaction_id, sorted(transaction_ids)),
        notification.c.kind.in_(_WITHOUT_PAYMENT),
    )
    return _newest(connection, *in_account(notification, owner), related, count=MESSAGES_MAX)


def signed_states(
    connection: Connection, owner: Owner, *, transaction_id: str
) -> list[GatewayMessage]:
    """Return a payment's messages reduced to SIGNED_FIELDS ("" if missing), oldest first.

    Messages that give different amounts for one state are left out: people decide about them.
    """
    of_payment = notification.c.transaction_id == transaction_id, notification.c.kind == "payment"
    states = [
        replace(each, fields={name: each.fields.get(name, "") for name in SIGNED_FIELDS})
        for each in _newest(connection, *in_account(notification, owner), *of_payment)
    ]
    sums: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for state in states:
        fields = state.fields
        sums.setdefault(_state(fields), set()).add((fields["currency"], fields["amount"]))
    return [state for state in states if len(sums[_state(state.fields)]) == 1]


def _state(fields: Mapping[str, str]) -> tuple[str, str]:
    return fields["order_no"], fields["order_status"]


def counts(connection: Connection) -> dict[str, int]:
    """Return how many messages were stored, and how many refused by problem."""
    saved = connection.execute(select(func.count()).select_from(notification)).scalar_one()
    rejected = connection.execute(
        select(notification_case.c.problem, func.sum(notification_case.c.times))
        .group_by(notification_case.c.problem)
        .order_by(notification_case.c.problem)
    )
    return {"stored": saved, **{row[0]: int(row[1]) for row in rejected}}
