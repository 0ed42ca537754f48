"""Every movement between merchant and gateway with the business date of its own event.

A capture is dated by our instruction, else by the payment's date where it was captured when it was
first shown, else by the night that first showed it. A refund is dated by our instruction, else by
the night that first showed it, or by its settled line where that is earlier, each of several by its
own; a chargeback likewise.
Fees, adjustments and pay-outs are dated by settled_on. The sale's date dates none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.period.business_month import DayTable
from recon.period.looked_up import amounts_at, is_among, run_starts, words_at
from recon.period.month_evidence import MonthEvidence
from recon.period.prior_periods import ClosedPeriod, counted_on, told_dates
from recon.period.settled_parts import beyond_what_is_known, dated_by_lines

CAPTURE, REFUND, CHARGEBACK, WON_BACK = "capture", "refund", "chargeback", "won_back"
ADJUSTMENT, PAYEE, PAY_OUT = "adjustment", "payee", "pay_out"
FEES = {
    "capture": "fee_on_captures",
    "refund": "fee_on_refunds",
    "chargeback": "fee_on_chargebacks",
    "fee": "fee_of_account",
}
OTHER_FEE = "fee_on_others"
KINDS = (
    *(CAPTURE, REFUND, CHARGEBACK, WON_BACK),
    *(*FEES.values(), OTHER_FEE),
    *(ADJUSTMENT, PAYEE, PAY_OUT),
)
"""What moves the receivable, in the order of a statement."""
RESERVE = "reserve"
"""What moves between payable and reserve, and the receivable not at all: + kept, - released."""
OF_PAYMENTS = ("capture", "refund", "chargeback")
"""Base types of lines that settle a payment's own movements."""
BY_INSTRUCTION, BY_PAYMENT, BY_NIGHT, BY_LINE = (
    "instruction",
    "payment date",
    "first shown",
    "settled",
)
FACT_COLUMNS = (
    *("kind", "currency", "amount", "event_on", "order_no", "payment", "batch_id"),
    *("dated_by", "told", "is_outside", "own_on"),
)


@dataclass(frozen=True, slots=True)
class DatedFacts:
    """The facts of all nights of a month, and what settled them."""

    movements: pd.DataFrame
    """FACT_COLUMNS (grain: fact): amount as it moves the receivable; told: the night's number;
    is_outside: from before the first settled day and settled by no line, so nobody's receivable;
    event_on is the day by which it counts, own_on that of its event (see `prior_periods`)."""
    settled: pd.DataFrame
    """The lines of the settlement (see MonthEvidence), `counts_on` beside settled_on."""


def dated_facts(
    evidence: MonthEvidence, *, days: DayTable, closed: Sequence[ClosedPeriod] = ()
) -> DatedFacts:
    """All facts that the nights tell, whenever they are dated; `closed`: months that stay."""
    dated = evidence.instructions.assign(event_on=days.dates_of(evidence.instructions["moved_at"]))
    parts = [
        *_captures(evidence, instructed=dated[dated["kind"].eq(CAPTURE)], days=days),
        *_refunds(evidence, instructed=dated[dated["kind"].eq(REFUND)]),
        *_chargebacks(evidence),
        *_of_lines(evidence.lines),
    ]
    named = [*FACT_COLUMNS[:-2]]
    movements = pd.concat([part[named] for part in parts if len(part)] or [_none()[named]])
    movements = movements[movements["amount"].ne(0)]
    movements = movements.assign(is_outside=_is_outside(movements, evidence=evidence))
    order = ["event_on", "kind", "currency", "payment", "batch_id", "told", "amount"]
    movements = movements.assign(
        own_on=movements["event_on"],
        event_on=_counted(movements, "event_on", evidence=evidence, closed=closed),
    )
    counts_on = _counted(evidence.lines, "settled_on", evidence=evidence, closed=closed)
    lines = evidence.lines.assign(counts_on=counts_on)
    return DatedFacts(movements.sort_values(order, ignore_index=True), lines)


def _counted(
    rows: pd.DataFrame, own: str, *, evidence: MonthEvidence, closed: Sequence[ClosedPeriod]
) -> "pd.Series[str]":
    told_on = told_dates(rows["told"], dates=evidence.dates)
    return counted_on(rows[own], told_on=told_on, closed=closed)


def _is_outside(movements: pd.DataFrame, *, evidence: MonthEvidence) -> "pd.Series[bool]":
    """Facts of payments that were settled before the first file: no line tells of them."""
    lined = evidence.lines["payment"]
    of_payment = movements["kind"].isin((CAPTURE, REFUND, CHARGEBACK, WON_BACK))
    return (
        of_payment
        & (movements["event_on"] < evidence.settled_since)
        & ~is_among(movements["payment"], lined[lined.ne("")])
    )


def _none() -> pd.DataFrame:
    numbers = {"amount": "int64", "told": "int64"}
    return pd.DataFrame({name: pd.Series(dtype=numbers.get(name, "str")) for name in FACT_COLUMNS})


