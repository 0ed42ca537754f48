"""Faults of notifications: lost, doubled, late, out of order, cut, forged, contradicted."""

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from recon.sandbox.faults.fault_rule import Fault
from recon.sandbox.ground.signatures import sign
from recon.sandbox.notify.notify_rows import Notification

TEMPLATE = "payment_reply"
FORGED_SIGNATURE = "0" * 64
MORE_DIGITS = ("refund_amount", "payment_amount", "amount")
"""The amount of a message, the one it is about first."""

HELD_RANK = -1
"""Of a message that waits for the next one."""


def played(notification: Notification, *, faults: list[Fault], sign_key: str) -> list[Notification]:
    """What is sent instead of one message."""
    notification = replace(notification, fault=" ".join(fault.rule.kind for fault in faults))
    copies: list[Notification] = []
    for fault in faults:
        notification, added = _one(notification, fault=fault, sign_key=sign_key)
        copies += added
    return [notification, *copies]


def _one(
    notification: Notification, *, fault: Fault, sign_key: str
) -> tuple[Notification, list[Notification]]:
    kind = fault.rule.kind
    later = notification.due_at + round(fault.rule.lasting)
    if kind == "notify_dropped":
        return replace(notification, state="dropped"), []
    if kind in {"notify_late", "notify_reordered"}:
        rank = HELD_RANK if kind == "notify_reordered" else notification.rank
        return replace(notification, due_at=later, first_at=later, rank=rank), []
    copy = replace(notification, fault=kind)
    if kind == "notify_twice":
        return notification, [copy]
    if kind == "notify_forged":
        forged = _changed(notification.body) | {"encryption_data": FORGED_SIGNATURE}
        return notification, [replace(copy, body=urlencode(forged), retried=0)]
    if kind == "notify_contradicting":
        changed = _changed(notification.body)
        changed["encryption_data"] = sign(TEMPLATE, changed, sign_key=sign_key)
        return notification, [replace(copy, body=urlencode(changed), retried=0)]
    return notification, []


def sent_body(notification: Notification) -> str:
    """The bytes of the next attempt; one that is cut arrives whole when it is repeated."""
    cut = "notify_truncated" in notification.fault.split() and not notification.attempts
    return notification.body[: len(notification.body) // 2] if cut else notification.body


def _changed(body: str) -> dict[str, str]:
    """The message with one digit more in the amount that it is about."""
    pairs = dict(parse_qsl(body, keep_blank_values=True))
    name = next((name for name in MORE_DIGITS if name in pairs), "amount")
    return pairs | {name: f"1{pairs.get(name, '')}"}
