"""The last reply of each operation, kept only while a fault needs one to replay."""

import json
from typing import Any

from recon.sandbox.faults.fault_kinds import REPEATING_KINDS
from recon.sandbox.faults.fault_plan import planned_faults
from recon.sandbox.faults.fault_rule import ANY_OPERATION
from recon.sandbox.ground.book import Book
from recon.sandbox.ground.wire import render_json


def earlier_reply(book: Book, operation: str) -> dict[str, Any] | None:
    """The content of the last reply that was remembered, None before there was one."""
    text = book.note(_note(operation))
    return json.loads(text) if text else None


def remember_reply(book: Book, operation: str, *, content: Any) -> None:
    """Remember a reply if a rule of the plan may want to repeat it."""
    wanted = any(
        entry.rule.kind in REPEATING_KINDS and entry.rule.operation in {ANY_OPERATION, operation}
        for entry in planned_faults(book)
    )
    if wanted:
        book.write_note(_note(operation), value=render_json(content).decode())


def _note(operation: str) -> str:
    return f"earlier_reply:{operation}"
