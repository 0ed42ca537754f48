"""What a set came to: the table of codes asked once for each combination of facts that occurs.

A finding whose grace still runs makes the set PENDING; one that has run out, or had none, makes it
a BREAK; precedence picks the primary code. A night of a million sets has some hundred patterns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.matching.codes import PRECEDENCE, TABLE, CodeTable, When
from recon.matching.expressions import Condition, condition_of
from recon.matching.frames.grouping import Bools, Ints, Rows
from recon.matching.judging.grace import CLOCKS
from recon.matching.sides.gateway_side import GATEWAY_STATES
from recon.matching.sides.orders_side import ORDER_STATES
from recon.matching.sides.payouts import KnownPayout
from recon.model.errors import Defect
from recon.model.words import BreakCode, Flag, SetState, UnverifiedReason

PACKED_MAX = 2**62
UNVERIFIED_REASONS = (
    UnverifiedReason.ROW_QUARANTINED,
    UnverifiedReason.ENTRY_ID_CONFLICT,
    UnverifiedReason.QUERY_FAILED,
    UnverifiedReason.QUERY_RESULT_UNMAPPED,
    UnverifiedReason.REFUND_AMOUNT_UNKNOWN,
)
"""In this order the first that applies is shown; number n+1 stands for the n-th, 0 for none."""
ABSENT = ""
"""Neither side says anything: no row anywhere."""
PATTERN: Mapping[str, type] = {
    "order_state": int,
    "gateway_state": int,
    "unverified": int,
    "orders_lack": bool,  # no order, and an order file is lacking that may tell of it
    "anything": bool,  # any order, payment or compared entry
    "wrong_account": bool,
    "ambiguous": bool,
    "order_duplicate": bool,
    "currency_mismatch": bool,
    "foreign_payment": bool,  # the gateway holds nothing in the set's currency
    "unmapped": bool,
    "several_payments": bool,
    # Signs, with what our replies say of refunds, where the order tells of refunds.
    "net_sign": int,
    "captured_sign": int,
    "refunded_sign": int,
    "rounded": bool,
    "residual_orders": int,  # sign of what nothing explains on the leg of orders
    "both_known": bool,  # what was authorised and what was captured
    "over_authorised": bool,
    "over_refund": bool,
    "order_net": bool,
    "gateway_net": bool,
    "explained": bool,  # a confirmed instruction explains exactly what the gateway shows
    "captured": bool,
    "refunded": bool,  # with what our replies say of refunds
    "refund_unknown": bool,
    "covered": bool,  # a ledger was given
    "ledger_net": bool,
    "ledger_captured": bool,
    # Signs; below 0 a reversal stands without its original.
    "ledger_refunded": int,
    "ledger_chargeback": int,
    "ledger_capture_differs": bool,
    "ledger_refund_differs": bool,
    "ledger_rounded": bool,
    "residual_ledger": int,  # sign of what nothing explains on the leg of the ledger
    "booked_twice": bool,
    "refund_evidence": bool,
    "chargeback_before": bool,
    "closed_orders": bool,  # by a write-off, as the next one
    "closed_ledger": bool,
    "capture_confirmed": bool,
    "capture_rejected": bool,
    "capture_doubtful": bool,
    "capture_waiting": bool,
    "cancel_confirmed": bool,
    "cancel_rejected": bool,
    "cancel_doubtful": bool,
    "cancel_waiting": bool,
    # Refunds without a visible effect.
    "refund_confirmed": bool,
    "refund_rejected": bool,
    "refund_doubtful": bool,
    "refund_waiting": bool,
    "refund_failed_later": bool,
    "refund_doubt_shown": int,  # 1: ours come to what is shown refunded; 2: more is shown
    "reply_only": bool,  # a confirmed refund that the query cannot show
    "refund_running": bool,  # one that it does not show yet, within its grace
    "tells_refund": bool,  # the order says what it expects refunded
    # And the gateway still has it in review.
    "review_confirmed": bool,
    "review_rejected": bool,
    "review_doubtful": bool,
    "subscription_stands": bool,  # we asked to end one, and nothing says that it ended
    "exchange_differs": bool,
    "settled": bool,  # any line of a settlement file
    "settled_capture": bool,
    "settled_differs": bool,
    # By lines, of a payment that the gateway shows with its money; 2: the books have exactly that.
    "charged_by_lines": int,
    "settlement_owed": bool,  # a settlement file of its days exists
    "fee_differs": bool,
    "payout": int,  # bits of KnownPayout; 0 for what is no pay-out
    "late": int,  # bit n: the n-th of CLOCKS has run out
}
"""What is known of a set, without its amounts. Signs are -1, 0, 1 after tolerance."""
_PAYOUTS = {f"payout_{bit.name}".lower(): bit for bit in KnownPayout if bit.name != "PAYOUT"}
FACTS: Mapping[str, type] = {
    **PATTERN,
    "payout": bool,
    **dict.fromkeys(("order", "gateway", "cell"), str),
    **dict.fromkeys(_PAYOUTS, bool),
    **{f"late_{clock}": bool for clock in CLOCKS},
    # Signs of what neither a code nor anything that is waited for says; for `last` alone.
    **dict.fromkeys(("open_orders", "open_ledger"), int),
}
"""What conditions of the table may name, beside its own `[facts]`."""
LEGS = ("orders", "instructions", "ledger", "settlement")
"""In this order what comes first of them is waited for."""


class TableRow(NamedTuple):
    """A row of the table that may hold."""

    code: BreakCode | None
    flag: Flag | None
    when: When
    holds: Condition


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome for every set of one pattern."""

    state: str
    """A SetState, or ABSENT."""
    codes: tuple[BreakCode, ...] = ()
    """In order of precedence; the first is the primary code."""
    flags: tuple[Flag, ...] = ()
    clocks: frozenset[str] = frozenset()
    """What a PENDING set waits for."""
    expected_side: str = ""
    """Whose word it waits for."""
    rule: str = ""
    """Why a set is MATCHED."""
    reason: str = ""
    """Why a set is UNVERIFIED."""


