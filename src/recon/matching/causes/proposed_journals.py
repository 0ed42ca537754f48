"""Journals that would put the books right, proposed for people to import. Nothing here books.

A journal comes from the ledger's effect of a break whose money is proven and whose answer is to
book it. Two lines, equal and opposite, for each kind of entry that is missing, is there too often
or has another amount: the clearing account of the gateway against the account of that kind. Its id
is the break's id and a version: while an exported one waits to be booked, nothing is proposed for
its break, and nothing ever for a break that two people wrote off.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import JournalAccounts, Rules
from recon.matching.breaks.result import EFFECT_COLUMNS, JOURNAL_COLUMNS
from recon.matching.breaks.result_rows import NO_AMOUNT
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, frame_of_cells, records
from recon.matching.frames.sources import Exported, Sources
from recon.matching.sets.joined_sets import Joined
from recon.model.terms import BreakCode, EntryType, SetState

PARTS = ("sales", "refunds", "chargebacks", "payouts", "fees", "reserves", "bank")
"""Accounts of the rules, each for one kind of entry."""
_OF_LEDGER: Mapping[str, str] = {
    EntryType.CAPTURE.value: "sales",
    EntryType.ADJUSTMENT.value: "sales",
    EntryType.REFUND.value: "refunds",
    EntryType.CHARGEBACK.value: "chargebacks",
    EntryType.PAYOUT.value: "payouts",
}


class BookingPart(NamedTuple):
    """What is to be booked of one break, currency and kind of entry, minor units."""

    break_id: str
    currency: str
    part: str
    """One of PARTS."""
    amount: int


def parts_of(joined: Joined, *, break_sets: Mapping[int, str]) -> list[BookingPart]:
    """What is to be booked, by set, currency and part; never 0.

    The sum of the parts of a break and currency is gateway less ledger. Each part is what the
    gateway shows of one kind of movement less what is booked of that kind, so a refund that is
    booked twice is put right as a refund, whatever the break is called.

    Args:
        joined: the sets with their items.
        break_sets: the id of the break of each set that is one.
    """
    sums: dict[tuple[int, str, str], int] = {}
    for number, currency, part, amount in _every_part(joined, wanted=break_sets):
        key = int(number), currency, part
        sums[key] = sums.get(key, 0) + amount
    return [
        BookingPart(break_sets[number], currency, part, amount)
        for (number, currency, part), amount in sorted(sums.items())
        if amount
    ]


def _every_part(
    joined: Joined, *, wanted: Mapping[int, str]
) -> Iterator[tuple[int, str, str, int]]:
    sides = (joined.gateway.items, joined.payouts, joined.ledger.items)
    shown, paid, booked = (_of(items, wanted=wanted) for items in sides)
    names = ("set", "currency", "captured", "refunded", "net")
    for number, currency, captured, refunded, net in shown.rows(*names):
        # What is left of a payment that was charged back is neither its capture nor a refund.
        yield number, currency, "sales", captured
        yield number, currency, "refunds", -refunded
        yield number, currency, "chargebacks", net - captured + refunded
    for number, currency, net in paid.rows("set", "currency", "net"):
        yield number, currency, "payouts", net
    for number, currency, kind, net in booked.rows("set", "currency", "kind", "net"):
        yield number, currency, _OF_LEDGER.get(kind, ""), -net


def _of(items: Arrays, *, wanted: Mapping[int, str]) -> Arrays:
    return items.take(np.isin(items["set"], [*wanted]))


def parts_of_found(rows: Arrays) -> Iterator[BookingPart]:
    """What is to be booked of each break of what is no set (see found_rows.FOUND)."""
    for own, currency, part, effect, state in rows.rows(
        "id", "currency", "part", "effect", "state"
    ):
        if state == SetState.BREAK and part and effect not in {0, NO_AMOUNT}:
            yield BookingPart(own, currency, part, effect)


BOOKED = frozenset(code for code, row in CODES.items() if row.journal == "books")
"""Codes that are answered by booking what the gateway shows.

