"""T19 of the bank: what arrived less what the books have of it is the effects, and what waits.

The left side comes from the entries of the statements and of the books, the right one from the
result.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recon.matching.bank.arrived_groups import payouts_by_receipts
from recon.matching.bank.bookings import Booking, Bookings
from recon.matching.bank.bookings_shown import LEG
from recon.matching.bank.result import BankResult
from recon.matching.breaks.result_frames import Frames
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import is_word
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import Place, paired, sums
from recon.matching.frames.versions import NEW
from recon.matching.sides.closing_entries import closing_entries
from recon.matching.sides.ledger_side import booked, entry_versions, is_base_type
from recon.model.words import REVERSAL_SUFFIX, ControlTotal, EntryType, Flag, SetState

NAME = "bank: arrived - booked = effects"


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
    right = Counter(sums(frames.effects[frames.effects["leg"].eq(LEG)]))
    for booking in bookings.every:
        if booking.state is not SetState.BREAK:
            right[booking.group.holder] += _calm(booking, ledger=sources.ledger)
    yield from paired(
        "T19", NAME, left=_own(left, bank=bank), right=_own(right, bank=bank), measure="amount"
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
