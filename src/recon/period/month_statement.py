"""The statement of the clearing account: opening, movements, closing of a month, and their proof.

Per currency P3 holds what moved against what is listed, P4 the cash in transit, P5 the books. P1
(nights), P2 (what they told), P6 and P7 (journals) and P8 (fees) have modules of their own. Every
figure is computed in pandas; `statement_in_sql` says it again over the same sealed files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

import pandas as pd

from recon.matching.frames.arrays import texts_for
from recon.model.business_date import BusinessCalendar
from recon.model.freed_memory import give_back
from recon.period.books_of_month import Books, books_of
from recon.period.business_month import BusinessMonth, DayTable
from recon.period.cash_in_transit import MOVES, Transit, in_transit, transit_of
from recon.period.dated_facts import KINDS, RESERVE, DatedFacts, dated_facts
from recon.period.fees_of_month import estimated_fees, fee_equations
from recon.period.journal_dates import Dating, age_of_month
from recon.period.journal_names import JournalNames
from recon.period.listed_differences import listed_differences
from recon.period.looked_up import words_at
from recon.period.month_equation import MonthEquation
from recon.period.month_evidence import MonthEvidence, evidence_of
from recon.period.month_journals import MonthJournals, journal_equations, month_journals
from recon.period.month_nights import MonthNight, are_small, frame_of
from recon.period.nights_chain import chain_equations, open_breaks
from recon.period.open_items import open_items
from recon.period.prior_periods import ClosedPeriod
from recon.period.shown_payments import NOTHING_ASKED, AskedEarlier, asked_earlier
from recon.period.straddling_items import LATE, VANISHED, straddling_items
from recon.period.told_by_nights import lost_batches, told_by_nights, told_equations
from recon.period.unknown_refunds import UnknownRefund, unknown_refunds
from recon.period.waiting_adjustments import WAITS

OPENING, MOVED, CLOSING = "opening", "moved", "closing"
"""When a figure is of: the close of the day before the month, the month, its last close."""


@dataclass(frozen=True, slots=True)
class MonthFigure:
    """One figure of a statement."""

    currency: str
    of: str
    """gateway (what it owes), reserve (kept + or released -), outside (before the settlement
    begins), transit, books."""
    at: str
    """OPENING, MOVED or CLOSING."""
    name: str
    """A class of open items, a kind of movement, a type of entry."""
    count: int
    amount: int
    """Minor units, as it moves what the merchant has to get."""


@dataclass(frozen=True, slots=True)
class MonthFrame:
    """What a month is asked with, beside its nights: days, and the names of its accounts."""

    month: BusinessMonth
    account: tuple[str, str]
    calendar: BusinessCalendar
    """Zone and cut-off of the newest night's rules."""
    due: Sequence[str] = ()
    """ISO business dates of the month on which a night was due by now."""
    names: JournalNames | None = None
    """Accounts of the books; None: nothing is accrued."""
    closed: Sequence[ClosedPeriod] = ()
    """Months before it that two people closed: their figures stay."""
    earlier: Sequence[MonthNight] = ()
    """Nights before those of the statement, numbered below 0."""
    asked: AskedEarlier = NOTHING_ASKED
    """What those are asked about."""


