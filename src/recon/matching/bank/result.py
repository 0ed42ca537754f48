"""The bank's part of a reconciliation: pay-outs and entries as rows of the result.

A break of a pay-out has the id that the books give it, so that one pay-out is one break.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from recon.matching.breaks.movements import Fate
from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
)
from recon.matching.breaks.result_rows import (
    OPEN_SORTED_BY,
    SORTED_BY,
    Frames,
    business_date,
    id_of_text,
)
from recon.matching.causes.reasons import in_words, sentences_of
from recon.matching.codes import CODES
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.matching.frames.sorting import in_order
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, Previous, Sources, frame_of
from recon.matching.judging.severity import graver, money_at_risk, severity_of
from recon.matching.sides.settlement_side import paid_out
from recon.model.money import format_minor_units
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


LEG = "bank"
"""Of effects and rules: what the bank says."""
WHOLE_AMOUNT = frozenset(
    {BreakCode.PAYOUT_RETURNED, BreakCode.PAYOUT_NOT_AT_BANK, BreakCode.AMBIGUOUS_MATCH}
)
"""Codes that put the whole pay-out at risk, whatever the effect."""
_NO_STATE = "none"
Row = dict[str, Any]


@dataclass(frozen=True)
class BankResult:
    """What banks say, judged."""

    judged: JudgedStatements
    paired: Paired
    receipts: tuple[Receipt, ...]
    """All entries in scope that count or wait."""
    unserved: tuple[str, ...]
    """Accounts with a pay-out that no bank of the rules serves."""
    notes: tuple[str, ...] = ()
    ids: Mapping[str, Finding] = field(default_factory=dict)
    """Break or match id -> what became of it."""
    shown: Mapping[str, Finding] = field(default_factory=dict)
    """Those of `ids` that this reconciliation shows; a night shows what is of its account."""
    night: NightOfBank | None = None
    reopens: Mapping[str, str] = field(default_factory=dict)


def judge_bank(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> BankResult | None:
    """The pay-outs against the statements; None where no statements were given."""
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
    if night is None:
        return replace(result, ids=ids, shown=ids, reopens=reopens)
    own = {
        one: found for one, found in ids.items() if shown_by(found, rules=rules) == night.account
    }
    mine = "/".join(night.account)
    return replace(
        result,
        ids=ids,
        shown=own,
        reopens={one: before for one, before in reopens.items() if one in own},
        unserved=tuple(account for account in unserved if account == mine),
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
    """Up to which day an entry that names nothing can be judged: all pay-outs must be known."""
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


def with_bank(
    frames: Frames,
    result: BankResult | None,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
    books: bool,
) -> Frames:
    """The frames with the rows of the bank; of a pay-out that is a break already it is one break.

    Args:
        frames: of everything else.
        result: of the bank.
        rules: severity and calendar.
        as_of: the instant that is judged.
        previous: since when a break is known.
        books: whether a ledger was compared.
    """
    if result is None:
        return frames
    broken = {one: found for one, found in result.shown.items() if found.state is SetState.BREAK}
    terms: Row = {"rules": rules, "as_of": as_of, "seen": first_seen(previous), "books": books}
    fresh = [_break_row(one, found, **terms) for one, found in broken.items()]
    breaks = _joined_breaks(frames.breaks, fresh)
    effects = [_effect_row(one, found) for one, found in broken.items() if found.effect]
    calm = [
        _match_row(one, found)
        for one, found in result.shown.items()
        if found.state is SetState.MATCHED and _is_recent(found, night=result.night)
    ]
    waiting = [
        _pending_row(one, found, rules=rules)
        for one, found in result.shown.items()
        if found.state is SetState.PENDING
    ]
    by_effect = ["merchant_id", "account_id", "break_id", "leg", "currency"]
    return Frames(
        breaks=breaks,
        effects=appended(frames.effects, effects, names=EFFECT_COLUMNS, by=by_effect),
        matches=appended(frames.matches, calm, names=MATCH_COLUMNS, by=OPEN_SORTED_BY),
        pending=appended(frames.pending, waiting, names=PENDING_COLUMNS, by=OPEN_SORTED_BY),
        unverified=frames.unverified,
    )


def fates_of_bank(result: BankResult | None) -> dict[str, Fate]:
    """What became of every id of the bank, for the roll-forward."""
    if result is None:
        return {}
    return {
        one: Fate(found.state, ";".join(sorted(found.flags)), hosted=False)
        for one, found in result.shown.items()
    }


def _is_recent(found: Finding, *, night: NightOfBank | None) -> bool:
    return night is None or max(one.settled_on for one in found.payouts) >= night.shown_since


def _ids(
    result: BankResult, *, previous: Previous | None
) -> tuple[dict[str, Finding], dict[str, str]]:
    """The id of each finding: of a key that closed before it is the next one."""
    closed = previous.closed if previous is not None else frozenset()
    ids: dict[str, Finding] = {}
    reopens: dict[str, str] = {}
    for place, found in _keyed(result.paired):
        number, own, last = 1, "", ""
        # Where a bank numbers all its statements alike, two entries of a year may bear one name.
        while not own or own in closed or own in ids:
            last, own = own, id_of_text("\x1f".join((*place, str(number))))
            number += 1
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
        key = f"bank:{one.iban}:{one.year}:{one.statement_no}:{one.entry_no}"
        yield (*found.account, key), found


def _account(found: Finding) -> Row:
    merchant, account = found.account
    if found.payouts:
        merchant, account = found.payouts[0].merchant_id, found.payouts[0].account_id
    return {"merchant_id": merchant, "account_id": account}


def _break_row(
    one: str,
    found: Finding,
    *,
    rules: Rules,
    as_of: datetime,
    seen: Mapping[str, str],
    books: bool,
) -> Row:
    code = found.code
    assert code is not None  # noqa: S101 - every break has one
    today = business_date(as_of, rules=rules)
    exchanged = any(one.currency != found.currency for one in found.payouts)
    whole = abs(found.payouts[0].paid) if found.payouts else 0
    whole = abs(found.bank_amount) if exchanged else whole  # in the currency of the break
    exposure = whole if code in WHOLE_AMOUNT else abs(found.effect) or whole
    since = found.payouts[0].settled_on if found.payouts else found.receipts[0].booked_on
    age = rules.business_calendar.business_days_between(date.fromisoformat(since), end=today)
    risk = money_at_risk(exposure, effects=(found.effect,))
    severity = severity_of(
        (code,), at_risk=risk, currency=found.currency, age_days=age, rules=rules
    )
    return {
        **_shown(one, found),
        "code": code.value,
        "effect_orders": 0,
        "effect_ledger": 0 if books else None,
        "exposure": exposure,
        "owed_to": "merchant" if found.effect < 0 else _NO_STATE,
        "age_days": age,
        "first_seen": seen.get(one) or today.isoformat(),
        "severity": severity.value,
        "cause": "",
        "reason": reason_of(found),
        "bank_amount": found.bank_amount,
        "effect_bank": found.effect,
        "about": about_of(found),
    }


def first_seen(previous: Previous | None) -> dict[str, str]:
    """Break -> the day on which an earlier night saw it first."""
    if previous is None:
        return {}
    known = zip(
        *(previous.breaks[name].tolist() for name in ("break_id", "first_seen")), strict=True
    )
    days = {**previous.away, **dict(known)}
    return {one: str(day)[:10] for one, day in days.items()}


def _shown(one: str, found: Finding) -> Row:
    """What rows of all kinds have of a finding; the sides that are no bank stay blank."""
    return {
        "break_id": one,
        "match_id": one,
        **_account(found),
        "flags": ";".join(sorted(found.flags)),
        "order_no": "",
        "transaction_id": "",
        "entry_id": "",
        "rule": LEG,
        "state_orders": _NO_STATE,
        "state_gateway": _NO_STATE,
        "currency": found.currency,
        **dict.fromkeys(("order_amount", "gateway_amount", "ledger_amount")),
    }


def _match_row(one: str, found: Finding) -> Row:
    return {**_shown(one, found), "effect_orders": None, "effect_ledger": None}


def _pending_row(one: str, found: Finding, *, rules: Rules) -> Row:
    due = date.fromisoformat(found.payouts[0].due_on)
    row = _match_row(one, found)
    return {**row, "expected_side": LEG, "due_at": rules.business_calendar.closes_at(due)}


def _effect_row(one: str, found: Finding) -> Row:
    told = {"break_id": one, **_account(found), "leg": LEG, "currency": found.currency}
    return {**told, "amount": found.effect}


_JOINED = (*("flags", "bank_amount", "effect_bank", "exposure", "severity", "owed_to", "reason"),)
"""What a break of the books takes over from the one that the bank shows of its pay-out."""


def _joined_breaks(breaks: pd.DataFrame, fresh: Sequence[Row]) -> pd.DataFrame:
    """The breaks with those of the bank; a pay-out that is one by the books stays one.

    It is as grave as the graver of the two, and owed to whom either of them says.
    """
    known = {one: at for at, one in enumerate(breaks["break_id"].tolist())}
    both = [row for row in fresh if row["break_id"] in known]
    # Whole columns: each cell that is written into a frame copies its column.
    cells = {name: breaks[name].tolist() for name in _JOINED}
    for row in both:
        at = known[row["break_id"]]
        flags = {*cells["flags"][at].split(";"), *row["flags"].split(";"), row["code"]}
        cells["flags"][at] = flags_in_order(flags - {""})
        cells["bank_amount"][at] = row["bank_amount"]
        cells["effect_bank"][at] = row["effect_bank"]
        cells["exposure"][at] = max(cells["exposure"][at], row["exposure"])
        cells["severity"][at] = graver(cells["severity"][at], row["severity"])
        if cells["owed_to"][at] == _NO_STATE:
            cells["owed_to"][at] = row["owed_to"]
        cells["reason"][at] = f"{cells['reason'][at]} {row['reason']}"
    if both:
        columns = {
            name: pd.Series(values, index=breaks.index, dtype=breaks[name].dtype)
            for name, values in cells.items()
        }
        breaks = breaks.assign(**columns)
    alone = [row for row in fresh if row["break_id"] not in known]
    return appended(breaks, alone, names=BREAK_COLUMNS, by=[*SORTED_BY, "code", "break_id"])


def flags_in_order(flags: Iterable[str]) -> str:
    """Codes as the contract lists them, then words."""
    codes = [code.value for code in BreakCode]
    words = sorted(
        flags, key=lambda one: (one not in codes, codes.index(one) if one in codes else 0, one)
    )
    return ";".join(words)


def appended(
    frame: pd.DataFrame, rows: Sequence[Row], *, names: tuple[str, ...], by: list[str]
) -> pd.DataFrame:
    """A frame of the result with more rows, in its order."""
    if not rows:
        return frame
    more = pd.DataFrame(
        {name: _column(name, [row[name] for row in rows], like=frame[name]) for name in names}
    )
    if not len(frame):
        return in_order(more, by=by)
    return in_order(pd.concat([frame, more], ignore_index=True), by=by)


def _column(name: str, cells: list[Any], *, like: "pd.Series[Any]") -> "pd.Series[Any]":
    kind: Any = like.dtype
    if name in AMOUNT_COLUMNS:
        cells = [pd.NA if one is None else one for one in cells]
    column: pd.Series[Any] = pd.Series(cells, dtype=kind)
    return column
