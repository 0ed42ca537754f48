"""What a client was truly told: the rows of the reply as it left, or that nothing arrived."""

from collections.abc import Iterable
from typing import Any

from recon.sandbox.faults.altered_rows import STATUS_KEYS, key_of
from recon.sandbox.faults.fault_kinds import ENDINGS
from recon.sandbox.faults.fault_rule import FaultRule, RowKey
from recon.sandbox.ground.book_records import RowReply
from recon.sandbox.ground.operation_call import OperationReply

MESSAGE_KEYS = ("error_message", "refund_message", "result_info", "failure_reason")
ROW_MISSING = "the reply had no such row"
UNANSWERED = ENDINGS | {"late"}


def row_replies_after(
    before: OperationReply, after: OperationReply, *, wire: FaultRule | None, rows: Iterable[RowKey]
) -> tuple[RowReply, ...]:
    """What to log beside the truth, for a reply before and after its faults.

    A query is logged only where a fault made it lie: it asks for a hundred rows at a time.
    """
    if wire is not None and wire.kind in UNANSWERED:
        return no_row_replies(before, why=_why(wire), rows=rows)
    asked = list(rows)
    if after.content == before.content and len(before.row_replies) in {0, len(asked)}:
        return before.row_replies
    lied = [row for row in _rows(after) if row not in _rows(before)]
    if not before.row_replies:
        return tuple(map(_told, lied))
    answered = {key_of(row): _told(row) for row in reversed(_rows(after))}
    keys = [(row.transaction_id, row.order_no) for row in before.row_replies]
    keys += [key for key in asked if before.rows_key and key not in keys]
    known = [answered.pop(key, RowReply(*key, "", ROW_MISSING)) for key in keys]
    return (*known, *answered.values())


def no_row_replies(
    reply: OperationReply, *, why: str, rows: Iterable[RowKey]
) -> tuple[RowReply, ...]:
    """Every row with nothing beside it but the reason."""
    keys = [(row.transaction_id, row.order_no) for row in reply.row_replies] or list(rows)
    return tuple(RowReply(*key, "", why) for key in keys)


def _why(wire: FaultRule) -> str:
    if wire.kind == "status":
        return f"no answer (HTTP {wire.status})"
    return f"no answer ({wire.kind})"


def _rows(reply: OperationReply) -> list[dict[str, Any]]:
    if not reply.rows_key:
        return [dict(reply.content)]
    rows = reply.content.get(reply.rows_key)
    return [rows] if isinstance(rows, dict) else list(rows or ())


def _told(row: dict[str, Any]) -> RowReply:
    status = next((str(row[name]) for name in STATUS_KEYS if row.get(name)), "")
    message = next((str(row[name]) for name in MESSAGE_KEYS if row.get(name)), "")
    return RowReply(*key_of(row), status, message)