@dataclass(frozen=True, slots=True)
class MonthStatement:
    """What a month came to, of one account."""

    month: BusinessMonth
    account: tuple[str, str]
    figures: Sequence[MonthFigure]
    equations: Sequence[MonthEquation]
    opening_items: pd.DataFrame
    """ITEM_COLUMNS at the close of the day before."""
    closing_items: pd.DataFrame
    """ITEM_COLUMNS at the last close."""
    transit: pd.DataFrame | None
    """What is in transit at the last close; None: no bank is covered."""
    before_bank: dict[str, int]
    """Currency -> pay-outs from before the bank's first statement: it is not asked for them."""
    books: pd.DataFrame | None
    """Why books and gateway differ at the last close, as it is listed; None without a ledger."""
    straddling: pd.DataFrame
    facts: pd.DataFrame
    """FACT_COLUMNS of the month, `told_on` and `is_late` beside them."""
    unknown_refunds: Sequence[UnknownRefund]
    """Payments refunded in part by an amount that nothing tells."""
    unmeasured_refunds: Sequence[str]
    """Those and the ones that only lines measure."""
    is_settled: bool
    """Whether the newest night was given a settlement; without it the gateway's side is a part."""
    known_by: str
    """Business date of the newest night."""
    told: pd.DataFrame
    """What each night told of the month's facts (TOLD_COLUMNS)."""
    breaks: pd.DataFrame
    """What the last night by the close shows as open."""
    journals: MonthJournals
    """What the books are to be told."""
    estimates: dict[str, int]
    """Currency -> fees of captures that no line settled: an estimate, in no sum."""
    lost_batches: Sequence[tuple[str, str]] = ()
    """settled_on and name of batches whose sums changed once the nights had them as sums alone."""
    unproven_figures: Sequence[str] = ()
    """Figures that SQL says otherwise, each as a sentence."""

    @property
    def currencies(self) -> list[str]:
        """Sorted; those in which anything moved or is open."""
        return sorted({figure.currency for figure in self.figures})

    @property
    def closing_words(self) -> str:
        """When the closing is of: the last close, or what is known so far."""
        if self.known_by < self.month.last.isoformat():
            return f"so far, by the night of {self.known_by}"
        return f"at the close of {self.month.last}"

    @property
    def holds(self) -> bool:
        """Whether every equation and every figure does."""
        return not self.unproven_figures and all(each.holds for each in self.equations)

    def sum_of(self, currency: str, *, of: str, at: str, names: Sequence[str] = ()) -> int:
        """The amount of some figures; without names of all."""
        return sum(
            figure.amount
            for figure in self.figures
            if (figure.currency, figure.of, figure.at) == (currency, of, at)
            and (not names or figure.name in names)
        )


