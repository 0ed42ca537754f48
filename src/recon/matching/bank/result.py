"""The bank's part of a reconciliation: payouts and entries as rows of the result, and as frames.

A break of a payout has the id that the books give it, so that one payout is one break.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.pairing import (
    Finding,
    Paired,
    Payout,
    expected_payouts,
    named_receipts,
    pair,
)
from recon.matching.bank.receipts import Receipt, receipts_of
from recon.matching.bank.statements import ClassifiedStatements, Cover, classify_statements
from recon.matching.breaks.result import COUNTED, EXPLAINED, PAID, RECEIVED
from recon.matching.breaks.result_rows import NO_AMOUNT, business_date, found_of, identified
from recon.matching.causes.reasons import money, sentence_text, sentences_of
from recon.matching.classifying.severity import microseconds
from recon.matching.classifying.table import classified_by, rows_of
from recon.matching.codes import CODES, TABLE
from recon.matching.frames.arrays import Arrays, columns_of
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.matching.frames.coding import placed
from recon.matching.frames.grouping import NO_INSTANT, amounts_of, total
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, Previous, Sources, frame_of
from recon.matching.sides.settlement_side import BATCH, paid_out, pay_outs
from recon.model.business_date import day_text
from recon.model.terms import BreakCode, SetState

SHOWN_ENTRIES_MAX = 3
"""Entries of one break that its sentence shows; the others are counted."""


def reason_of(finding: Finding) -> str:
    """The sentence of a break of the bank: dates and amounts."""
    assert finding.code is not None  # noqa: S101 - only breaks are asked
    return sentence_text(SENTENCES[finding.code], facts=finding, labels=_LABELS)


def about_of(finding: Finding) -> str:
    """Of which batches a finding is; of an entry that nobody expects, which."""
    return " ".join(one.batch_id for one in finding.payouts) or _where(finding)


def _paid(finding: Finding) -> str:
    named = [
        f"{one.batch_id} of {money(one.paid, currency=one.currency)}" for one in finding.payouts
    ]
    label = "batch" if len(named) == 1 else "batches"
    return f"{label} {' and '.join(named)}, settled on {day_text(finding.payouts[0].settled_on)}"


def _came(finding: Finding) -> str:
    named = [_entry(one) for one in finding.receipts[:SHOWN_ENTRIES_MAX]]
    more = len(finding.receipts) - len(named)
    return " and ".join([*named, *([f"{more} more entries"] if more > 0 else [])])


def _entry(one: Receipt) -> str:
    return f"{money(one.amount, currency=one.currency)} on {day_text(one.value_on)}"


def _where(finding: Finding) -> str:
    one = finding.receipts[0]
    return f"entry {one.entry_no} of statement {one.statement_no}"


def _rate(finding: Finding) -> str:
    assert finding.rate is not None  # noqa: S101 - a break of this code was held against one
    return finding.rate.text


_LABELS: Mapping[str, Callable[[Finding], str]] = {
    "paid": _paid,
    "came": _came,
    "gap": lambda finding: money(abs(finding.effect), currency=finding.currency),
    "rate": _rate,
    "due": lambda finding: day_text(finding.payouts[0].due_on),
    "bank": lambda finding: finding.receipts[0].bank,
    "where": _where,
}
SENTENCES = sentences_of(
    {code: row.say_of_bank for code, row in CODES.items()},
    facts={"effect": int, "has_rate": bool, "date_ahead": bool},
    sayable=_LABELS,
)


LEG = "bank"
"""Of effects and rules: what the bank says."""
Row = dict[str, Any]


@dataclass(frozen=True)
class BankResult:
    """What banks say, judged."""

    classified: ClassifiedStatements
    paired: Paired
    receipts: tuple[Receipt, ...]
    """All entries in scope that count or wait."""
    unserved: tuple[str, ...]
    """Accounts with a payout that no bank of the rules serves."""
    notes: tuple[str, ...] = ()
    ids: Mapping[str, Finding] = field(default_factory=dict)
    """Break or match id -> what became of it."""
    shown: frozenset[str] = frozenset()
    """Those of `ids` that this reconciliation shows; a night shows what is of its account."""
    night: NightOfBank | None = None
    reopens: Mapping[str, str] = field(default_factory=dict)
    found: Arrays = field(default_factory=lambda: found_of(()))
    """FOUND of those that are shown."""


def classify_bank(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> BankResult | None:
    """The payouts against the statements; None where no statements were given."""
    source: BankSource | None = sources.bank
    if source is None:
        return None
    day, night = business_date(as_of, rules=rules), source.night
    classified = classify_statements(source, rules=rules, day=day)
    lines = sources.settlement
    if lines is None:
        lines = frame_of([], columns=SETTLEMENT_COLUMNS)
    every = lines if night is None else night.payouts
    payouts, unserved = expected_payouts(paid_out(every), rules=rules, covers=classified.covers)
    owners = _owners([lines, every])
    receipts = receipts_of(source, classified=classified, batches=owners, rules=rules)
    named = named_receipts(receipts, payouts=payouts, owners=owners, rules=rules)
    covers = _known_covers(classified.covers, night=night)
    paired = pair(payouts, named, covers=covers, rules=rules, day=day.isoformat())
    findings = _coded([*paired.findings, *paired.unknown])
    books = sources.ledger is not None
    rows = (_row(found, night=night, rules=rules, books=books) for found in findings)
    found, reopens = identified(found_of(rows), previous=previous)
    ids = dict(zip(found["id"].tolist(), findings, strict=True))
    mine = [night is None or shown_by(one, rules=rules) == night.account for one in findings]
    found = found.take(np.array(mine, dtype=np.bool_))
    shown = frozenset(found["id"].tolist())
    if night is not None:
        unserved = tuple(account for account in unserved if account == "/".join(night.account))
    return BankResult(
        classified,
        paired,
        receipts,
        unserved,
        source.notes,
        ids=ids,
        shown=shown,
        night=night,
        reopens={own: before for own, before in reopens.items() if own in shown},
        found=found,
    )


_FACTS = ("unclear", "by_rate", "has_rate", "returned", "twice")
FACTS: Mapping[str, type] = dict.fromkeys(
    (*_FACTS, "expected", "received", "differs", "late_payout_to_bank"), bool
)
"""What codes.toml may ask of a payout or an entry: see pairing.Finding; `expected`: a payout says
it, `received`: an entry does, `differs`: there is an effect that nothing explains."""
ROWS = rows_of(TABLE, of="bank", facts=FACTS)


def _coded(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with their state and code; of one that waits there is no effect yet."""
    columns = {name: [getattr(one, name) for one in findings] for name in _FACTS}
    columns |= {
        "expected": [bool(one.payouts) for one in findings],
        "received": [bool(one.receipts) for one in findings],
        "differs": [one.effect != 0 for one in findings],
        "late_payout_to_bank": [one.overdue for one in findings],
        "unverified": [False] * len(findings),
    }
    facts = {name: np.array(cells, dtype=np.bool_) for name, cells in columns.items()}
    classified = classified_by(ROWS, facts=facts)
    return [
        replace(
            found,
            state=SetState(state),
            code=BreakCode(code) if code else None,
            effect=found.effect if code else 0,
        )
        for found, state, code in zip(
            findings, classified.of_each("state"), classified.codes(), strict=True
        )
    ]


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


