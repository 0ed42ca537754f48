"""Decides the verdict of a result, and states what was proven, what was not and what cannot be."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.exchange_rates import AppliedRate
from recon.config.rules import Rules
from recon.matching.bank.result import BankResult
from recon.matching.breaks.result import Reconciliation
from recon.matching.breaks.result_rows import Frames
from recon.matching.cash.fees_charged import fees_not_covered
from recon.matching.cash.ledger_groups import BEFORE_LEDGER
from recon.matching.cash.result import CashResult
from recon.matching.frames.arrays import texts
from recon.matching.frames.bank_sources import BankSource
from recon.matching.frames.coding import by_label, equals
from recon.matching.frames.sources import Sources
from recon.matching.sides.ledger_side import unrated_texts
from recon.matching.sides.settlement_side import is_payout
from recon.model.terms import ControlTotal, Flag, GatewayState, KeyAnswer, Verdict


def with_totals(result: Reconciliation, *, totals: Iterable[ControlTotal]) -> Reconciliation:
    """Return the result with more totals: NOT PROVEN when one of them fails."""
    more = tuple(totals)
    proven = all(total.passed for total in more)
    verdict = result.verdict if proven else Verdict.NOT_PROVEN
    return replace(result, control_totals=(*result.control_totals, *more), verdict=verdict)


class OpenCounts(NamedTuple):
    """Counts that prevent a better verdict."""

    breaks: int
    unverified: int
    """Number of sets."""
    unverified_items: int


def verdict_of(
    classified: OpenCounts,
    *,
    sources: Sources,
    rules: Rules,
    lacks: Collection[str],
) -> Verdict:
    """Return INCOMPLETE, else BREAKS OPEN, else RECONCILED; `with_totals` adds NOT PROVEN.

    `lacks`: see `bank_lacks`.
    """
    uncertain = classified.unverified_items + len(sources.rejects)
    compared = {"orders": sources.orders, "gateway": sources.gateway}
    before = sources.rows_before
    empty = not all(len(frame) + before.get(name, 0) for name, frame in compared.items())
    missing = lacks or empty or sources.ledger is None
    if missing or uncertain > allowance(sources, rules=rules):
        return Verdict.INCOMPLETE
    # A batch with an unreadable line is unverified, also where no line of it could be read.
    open_rows = classified.unverified or sources.rejects or sources.unread_batches
    if classified.breaks or open_rows:
        return Verdict.BREAKS_OPEN
    return Verdict.RECONCILED


def allowance(sources: Sources, *, rules: Rules) -> int:
    """Return how many rows may be rejected or unverified before the run is incomplete."""
    read = sum(file.rows_read for file in sources.files)
    if not sources.files:
        frames = (sources.orders, sources.gateway, sources.ledger, sources.instructions)
        read = sum(len(frame) for frame in frames if frame is not None) + len(sources.rejects)
        read += sum(sources.rows_before.values())
    share = int(rules.verdict.max_unverified_share * read)
    return max(rules.verdict.max_unverified_rows, share)


Line = Mapping[str, str | int]
NOTHING_OF_BANKS = "the bank, T15, T16 and T17: no statement of a bank was given"
"""Listed under what is not covered, where no bank statement was given."""
STATEMENTS = (
    "keys proven",
    "within grace, not yet due",
    "not proven: no usable evidence",
    "refunds known from replies only, which the query cannot show",
)
"""Statements about sets, in this order; others follow."""


def unmapped_codes(sources: Sources, *, rules: Rules) -> tuple[Line, ...]:
    """Return gateway codes that the rules do not know, with their count and a sample."""
    gateway = sources.gateway
    unknown = by_label(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.UNMAPPED
    ).astype(np.bool_)
    rows_of = {
        "payment_status": equals(gateway["answer"], KeyAnswer.FOUND) & unknown,
        "query_result": equals(gateway["answer"], KeyAnswer.UNMAPPED),
    }
    return tuple(
        {"field": name, "code": str(code), "count": len(orders), "order_no": min(orders)}
        for name, rows in rows_of.items()
        for code, orders in gateway[rows].groupby(name)["order_no"]
    )


def added_codes(pieces: Iterable[Iterable[Line]]) -> tuple[Line, ...]:
    """Add up the codes of several buckets (see `unmapped_codes`)."""
    known: dict[tuple[str, str], Line] = {}
    for line in chain.from_iterable(pieces):
        key = str(line["field"]), str(line["code"])
        other = known.get(key, {"count": 0, "order_no": line["order_no"]})
        count = int(line["count"]) + int(other["count"])
        order_no = min(str(line["order_no"]), str(other["order_no"]))
        known[key] = {**line, "count": count, "order_no": order_no}
    return tuple(known[key] for key in sorted(known))


def not_covered(
    sources: Sources,
    *,
    rules: Rules,
    unpriced: Mapping[str, int],
    unrated: Mapping[AppliedRate, int],
    cash: CashResult | None,
) -> Iterator[str]:
    """Yield comparisons and controls without a source, as text.

    Args:
        sources: the whole sources.
        rules: the rules of the comparison.
        unpriced: reason -> number of lines that the fee contract does not cover.
        unrated: see ledger_side.unrated_entries.
        cash: its groups tell from which day an account's ledger covers the settlement.
    """
    lines, days, agreed = sources.settlement, sources.settled, sources.agreed_write_offs
    if sources.ledger is None:
        yield "leg B (gateway to ledger), T5B and T5C: no ledger was given"
    if sources.instructions is None:
        yield "our own instructions, T8: no instruction file was given"
    yield from unrated_texts(unrated)
    if lines is None:
        yield "settlement, T11 and T18: no settlement file was given"
        yield "fees and reserves of the ledger: no settlement file"
    else:
        batches = texts(lines["batch_id"])
        if without := len({*batches.tolist()} - {*batches[is_payout(lines)].tolist()}):
            yield f"T11: {without} settlement batches name no payout yet"
        if days is not None and days.waits_for:
            yield f"settlement due after {days.last}: {days.waits_for} is missing"
        if rules.fee_contract is not None:
            yield from fees_not_covered(unpriced)
        elif not rules.fees:
            yield "fee contract: fees.toml declares none"
    if rules.journal.accounts is None:
        yield "proposed journals, T12: the rules name no [journal.accounts]"
    if agreed is None:
        yield "approval of write-offs, T10: no list of approved write-offs was given"
    elif (
        agreed.entries
        and sources.ledger is not None
        and (earlier := int(equals(sources.ledger["entry_id"], *agreed.entries).sum()))
    ):
        yield (
            f"approval of write-offs, T10: {earlier} stood in the ledger before anybody could "
            "agree, and were taken over"
        )
    if cash is not None:
        groups = cash.ledger_groups.groups
        accounts = groups.take(groups["name"] == BEFORE_LEDGER).rows("merchant_id", "account_id")
        for merchant, account in sorted({*accounts}):
            day = sources.ledger_since[merchant, account]
            yield (
                f"fees, reserves and payouts of {merchant}/{account} settled before {day}: "
                "its ledger begins then"
            )


def bank_lacks(result: BankResult | None) -> tuple[str, ...]:
    """Return what bank data does not count, as text: each makes the run incomplete."""
    if result is None:
        return ()
    unserved = (
        f"payouts of {account}: no [bank] of the rules names this account"
        for account in result.unserved
    )
    return (*result.classified.problems, *unserved)


def bank_not_covered(result: BankResult | None) -> Iterator[str]:
    """Yield the limits of each bank's coverage as text."""
    if result is None:
        yield NOTHING_OF_BANKS
        return
    for name, cover in result.classified.covers.items():
        if not cover.to_day:
            yield f"the bank {name}: no statement of it counts"
        known = "" if result.night is None else result.night.known_to.get(name, "")
        waits = sum(
            receipt.bank == name and receipt.value_on > known for receipt in result.paired.waiting
        )
        if known and waits and known < cover.to_day:
            yield (
                f"{waits} entries of the bank {name} after {known}: they name no batch, and the "
                "settlement files of the other accounts that it serves reach no further"
            )


