"""T15 to T17, and T19 of the bank: what statements come to, how far, and where pay-outs went.

T17 holds, per bank and currency: what was paid out less what came in is what is in transit, what
was due before the first statement, what the bank took, what was exchanged, less the effects of
breaks. T19: what arrived less what the books have of it is the effects, and what waits. The left
sides are added up from the settlement, the books and the entries in scope, the right ones from the
result.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.arrived_groups import payouts_by_receipts
from recon.matching.bank.bookings import LEG as LEG_OF_BOOKS
from recon.matching.bank.bookings import Booking, Bookings
from recon.matching.bank.expected import Payout, bank_of
from recon.matching.bank.pairing import Finding
from recon.matching.bank.result import LEG, BankResult
from recon.matching.breaks.result_rows import Frames
from recon.matching.frames.arrays import texts
from recon.matching.frames.bank_sources import BOOKED, BankSource
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import amounts_of
from recon.matching.frames.sources import Sources
from recon.matching.frames.tolerance import BASIS
from recon.matching.frames.total_rows import Place, paired, sums
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import booked, closing_entries, entry_versions, is_base_type
from recon.matching.sides.settlement_side import pay_outs
from recon.model.money import exponent
from recon.model.words import REVERSAL_SUFFIX, ControlTotal, EntryType, Flag, SetState

NOTHING_OF_BANKS = "the bank, T15, T16 and T17: no statement of a bank was given"
"""Under what is not covered, where nobody asked the bank."""
Key = tuple[str, str]
"""Bank and currency."""
ScopeLine = Mapping[str, str | int]


def bank_totals(
    sources: Sources, *, result: BankResult | None, frames: Frames, rules: Rules
) -> Iterator[ControlTotal]:
    """The totals of every bank that statements were given of.

    Args:
        sources: settlement lines, statements and their entries.
        result: what they came to.
        frames: effects of the breaks.
        rules: the banks.
    """
    source = sources.bank
    if source is None or result is None:
        return
    yield from _statement_totals(source, result=result)
    yield from _cover_totals(source, result=result)
    night = source.night
    lines = sources.settlement if night is None else night.payouts
    left = _paid_less_received(lines, result=result, rules=rules)
    right = _explained(result, frames=frames)
    name = "paid out - received = in transit + opening + charges + exchanged - effects"
    for bank in result.judged.covers:
        sides = [_of_bank(side, bank=bank) for side in (left, right)]
        yield from paired("T17", f"{bank}: {name}", left=sides[0], right=sides[1], measure="amount")
        yield from _exchange_totals(result, bank=bank, rules=rules)


def _exchange_totals(result: BankResult, *, bank: str, rules: Rules) -> Iterator[ControlTotal]:
    """What went through a dated rate: each pay-out once more from its rate, by fractions."""
    left: Counter[Place] = Counter()
    right: Counter[Place] = Counter()
    beyond: Counter[Place] = Counter()
    for finding in result.ids.values():
        dated = finding.rate is not None and finding.rate.rate is not None and finding.rate.since
        if not dated or finding.payouts[0].bank != bank:
            continue
        at = ("", "", finding.currency)
        left[at] -= sum(amount for unit, amount in finding.exchanged if unit == finding.currency)
        pair = f"{finding.payouts[0].currency}.{finding.currency}"
        value_on = min(receipt.value_on for receipt in finding.receipts)
        expected = _at_rate(finding.payouts, into=finding.currency, on=value_on, rules=rules)
        right[at] += expected
        allowed = abs(finding.allowed) * BASIS > abs(expected) * rules.rate[pair].basis_points
        beyond[at] += allowed
    name = f"{bank}: exchanged at dated rates = pay-outs by the rate of the day"
    yield from paired("T17", name, left=left, right=right, measure="amount")
    name = f"{bank}: differences beyond what their rate allows"
    yield from paired("T17", name, left=beyond, right=dict.fromkeys(beyond, 0), measure="count")


def _at_rate(payouts: Sequence[Payout], *, into: str, on: str, rules: Rules) -> int:
    own = rules.rate[f"{payouts[0].currency}.{into}"]
    days = {day.isoformat(): rate for day, rate in own.on.items() if day.isoformat() <= on}
    units = Fraction(sum(payout.paid for payout in payouts)) / 10 ** exponent(payouts[0].currency)
    due: int = round(units * Fraction(days[max(days)]) * 10 ** exponent(into))
    return due


def bank_lacks(result: BankResult | None) -> tuple[str, ...]:
    """What of a bank does not count, in words: each makes the night incomplete."""
    if result is None:
        return ()
    unserved = (
        f"pay-outs of {account}: no [bank] of the rules names this account"
        for account in result.unserved
    )
    return (*result.judged.problems, *unserved)


def bank_not_covered(result: BankResult | None) -> Iterator[str]:
    """Up to which day each bank is covered, where that is not all, in words."""
    if result is None:
        yield NOTHING_OF_BANKS
        return
    for name, cover in result.judged.covers.items():
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


def bank_scope(source: BankSource | None, *, result: BankResult | None) -> Iterator[ScopeLine]:
    """Up to which day each bank is covered, with its balance of that day."""
    if source is None or result is None:
        return
    for name, cover in result.judged.covers.items():
        if cover.counted:
            last = source.statements[cover.counted[-1]]
            yield {
                "statement": f"bank {name}: covered from {cover.first_day} to {cover.to_day}",
                "currency": last.currency,
                "count": len(cover.counted),
                "amount": last.closing or 0,
            }


def _of_bank(sums: Mapping[Key, int], *, bank: str) -> dict[Place, int]:
    return {("", "", currency): amount for (name, currency), amount in sums.items() if name == bank}


def _statement_totals(source: BankSource, *, result: BankResult) -> Iterator[ControlTotal]:
    """T15, once more from the entries that came through the door."""
    entries = source.entries
    booked = entries[entries["status"].eq(BOOKED) & entries["part"].eq(0)]
    sums = booked.groupby("statement")["amount"].sum().to_dict()
    for number in sorted(result.judged.counted):
        own = source.statements[number]
        if own.opening is None or own.closing is None:
            continue
        name = f"{result.judged.banks[number]}, statement {own.statement_no}: opening + booked"
        left = own.opening + int(sums.get(number, 0)) + own.others
        sides = left, own.closing
        yield ControlTotal("T15", f"{name} = closing", "", "", own.currency, "amount", *sides)


def _cover_totals(source: BankSource, *, result: BankResult) -> Iterator[ControlTotal]:
    """T16: the first opening and all entries of all statements give the last closing."""
    entries = source.entries
    for name, cover in result.judged.covers.items():
        if not cover.counted or not cover.proven:
            continue
        first, last = (source.statements[cover.counted[at]] for at in (0, -1))
        mine = entries["statement"].isin(cover.counted) & entries["part"].eq(0)
        moved = sum(entries[mine & entries["status"].eq(BOOKED)]["amount"].tolist())
        moved += sum(source.statements[number].others for number in cover.counted)
        words = f"{name}: first opening + all booked = last closing, to {cover.to_day}"
        sides = (first.opening or 0) + moved, last.closing or 0
        yield ControlTotal("T16", words, "", "", last.currency, "amount", *sides)


def _paid_less_received(
    lines: pd.DataFrame | None, *, result: BankResult, rules: Rules
) -> Mapping[Key, int]:
    """From the settlement's own rows and the entries in scope."""
    sums: Counter[Key] = Counter()
    if lines is not None:
        rows: pd.DataFrame = lines[pay_outs(lines)]
        names = ("merchant_id", "account_id", "currency")
        cells = (texts(rows[name]).tolist() for name in names)
        for merchant, account, currency, net in zip(
            *cells, amounts_of(rows["net"]).tolist(), strict=True
        ):
            bank = bank_of(merchant, account, currency=currency, rules=rules)
            if bank:
                sums[bank, currency] += int(net)
    waiting = set(result.paired.waiting)
    for receipt in result.receipts:
        if receipt not in waiting:
            sums[receipt.bank, receipt.currency] -= receipt.amount
    return sums