def distinct_patterns(columns: Mapping[str, Rows]) -> tuple[Rows, dict[str, Ints]]:
    """The pattern number of each set, and the distinct patterns as columns of PATTERN."""
    size = len(columns["order_state"])
    packed, span = np.zeros(size, dtype=np.int64), 1
    for name in PATTERN:
        values = columns[name]
        low = int(values.min(initial=0))
        width = int(values.max(initial=0)) - low + 1
        if span * width > PACKED_MAX:
            packed, known = pd.factorize(packed)
            span = len(known)
        packed = packed * width + (values - low)
        span *= width
    numbers = pd.factorize(packed)[0].astype(np.intp)
    _, first = np.unique(numbers, return_index=True)
    return numbers, {name: columns[name][first] for name in PATTERN}


def rows_of(table: CodeTable) -> tuple[tuple[TableRow, ...], Mapping[str, Condition]]:
    """The conditions of the table, and its own facts in their order.

    Raises:
        Defect: a condition, state or clock is not known; the message names its code or fact.
    """
    known, facts = dict(FACTS), {}
    for name, text in table.facts.items():
        facts[name] = _ready(text, facts=known, of=name)
        known[name] = bool
    whens = [(code, None, when) for code, row in table.codes.items() for when in row.when]
    flags = [(None, flag, when) for flag, row in table.flags.items() for when in row.when]
    rows = []
    for code, flag, when in (*whens, *flags):
        name = code or flag or ""
        if when.grace not in ("", *CLOCKS):
            msg = f"codes.toml, {name}: there is no clock {when.grace!r}"
            raise Defect(msg)
        rows.append(TableRow(code, flag, when, _ready(when.holds, facts=known, of=name)))
    for state, cells in table.cells.items():
        if unknown := {*cells} - _CELLS - {*BreakCode}:
            msg = f"codes.toml, states, {state}: there is no cell {min(unknown)!r}"
            raise Defect(msg)
    return tuple(rows), facts


def _ready(text: str, *, facts: Mapping[str, type], of: str) -> Condition:
    try:
        return condition_of(text, facts=facts)
    except ValueError as error:
        msg = f"codes.toml, {of}: {error}"
        raise Defect(msg) from error


_CELLS = frozenset({"=", "amounts", "never", "by_void", "given_back"})
_COLUMNS = {
    state: at
    for at, states in enumerate(
        [
            *("none", "pending in_review", "authorised", "paid", "partially_refunded", "refunded"),
            *("cancelled", "expired", "failed"),
        ]
    )
    for state in states.split()
}
"""The cells of the states of the gateway; a state without one says nothing by itself."""
ROWS, DERIVED = rows_of(TABLE)
_MATCHED = [(each.rule, condition_of(each.holds, facts=FACTS)) for each in TABLE.matched]
_FIRM = frozenset(code for code, row in TABLE.codes.items() if row.firm)
"""A write-off does not close these: they are doubts, not differences."""
_BOTH_LEGS = frozenset(code for code, row in TABLE.codes.items() if row.both_legs)


