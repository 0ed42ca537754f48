"""What banks came to, as frames: statements, payouts, entries in scope, the difference.

Columns stand in archive.schemas under the same names; amounts are minor units.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from recon.matching.bank.expected import Payout
from recon.matching.bank.pairing import Finding
from recon.matching.bank.receipts import Receipt
from recon.matching.bank.result import BankResult
from recon.matching.breaks.result import COUNTED, EXPLAINED, PAID, RECEIVED
from recon.matching.frames.arrays import text_column
from recon.matching.frames.bank_sources import BankSource
from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import amounts_of
from recon.matching.sides.settlement_side import BATCH, pay_outs
from recon.model.words import SetState

IN_TRANSIT, OPENING, CHARGES, EXCHANGED, AT_RATE, ALLOWED, ELSEWHERE = (
    *("in transit", "opening", "charges", "exchanged", "exchanged at a rate"),
    *("allowed by the rate", "effect shown elsewhere"),
)
"""What the difference between paid out and received is made of, beside the effects shown."""
WAITING, LISTED = "WAITING", "OPENING"
"""States beside those of sets: an entry that is not judged yet, a payout from before."""
Row = dict[str, Any]
_WHOLE = frozenset({"place", "number", "booked", "amount", "bank_amount", "effect", "charges"})
_BLANK = frozenset({"gross", "fees", "bank_amount", "opening", "closing"})


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
        PAID: _paid(result, settlement=settlement),
        RECEIVED: _received(result),
        EXPLAINED: _explained(result),
    }
    return {name: _frame([*cells], columns=COLUMNS[name]) for name, cells in rows.items()}


COLUMNS: Mapping[str, tuple[str, ...]] = {
    COUNTED: (
        *("number", "bank", "place", "source", "statement_no", "currency"),
        *("from_date", "to_date", "opening", "booked", "closing"),
    ),
    PAID: (
        *("bank", "merchant_id", "account_id", "currency", "batch_id", "settled_on"),
        *("gross", "fees", "amount", "due_on", "state", "code", "flags", "result_id"),
        *("bank_amount", "effect", "charges", "value_on"),
    ),
    RECEIVED: (
        *("bank", "iban", "statement_no", "year", "entry_no", "booked_on", "value_on"),
        *("currency", "amount", "state", "result_id"),
    ),
    EXPLAINED: ("bank", "currency", "what", "result_id", "amount"),
}


def _frame(rows: Sequence[Row], *, columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame({name: _cells([row[name] for row in rows], name=name) for name in columns})


def _cells(cells: list[Any], *, name: str) -> "pd.Series[Any]":
    if name in _BLANK:
        return pd.Series([pd.NA if one is None else one for one in cells], dtype="Int64")
    if name in _WHOLE:
        return pd.Series(cells, dtype="int64")
    return text_column(cells)


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
        for cover in result.judged.covers.values()
        for place, number in enumerate(cover.counted)
    }
    for number in range(len(source.statements)):
        bank = result.judged.banks.get(number, "")
        own = asdict(source.statements[number])
        told = {name: own[name] for name in COLUMNS[COUNTED] if name in own}
        yield {**told, "number": number, "bank": bank, "place": places.get(number, -1)}


def _paid(result: BankResult, *, settlement: pd.DataFrame | None) -> Iterator[Row]:
    lines = _lines_of_batches(settlement)
    nothing = {"bank_amount": None, "effect": 0, "charges": 0, "value_on": ""}
    newest: dict[int, str] = {}
    for payout in result.paired.opening:
        told = {"state": LISTED, "code": "", "flags": "", "result_id": ""}
        yield {**_payout(payout, lines=lines), **nothing, **told}
    for own, found in result.ids.items():
        told = {
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
            yield {**_payout(payout, lines=lines), **told, **share}


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
    return {
        "bank": one.bank,
        "merchant_id": one.merchant_id,
        "account_id": one.account_id,
        "currency": one.currency,
        "batch_id": one.batch_id,
        "settled_on": one.settled_on,
        "gross": gross,
        "fees": fees,
        "amount": one.paid,
        "due_on": one.due_on,
    }


def _lines_of_batches(lines: pd.DataFrame | None) -> dict[tuple[str, ...], tuple[int, int]]:
    """What the lines of each batch come to, gross and fees; a payout of ours is one of them."""
    if lines is None:
        return {}
    rows = lines[~pay_outs(lines)]
    groups, batches = placed(rows, by=BATCH)
    gross, fees = (
        sums_of(amounts_of(rows[name]), groups=groups, size=len(batches)).tolist()
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
        yield {**_receipt(receipt), "state": state, "result_id": own}


def _receipt(one: Receipt) -> Row:
    return {
        **{name: getattr(one, name) for name in ("bank", "iban", "statement_no", "year")},
        **{name: getattr(one, name) for name in ("entry_no", "booked_on", "value_on")},
        "currency": one.currency,
        "amount": one.amount,
    }


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
    by_rate = found.rate is not None and found.rate.rate is not None
    for currency, amount in found.exchanged:
        yield AT_RATE if by_rate else EXCHANGED, currency, amount
    yield ALLOWED, found.currency, -found.allowed
    if not is_shown:
        yield ELSEWHERE, found.currency, -found.effect