def _explained(result: BankResult, *, frames: Frames) -> Mapping[Key, int]:
    """From the findings, and the effects as the result shows them."""
    sums: Counter[Key] = Counter()
    for payout in result.paired.opening:
        sums[payout.bank, payout.currency] += payout.paid
    banks: dict[str, str] = {}
    for own, finding in result.ids.items():
        bank = finding.payouts[0].bank if finding.payouts else finding.receipts[0].bank
        banks[own] = bank
        for currency, amount in parts_of_finding(finding):
            sums[bank, currency] += amount
        if own not in result.shown:
            sums[bank, finding.currency] -= finding.effect
    effects = frames.effects[frames.effects["leg"].eq(LEG)]
    cells = (effects[name].tolist() for name in ("break_id", "currency", "amount"))
    for own, currency, amount in zip(*cells, strict=True):
        sums[banks.get(own, ""), currency] -= int(amount)
    return sums


def parts_of_finding(finding: Finding) -> Iterator[tuple[str, int]]:
    """What of a finding is no effect: in transit, from before, taken, exchanged."""
    if finding.state is SetState.PENDING:
        yield finding.currency, sum(payout.paid for payout in finding.payouts)
    yield finding.currency, finding.charges + finding.opening - finding.allowed
    yield from finding.exchanged


