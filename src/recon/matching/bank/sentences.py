"""What sentences of the bank may say (`say_of_bank` in codes.toml): never a bank's own words."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

from recon.matching.bank.receipts import Receipt
from recon.matching.bank.weighing import Finding
from recon.matching.causes.reasons import in_words, sentences_of
from recon.matching.codes import CODES
from recon.model.money import format_minor_units
from recon.model.words import Flag

SHOWN_ENTRIES_MAX = 3
"""Entries of one break that its sentence shows; the others are counted."""


def reason_of(finding: Finding) -> str:
    """The sentence of a break of the bank: dates and amounts."""
    assert finding.code is not None  # noqa: S101 - only breaks are asked
    facts = SimpleNamespace(
        effect=finding.effect,
        has_rate=finding.rate is not None and finding.rate.rate is not None,
        date_ahead=Flag.DATE_AHEAD.value in finding.flags,
    )
    sentence = next(one for one in SENTENCES[finding.code] if one.holds(facts))
    return in_words(sentence, facts=finding, words=_WORDS)


def about_of(finding: Finding) -> str:
    """Of which batches a finding is; of an entry that nobody expects, which."""
    return " ".join(one.batch_id for one in finding.payouts) or _where(finding)


def _money(amount: int, *, currency: str) -> str:
    return f"{format_minor_units(amount, currency=currency)} {currency}"


def _paid(finding: Finding) -> str:
    named = [
        f"{one.batch_id} of {_money(one.paid, currency=one.currency)}" for one in finding.payouts
    ]
    word = "batch" if len(named) == 1 else "batches"
    return f"{word} {' and '.join(named)}, settled on {finding.payouts[0].settled_on}"


def _came(finding: Finding) -> str:
    named = [_entry(one) for one in finding.receipts[:SHOWN_ENTRIES_MAX]]
    more = len(finding.receipts) - len(named)
    return " and ".join([*named, *([f"{more} more entries"] if more > 0 else [])])


def _entry(one: Receipt) -> str:
    return f"{_money(one.amount, currency=one.currency)} on {one.value_on}"


def _where(finding: Finding) -> str:
    one = finding.receipts[0]
    return f"entry {one.entry_no} of statement {one.statement_no}"


def _rate(finding: Finding) -> str:
    assert finding.rate is not None  # noqa: S101 - a break of this code was held against one
    return finding.rate.words


_WORDS: Mapping[str, Callable[[Finding], str]] = {
    "paid": _paid,
    "came": _came,
    "gap": lambda finding: _money(abs(finding.effect), currency=finding.currency),
    "rate": _rate,
    "due": lambda finding: str(finding.payouts[0].due_on),
    "bank": lambda finding: finding.receipts[0].bank,
    "where": _where,
}
SENTENCES = sentences_of(
    {code: row.say_of_bank for code, row in CODES.items()},
    facts={"effect": int, "has_rate": bool, "date_ahead": bool},
    sayable=_WORDS,
)