def asked_of(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> AskedEarlier:
    """What the nights before these are asked about, for a month of this frame."""
    first = date.fromisoformat(nights[0].business_date)
    close = frame.calendar.closes_at(first) if frame.closed else None
    return asked_earlier(nights, account=frame.account, first_close=close)


def statement_of(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> MonthStatement:
    """The statement by pandas alone; `nights` begin before the month, where there is one."""
    with texts_for(few=are_small((*frame.earlier, *nights))):
        return _stated(frame, nights=nights)


def _stated(frame: MonthFrame, *, nights: Sequence[MonthNight]) -> MonthStatement:
    month, account = frame.month, frame.account
    days = DayTable.around(month, calendar=frame.calendar)
    evidence = evidence_of(nights, account=account, earlier=frame.earlier, asked=frame.asked)
    give_back(frames=True)
    facts = dated_facts(evidence, days=days, closed=frame.closed)
    before, last = month.before.isoformat(), month.last.isoformat()
    opening = evidence.opening_of("opening_payable"), evidence.opening_of("opening_reserve")
    sides = [open_items(facts, at=at, account=account, opening=opening) for at in (before, last)]
    own = facts.movements[month.has(facts.movements["event_on"])]
    transit = transit_of(evidence.newest, account=account, settled=facts.settled)
    open_transit = {} if transit is None else _open_transit(transit, closes=(before, last))
    books = books_of(evidence, facts=facts, days=days, account=account, closes=(before, last))
    listed = {} if books is None else _listed(books, closes=(before, last))
    differing = listed.get(last)
    age = age_of_month(month, calendar=frame.calendar, newest=evidence.newest.business_date)
    give_back(frames=True)
    statement = MonthStatement(
        month=month,
        account=account,
        figures=[
            *_figures_of_gateway(sides, moves=own),
            *_figures_of_transit(transit, still=open_transit, month=month),
            *_figures_of_books(books, listed=listed, month=month),
        ],
        equations=(),
        opening_items=sides[0],
        closing_items=sides[1],
        transit=None if transit is None else open_transit[last],
        before_bank={} if transit is None else transit.before,
        books=differing,
        straddling=straddling_items(
            evidence, facts=facts, transit=transit, books=books, month=month, days=days
        ),
        facts=_told(own, evidence=evidence, last=last),
        unknown_refunds=unknown_refunds(evidence, facts=facts),
        unmeasured_refunds=sorted(evidence.unknown),
        is_settled=evidence.is_covered("settlement"),
        known_by=evidence.newest.business_date,
        told=told_by_nights(evidence, facts=facts, month=month),
        breaks=open_breaks(nights, account=account, month=month),
        journals=month_journals(
            evidence,
            dating=Dating(account, month, age, facts, books, frame.names),
            differing=differing,
        ),
        estimates=estimated_fees(sides[1], facts=facts, month=month),
        lost_batches=lost_batches(evidence),
    )
    known = _Known(evidence, facts, books, opening)
    return replace(statement, equations=[*_equations(statement, known=known, frame=frame)])


class _Known(NamedTuple):
    """What a statement was made of."""

    evidence: MonthEvidence
    facts: DatedFacts
    books: Books | None
    opening: tuple[dict[str, int], dict[str, int]]
    """Payable and reserve from before the first line."""


def _equations(
    statement: MonthStatement, *, known: _Known, frame: MonthFrame
) -> Iterator[MonthEquation]:
    """P1 to P8 by pandas, in their order."""
    evidence, facts, books, opening = known
    month, account, straddling = frame.month, frame.account, statement.straddling
    late = straddling[straddling["what"].eq(LATE)]
    yield from chain_equations(evidence.nights, account=account, month=month, due=frame.due)
    yield from told_equations(
        evidence, facts=facts, month=month, by_nights=statement.told, late=late
    )
    yield from _p3(statement)
    yield from _p3_held(evidence, facts=facts, account=account, opening=opening)
    yield from _p4(statement)
    yield from _p5(statement, books=books)
    yield from journal_equations(
        statement.journals,
        month=month,
        books=books,
        differing=None if books is None else books.differing[month.last.isoformat()],
        names=frame.names,
    )
    yield from fee_equations(facts, month=month, books=books)


def _figures_of_gateway(
    sides: Sequence[pd.DataFrame], *, moves: pd.DataFrame
) -> Iterator[MonthFigure]:
    yield from _figures_of_items(sides[0], at=OPENING)
    yield from _figures_of_moves(moves)
    yield from _figures_of_items(sides[1], at=CLOSING)


def _figures_of_items(items: pd.DataFrame, *, at: str) -> Iterator[MonthFigure]:
    for (currency, what), rows in items.groupby(["currency", "what"]):
        yield MonthFigure(
            str(currency), "gateway", at, str(what), len(rows), int(rows["amount"].sum())
        )


def _figures_of_moves(moves: pd.DataFrame) -> Iterator[MonthFigure]:
    outside = moves["is_outside"].astype(bool)
    for (currency, kind), rows in moves[outside].groupby(["currency", "kind"]):
        amount = int(rows["amount"].sum())
        yield MonthFigure(str(currency), "outside", MOVED, str(kind), len(rows), amount)
    for (currency, kind), rows in moves[~outside].groupby(["currency", "kind"]):
        of = "reserve" if str(kind) == RESERVE else "gateway"
        yield MonthFigure(str(currency), of, MOVED, str(kind), len(rows), int(rows["amount"].sum()))


def _open_transit(transit: Transit, *, closes: Sequence[str]) -> dict[str, pd.DataFrame]:
    return {day: in_transit(transit, at=day) for day in closes}


def _figures_of_transit(
    transit: Transit | None, *, still: Mapping[str, pd.DataFrame], month: BusinessMonth
) -> Iterator[MonthFigure]:
    if transit is None:
        return
    for at, day in ((OPENING, month.before), (CLOSING, month.last)):
        for name, rows in still[day.isoformat()].groupby("currency"):
            amount = int(rows["amount"].sum())
            yield MonthFigure(str(name), "transit", at, "in_transit", len(rows), amount)
    moves = transit.moves[month.has(transit.moves["counts_on"])]
    for (currency, move), rows in moves.groupby(["currency", "move"]):
        amount = int(rows["amount"].sum())
        yield MonthFigure(str(currency), "transit", MOVED, str(move), len(rows), amount)


def _listed(books: Books, *, closes: Sequence[str]) -> dict[str, pd.DataFrame]:
    return {day: listed_differences(books, at=day) for day in closes}


def _figures_of_books(
    books: Books | None, *, listed: Mapping[str, pd.DataFrame], month: BusinessMonth
) -> Iterator[MonthFigure]:
    if books is None:
        return
    for at, day in ((OPENING, month.before), (CLOSING, month.last)):
        differing = listed[day.isoformat()]
        for (currency, what), rows in differing.groupby(["currency", "what"]):
            amount, count = int(rows["amount"].sum()), int(rows["amount"].ne(0).sum())
            yield MonthFigure(str(currency), "books", at, str(what), count, amount)
    booked = books.entries[month.has(books.entries["day"])]
    kinds = booked["entry_type"].where(booked["gone_on"].eq(""), VANISHED)
    booked = booked.assign(entry_type=kinds)
    for (currency, kind), rows in booked.groupby(["currency", "entry_type"]):
        amount = int(rows["amount"].sum())
        yield MonthFigure(str(currency), "books", MOVED, str(kind), len(rows), amount)


def _p3(statement: MonthStatement) -> Iterator[MonthEquation]:
    """What was open, with all that moved it, is what is listed."""
    for currency in statement.currencies:
        opening = statement.sum_of(currency, of="gateway", at=OPENING)
        moved = statement.sum_of(currency, of="gateway", at=MOVED, names=KINDS)
        closing = int(_of_currency(statement.closing_items, currency)["amount"].sum())
        name = "opening + movements = listed at the gateway"
        yield MonthEquation("P3", name, currency, "amount", opening + moved, closing)


def _p3_held(
    evidence: MonthEvidence,
    *,
    facts: DatedFacts,
    account: tuple[str, str],
    opening: tuple[dict[str, int], dict[str, int]],
) -> Iterator[MonthEquation]:
    """The lines of all nights come to what the newest night holds."""
    if "held" not in evidence.newest.files or not evidence.is_covered("settlement"):
        return
    held = frame_of(evidence.newest, "held", account=account).groupby("currency")["amount"].sum()
    lines = facts.settled
    signed = lines["net"].where(~lines["is_pay_out"], -lines["net"]) - lines["gross"].where(
        lines["entry_type"].eq("reserve") & ~lines["is_pay_out"], 0
    )
    sums = signed.groupby(lines["currency"]).sum()
    for currency in sorted({*held.index, *sums.index, *opening[0], *opening[1]}):
        left = (
            int(sums.get(currency, 0)) + opening[0].get(currency, 0) + opening[1].get(currency, 0)
        )
        name = "all lines of the settlement = payable and reserve of the newest night"
        yield MonthEquation("P3", name, currency, "amount", left, int(held.get(currency, 0)))


def _p4(statement: MonthStatement) -> Iterator[MonthEquation]:
    """What was in transit, with what was paid out and came, is what is listed."""
    if statement.transit is None:
        return
    for currency in statement.currencies:
        opening = statement.sum_of(currency, of="transit", at=OPENING)
        moved = statement.sum_of(currency, of="transit", at=MOVED, names=MOVES)
        closing = int(_of_currency(statement.transit, currency)["amount"].sum())
        name = "opening + paid out - at the bank + returned - kept = listed in transit"
        yield MonthEquation("P4", name, currency, "amount", opening + moved, closing)


def _p5(statement: MonthStatement, *, books: Books | None) -> Iterator[MonthEquation]:
    """The books differ from the gateway by what is listed, and of that what is open is shown."""
    if books is None or statement.books is None:
        return
    last = statement.month.last.isoformat()
    for currency in statement.currencies:
        sides = books.moved_by(last, currency=currency)
        listed = int(_of_currency(statement.books, currency)["amount"].sum())
        rows = _of_currency(books.differing[last], currency)
        shown = int(rows["shown"].sum())
        name = "books - gateway = booked in another month + open"
        yield MonthEquation("P5", name, currency, "amount", sides[0] - sides[1], listed)
        still = rows[rows["what"].eq("open")]
        name = "open in the books = breaks and what waits"
        yield MonthEquation("P5", name, currency, "amount", int(still["amount"].sum()), shown)
        unlike = int(still["amount"].ne(still["shown"]).sum())
        name = "open in the books and shown by no night"
        yield MonthEquation("P5", name, currency, "count", unlike, 0)
        for row in rows[rows["what"].isin(WAITS)].itertuples():
            name, key = f"listed = waits: {row.key}", str(row.key)
            listed, waits = int(str(row.amount)), books.waiting(key, currency=currency)
            yield MonthEquation("P5", name, currency, "amount", listed, waits)


def _of_currency(rows: pd.DataFrame, currency: str) -> pd.DataFrame:
    return rows[rows["currency"].eq(currency)]


def _told(own: pd.DataFrame, *, evidence: MonthEvidence, last: str) -> pd.DataFrame:
    told_on = words_at(own["told"], words=evidence.dates)
    return own.assign(told_on=told_on, is_late=told_on > last).reset_index(drop=True)


__all__ = [
    "MonthEquation",
    "MonthFigure",
    "MonthFrame",
    "MonthStatement",
    "statement_of",
]
