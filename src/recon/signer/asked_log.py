"""The signer's own log: what was asked and what became of it, one JSON object a line, no secret.

Of a row only ids, currency and amounts get in; of a message that starts a payment nothing but its
operation: its fields may hold a card.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recon.model.errors import ConfigurationError
from recon.privacy.foreign_text import scrubbed
from recon.privacy.own_files import for_owner
from recon.signer.judging import KINDS
from recon.signer.request import Asked

VALUE_CHARACTERS_MAX = 100
SHOWN = (
    *("transaction_id", "order_no", "currency", "amount", "refund_amount"),
    *("request_id", "payment_amount", "payment_currency", "recurring_id"),
)


class AskedLog:
    """Appends to a file, or to the standard error where none is named."""

    def __init__(self, path: Path | None) -> None:
        """Open the file for its owner alone.

        Raises:
            ConfigurationError: it cannot be written.
        """
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._descriptor = os.dup(2) if path is None else for_owner(str(path), flags)
        except OSError as error:
            msg = f"the signer's log {path} cannot be written: {error.strerror}"
            raise ConfigurationError(msg) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def note(self, answer: str, *, at: datetime, why: str = "", **fields: Any) -> None:
        """One line."""
        line = {"at": at.astimezone(UTC).isoformat(), "answer": answer, "why": why, **fields}
        text = json.dumps({name: value for name, value in line.items() if value != ""})
        os.write(self._descriptor, f"{text}\n".encode(errors="replace"))


def shown(asked: Asked) -> dict[str, Any]:
    """What the log has of a request."""
    head = {
        "operation": _cut(asked.template),
        "account": _cut(asked.account),
        "endorsements": len(asked.grounds.endorsements),
    }
    if asked.template not in KINDS:
        return head
    ids = [row.instruction_id for row in asked.grounds.rows]
    wires = asked.rows or (asked.fields,)
    rows = [
        _row(wire, instruction_id=ids[position] if position < len(ids) else "")
        for position, wire in enumerate(wires)
    ]
    return {**head, "rows": rows}


def _row(wire: Mapping[str, str], *, instruction_id: str) -> dict[str, str]:
    values = {"instruction_id": instruction_id, **{name: wire.get(name, "") for name in SHOWN}}
    return {name: _cut(value) for name, value in values.items() if value}


def _cut(text: str) -> str:
    return scrubbed(text)[:VALUE_CHARACTERS_MAX]