def _row(found: Finding, *, night: NightOfBank | None, rules: Rules, books: bool) -> dict[str, Any]:
    """A finding as a row of the result; `books`: whether a ledger was compared."""
    broken = found.state is SetState.BREAK
    merchant, account = found.account
    key, since, due_at, is_shown = "", "", NO_INSTANT, True
    if found.payouts:
        first = found.payouts[0]
        merchant, account, since = first.merchant_id, first.account_id, first.settled_on
        key = first.key
        if found.state is SetState.PENDING:
            closes = rules.business_calendar.closes_at(date.fromisoformat(first.due_on))
            due_at = microseconds(closes)
        last = max(paid.settled_on for paid in found.payouts)
        is_shown = night is None or last >= night.shown_since
    else:
        key, since = found.receipts[0].key, found.receipts[0].booked_on
    at_risk = CODES[found.code].risk if found.code else "effect"
    whole = abs(found.payouts[0].paid) if found.payouts else 0
    if any(paid.currency != found.currency for paid in found.payouts):
        whole = abs(found.bank_amount)  # in the currency of the break
    return {
        "key": key,
        "merchant_id": merchant,
        "account_id": account,
        "currency": found.currency,
        "state": found.state.value,
        "code": found.code.value if found.code else "",
        "flags": ";".join(sorted(found.flags)),
        "rule": LEG if is_shown else "",
        "leg": LEG,
        "effect": found.effect,
        "effect_orders": 0 if broken else NO_AMOUNT,
        "effect_ledger": 0 if broken and books else NO_AMOUNT,
        "effect_bank": found.effect,
        "bank_amount": found.bank_amount,
        "exposure": whole if at_risk == "amount" else abs(found.effect) or whole,
        "owed_to": "merchant" if found.effect < 0 else "none",
        "since": since,
        "due_at": due_at,
        "expected_side": LEG,
        "reason": reason_of(found) if broken else "",
        "about": about_of(found) if broken else "",
    }


