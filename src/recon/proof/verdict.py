"""What a result is worth: its verdict, what was proven, what not, and what no query can show."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.bookings import Bookings
from recon.matching.bank.result import BankResult
from recon.matching.breaks.movements import roll_forward
from recon.matching.breaks.places import stands_of
from recon.matching.breaks.result_rows import Frames
from recon.matching.breaks.write_offs import write_off_totals
from recon.matching.cash.before_books import BEFORE_BOOKS
from recon.matching.cash.fees_charged import NO_FEES, ListedFees, fees_not_covered
from recon.matching.cash.result import CashResult
from recon.matching.causes.proposed_journals import journal_totals
from recon.matching.frames.arrays import Arrays, texts
from recon.matching.frames.coding import by_word, coded, is_word, sums_of
from recon.matching.frames.grouping import Bools, Rows, amounts_of, given
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.ledger_side import unrated_entries
from recon.matching.sides.settlement_side import pay_outs
from recon.model.words import ControlTotal, Flag, GatewayState, KeyAnswer, Verdict
from recon.proof.totals_of_bank import bank_totals, booking_totals
from recon.proof.totals_of_inputs import (
    Words,
    file_totals,
    instruction_totals,
    load_totals,
    query_totals,
)
from recon.proof.totals_of_items import (
    ResultSums,
    bounds_totals,
    conservation_totals,
    exclusivity_totals,
    leg_totals,
    remainders,
    scoped_items,
    shown_rows,
    tolerance_totals,
)
from recon.proof.totals_of_settlement import (
    GroupSides,
    contract_totals,
    settlement_totals,
)


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything the totals are computed from."""

    sources: Sources
    rules: Rules
    joined: Joined
    """The sources in sets."""
    frames: Frames
    """Of these sources."""
    breaks: pd.DataFrame
    """Of the result, with those of sets that were judged before; so are the next ones."""
    effects: pd.DataFrame
    places: Arrays
    """See places.place_items."""
    previous: Previous | None
    states: Words
    """What each set came to."""
    ids: Mapping[str, int]
    """The set of each match_id and break_id."""
    moved: pd.DataFrame
    """See movements.movements."""
    journals: pd.DataFrame
    """See journals.propose."""
    hosts: Rows
    """For each set the one whose break explains it, else -1."""
    told_by_match: Bools
    """Which sets need no items (see places.told_by_match)."""
    bank: BankResult | None = None
    """What banks say; None where no statements were given."""
    cash: CashResult | None = None
    """What the gateway keeps and holds; None where no settlement was given."""
    fees: ListedFees = NO_FEES
    """What the fee contract lists."""
    bookings: Bookings | None = None
    """What the books have of what arrived at the bank; None where it is not compared."""


def control_totals(proof: Proof) -> tuple[ControlTotal, ...]:
    """All totals that the given sources allow, in order of their numbers."""
    sources, joined, frames = proof.sources, proof.joined, proof.frames
    places = proof.places
    scope, claimed = scoped_items(sources, joined=joined, places=places, rules=proof.rules)
    shown, stands = ResultSums.of(frames), stands_of(places)
    groups = GroupSides.of(sources, cash=proof.cash, frames=frames)
    left_over = remainders(
        frames.matches, ids=proof.ids, joined=joined, sources=sources, rules=proof.rules
    )
    return (
        *file_totals(sources),
        *load_totals(sources, joined=joined),
        *query_totals(sources, joined=joined),
        *conservation_totals(
            scope,
            shown=shown,
            stands=stands_of(places, rows=shown_rows(places, breaks=frames.breaks)),
            covered=joined.covered,
        ),
        *leg_totals(
            scope, shown=shown, left_over=left_over, covered=joined.covered, apart=groups.together()
        ),
        *exclusivity_totals(claimed, stands=stands),
        *roll_forward(proof.breaks, moved=proof.moved, previous=proof.previous),
        *instruction_totals(
            sources.instructions, sets=joined.keys.of["instructions"], states=proof.states
        ),
        *settlement_totals(sources, cash=proof.cash, groups=groups, rules=proof.rules),
        *contract_totals(sources.settlement, shown=proof.fees.by_currency),
        *booking_totals(sources, bank=proof.bank, bookings=proof.bookings, frames=frames),
        *bank_totals(sources, result=proof.bank, frames=frames, rules=proof.rules),
        *journal_totals(proof.journals, effects=proof.effects, rules=proof.rules),
        *bounds_totals(
            joined,
            instructions=sources.instructions,
            frames=frames,
            places=places,
            ids=proof.ids,
        ),
        *tolerance_totals(left_over, rules=proof.rules),
        *write_off_totals(sources, joined=joined, previous=proof.previous),
    )


class OpenCounts(NamedTuple):
    """How much of a result stands against a better verdict."""

    breaks: int
    unverified: int
    """Sets."""
    unverified_items: int
    has_parts: bool = False
    """Whether orders and payments were set aside in parts that are not among the sources."""


def verdict_of(
    totals: Iterable[ControlTotal],
    *,
    judged: OpenCounts,
    sources: Sources,
    rules: Rules,
    lacks: Collection[str],
) -> Verdict:
    """NOT PROVEN > INCOMPLETE > BREAKS OPEN > RECONCILED; `lacks`: see totals_of_bank."""
    if not all(total.passed for total in totals):
        return Verdict.NOT_PROVEN
    uncertain = judged.unverified_items + len(sources.rejects)
    empty = not judged.has_parts and (sources.orders.empty or sources.gateway.empty)
    missing = lacks or empty or sources.ledger is None
    if missing or uncertain > allowance(sources, rules=rules):
        return Verdict.INCOMPLETE
    if judged.breaks or judged.unverified or sources.rejects:
        return Verdict.BREAKS_OPEN
    return Verdict.RECONCILED