BOOKED_NAME = "bank: arrived - booked = effects"


def booking_totals(
    sources: Sources, *, bank: BankResult | None, bookings: Bookings | None, frames: Frames
) -> Iterator[ControlTotal]:
    """Of every account and currency; nothing where the books do not have what arrives.

    Args:
        sources: entries of the books.
        bank: what the statements came to.
        bookings: what was compared.
        frames: effects of the breaks.
    """
    if bookings is None or bank is None or sources.ledger is None:
        return
    left = _arrived(bank)
    left.subtract(_booked(sources.ledger))
    right = Counter(sums(frames.effects[frames.effects["leg"].eq(LEG_OF_BOOKS)]))
    for booking in bookings.every:
        if booking.state is not SetState.BREAK:
            right[booking.group.holder] += _calm(booking, ledger=sources.ledger)
    yield from paired(
        "T19",
        BOOKED_NAME,
        left=_own(left, bank=bank),
        right=_own(right, bank=bank),
        measure="amount",
    )


def _calm(booking: Booking, *, ledger: pd.DataFrame) -> int:
    """What a group that is no break differs by: of a written-off one what its entries come to."""
    if Flag.WRITTEN_OFF.value not in booking.flags:
        return booking.effect
    merchant, account, _ = booking.group.holder
    mine = (texts(ledger["merchant_id"]) == merchant) & (texts(ledger["account_id"]) == account)
    mine &= np.isin(texts(ledger["entry_id"]).astype("str"), booking.group.closers)
    closed = closing_entries(ledger, among=mine)
    rows = {row for several in closed.named.values() for row in several}
    written = abs(int(closed.signed[[*rows]].sum()))
    return written if booking.effect > 0 else -written


def _own(side: Mapping[Place, int], *, bank: BankResult) -> dict[Place, int]:
    """A night proves its own account."""
    night = bank.night
    return {
        key: amount for key, amount in side.items() if night is None or key[:2] == night.account
    }


def _arrived(bank: BankResult) -> "Counter[Place]":
    """From the entries in scope; what several accounts received as one is told apart by pay-out."""
    counted: Counter[Place] = Counter()
    for finding, payouts in payouts_by_receipts(bank):
        if finding.state is SetState.PENDING or any(
            payout.currency != finding.currency for payout in payouts
        ):
            continue
        holders: list[Place] = [
            (payout.merchant_id, payout.account_id, payout.currency) for payout in payouts
        ]
        counted[holders[0]] += sum(
            receipt.worth(finding.currency) or 0 for receipt in finding.receipts
        )
        if finding.receipts:
            for holder, payout in zip(holders, payouts, strict=True):
                counted[holder] += payout.paid
                counted[holders[0]] -= payout.paid
    for finding in bank.ids.values():
        if not finding.payouts and finding.account[1]:
            counted[*finding.account, finding.currency] += sum(
                receipt.amount for receipt in finding.receipts
            )
    return counted


def _booked(ledger: pd.DataFrame) -> Mapping[Place, int]:
    mine = is_base_type(ledger["entry_type"], EntryType.BANK) & (entry_versions(ledger) == NEW)
    currency, amount, _ = booked(ledger)
    back = is_word(ledger["entry_type"], EntryType.BANK + REVERSAL_SUFFIX)
    names = [texts(ledger[name])[mine].tolist() for name in ("merchant_id", "account_id")]
    signed = np.where(back, -amount, amount)[mine].tolist()
    counted: Counter[Place] = Counter()
    for merchant, account, unit, moved in zip(
        *names, texts(currency)[mine].tolist(), signed, strict=True
    ):
        counted[merchant, account, unit] += moved
    return counted
