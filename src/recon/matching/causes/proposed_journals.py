"""Proposes journals that would correct the ledger, for people to import; nothing is booked here.

A journal comes from the ledger effect of a break whose money is proven and that is resolved by
booking it. It has two lines, equal and opposite, for each kind of entry that is missing, booked too
often or with another amount: the gateway's clearing account against the account of that kind. Its
id is the break's id and a version. While an exported journal waits to be booked, nothing is
proposed for its break, and nothing ever for a break whose write-off two people approved.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import JournalAccounts, Rules
from recon.matching.breaks.result import EFFECT_COLUMNS
from recon.matching.breaks.result_rows import NO_AMOUNT
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, columns_of, records
from recon.matching.frames.sources import MINOR_UNITS, Exported, Sources, frame_of
from recon.matching.sets.joined_sets import Joined
from recon.model.terms import BreakCode, EntryType, SetState

ENTRY_KINDS = ("sales", "refunds", "chargebacks", "payouts", "fees", "reserves", "bank")
"""Accounts of the rules, each for one kind of entry."""
_OF_LEDGER: Mapping[str, str] = {
    EntryType.CAPTURE.value: "sales",
    EntryType.ADJUSTMENT.value: "sales",
    EntryType.REFUND.value: "refunds",
    EntryType.CHARGEBACK.value: "chargebacks",
    EntryType.PAYOUT.value: "payouts",
}


class BookingLine(NamedTuple):
    """Amount to be booked for one break, currency and kind of entry, in minor units."""

    break_id: str
    currency: str
    part: str
    """One of PARTS."""
    amount: int


def booking_lines(joined: Joined, *, break_sets: Mapping[int, str]) -> list[BookingLine]:
    """Return the amounts to be booked, by set, currency and part; never 0.

    The parts of a break and currency sum to gateway less ledger. Each part is what the gateway
    shows of one kind of movement less what is booked of that kind, so a refund booked twice is
    corrected as a refund, whatever the code of the break.

    Args:
        joined: the sets with their items.
        break_sets: the break id of each set that is a break.
    """
    sums: dict[tuple[int, str, str], int] = {}
    for number, currency, part, amount in _amounts(joined, break_sets=break_sets):
        key = int(number), currency, part
        sums[key] = sums.get(key, 0) + amount
    return [
        BookingLine(break_sets[number], currency, part, amount)
        for (number, currency, part), amount in sorted(sums.items())
        if amount
    ]


def _amounts(
    joined: Joined, *, break_sets: Mapping[int, str]
) -> Iterator[tuple[int, str, str, int]]:
    sides = (joined.gateway.items, joined.payouts, joined.ledger.items)
    answered, paid, booked = (_of(items, break_sets=break_sets) for items in sides)
    names = ("set", "currency", "captured", "refunded", "net")
    for number, currency, captured, refunded, net in answered.rows(*names):
        # The rest of a payment that was charged back is neither its capture nor a refund.
        yield number, currency, "sales", captured
        yield number, currency, "refunds", -refunded
        yield number, currency, "chargebacks", net - captured + refunded
    for number, currency, net in paid.rows("set", "currency", "net"):
        yield number, currency, "payouts", net
    for number, currency, kind, net in booked.rows("set", "currency", "kind", "net"):
        yield number, currency, _OF_LEDGER.get(kind, ""), -net


def _of(items: Arrays, *, break_sets: Mapping[int, str]) -> Arrays:
    return items.take(np.isin(items["set"], [*break_sets]))


def booking_lines_of_found(rows: Arrays) -> Iterator[BookingLine]:
    """Yield the amounts to be booked for breaks that are not sets (see result_rows.FOUND)."""
    for own, currency, part, effect, state in rows.rows(
        "id", "currency", "part", "effect", "state"
    ):
        if state == SetState.BREAK and part and effect not in {0, NO_AMOUNT}:
            yield BookingLine(own, currency, part, effect)


BOOKED = frozenset(code for code, row in CODES.items() if row.journal == "ledger")
"""Codes resolved by booking what the gateway shows. Others need a decision or evidence first:
whether to refund, whose a movement is, what a status means."""
UNDECIDED = frozenset(code for code, row in CODES.items() if row.journal == "undecided")
"""Secondary findings that leave the amount of the primary code unproven."""


def propose(
    breaks: pd.DataFrame,
    *,
    effects: pd.DataFrame,
    bookings: Sequence[BookingLine],
    rules: Rules,
    date: str,
    sources: Sources,
) -> pd.DataFrame:
    """Return the journals of this run's breaks, one row per line (JOURNAL_COLUMNS), two per part.

    Args:
        breaks: this run's breaks.
        effects: their effects.
        bookings: their ledger effects by kind of entry (see `booking_lines`).
        rules: the accounts; without them nothing is proposed.
        date: ISO business date of the journals.
        sources: journals exported before, and breaks whose write-off two people approved.
    """
    agreed = sources.agreed_write_offs
    written_off = frozenset(() if agreed is None else agreed.breaks)
    rows = (
        []
        if rules.journal.accounts is None
        else [
            line
            for row in _bookable(
                breaks, effects=effects, bookings=bookings, written_off=written_off
            )
            for line in _lines(
                row, accounts=rules.journal.accounts, date=date, exported=sources.exported
            )
        ]
    )
    kinds = {**columns_of("journals"), "debit": MINOR_UNITS, "credit": MINOR_UNITS}
    return frame_of(rows, columns=kinds)


def not_in_ledger(effects: pd.DataFrame, *, exported: Sequence[Exported]) -> list[Exported]:
    """Return unbooked exported journals whose break still has a ledger effect in their currency."""
    answered = booked_since(effects, exported=exported)
    return [journal for journal in exported if not journal.booked and journal not in answered]


OF_BANK = "bank_ledger"
"""Leg of bank receipts that are not booked."""
LACKS = ("ledger", OF_BANK)
"""Legs of effects that booking corrects."""


def booked_since(effects: pd.DataFrame, *, exported: Sequence[Exported]) -> list[Exported]:
    """Return unbooked exported journals whose break has no more ledger effect in their currency."""
    legs = effects[effects["leg"].isin(LACKS)]
    open_still = set(zip(legs["break_id"], legs["currency"], strict=True))
    return [
        journal
        for journal in exported
        if not journal.booked and (journal.break_id, journal.currency) not in open_still
    ]


def _bookable(
    breaks: pd.DataFrame,
    *,
    effects: pd.DataFrame,
    bookings: Sequence[BookingLine],
    written_off: frozenset[str],
) -> Iterator[dict[str, Any]]:
    """Yield the parts of breaks resolved by booking, where they sum to the whole effect."""
    named = ("break_id", "code", "flags", "order_no", "transaction_id", "about")
    break_sets = {
        cells["break_id"]: cells
        for cells in records(breaks, rows=np.arange(len(breaks)), names=named)
        if cells["code"] in BOOKED
        and not UNDECIDED & {*cells["flags"].split(";")}
        and cells["break_id"] not in written_off
    }
    of_pair: dict[tuple[str, str, str], list[BookingLine]] = {}
    for booking in bookings:
        of_pair.setdefault((booking.break_id, booking.currency, _leg_of(booking)), []).append(
            booking
        )
    lines = []
    for leg in records(effects, rows=np.arange(len(effects)), names=EFFECT_COLUMNS):
        cells = break_sets.get(leg["break_id"])
        mine = of_pair.get((leg["break_id"], leg["currency"], leg["leg"]), [])
        if not leg["amount"] or cells is None or not mine:
            continue
        if leg["amount"] == sum(booking.amount for booking in mine):
            lines += [{**cells, **leg, **booking._asdict()} for booking in mine]
    by = ("merchant_id", "account_id", "break_id", "currency")
    yield from sorted(
        lines, key=lambda row: (*(row[name] for name in by), ENTRY_KINDS.index(row["part"]))
    )


def _leg_of(booking: BookingLine) -> str:
    return OF_BANK if booking.part == "bank" else "ledger"


def _lines(
    row: Mapping[str, Any], *, accounts: JournalAccounts, date: str, exported: Sequence[Exported]
) -> Iterator[dict[str, Any]]:
    """Yield debit and credit of one part; none while an exported journal waits to be booked."""
    before = [
        journal
        for journal in exported
        if (journal.break_id, journal.currency) == (row["break_id"], row["currency"])
    ]
    if any(not journal.booked for journal in before) or not getattr(accounts, row["part"]):
        return
    version = 1 + max((journal.version for journal in before), default=0)
    effect, counter = int(row["amount"]), getattr(accounts, row["part"])
    debited, credited = accounts.clearing, counter
    if row["part"] == "bank":
        debited, credited = counter, accounts.payouts
    if effect < 0:
        debited, credited = credited, debited
    named = row["order_no"] or row["transaction_id"] or row["about"]
    code = BreakCode(row["code"])
    shared = {
        "journal_id": journal_id(row["break_id"], row["currency"], version=version),
        "date": date,
        "text": f"{code.value.lower().replace('_', ' ')} {named}".strip(),
        **{name: row[name] for name in _NAMED},
    }
    yield {**shared, "account": debited, "debit": abs(effect), "credit": 0}
    yield {**shared, "account": credited, "debit": 0, "credit": abs(effect)}


def journal_id(break_id: str, currency: str, *, version: int) -> str:
    """Return the name of a journal, by which an import can refuse a repeat."""
    return f"{break_id}-{currency}-{version}"


_NAMED = ("merchant_id", "account_id", "currency", "order_no", "transaction_id", "break_id")