def allowance(sources: Sources, *, rules: Rules) -> int:
    """Rows that may be rejected or unverified before the night is incomplete."""
    read = sum(file.rows_read for file in sources.files)
    if not sources.files:
        frames = (sources.orders, sources.gateway, sources.ledger, sources.instructions)
        read = sum(len(frame) for frame in frames if frame is not None) + len(sources.rejects)
    share = int(rules.verdict.max_unverified_share * read)
    return max(rules.verdict.max_unverified_rows, share)


Line = Mapping[str, str | int]
STATEMENTS = (
    "keys proven",
    "within grace, not yet due",
    "not proven: no usable evidence",
    "refunds known from replies only, which the query cannot show",
)
"""What is said of sets, in this order; others follow."""


def unmapped_codes(sources: Sources, *, rules: Rules) -> tuple[Line, ...]:
    """Codes of the gateway that the rules do not know, with their count and a sample."""
    gateway = sources.gateway
    is_found = is_word(gateway["answer"], KeyAnswer.FOUND)
    unknown = by_word(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.UNMAPPED
    ).astype(np.bool_)
    lines: list[Line] = []
    for field, mask in (
        ("payment_status", is_found & unknown),
        ("query_result", is_word(gateway["answer"], KeyAnswer.UNMAPPED)),
    ):
        samples: dict[str, list[str]] = {}
        columns = (texts(gateway[name])[mask].tolist() for name in (field, "order_no"))
        for code, order_no in zip(*columns, strict=True):
            samples.setdefault(code, []).append(order_no)
        lines += (
            {"field": field, "code": code, "count": len(orders), "order_no": min(orders)}
            for code, orders in sorted(samples.items())
        )
    return (*lines,)


def not_covered(
    sources: Sources, *, rules: Rules, unpriced: Mapping[str, int], cash: CashResult | None
) -> Iterator[str]:
    """Legs and controls that had no source, in words.

    Args:
        sources: the whole sources.
        rules: how they were compared.
        unpriced: why the fee contract does not cover lines -> how many.
        cash: from when on the books of an account have what was settled.
    """
    lines, days, agreed = sources.settlement, sources.settled, sources.agreed_write_offs
    if sources.ledger is None:
        yield "leg B (gateway to ledger), T5B and T5C: no ledger was given"
    if sources.instructions is None:
        yield "our own instructions, T8: no instruction file was given"
    yield from unrated_entries(sources.ledger, rules=rules)
    if lines is None:
        yield "settlement, T11 and T18: no settlement file was given"
        yield "fees and reserves of the books: no settlement file"
    else:
        batches = texts(lines["batch_id"])
        if without := len({*batches.tolist()} - {*batches[pay_outs(lines)].tolist()}):
            yield f"T11: {without} settlement batches name no pay-out yet"
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
        and (earlier := int(is_word(sources.ledger["entry_id"], *agreed.entries).sum()))
    ):
        yield (
            f"approval of write-offs, T10: {earlier} stood in the books before anybody could "
            "agree, and were taken over"
        )
    if cash is not None:
        groups = cash.books.groups
        accounts = groups.take(groups["name"] == BEFORE_BOOKS).rows("merchant_id", "account_id")
        for merchant, account in sorted({*accounts}):
            day = sources.books_since[merchant, account]
            yield (
                f"fees, reserves and pay-outs of {merchant}/{account} settled before {day}: "
                "its books begin then"
            )


def scope_of_assurance(frames: Frames, *, sources: Sources) -> tuple[Line, ...]:
    """Statements with currency, count and amount (minor units, absolute gateway or order net).

    Args:
        frames: the result.
        sources: the whole sources.
    """
    hidden = by_word(frames.matches["flags"], of=lambda flags: Flag.REPLY_ONLY.value in flags)
    proven = _added(_sums(frames.matches), _sums(frames.breaks))
    unproven = (_sums(frame) for frame in (frames.pending, frames.unverified))
    shown = _sums(frames.matches, mask=hidden.astype(np.bool_))
    lines = [
        line
        for statement, sums in zip(STATEMENTS, (proven, *unproven, shown), strict=True)
        for line in _lines(statement, sums=sums)
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


_SHOWN = ("gateway_amount", "order_amount", "ledger_amount")
Sums = Mapping[str, tuple[int, int]]
"""Currency -> how many, and what they come to."""


def _sums(rows: pd.DataFrame, *, mask: Bools | None = None) -> Sums:
    """Rows by currency, each with the first of its amounts that is given."""
    codes, words = coded([rows["currency"]])
    amount = np.zeros(len(rows), dtype=np.int64)
    for name in reversed(_SHOWN):
        amount = np.where(given(rows[name]), amounts_of(rows[name]), amount)
    groups, chosen = codes[0], slice(None) if mask is None else mask
    size = len(words)
    counts = np.bincount(groups[chosen], minlength=size).tolist()
    totals = sums_of(amount[chosen], groups=groups[chosen].astype(np.intp), size=size).tolist()
    pairs = zip(words.to_pylist(), counts, totals, strict=True)
    return {currency: (count, total) for currency, count, total in pairs if count}


def _added(*parts: Sums) -> Sums:
    together: dict[str, tuple[int, int]] = {}
    for part in parts:
        for currency, (count, amount) in part.items():
            before = together.get(currency, (0, 0))
            together[currency] = before[0] + count, before[1] + amount
    return together


def _lines(statement: str, *, sums: Sums) -> Iterator[Line]:
    for currency, (count, amount) in sorted(sums.items()):
        yield {"statement": statement, "currency": currency, "count": count, "amount": amount}
