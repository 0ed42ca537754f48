"""P8: what the gateway charged in a month is booked in it, or is to be accrued.

Fees of captures that no line has settled are not known yet: they are estimated by what the month's
settled captures cost, marked so, and stand in no equation and in no journal.
"""

from collections.abc import Iterator

import pandas as pd

from recon.period.books_of_month import FEES_KEY, Books
from recon.period.business_month import BusinessMonth
from recon.period.dated_facts import FEES, OTHER_FEE, DatedFacts
from recon.period.looked_up import currencies_of
from recon.period.month_equation import AMOUNT, COUNT, MonthEquation
from recon.period.month_journals import to_accrue
from recon.period.open_items import NOT_SETTLED

CHARGED = "fees charged = booked + to accrue at the close - to accrue before"
OF_LINES = "fees of the lines = fees charged"
KINDS_OF_FEES = (*FEES.values(), OTHER_FEE)


def fee_equations(
    facts: DatedFacts, *, month: BusinessMonth, books: Books | None
) -> Iterator[MonthEquation]:
    """P8 of a month; without books only that no fee of a line is lost."""
    fees = facts.movements[facts.movements["kind"].isin(KINDS_OF_FEES)]
    own = fees[month.has(fees["event_on"])]
    lines = facts.settled
    lines = lines[lines["entry_type"].ne("payout") & lines["fee"].ne(0)]
    lines = lines[month.has(lines["counts_on"])]
    for currency in sorted(currencies_of(fees, lines)):
        charged, taken = (part[part["currency"].eq(currency)] for part in (own, lines))
        yield MonthEquation("P8", OF_LINES, currency, COUNT, len(taken), len(charged))
        amount = -int(charged["amount"].sum())
        yield MonthEquation("P8", OF_LINES, currency, AMOUNT, int(taken["fee"].sum()), amount)
    if books is not None:
        yield from _booked(own, month=month, books=books)


def _booked(
    charged: pd.DataFrame, *, month: BusinessMonth, books: Books
) -> Iterator[MonthEquation]:
    entries = books.entries[books.entries["key"].eq(FEES_KEY)]
    entries = entries[month.has(entries["day"])]
    before, closing = (
        to_accrue(books.differing[day.isoformat()]) for day in (month.before, month.last)
    )
    for currency in sorted({*currencies_of(charged, entries), *before, *closing}):
        left, booked = (
            -int(rows.loc[rows["currency"].eq(currency), "amount"].sum())
            for rows in (charged, entries)
        )
        right = booked + closing.get(currency, 0) - before.get(currency, 0)
        yield MonthEquation("P8", CHARGED, currency, AMOUNT, left, right)


def estimated_fees(
    items: pd.DataFrame, *, facts: DatedFacts, month: BusinessMonth
) -> dict[str, int]:
    """Currency -> what the captures that no line settled may cost, rounded down; an estimate."""
    lines = facts.settled
    lines = lines[lines["entry_type"].eq("capture") & month.has(lines["settled_on"])]
    sums = lines.groupby("currency")[["gross", "fee"]].sum()
    waits = items[items["what"].eq(NOT_SETTLED) & (items["amount"] > 0)]
    estimates = {}
    for currency, amount in waits.groupby("currency")["amount"].sum().items():
        gross = int(sums["gross"].get(currency, 0))
        if gross > 0:
            estimates[str(currency)] = int(amount) * int(sums["fee"].get(currency, 0)) // gross
    return {currency: amount for currency, amount in estimates.items() if amount > 0}
