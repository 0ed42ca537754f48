"""Turns findings about payouts and bank entries into rows of the result, and into frames.

A break of a payout has the id that the ledger comparison gives it, so that one payout is one break.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.pairing import (
    FACTS,
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
from recon.matching.breaks.result_rows import (
    NO_AMOUNT,
    Comparison,
    found_rows,
    identified,
)
from recon.matching.classifying.sentences import Clause, amount_of, money
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, columns_of
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.matching.frames.grouping import NO_INSTANT, microseconds
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, Basis, Sources, frame_of
from recon.matching.sides.settlement_side import BATCH, is_payout, paid_out
from recon.model.business_date import day_text
from recon.model.terms import BreakCode, SetState

DISPLAYED_ENTRIES_MAX = 3
"""Entries of one break that its sentence shows; the others are counted."""


def about_of(finding: Finding) -> str:
    """Return the batches of a finding; for an unexpected entry, which entry it is."""
    return " ".join(one.batch_id for one in finding.payouts) or _where(finding)


def _paid(finding: Finding) -> str:
    named = [
        f"{one.batch_id} of {money(one.paid, currency=one.currency)}" for one in finding.payouts
    ]
    label = "batch" if len(named) == 1 else "batches"
    return f"{label} {' and '.join(named)}, settled on {day_text(finding.payouts[0].settled_on)}"


def _received_text(finding: Finding) -> str:
    named = [_entry(one) for one in finding.receipts[:DISPLAYED_ENTRIES_MAX]]
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


_CLAUSES: Mapping[str, Clause] = {
    "paid": _paid,
    "came": _received_text,
    "gap": amount_of("effect", unsigned=True),
    "rate": _rate,
    "due": lambda finding: day_text(finding.payouts[0].due_on),
    "bank": lambda finding: finding.receipts[0].bank,
    "where": _where,
}
_FINDINGS = Comparison(
    "bank",
    facts=FACTS,
    clauses=_CLAUSES,
)


LEG = "bank"
"""Leg of effects and match rule of the bank comparison."""
Row = dict[str, Any]


@dataclass(frozen=True)
class BankResult:
    """The classified comparison with the banks."""

    classified: ClassifiedStatements
    paired: Paired
    receipts: tuple[Receipt, ...]
    """All entries in scope that count or wait."""
    unserved: tuple[str, ...]
    """Accounts with a payout that no bank of the rules serves."""
    notes: tuple[str, ...] = ()
    ids: Mapping[str, Finding] = field(default_factory=dict)
    """Break or match id -> its finding."""
    reported: frozenset[str] = frozenset()
    """Those of `ids` that this reconciliation shows; a nightly run shows its account's."""
    night: NightOfBank | None = None
    reopens: Mapping[str, str] = field(default_factory=dict)
    found: Arrays = field(default_factory=lambda: found_rows({}, size=0))
    """FOUND of those that are shown."""


def classify_bank(sources: Sources, *, basis: Basis) -> BankResult | None:
    """Compare the payouts with the statements; None where no statements were given."""
    source: BankSource | None = sources.bank
    if source is None:
        return None
    rules, day, night = basis.rules, basis.today, source.night
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
    findings = [*paired.findings, *paired.unknown]
    rows = _rows(findings, night=night, rules=rules, has_ledger=sources.ledger is not None)
    found, reopens = identified(rows, previous=basis.previous)
    names = ("state", "code", "flags", "effect")
    ids = {
        own: replace(one, **dict(zip(names, cells, strict=True)))
        for one, (own, *cells) in zip(findings, found.rows("id", *names), strict=True)
    }
    mine = [
        night is None or reporting_account(one, rules=rules) == night.account for one in findings
    ]
    found = found.take(np.array(mine, dtype=np.bool_))
    reported = frozenset(found["id"].tolist())
    if night is not None:
        unserved = tuple(account for account in unserved if account == "/".join(night.account))
    return BankResult(
        classified,
        paired,
        receipts,
        unserved,
        source.notes,
        ids=ids,
        reported=reported,
        night=night,
        reopens={own: before for own, before in reopens.items() if own in reported},
        found=found,
    )


