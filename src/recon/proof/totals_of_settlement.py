"""T11, T18 and T19: what the gateway owes and keeps, and what the books have of it.

The left sides come straight from the lines, the entries and the openings of the rules; the right
ones from what is listed as held, and from the rows of the result.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result_rows import Frames
from recon.matching.cash.batches import (
    BEYOND,
    DEBT,
    ITEM,
    NO_PAYOUT,
    OPENING,
    OTHER_CURRENCY,
    RESERVE,
    UNSURE,
    Listed,
)
from recon.matching.cash.book_groups import BASES, FEES, PAYOUTS, RESERVES
from recon.matching.cash.result import CashResult
from recon.matching.frames.arrays import Column, filled, texts
from recon.matching.frames.coding import Placed, is_word, placed, sums_of
from recon.matching.frames.grouping import Bools, Ints, amounts_of
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import (
    ACCOUNT,
    ACCOUNT_CURRENCY,
    Place,
    added,
    as_places,
    less,
    paired,
)
from recon.matching.sides.ledger_side import GROUPED, booked, is_base_type, marked_as
from recon.matching.sides.settlement_side import one_by_one, pay_outs
from recon.model.words import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    ControlTotal,
    EntryType,
    Flag,
    InstructionKind,
)


def sent_payouts(instructions: pd.DataFrame) -> Bools:
    """The payouts among our instructions that left, whatever became of them."""
    sent = is_word(instructions["state"], *CONFIRMED_STATES, *DOUBTFUL_STATES, *REJECTED_STATES)
    return sent & is_word(instructions["kind"], InstructionKind.PAYOUT)


def paid_items(sources: Sources) -> tuple[list[Column], Ints]:
    """Merchant, account and currency of every payout that was sent, and what leg B counts of it."""
    parts, amounts = [], [np.zeros(0, dtype=np.int64)]
    if sources.instructions is not None:
        rows = sources.instructions
        sent = sent_payouts(rows)
        sure = is_word(rows["state"], *CONFIRMED_STATES)
        parts.append((rows, sent))
        amounts.append(np.where(sure, -amounts_of(rows["amount"]), 0)[sent])
    if sources.settlement is not None:
        paid = pay_outs(sources.settlement)
        parts.append((sources.settlement, paid))
        amounts.append(-amounts_of(sources.settlement["net"])[paid])
    columns = [
        np.concatenate([filled("", size=0), *(texts(rows[name])[mine] for rows, mine in parts)])
        for name in ACCOUNT_CURRENCY
    ]
    return columns, np.concatenate(amounts)


T11_NAME = "opening + lines - pay-outs of closed batches = items - debts - beyond"
PAYABLE_NAME = "payable: opening + lines - pay-outs = listed"
FEES_NAME = "fees: all of the lines = by contract + outside"
RESERVE_NAME = "reserve: opening + kept - released = listed"
_CLOSED = frozenset({OPENING, ITEM, DEBT, BEYOND, OTHER_CURRENCY, UNSURE})
"""What is listed of batches that are paid out."""
Sums = dict[Place, int]
_DIFFER = (Flag.WRITTEN_OFF.value, Flag.BEFORE_BOOKS.value)
"""Groups that match and have an effect all the same."""
KIND_WORDS = {FEES: "fees", RESERVES: "reserves", PAYOUTS: "pay-outs"}


@dataclass(frozen=True, slots=True)
class GroupSides:
    """The two sides of T19, by kind of group; nothing without a settlement or a ledger."""

    gaps: Mapping[str, Sums] = field(default_factory=dict)
    """What the lines have of a kind less what the books have."""
    effects: Mapping[str, Sums] = field(default_factory=dict)
    """What the result shows of it."""

    @classmethod
    def of(cls, sources: Sources, *, cash: CashResult | None, frames: Frames) -> "GroupSides":
        """Both sides, each computed apart."""
        lines, ledger = sources.settlement, sources.ledger
        if cash is None or lines is None or ledger is None:
            return cls()
        return cls(_gaps(lines, ledger=ledger), _effects(frames, cash=cash))

    def together(self) -> tuple[Sums, Sums]:
        """Both sides, all kinds together."""
        return added(*self.gaps.values()), added(*self.effects.values())


def settlement_totals(
    sources: Sources, *, cash: CashResult | None, groups: GroupSides, rules: Rules
) -> Iterator[ControlTotal]:
    """T11 and T18 of every place, T19 of every kind of group where a ledger was given.

    Args:
        sources: lines and entries.
        cash: what they came to; None without a settlement.
        groups: what the groups differ by, and their effects.
        rules: what the gateway owed and kept before the first line.
    """
    lines = sources.settlement
    if lines is None or cash is None:
        return
    paid, places = pay_outs(lines), placed(lines, by=ACCOUNT_CURRENCY)
    net = np.where(paid, -1, 1) * amounts_of(lines["net"])
    reserve = is_base_type(lines["entry_type"], EntryType.RESERVE) & ~paid
    kept = -amounts_of(lines["gross"])
    every = np.ones(len(lines), dtype=np.bool_)
    owed, held = (_openings(lines, rules=rules, name=name) for name in ("payable", "reserve"))
    held_rows = [*cash.listed]
    closed = _settled(lines, listed=held_rows)
    for number, name, opening, amounts, rows, listed in (
        ("T11", T11_NAME, owed, net, closed, _listed(held_rows, of=_CLOSED)),
        ("T18", PAYABLE_NAME, owed, net, every, _listed(held_rows, of={*_CLOSED, NO_PAYOUT})),
        ("T18", RESERVE_NAME, held, kept, reserve, _listed(held_rows, of={RESERVE})),
    ):
        left = added(opening, _sums(places, amounts=amounts, rows=rows))
        yield from paired(number, name, left=left, right=listed, measure="amount")
    for kind, gaps in groups.gaps.items():
        name = f"{KIND_WORDS[kind]}: settled - booked = effects"
        yield from paired("T19", name, left=gaps, right=groups.effects[kind], measure="amount")


def contract_totals(
    lines: pd.DataFrame | None, *, shown: Mapping[str, int] | None
) -> Iterator[ControlTotal]:
    """T18 of the fees under a contract, by currency: the check of the sheet *Fees*.

    Args:
        lines: the settlement.
        shown: what the sheet lists by contract and outside of it; None without a contract.
    """
    if lines is None or shown is None:
        return
    lines = one_by_one(lines)
    where = placed(lines, by=("currency",))
    charged = sums_of(
        np.where(pay_outs(lines), 0, amounts_of(lines["fee"])),
        groups=where[0],
        size=len(where[1]),
    )
    left = {("", "", word): fee for (word,), fee in zip(where[1], charged.tolist(), strict=True)}
    right = {("", "", word): fee for word, fee in shown.items()}
    yield from paired("T18", FEES_NAME, left=left, right=right, measure="amount")


def _settled(lines: pd.DataFrame, *, listed: Iterable[Listed]) -> Bools:
    """The lines of batches that wait for no pay-out."""
    groups, batches = placed(lines, by=(*ACCOUNT_CURRENCY, "batch_id"))
    waiting = {(*row.holder, row.batch_id) for row in listed if row.what == NO_PAYOUT}
    marks = np.array([tuple(batch) not in waiting for batch in batches], dtype=np.bool_)
    return marks[groups]


def _openings(lines: pd.DataFrame, *, rules: Rules, name: str) -> Sums:
    """What the rules say of the time before, of every account that lines tell of."""
    _, accounts = placed(lines, by=tuple(ACCOUNT_CURRENCY[:2]))
    return {
        (merchant, account, currency): getattr(opening, f"opening_{name}")
        for merchant, account in accounts
        for currency, opening in rules.settlement.items()
        if getattr(opening, f"opening_{name}")
    }


def _sums(where: Placed, *, amounts: Ints, rows: Bools) -> Sums:
    groups, places = where
    sums = sums_of(np.where(rows, amounts, 0), groups=groups, size=len(places)).tolist()
    return dict(zip(as_places(places), sums, strict=True))


def _listed(rows: Iterable[Listed], *, of: Collection[str]) -> Sums:
    """What is listed as held, by place."""
    counted: Counter[Place] = Counter()
    for row in rows:
        if row.what in of:
            counted[row.holder] += row.amount
    return dict(counted)


def _gaps(lines: pd.DataFrame, *, ledger: pd.DataFrame) -> dict[str, Sums]:
    """By kind, what the lines have of it less what the books have."""
    paid, places = pay_outs(lines), placed(lines, by=ACCOUNT_CURRENCY)
    gross = amounts_of(lines["gross"])
    reserve = is_base_type(lines["entry_type"], EntryType.RESERVE) & ~paid
    settled = {
        FEES: _sums(places, amounts=-amounts_of(lines["fee"]), rows=~paid),
        RESERVES: _sums(places, amounts=gross, rows=reserve),
        PAYOUTS: _sums(places, amounts=-amounts_of(lines["net"]), rows=paid),
    }
    currency, _, net = booked(ledger)
    grouped = marked_as(ledger, GROUPED)
    columns = {name: ledger[name] for name in ACCOUNT} | {"currency": currency}
    entries = placed(columns, by=ACCOUNT_CURRENCY)
    return {
        kind: less(
            settled[kind],
            _sums(entries, amounts=net, rows=grouped & is_base_type(ledger["entry_type"], base)),
        )
        for kind, base in BASES.items()
    }


def _effects(frames: Frames, *, cash: CashResult) -> dict[str, Sums]:
    """By kind, what the result shows: effects of its breaks, and of what is not a break."""
    of_groups = cash.found.take(slice(len(cash.books.groups)))
    effects: dict[str, Sums] = {kind: {} for kind in BASES}
    kinds = dict(of_groups.rows("id", "what"))
    legs = frames.effects
    broken = legs["leg"].eq("ledger") & legs["break_id"].isin({*kinds})
    for own, *holder, amount in _cells(legs, rows=broken, names=("break_id",), amount="amount"):
        _count(effects[kinds[own]], holder, amount)
    keyed = {(*key,): kind for *key, kind in of_groups.rows(*ACCOUNT, "key", "what")}
    words = {key for *_, key in keyed}
    for frame in (frames.matches, frames.pending, frames.unverified):
        calm = frame["entry_id"].isin(words) & frame["order_no"].eq("")
        if frame is frames.matches:
            calm &= frame["flags"].isin(_DIFFER)
        cells = _cells(frame, rows=calm, names=("entry_id",), amount="effect_ledger")
        for key, *holder, amount in cells:
            merchant, account, _ = holder
            kind = keyed.get((merchant, account, key))
            if kind is not None:
                _count(effects[kind], holder, amount)
    return effects


def _cells(
    frame: pd.DataFrame, *, rows: "pd.Series[bool]", names: tuple[str, ...], amount: str
) -> Iterator[tuple[Any, ...]]:
    """Of some rows these columns, account and currency, and an amount; a blank is nothing."""
    mine = np.flatnonzero(rows.to_numpy(dtype=np.bool_))
    columns = [frame[name].array.take(mine).tolist() for name in (*names, *ACCOUNT_CURRENCY)]
    yield from zip(*columns, amounts_of(frame[amount])[mine].tolist(), strict=True)


def _count(sums: Sums, holder: Sequence[str], amount: int) -> None:
    merchant, account, currency = holder
    sums[merchant, account, currency] = sums.get((merchant, account, currency), 0) + amount
