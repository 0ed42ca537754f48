"""Why a break of the bank is open, in a sentence: dates and amounts, never a bank's own words."""

from collections.abc import Callable, Mapping

from recon.matching.bank.receipts import Receipt
from recon.matching.bank.weighing import Finding
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag

Sentence = Callable[[Finding], str]
SHOWN_ENTRIES_MAX = 3
"""Entries of one break that its sentence shows; the others are counted."""


def reason_of(finding: Finding) -> str:
    """The sentence of a break of the bank."""
    assert finding.code is not None  # noqa: S101 - only breaks are asked
    return SENTENCES[finding.code](finding)


def _money(amount: int, *, currency: str) -> str:
    return f"{format_minor_units(amount, currency=currency)} {currency}"


def _paid(finding: Finding) -> str:
    told = [
        f"{one.batch_id} of {_money(one.paid, currency=one.currency)}" for one in finding.payouts
    ]
    word = "Batch" if len(told) == 1 else "Batches"
    return f"{word} {' and '.join(told)}, settled on {finding.payouts[0].settled_on}"


def _came(finding: Finding) -> str:
    told = [_entry(one) for one in finding.receipts[:SHOWN_ENTRIES_MAX]]
    more = len(finding.receipts) - len(told)
    return " and ".join([*told, *([f"{more} more entries"] if more > 0 else [])])


def _entry(one: Receipt) -> str:
    return f"{_money(one.amount, currency=one.currency)} on {one.value_on}"


def _differs(finding: Finding) -> str:
    words = f"{_paid(finding)}: the bank has {_came(finding)}"
    return f"{words}, {_money(abs(finding.effect), currency=finding.currency)} {_side(finding)}."


def _side(finding: Finding) -> str:
    return "too much" if finding.effect > 0 else "too little"


def _returned(finding: Finding) -> str:
    return f"{_paid(finding)}, went back: the bank has {_came(finding)}."


def _twice(finding: Finding) -> str:
    return f"{_paid(finding)}, came more than once: the bank has {_came(finding)}."


def _exchanged(finding: Finding) -> str:
    words = f"{_paid(finding)}: the bank has {_came(finding)}"
    rate = finding.rate
    assert rate is not None  # noqa: S101 - a break of this code was held against one
    if rate.rate is None:
        return f"{words}, the bank does not say from what, and {rate.words}."
    gap = _money(abs(finding.effect), currency=finding.currency)
    return f"{words}, by {rate.words} {gap} {_side(finding)}."


def _missing(finding: Finding) -> str:
    if Flag.DATE_AHEAD.value in finding.flags:
        return f"{_paid(finding)}, a day long after this night: no statement has it yet."
    due = finding.payouts[0].due_on
    return f"{_paid(finding)}, was due on {due}: no statement up to that day has it."


def _unknown(finding: Finding) -> str:
    (one,) = finding.receipts
    where = f"entry {one.entry_no} of statement {one.statement_no}"
    return f"The bank {one.bank} has {_entry(one)} ({where}), and no pay-out explains it."


def _unclear(finding: Finding) -> str:
    return (
        f"{_paid(finding)}: the bank has {_came(finding)}, which may be of this or of another "
        "pay-out."
    )


SENTENCES: Mapping[BreakCode, Sentence] = {
    BreakCode.AMBIGUOUS_MATCH: _unclear,
    BreakCode.PAYOUT_TWICE_AT_BANK: _twice,
    BreakCode.PAYOUT_RETURNED: _returned,
    BreakCode.BANK_AMOUNT_DIFFERS: _differs,
    BreakCode.BANK_FX_DIFFERENCE: _exchanged,
    BreakCode.PAYOUT_NOT_AT_BANK: _missing,
    BreakCode.BANK_RECEIPT_UNKNOWN: _unknown,
}
"""Of every code of the bank."""