IN_TRANSIT, OPENING, CHARGES, EXCHANGED, AT_RATE, ALLOWED, ELSEWHERE = (
    *("in transit", "opening", "charges", "exchanged", "exchanged at a rate"),
    *("allowed by the rate", "effect shown elsewhere"),
)
"""What the difference between paid out and received is made of, beside the effects shown."""
WAITING, LISTED = "WAITING", "OPENING"
"""States beside those of sets: an entry that is not judged yet, a payout from before."""


def bank_frames(
    source: BankSource | None, *, result: BankResult | None, settlement: pd.DataFrame | None
) -> dict[str, pd.DataFrame]:
    """BANK_TABLES by name; none without statements.

    Args:
        source: the statements.
        result: what they came to.
        settlement: SETTLEMENT_COLUMNS, for what was paid out less what was kept.
    """
    if source is None or result is None:
        return {}
    rows = {
        COUNTED: _counted(source, result=result),
        PAID: _paid_rows(result, settlement=settlement),
        RECEIVED: _received(result),
        EXPLAINED: _explained(result),
    }
    return {name: frame_of(cells, columns=columns_of(name)) for name, cells in rows.items()}


def covered_to(counted: pd.DataFrame) -> dict[str, str]:
    """Bank -> up to which ISO date statements that prove each other cover it; not the others.

    Args:
        counted: the table of this name.
    """
    proven = counted[counted["place"].ge(0)]
    return {str(bank): str(day) for bank, day in proven.groupby("bank")["to_date"].max().items()}


def _counted(source: BankSource, *, result: BankResult) -> Iterator[Row]:
    """Every statement with its place in the proven chain of its bank, -1 where it has none."""
    places = {
        number: place
        for cover in result.classified.covers.values()
        for place, number in enumerate(cover.counted)
    }
    for number in range(len(source.statements)):
        bank = result.classified.banks.get(number, "")
        own = asdict(source.statements[number])
        named = {name: own[name] for name in columns_of(COUNTED) if name in own}
        yield {**named, "number": number, "bank": bank, "place": places.get(number, -1)}