def _captures(
    evidence: MonthEvidence, *, instructed: pd.DataFrame, days: DayTable
) -> list[pd.DataFrame]:
    """Confirmed captures as far as the gateway shows them, and what it shows beyond."""
    shown = _newest_level(evidence, "captured")
    ours = instructed.sort_values(["payment", "event_on", "instruction_id"])
    before = ours.groupby("payment")["amount"].cumsum() - ours["amount"]
    room = (amounts_at(ours["payment"], sums=shown) - before).clip(lower=0)
    ours = ours.assign(amount=ours["amount"].where(ours["amount"] <= room, room))
    rest = _beyond(evidence.changes, "captured", known=_sums(ours))
    paid_on = days.dates_of(rest["transaction_date"])
    at_first = rest["is_first"].astype(bool) & paid_on.ne("")
    paid = rest[at_first].assign(event_on=paid_on[at_first], dated_by=BY_PAYMENT)
    settled = _of_type(evidence.lines, "capture")
    rest = dated_by_lines(rest[~at_first], lines=settled[settled["gross"] > 0])
    return [
        _named(ours, CAPTURE, sign=1, by=BY_INSTRUCTION),
        _named(paid, CAPTURE, sign=1),
        _named(rest, CAPTURE, sign=1, by=BY_NIGHT),
    ]


def _refunds(evidence: MonthEvidence, *, instructed: pd.DataFrame) -> list[pd.DataFrame]:
    """Confirmed refunds, what the gateway shows beyond them, and what only lines tell."""
    known, lines = _sums(instructed), _of_type(evidence.lines, "refund")
    rest = _beyond(evidence.changes, "refunded", known=known)
    rest = dated_by_lines(rest, lines=lines[lines["gross"] < 0])
    known_otherwise = pd.concat([known, _newest_level(evidence, "refunded")]).groupby(level=0).max()
    return [
        _named(instructed, REFUND, sign=-1, by=BY_INSTRUCTION),
        _named(rest, REFUND, sign=-1, by=BY_NIGHT),
        _named(
            beyond_what_is_known(lines, known=known_otherwise, sign=-1), REFUND, sign=-1, by=BY_LINE
        ),
    ]


def _chargebacks(evidence: MonthEvidence) -> list[pd.DataFrame]:
    """What the gateway shows as charged back and as won back, and what only lines tell."""
    moved = _beyond(evidence.changes, "charged", known=pd.Series(dtype="int64"))
    back = moved[moved["amount"] < 0]
    back = back.assign(amount=-back["amount"], event_on=back["business_date"])
    lines = _of_type(evidence.lines, "chargeback")
    reversals, chargebacks = lines[lines["is_back"]], lines[~lines["is_back"]]
    taken = dated_by_lines(moved[moved["amount"] > 0], lines=chargebacks)
    only = beyond_what_is_known(chargebacks, known=_sums(taken), sign=-1)
    only_back = beyond_what_is_known(reversals, known=_sums(back), sign=1)
    return [
        _named(taken, CHARGEBACK, sign=-1, by=BY_NIGHT),
        _named(back, WON_BACK, sign=1, by=BY_NIGHT),
        _named(only, CHARGEBACK, sign=-1, by=BY_LINE),
        _named(only_back, WON_BACK, sign=1, by=BY_LINE),
    ]


def _of_lines(lines: pd.DataFrame) -> list[pd.DataFrame]:
    """Fees by what they were taken on, adjustments, pay-outs, and what was kept as a reserve."""
    rows = lines.assign(event_on=lines["settled_on"], dated_by=BY_LINE, payment="")
    paid, others = rows[rows["is_pay_out"]], rows[~rows["is_pay_out"]]
    own = others["entry_type"].eq("payout")
    fees = others[~own & others["fee"].ne(0)]
    fees = fees.assign(
        kind=words_at(fees["entry_type"], words=FEES, otherwise=OTHER_FEE), amount=-fees["fee"]
    )
    adjusted = others[others["entry_type"].eq("adjustment")]
    kept = others[others["entry_type"].eq("reserve")]
    return [
        fees,
        adjusted.assign(kind=ADJUSTMENT, amount=adjusted["gross"]),
        others[own].assign(kind=PAYEE, amount=others.loc[own, "net"]),
        paid.assign(kind=PAY_OUT, amount=-paid["net"]),
        kept.assign(kind=RESERVE, amount=-kept["gross"]),
    ]


def _beyond(changes: pd.DataFrame, level: str, *, known: "pd.Series[int]") -> pd.DataFrame:
    """By how much a level changed from night to night, above what is known otherwise.

    `above`: what is known, with all by which the level rose before.
    """
    otherwise = amounts_at(changes["payment"], sums=known).to_numpy()
    above = (changes[level].to_numpy() - otherwise).clip(min=0)
    starts = run_starts(changes["payment"])
    moved = above - np.where(starts, 0, np.roll(above, 1))
    rose = moved.clip(min=0)
    # Sums run over all payments: less what they had come to where each begins.
    reached = rose.cumsum() - rose
    first = np.maximum.accumulate(np.where(starts, np.arange(len(rose)), 0))
    before = otherwise + reached - reached[first]
    rows = changes.assign(amount=moved, above=before, told=changes["number"], batch_id="")
    return rows[rows["amount"].ne(0)]


def _of_type(lines: pd.DataFrame, base: str) -> pd.DataFrame:
    return lines[lines["entry_type"].eq(base)]


def _newest_level(evidence: MonthEvidence, level: str) -> "pd.Series[int]":
    levels = evidence.levels
    return levels[level].set_axis(levels["payment"])


def _sums(rows: pd.DataFrame) -> "pd.Series[int]":
    return rows.groupby("payment")["amount"].sum()


def _named(rows: pd.DataFrame, kind: str, *, sign: int, by: str = "") -> pd.DataFrame:
    dated_by = by or rows["dated_by"]
    return rows.assign(kind=kind, amount=rows["amount"] * sign, dated_by=dated_by, batch_id="")
