"""Which codes the gateway's answers have shown so far, for the list of those nobody has mapped."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, select

from recon.store.schema import answer_part

CODES_MAX = 1_000
FIELDS = ("payment_status", "query_result")


@dataclass(frozen=True, slots=True)
class SeenCode:
    """One code of one field."""

    field: str
    code: str
    count: int
    order_no: str
    """One of the orders that showed it."""


def codes_seen(connection: Connection, *, merchant_id: str, account_id: str) -> list[SeenCode]:
    """Every code of an account's kept answers, the most frequent first."""
    documents = connection.execute(
        select(answer_part.c.codes).where(
            answer_part.c.merchant_id == merchant_id,
            answer_part.c.account_id == account_id,
            answer_part.c.answered > 0,
        )
    ).scalars()
    seen: dict[tuple[str, str], tuple[int, str]] = {}
    for document in map(json.loads, documents):
        for field in FIELDS:
            for code, (count, order_no) in document.get(field, {}).items():
                before, first = seen.get((field, code), (0, order_no))
                seen[field, code] = (before + count, min(first, order_no))
    codes = [SeenCode(*key, *figures) for key, figures in seen.items()]
    codes.sort(key=lambda code: (FIELDS.index(code.field), -code.count, code.code))
    return [
        code
        for field in FIELDS
        for code in [each for each in codes if each.field == field][:CODES_MAX]
    ]