def _paid_rows(result: BankResult, *, settlement: pd.DataFrame | None) -> Iterator[Row]:
    lines = _lines_of_batches(settlement)
    nothing = {"bank_amount": None, "effect": 0, "charges": 0, "value_on": ""}
    newest: dict[int, str] = {}
    for payout in result.paired.opening:
        named = {"state": LISTED, "code": "", "flags": "", "result_id": ""}
        yield {**_payout(payout, lines=lines), **nothing, **named}
    for own, found in result.ids.items():
        named = {
            "state": found.state.value,
            "code": found.code.value if found.code else "",
            "flags": ";".join(sorted(found.flags)),
            "result_id": own,
        }
        # Thousands of payouts may share the entries that any of them may mean.
        entries = id(found.receipts)
        if found.receipts and entries not in newest:
            newest[entries] = max(one.value_on for one in found.receipts)
        for payout in found.payouts:
            share = _share(found, of=payout, on=newest[entries]) if found.receipts else nothing
            yield {**_payout(payout, lines=lines), **named, **share}


def _share(found: Finding, *, of: Payout, on: str) -> Row:
    """What of a finding is told of one of its payouts: the first bears what differs."""
    bears = of == found.payouts[0]
    came = found.bank_amount - sum(one.paid for one in found.payouts[1:]) if bears else of.paid
    return {
        "bank_amount": came if of.currency == found.currency else None,
        "effect": found.effect if bears else 0,
        "charges": found.charges if bears else 0,
        "value_on": on,
    }


def _payout(one: Payout, *, lines: Mapping[tuple[str, ...], tuple[int, int]]) -> Row:
    gross, fees = lines.get(
        (one.merchant_id, one.account_id, one.currency, one.batch_id), (None, None)
    )
    own = {name: getattr(one, name) for name in columns_of(PAID) if hasattr(one, name)}
    return {**own, "gross": gross, "fees": fees, "amount": one.paid}


def _lines_of_batches(lines: pd.DataFrame | None) -> dict[tuple[str, ...], tuple[int, int]]:
    """What the lines of each batch come to, gross and fees; a payout of ours is one of them."""
    if lines is None:
        return {}
    rows = lines[~pay_outs(lines)]
    groups, batches = placed(rows, by=BATCH)
    gross, fees = (
        total(amounts_of(rows[name]), groups=groups, size=len(batches)).tolist()
        for name in ("gross", "fee")
    )
    return dict(zip(batches, zip(gross, fees, strict=True), strict=True))


def _received(result: BankResult) -> Iterator[Row]:
    """Each entry in scope once, with the first result that it is part of."""
    states: dict[Receipt, tuple[str, str]] = dict.fromkeys(result.paired.waiting, (WAITING, ""))
    seen: set[int] = set()
    for own, found in result.ids.items():
        entries = () if id(found.receipts) in seen else found.receipts
        seen.add(id(found.receipts))
        for receipt in entries:
            states.setdefault(receipt, (found.state.value, own))
    for receipt in result.receipts:
        state, own = states.get(receipt, ("", ""))
        cells = {name: getattr(receipt, name, None) for name in columns_of(RECEIVED)}
        yield {**cells, "state": state, "result_id": own}


def _explained(result: BankResult) -> Iterator[Row]:
    for payout in result.paired.opening:
        yield _part(payout.bank, payout.currency, OPENING, payout.paid)
    for own, found in result.ids.items():
        bank = found.payouts[0].bank if found.payouts else found.receipts[0].bank
        for what, currency, amount in _parts(found, is_shown=own in result.shown):
            if amount:
                yield _part(bank, currency, what, amount, result_id=own)


def _part(bank: str, currency: str, what: str, amount: int, *, result_id: str = "") -> Row:
    named = {"bank": bank, "currency": currency, "what": what, "result_id": result_id}
    return {**named, "amount": amount}


def _parts(found: Finding, *, is_shown: bool) -> Iterator[tuple[str, str, int]]:
    if found.state is SetState.PENDING:
        yield IN_TRANSIT, found.currency, sum(payout.paid for payout in found.payouts)
    yield CHARGES, found.currency, found.charges
    yield OPENING, found.currency, found.opening
    for currency, amount in found.exchanged:
        yield AT_RATE if found.has_rate else EXCHANGED, currency, amount
    yield ALLOWED, found.currency, -found.allowed
    if not is_shown:
        yield ELSEWHERE, found.currency, -found.effect
