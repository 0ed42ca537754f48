"""The bank's part of a reconciliation: payouts and entries as rows of the result.

A break of a payout has the id that the books give it, so that one payout is one break.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.expected import expected_payouts
from recon.matching.bank.pairing import Finding, Paired, named_receipts, pair
from recon.matching.bank.receipts import Receipt, receipts_of
from recon.matching.bank.statements import Cover, JudgedStatements, judge_statements
from recon.matching.breaks.found_rows import found_of, next_id
from recon.matching.breaks.result_rows import NO_AMOUNT, business_date
from recon.matching.causes.reasons import in_words, money, sentences_of
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.matching.frames.grouping import NO_INSTANT
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, Previous, Sources, frame_of
from recon.matching.judging.severity import microseconds
from recon.matching.sides.settlement_side import paid_out
from recon.model.business_date import day_in_words
from recon.model.words import BreakCode, Flag, SetState

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


def _paid(finding: Finding) -> str:
    named = [
        f"{one.batch_id} of {money(one.paid, currency=one.currency)}" for one in finding.payouts
    ]
    word = "batch" if len(named) == 1 else "batches"
    return f"{word} {' and '.join(named)}, settled on {day_in_words(finding.payouts[0].settled_on)}"


def _came(finding: Finding) -> str:
    named = [_entry(one) for one in finding.receipts[:SHOWN_ENTRIES_MAX]]
    more = len(finding.receipts) - len(named)
    return " and ".join([*named, *([f"{more} more entries"] if more > 0 else [])])


def _entry(one: Receipt) -> str:
    return f"{money(one.amount, currency=one.currency)} on {day_in_words(one.value_on)}"


def _where(finding: Finding) -> str:
    one = finding.receipts[0]
    return f"entry {one.entry_no} of statement {one.statement_no}"


def _rate(finding: Finding) -> str:
    assert finding.rate is not None  # noqa: S101 - a break of this code was held against one
    return finding.rate.words


_WORDS: Mapping[str, Callable[[Finding], str]] = {
    "paid": _paid,
    "came": _came,
    "gap": lambda finding: money(abs(finding.effect), currency=finding.currency),
    "rate": _rate,
    "due": lambda finding: day_in_words(finding.payouts[0].due_on),
    "bank": lambda finding: finding.receipts[0].bank,
    "where": _where,
}
SENTENCES = sentences_of(
    {code: row.say_of_bank for code, row in CODES.items()},
    facts={"effect": int, "has_rate": bool, "date_ahead": bool},
    sayable=_WORDS,
)


LEG = "bank"
"""Of effects and rules: what the bank says."""
WHOLE_AMOUNT = frozenset(
    {BreakCode.PAYOUT_RETURNED, BreakCode.PAYOUT_NOT_AT_BANK, BreakCode.AMBIGUOUS_MATCH}
)
"""Codes that put the whole payout at risk, whatever the effect."""
Row = dict[str, Any]


@dataclass(frozen=True)
class BankResult:
    """What banks say, judged."""

    judged: JudgedStatements
    paired: Paired
    receipts: tuple[Receipt, ...]
    """All entries in scope that count or wait."""
    unserved: tuple[str, ...]
    """Accounts with a payout that no bank of the rules serves."""
    notes: tuple[str, ...] = ()
    ids: Mapping[str, Finding] = field(default_factory=dict)
    """Break or match id -> what became of it."""
    shown: Mapping[str, Finding] = field(default_factory=dict)
    """Those of `ids` that this reconciliation shows; a night shows what is of its account."""
    night: NightOfBank | None = None
    reopens: Mapping[str, str] = field(default_factory=dict)
    found: Arrays = field(default_factory=lambda: found_of(()))
    """FOUND of those that are shown."""


def judge_bank(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> BankResult | None:
    """The payouts against the statements; None where no statements were given."""
    source: BankSource | None = sources.bank
    if source is None:
        return None
    day, night = business_date(as_of, rules=rules), source.night
    judged = judge_statements(source, rules=rules, day=day)
    lines = sources.settlement
    if lines is None:
        lines = frame_of([], columns=SETTLEMENT_COLUMNS)
    every = lines if night is None else night.payouts
    payouts, unserved = expected_payouts(paid_out(every), rules=rules, covers=judged.covers)
    owners = _owners([lines, every])
    receipts = receipts_of(source, judged=judged, batches=owners, rules=rules)
    named = named_receipts(receipts, payouts=payouts, owners=owners, rules=rules)
    covers = _known_covers(judged.covers, night=night)
    paired = pair(payouts, named, covers=covers, rules=rules, day=day.isoformat())
    result = BankResult(judged, paired, receipts, unserved, source.notes, night=night)
    ids, reopens = _ids(result, previous=previous)
    mine = "" if night is None else "/".join(night.account)
    own = {
        one: found
        for one, found in ids.items()
        if night is None or shown_by(found, rules=rules) == night.account
    }
    books = sources.ledger is not None
    rows = (_row(one, found, night=night, rules=rules, books=books) for one, found in own.items())
    return replace(
        result,
        ids=ids,
        shown=own,
        reopens={one: before for one, before in reopens.items() if one in own},
        unserved=tuple(account for account in unserved if account == mine or night is None),
        found=found_of(rows),
    )


def _owners(several: Sequence[pd.DataFrame]) -> dict[str, tuple[str, str]]:
    """Every batch id, case-folded, with an account that has it."""
    owners: set[tuple[str, str, str]] = set()
    for lines in several:
        cells = (lines[name].tolist() for name in ("batch_id", "merchant_id", "account_id"))
        owners |= {*zip(*cells, strict=True)}
    return {
        batch.casefold(): (merchant, account)
        for batch, merchant, account in sorted(owners, reverse=True)
    }


def _known_covers(covers: Mapping[str, Cover], *, night: NightOfBank | None) -> dict[str, Cover]:
    """Up to which day an entry that names nothing can be judged: all payouts must be known."""
    if night is None:
        return {**covers}
    return {
        name: replace(cover, to_day=min(cover.to_day, night.known_to.get(name, cover.to_day)))
        for name, cover in covers.items()
    }


def shown_by(found: Finding, *, rules: Rules) -> tuple[str, str]:
    """The account whose night shows a finding: its own, else the first that the bank serves."""
    if found.payouts:
        return found.payouts[0].merchant_id, found.payouts[0].account_id
    bank = rules.bank[found.receipts[0].bank]
    if found.account in bank.served:
        return found.account
    merchant, _, account = bank.accounts[0].partition("/")
    return merchant, account


def _row(
    one: str, found: Finding, *, night: NightOfBank | None, rules: Rules, books: bool
) -> dict[str, Any]:
    """A finding as a row of the result; `books`: whether a ledger was compared."""
    broken = found.state is SetState.BREAK
    merchant, account = found.account
    since, due_at, is_shown = "", NO_INSTANT, True
    if found.payouts:
        first = found.payouts[0]
        merchant, account, since = first.merchant_id, first.account_id, first.settled_on
        if found.state is SetState.PENDING:
            closes = rules.business_calendar.closes_at(date.fromisoformat(first.due_on))
            due_at = microseconds(closes)
        last = max(paid.settled_on for paid in found.payouts)
        is_shown = night is None or last >= night.shown_since
    elif broken:
        since = found.receipts[0].booked_on
    whole = abs(found.payouts[0].paid) if found.payouts else 0
    if any(paid.currency != found.currency for paid in found.payouts):
        whole = abs(found.bank_amount)  # in the currency of the break
    return {
        "id": one,
        "merchant_id": merchant,
        "account_id": account,
        "currency": found.currency,
        "state": found.state.value,
        "code": found.code.value if broken and found.code else "",
        "flags": ";".join(sorted(found.flags)),
        "rule": LEG if is_shown else "",
        "leg": LEG,
        "effect": found.effect,
        "effect_orders": 0 if broken else NO_AMOUNT,
        "effect_ledger": 0 if broken and books else NO_AMOUNT,
        "effect_bank": found.effect,
        "bank_amount": found.bank_amount,
        "exposure": whole if found.code in WHOLE_AMOUNT else abs(found.effect) or whole,
        "owed_to": "merchant" if found.effect < 0 else "none",
        "since": since,
        "due_at": due_at,
        "expected_side": LEG,
        "reason": reason_of(found) if broken else "",
        "about": about_of(found) if broken else "",
    }


def _ids(
    result: BankResult, *, previous: Previous | None
) -> tuple[dict[str, Finding], dict[str, str]]:
    """The id of each finding: of a key that closed before it is the next one."""
    closed = previous.closed if previous is not None else frozenset()
    ids: dict[str, Finding] = {}
    reopens: dict[str, str] = {}
    for place, found in _keyed(result.paired):
        # Where a bank numbers all its statements alike, two entries of a year may bear one name.
        own, last = next_id(place, closed=closed, taken=ids)
        ids[own] = found
        if last and found.state is SetState.BREAK:
            reopens[own] = last
    return ids, reopens


def _keyed(paired: Paired) -> Iterator[tuple[tuple[str, str, str], Finding]]:
    for found in paired.findings:
        first = found.payouts[0]
        yield (first.merchant_id, first.account_id, first.key), found
    for found in paired.unknown:
        (one,) = found.receipts
        yield (*found.account, one.key), found