Others need a decision or evidence first: whether to refund, whose a movement is, what a status
means.
"""
UNDECIDED = frozenset(code for code, row in CODES.items() if row.journal == "undecided")
"""Findings beside the primary code with which its amount is not proven."""


def propose(
    breaks: pd.DataFrame,
    *,
    effects: pd.DataFrame,
    parts: Sequence[BookingPart],
    rules: Rules,
    date: str,
    sources: Sources,
) -> pd.DataFrame:
    """The journals of tonight's breaks, one row per line (JOURNAL_COLUMNS), two for each part.

    Args:
        breaks: tonight's breaks.
        effects: what they mean on the leg of the ledger.
        parts: the same by kind of entry (see `parts_of`).
        rules: the accounts; without them nothing is proposed.
        date: ISO business date that the journals are dated.
        sources: what was handed out before, and which breaks two people agreed to write off.
    """
    agreed = sources.agreed_write_offs
    written_off = frozenset(() if agreed is None else agreed.breaks)
    rows = (
        []
        if rules.journal.accounts is None
        else [
            line
            for row in _bookable(breaks, effects=effects, parts=parts, written_off=written_off)
            for line in _lines(
                row, accounts=rules.journal.accounts, date=date, exported=sources.exported
            )
        ]
    )
    return frame_of_cells(rows, names=JOURNAL_COLUMNS, numbers={"debit", "credit"})


def not_in_the_books(effects: pd.DataFrame, *, exported: Sequence[Exported]) -> list[Exported]:
    """Exported journals whose break still has an effect on the ledger in their currency."""
    shown = shown_in_the_books(effects, exported=exported)
    return [journal for journal in exported if not journal.booked and journal not in shown]


OF_BANK = "bank_books"
"""Leg of what arrived at the bank and is not booked there."""
LACKS = ("ledger", OF_BANK)
"""Legs of effects that the books put right."""


def shown_in_the_books(effects: pd.DataFrame, *, exported: Sequence[Exported]) -> list[Exported]:
    """Exported journals whose break has no effect on the ledger any more in their currency."""
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
    parts: Sequence[BookingPart],
    written_off: frozenset[str],
) -> Iterator[dict[str, Any]]:
    """The parts of the breaks that booking answers; of those whose parts are the whole effect."""
    named = ("break_id", "code", "flags", "order_no", "transaction_id", "about")
    wanted = {
        cells["break_id"]: cells
        for cells in records(breaks, rows=np.arange(len(breaks)), names=named)
        if cells["code"] in BOOKED
        and not UNDECIDED & {*cells["flags"].split(";")}
        and cells["break_id"] not in written_off
    }
    of_pair: dict[tuple[str, str, str], list[BookingPart]] = {}
    for part in parts:
        of_pair.setdefault((part.break_id, part.currency, _leg_of(part)), []).append(part)
    lines = []
    for leg in records(effects, rows=np.arange(len(effects)), names=EFFECT_COLUMNS):
        cells = wanted.get(leg["break_id"])
        mine = of_pair.get((leg["break_id"], leg["currency"], leg["leg"]), [])
        if not leg["amount"] or cells is None or not mine:
            continue
        if leg["amount"] == sum(part.amount for part in mine):
            lines += [{**cells, **leg, **part._asdict()} for part in mine]
    by = ("merchant_id", "account_id", "break_id", "currency")
    yield from sorted(
        lines, key=lambda row: (*(row[name] for name in by), PARTS.index(row["part"]))
    )


def _leg_of(part: BookingPart) -> str:
    return OF_BANK if part.part == "bank" else "ledger"


def _lines(
    row: Mapping[str, Any], *, accounts: JournalAccounts, date: str, exported: Sequence[Exported]
) -> Iterator[dict[str, Any]]:
    """Debit and credit of one part; none while an exported journal waits for the books."""
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
    """The name of a journal, by which an import can refuse it the second time."""
    return f"{break_id}-{currency}-{version}"


_NAMED = ("merchant_id", "account_id", "currency", "order_no", "transaction_id", "break_id")