def judge(patterns: Mapping[str, Ints]) -> tuple[Judgement, ...]:
    """What the sets of each pattern come to.

    Args:
        patterns: columns of PATTERN (grain: pattern).
    """
    known = _facts(patterns)
    found = [(row, _holds(row, known=known)) for row in ROWS if not row.when.last]
    _open_legs(known, found=found)
    found += [(row, _holds(row, known=known)) for row in ROWS if row.when.last]
    late: list[list[TableRow]] = [[] for _ in known.order]
    waits: list[list[TableRow]] = [[] for _ in known.order]
    for row, holds in found:
        is_late = _is_late(row, known=known)
        for number in np.flatnonzero(holds).tolist():
            (late if is_late[number] else waits)[number].append(row)
    rules, agree = zip(*_MATCHED, strict=True)
    agreed = np.select([holds(known) for holds in agree], rules, default="")
    facts = (known.unverified, known.orders_lack, known.anything, agreed)
    return tuple(starmap(_judgement, zip(late, waits, *(f.tolist() for f in facts), strict=True)))


def _judgement(
    late: list[TableRow], waits: list[TableRow], *facts: *tuple[int, bool, bool, str]
) -> Judgement:
    unverified, orders_lack, anything, agreed = facts
    if unverified:
        return Judgement(SetState.UNVERIFIED, reason=UNVERIFIED_REASONS[unverified - 1].value)
    codes = tuple(sorted({row.code for row in late if row.code}, key=PRECEDENCE.index))
    flags = tuple(sorted({row.flag for row in late if row.flag}))
    if orders_lack and BreakCode.MISSING_IN_ORDERS in codes and not _FIRM & {*codes}:
        return Judgement(SetState.UNVERIFIED, reason=UnverifiedReason.ORDERS_MISSING.value)
    if codes:
        return Judgement(SetState.BREAK, codes, flags)
    if waits:
        side = min(waits, key=lambda row: LEGS.index(row.when.leg)).when.side
        clocks = frozenset(row.when.grace for row in waits)
        return Judgement(SetState.PENDING, flags=flags, clocks=clocks, expected_side=side)
    if not anything:
        return Judgement(ABSENT)
    rules = (row.rule for flag, row in TABLE.flags.items() if row.rule and flag in flags)
    return Judgement(SetState.MATCHED, flags=flags, rule=next(rules, agreed))


def _facts(patterns: Mapping[str, Ints]) -> SimpleNamespace:
    """The facts of the patterns as conditions name them."""
    known = SimpleNamespace(**{n: patterns[n].astype(FACTS[n]) for n in PATTERN})
    known.order = np.array(ORDER_STATES, dtype=object)[patterns["order_state"]]
    known.gateway = np.array(GATEWAY_STATES, dtype=object)[patterns["gateway_state"]]
    pairs = zip(known.order.tolist(), known.gateway.tolist(), strict=True)
    known.cell = np.array([_cell(*pair) for pair in pairs], dtype=object)
    for name, bit in _PAYOUTS.items():
        setattr(known, name, patterns["payout"] & bit != 0)
    for number, clock in enumerate(CLOCKS):
        setattr(known, f"late_{clock}", patterns["late"] >> number & 1 != 0)
    for name, holds in DERIVED.items():
        setattr(known, name, holds(known))
    return known


def _cell(order: str, gateway: str) -> str:
    """The cell of a pair; a state of the gateway without a column says nothing by itself."""
    return TABLE.cells[order][_COLUMNS[gateway]] if gateway in _COLUMNS else "="


def _holds(row: TableRow, *, known: SimpleNamespace) -> Bools:
    """Where the row holds and no write-off closes its leg."""
    holds: Bools = row.holds(known) & (known.payout == row.when.payout)
    if row.when.leg in ("orders", "ledger") and row.code not in _FIRM:
        holds &= ~getattr(known, f"closed_{row.when.leg}")
    return holds


def _is_late(row: TableRow, *, known: SimpleNamespace) -> Bools:
    late: Bools = getattr(known, f"late_{row.when.grace}", np.ones_like(known.payout))
    return late


def _open_legs(known: SimpleNamespace, *, found: list[tuple[TableRow, Bools]]) -> None:
    """Mark the legs whose difference neither a code nor anything that is waited for says.

    Every difference has a finding of its own; this is the floor under them, so that no set is
    MATCHED or PENDING with money that does not add up.
    """
    claimed = {leg: np.zeros_like(known.payout) for leg in ("", *LEGS)}
    for row, holds in found:
        if row.code is not None or row.when.grace:
            claimed[row.when.leg] |= holds
        if row.code is not None:
            claimed[""] |= holds & _is_late(row, known=known)
        if row.code in _BOTH_LEGS:
            claimed["orders"] |= holds
    of_orders = claimed["orders"] | claimed["instructions"] | claimed[""]
    known.open_orders = np.where(of_orders, 0, known.residual_orders)
    known.open_ledger = np.where(claimed["ledger"] | claimed[""], 0, known.residual_ledger)