def _owners(several: Sequence[pd.DataFrame]) -> dict[str, tuple[str, str]]:
    """Return every batch id, case-folded, with an account that has it."""
    owners: set[tuple[str, str, str]] = set()
    for lines in several:
        cells = (lines[name].tolist() for name in ("batch_id", "merchant_id", "account_id"))
        owners |= {*zip(*cells, strict=True)}
    return {
        batch.casefold(): (merchant, account)
        for batch, merchant, account in sorted(owners, reverse=True)
    }


def _known_covers(covers: Mapping[str, Cover], *, night: NightOfBank | None) -> dict[str, Cover]:
    """Limit covers to the day up to which all payouts are known, which unnamed entries need."""
    if night is None:
        return {**covers}
    return {
        name: replace(cover, to_day=min(cover.to_day, night.known_to.get(name, cover.to_day)))
        for name, cover in covers.items()
    }


def reporting_account(found: Finding, *, rules: Rules) -> tuple[str, str]:
    """Return the account whose run shows a finding: its own, else the first of the bank."""
    if found.payouts:
        return found.payouts[0].merchant_id, found.payouts[0].account_id
    bank = rules.bank[found.receipts[0].bank]
    if found.account in bank.served:
        return found.account
    merchant, _, account = bank.accounts[0].partition("/")
    return merchant, account


def _rows(
    findings: Sequence[Finding], *, night: NightOfBank | None, rules: Rules, has_ledger: bool
) -> Arrays:
    """Return FOUND of each finding; `has_ledger`: whether a ledger was compared."""
    facts = [one.facts for one in findings]
    cells = [_cells(one, night=night, rules=rules) for one in findings]
    found = _FINDINGS.found(
        {
            **{name: np.array([row[name] for row in facts], dtype=np.bool_) for name in FACTS},
            "unverified": np.zeros(len(findings), dtype=np.int64),
        },
        columns={
            **{name: [row[name] for row in cells] for name in (cells[0] if cells else ())},
            "leg": LEG,
        },
        more={
            name: [getattr(one, name) for one in findings]
            for name in ("payouts", "receipts", "rate")
        },
    )
    # Pending findings have no effect yet.
    broken = found["code"] != ""
    effect, whole = np.where(broken, found["effect"], 0), found["exposure"]
    at_risk = np.array([CODES[BreakCode(code)].risk if code else "" for code in found["code"]])
    is_whole = (effect == 0) | (at_risk == "amount")
    return found.assign(
        effect=effect,
        effect_bank=effect,
        effect_orders=np.where(broken, 0, NO_AMOUNT),
        effect_ledger=np.where(broken & has_ledger, 0, NO_AMOUNT),
        exposure=np.where(is_whole, whole, np.abs(effect)),
        owed_to=np.where(effect < 0, "merchant", "none").astype(object),
    )


def _cells(found: Finding, *, night: NightOfBank | None, rules: Rules) -> Row:
    """Return the shown columns of a finding in any state; its exposure is the whole payout."""
    cells: Row = {
        "rule": LEG,
        "currency": found.currency,
        "effect": found.effect,
        "bank_amount": found.bank_amount,
        "due_at": NO_INSTANT,
        "about": about_of(found),
    }
    if not found.payouts:
        entry, (merchant, account) = found.receipts[0], found.account
        own = {"key": entry.key, "since": entry.booked_on, "exposure": 0}
        return {**cells, **own, "merchant_id": merchant, "account_id": account}
    first, whole = found.payouts[0], abs(found.payouts[0].paid)
    if any(paid.currency != found.currency for paid in found.payouts):
        whole = abs(found.bank_amount)  # in the currency of the break
    if not found.overdue:
        closes = rules.business_calendar.closes_at(date.fromisoformat(first.due_on))
        cells["due_at"] = microseconds(closes)
    if night is not None and max(paid.settled_on for paid in found.payouts) < night.shown_since:
        cells["rule"] = ""
    return {
        **cells,
        "key": first.key,
        "merchant_id": first.merchant_id,
        "account_id": first.account_id,
        "since": first.settled_on,
        "exposure": whole,
    }


IN_TRANSIT, OPENING, CHARGES, EXCHANGED, AT_RATE, ALLOWED, OTHER_ACCOUNT = (
    *("in transit", "opening", "charges", "exchanged", "exchanged at a rate"),
    *("allowed by the rate", "effect of another account"),
)
"""Parts of the difference between paid out and received, in addition to the effects shown."""
WAITING, LISTED = "WAITING", "OPENING"
"""States in addition to those of sets: an entry not compared yet, a payout from before."""


