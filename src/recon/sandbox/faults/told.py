"""What a client was truly told: the rows of the reply as it left, or that nothing arrived."""

from collections.abc import Iterable
from typing import Any

from recon.sandbox.faults.altered_rows import STATUS_KEYS, key_of
from recon.sandbox.faults.fault_kinds import ENDINGS
from recon.sandbox.faults.fault_rule import FaultRule, RowKey
from recon.sandbox.ground.records import Told
from recon.sandbox.ground.request import Reply

MESSAGE_KEYS = ("error_message", "refund_message", "result_info", "failure_reason")
ROW_MISSING = "the reply had no such row"
UNANSWERED = ENDINGS | {"late"}


def told_after(
    before: Reply, after: Reply, *, wire: FaultRule | None, rows: Iterable[RowKey]
) -> tuple[Told, ...]:
    """What to log beside the truth, for a reply before and after its faults.

    A query is logged only where a fault made it lie: it asks for a hundred rows at a time.
    """
    if wire is not None and wire.kind in UNANSWERED:
        return told_nothing(before, why=_why(wire), rows=rows)
    asked = list(rows)
    if after.content == before.content and len(before.told) in {0, len(asked)}:
        return before.told
    lied = [row for row in _rows(after) if row not in _rows(before)]
    if not before.told:
        return tuple(map(_told, lied))
    answered = {key_of(row): _told(row) for row in reversed(_rows(after))}
    keys = [(row.transaction_id, row.order_no) for row in before.told]
    keys += [key for key in asked if before.rows_key and key not in keys]
    known = [answered.pop(key, Told(*key, "", ROW_MISSING)) for key in keys]
    return (*known, *answered.values())


def told_nothing(reply: Reply, *, why: str, rows: Iterable[RowKey]) -> tuple[Told, ...]:
    """Every row with nothing beside it but the reason."""
    keys = [(row.transaction_id, row.order_no) for row in reply.told] or list(rows)
    return tuple(Told(*key, "", why) for key in keys)


def _why(wire: FaultRule) -> str:
    if wire.kind == "status":
        return f"no answer (HTTP {wire.status})"
    return f"no answer ({wire.kind})"


def _rows(reply: Reply) -> list[dict[str, Any]]:
    if not reply.rows_key:
        return [dict(reply.content)]
    rows = reply.content.get(reply.rows_key)
    return [rows] if isinstance(rows, dict) else list(rows or ())


def _told(row: dict[str, Any]) -> Told:
    status = next((str(row[name]) for name in STATUS_KEYS if row.get(name)), "")
    message = next((str(row[name]) for name in MESSAGE_KEYS if row.get(name)), "")
    return Told(*key_of(row), status, message)