def bank_scope(source: BankSource | None, *, result: BankResult | None) -> Iterator[Line]:
    """Yield the days that each bank's statements cover, with the closing balance."""
    if source is None or result is None:
        return
    for name, cover in result.classified.covers.items():
        if cover.counted:
            last = source.statements[cover.counted[-1]]
            yield {
                "statement": f"bank {name}: covered from {cover.first_day} to {cover.to_day}",
                "currency": last.currency,
                "count": len(cover.counted),
                "amount": last.closing or 0,
            }


def scope_of_assurance(frames: Frames, *, sources: Sources) -> tuple[Line, ...]:
    """Return lines with statement, currency, count and amount (net in minor units).

    Args:
        frames: the result.
        sources: the whole sources.
    """
    hidden = by_label(frames.matches["flags"], of=lambda flags: Flag.REPLY_ONLY.value in flags)
    rows_of: tuple[tuple[pd.DataFrame, ...], ...] = (
        (frames.matches, frames.breaks),
        (frames.pending,),
        (frames.unverified,),
        (frames.matches[hidden.astype(np.bool_)],),
    )
    lines = [
        line
        for statement, rows in zip(STATEMENTS, rows_of, strict=True)
        for line in _lines(statement, *rows)
    ]
    lines += [
        {
            "statement": f"{balance.what} older than the window, not compared: opening balance",
            "currency": balance.currency,
            "count": balance.count,
            "amount": balance.amount,
        }
        for balance in sources.opening_balance
    ]
    count = len(sources.rejects)
    if count:
        statement = "rows of the sources that could not be read"
        lines.append({"statement": statement, "currency": "", "count": count, "amount": 0})
    statement = "payments under keys that nobody asked for cannot be seen through this interface"
    lines.append({"statement": statement, "currency": "", "count": 0, "amount": 0})
    return tuple(lines)


_AMOUNTS = ("gateway_amount", "order_amount", "ledger_amount")


def _lines(statement: str, *rows: pd.DataFrame) -> Iterator[Line]:
    """Count rows by currency, and sum the first of their gateway, order and ledger amounts."""
    every = pd.concat([frame[["currency", *_AMOUNTS]] for frame in rows], ignore_index=True)
    amount = every[_AMOUNTS[0]].fillna(every[_AMOUNTS[1]]).fillna(every[_AMOUNTS[2]]).fillna(0)
    sums = amount.groupby(every["currency"]).agg(["size", "sum"])
    for currency, count, total in sums.itertuples(name=None):
        yield {
            "statement": statement,
            "currency": str(currency),
            "count": int(count),
            "amount": int(total),
        }
