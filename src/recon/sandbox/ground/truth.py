"""The truth: the ledger of effects as JSON lines, and the invariants that must hold over it."""

import json
from collections import Counter
from collections.abc import AsyncIterator

from recon.sandbox.ground.book import EFFECT_KEYS, Book, Effect, on_wire
from recon.sandbox.ground.clock import iso

EFFECTS_PER_READ = 1_000

_OVER = """
SELECT count(*) FROM (
    SELECT transaction_id,
        sum(CASE operation WHEN 'authorise' THEN amount WHEN 'authorise_apm' THEN amount
            ELSE 0 END) AS authorised,
        sum(CASE operation WHEN 'capture' THEN amount WHEN 'capture_reversed' THEN -amount
            ELSE 0 END) AS captured,
        sum(CASE operation WHEN 'refund' THEN amount WHEN 'refund_reversed' THEN -amount
            ELSE 0 END) AS refunded
    FROM effect
    WHERE transaction_id IN (
        SELECT transaction_id FROM effect WHERE origin = 'api' AND transaction_id <> '')
    GROUP BY transaction_id)
WHERE {left} > {right}
"""
_WITHOUT_RECORD = """
SELECT count(*) FROM effect e WHERE e.origin = 'api' AND NOT EXISTS (
    SELECT 1 FROM request_row r
    WHERE r.request_log_id = e.request_log_id AND r.transaction_id = e.transaction_id)
"""
_DOUBLE_INTENTIONS = """
SELECT coalesce(sum(standing - 1), 0) FROM (
    SELECT count(*) AS standing FROM effect e
    WHERE e.origin = 'api' AND e.operation IN ('capture', 'cancel', 'refund') AND NOT EXISTS (
        SELECT 1 FROM effect r WHERE r.transaction_id = e.transaction_id
        AND r.operation = e.operation || '_reversed'
        AND r.refund_reference_id = e.refund_reference_id)
    GROUP BY e.merchant_id, e.account_id, e.operation, e.transaction_id, e.amount, e.currency)
"""
"""What a merchant wants of a payment bears no reference: only the money tells two wishes apart.
What the gateway itself took back stands no more. A payout names no payment to be told by."""


def effect_table(effect: Effect) -> dict[str, str]:
    """One effect as plain text, every key present."""
    values = {name: getattr(effect, name) for name in EFFECT_KEYS}
    values["amount"] = (
        "" if effect.amount is None else on_wire(effect.amount, currency=effect.currency)
    )
    values["committed_at"] = iso(effect.committed_at)
    return values


def effect_line(effect: Effect) -> bytes:
    """One effect as one line of JSON."""
    return json.dumps(effect_table(effect), ensure_ascii=False).encode() + b"\n"


async def effect_lines(book: Book) -> AsyncIterator[bytes]:
    """All effects in commit order, a thousand at a time, read on the thread that writes."""
    after = 0
    while effects := book.effects(after, limit=EFFECTS_PER_READ):
        yield b"".join(effect_line(effect) for _, effect in effects)
        after = effects[-1][0]


def invariants(book: Book) -> dict[str, int]:
    """What must be 0, counted over the ledger alone, never over the payments' states."""
    return {
        "double_effects": _double_effects(book),
        "over_captured": _count(book, _OVER.format(left="captured", right="authorised")),
        "over_refunded": _count(book, _OVER.format(left="refunded", right="captured")),
        "effects_without_client_record": _count(book, _WITHOUT_RECORD),
        "double_intentions": int(book.select(_DOUBLE_INTENTIONS)[0][0]),
    }


def _count(book: Book, statement: str) -> int:
    return int(book.select(statement)[0][0])


def _double_effects(book: Book) -> int:
    """Effects of the API after the first with the same key."""
    rows = book.select(
        "SELECT operation, CASE operation WHEN 'payout' THEN '' ELSE transaction_id END,"
        " CASE operation WHEN 'refund' THEN amount END,"
        " CASE operation WHEN 'refund' THEN refund_reason ELSE '' END,"
        " CASE operation WHEN 'refund' THEN refund_reference ELSE '' END,"
        " CASE operation WHEN 'payout' THEN request_id ELSE '' END"
        " FROM effect WHERE origin = 'api'"
        " AND operation IN ('capture', 'cancel', 'refund', 'payout')"
    )
    return sum(count - 1 for count in Counter(map(tuple, rows)).values())
