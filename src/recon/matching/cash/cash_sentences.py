"""Why a group of fees, reserves or pay-outs is open, or money held back, in a sentence."""

from collections.abc import Callable, Mapping
from typing import Any

from recon.matching.breaks.result_rows import NO_AMOUNT
from recon.matching.cash.batches import DEBT, NO_PAYOUT
from recon.matching.cash.book_groups import FEES, PAYOUTS, RESERVES
from recon.model.money import format_minor_units
from recon.model.words import BreakCode

Row = Mapping[str, Any]
Sentence = Callable[[Row], str]
_SIGNED = ("settled", "booked")
_WORDS = {FEES: "fees", RESERVES: "reserves", PAYOUTS: "pay-outs"}


def reason_of(row: Row) -> str:
    """The sentence of a break of cash (see cash_findings.FINDING_COLUMNS)."""
    return SENTENCES[BreakCode(row["code"])](row)


def _money(row: Row, name: str) -> str:
    """What was charged, kept or paid out, below 0 where it was given back; else how far apart."""
    amount = 0 if row[name] == NO_AMOUNT else int(row[name])
    amount = -amount if name in _SIGNED else abs(amount)
    return f"{format_minor_units(amount, currency=row['currency'])} {row['currency']}"


def _of(row: Row) -> str:
    words, name = _WORDS[row["what"]], row["name"]
    if not name:
        return f"All {words} since the opening"
    return f"{words[0].upper()}{words[1:]} of {name}"


def _not_booked(row: Row) -> str:
    return (
        f"{_of(row)}: the settlement has {_money(row, 'settled')}, the books have nothing, since "
        f"{row['since']}."
    )


def _differs(row: Row) -> str:
    if row["flags"]:
        return (
            f"{_of(row)}: {_money(row, 'exposure')} more was released than was ever kept back; the "
            f"settlement has {_money(row, 'settled')}, the books have {_money(row, 'booked')}."
        )
    return (
        f"{_of(row)}: the settlement has {_money(row, 'settled')}, the books have "
        f"{_money(row, 'booked')}, {_money(row, 'effect')} apart since {row['since']}."
    )


def _only_booked(row: Row) -> str:
    return (
        f"{_of(row)}: the books have {_money(row, 'booked')}, and no pay-out of the settlement "
        "is of it."
    )


def _held(row: Row) -> str:
    what = _money(row, "exposure")
    if row["what"] == NO_PAYOUT:
        return f"Batch {row['name']} of {what}, settled on {row['since']}, is not paid out yet."
    if row["what"] == DEBT:
        return (
            f"Batch {row['name']}, settled on {row['since']}, comes to -{what}: a debt that no "
            "later pay-out was reduced by yet."
        )
    return (
        f"Of batch {row['name']}, settled on {row['since']}, the gateway still holds {what} back."
    )


def _beyond(row: Row) -> str:
    return (
        f"Batch {row['name']}, settled on {row['since']}, paid out {_money(row, 'exposure')} more "
        "than its lines and all that was held back come to."
    )


def _other_currency(row: Row) -> str:
    return (
        f"Batch {row['name']}, settled on {row['since']}, paid out {_money(row, 'exposure')}, and "
        "its lines are in another currency."
    )


SENTENCES: Mapping[BreakCode, Sentence] = {
    BreakCode.FEE_NOT_BOOKED: _not_booked,
    BreakCode.FEE_BOOKED_DIFFERS: _differs,
    BreakCode.RESERVE_NOT_BOOKED: _not_booked,
    BreakCode.RESERVE_BOOKED_DIFFERS: _differs,
    BreakCode.PAYOUT_NOT_BOOKED: _not_booked,
    BreakCode.PAYOUT_AMOUNT_MISMATCH: _differs,
    BreakCode.LEDGER_PAYOUT_ONLY: _only_booked,
    BreakCode.HELD_BACK: _held,
    BreakCode.UNEXPECTED_RECEIPT: _beyond,
    BreakCode.CURRENCY_MISMATCH: _other_currency,
}
"""Of every code of the cash."""