def bank_frames(
    source: BankSource | None, *, result: BankResult | None, settlement: pd.DataFrame | None
) -> dict[str, pd.DataFrame]:
    """Return BANK_TABLES by name; empty without statements.

    Args:
        source: the statements.
        result: the comparison with them.
        settlement: SETTLEMENT_COLUMNS, for gross and fees of each batch.
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
    """Return bank -> the ISO date up to which statements that prove each other cover it.

    Args:
        counted: the table of this name.
    """
    proven = counted[counted["place"].ge(0)]
    return {str(bank): str(day) for bank, day in proven.groupby("bank")["to_date"].max().items()}


def _counted(source: BankSource, *, result: BankResult) -> Iterator[Row]:
    """Yield every statement with its place in its bank's proven chain, -1 where it has none."""
    positions = {
        number: place
        for cover in result.classified.covers.values()
        for place, number in enumerate(cover.counted)
    }
    for number in range(len(source.statements)):
        bank = result.classified.banks.get(number, "")
        own = asdict(source.statements[number])
        named = {name: own[name] for name in columns_of(COUNTED) if name in own}
        yield {**named, "number": number, "bank": bank, "place": positions.get(number, -1)}


def _paid_rows(result: BankResult, *, settlement: pd.DataFrame | None) -> Iterator[Row]:
    lines = _lines_of_batches(settlement)
    nothing = {"bank_amount": None, "effect": 0, "charges": 0, "value_on": ""}
    newest: dict[int, str] = {}
    for payout in result.paired.opening:
        named = {"state": LISTED, "code": "", "flags": "", "result_id": ""}
        yield {**_payout(payout, lines=lines), **nothing, **named}
    for own, found in result.ids.items():
        named = {
            "state": found.state,
            "code": found.code,
            "flags": found.flags,
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
    """Return one payout's share of a finding: the first payout bears the difference."""
    bears = of == found.payouts[0]
    received = found.bank_amount - sum(one.paid for one in found.payouts[1:]) if bears else of.paid
    return {
        "bank_amount": received if of.currency == found.currency else None,
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
    """Return the gross and fee sums of each batch's lines; a payout of ours counts as a line."""
    if lines is None:
        return {}
    rows = lines[~is_payout(lines)]
    sums = rows.groupby([*BATCH])[["gross", "fee"]].sum().reset_index()
    return {(*batch,): (gross, fee) for *batch, gross, fee in sums.itertuples(index=False)}


def _received(result: BankResult) -> Iterator[Row]:
    """Yield each entry in scope once, with the first result that it is part of."""
    states: dict[Receipt, tuple[str, str]] = dict.fromkeys(result.paired.waiting, (WAITING, ""))
    seen: set[int] = set()
    for own, found in result.ids.items():
        entries = () if id(found.receipts) in seen else found.receipts
        seen.add(id(found.receipts))
        for receipt in entries:
            states.setdefault(receipt, (found.state, own))
    for receipt in result.receipts:
        state, own = states.get(receipt, ("", ""))
        cells = {name: getattr(receipt, name, None) for name in columns_of(RECEIVED)}
        yield {**cells, "state": state, "result_id": own}


def _explained(result: BankResult) -> Iterator[Row]:
    for payout in result.paired.opening:
        yield _part(payout.bank, payout.currency, OPENING, payout.paid)
    for own, found in result.ids.items():
        bank = found.payouts[0].bank if found.payouts else found.receipts[0].bank
        for what, currency, amount in _parts(found, is_reported=own in result.reported):
            if amount:
                yield _part(bank, currency, what, amount, result_id=own)


def _part(bank: str, currency: str, what: str, amount: int, *, result_id: str = "") -> Row:
    named = {"bank": bank, "currency": currency, "what": what, "result_id": result_id}
    return {**named, "amount": amount}


def _parts(found: Finding, *, is_reported: bool) -> Iterator[tuple[str, str, int]]:
    if found.state == SetState.PENDING:
        yield IN_TRANSIT, found.currency, sum(payout.paid for payout in found.payouts)
    yield CHARGES, found.currency, found.charges
    yield OPENING, found.currency, found.opening
    for currency, amount in found.exchanged:
        yield AT_RATE if found.has_rate else EXCHANGED, currency, amount
    yield ALLOWED, found.currency, -found.allowed
    if not is_reported:
        yield OTHER_ACCOUNT, found.currency, -found.effect
