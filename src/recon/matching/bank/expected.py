"""The payouts that banks are asked about: which bank, from which day on, by which day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.statements import Cover
from recon.model.business_date import BusinessCalendar, Grace, midnight

LAST_COUNTED = "9998"
"""Days of later years are wrong, and what is due after them no calendar can say."""


@dataclass(frozen=True, slots=True)
class Payout:
    """One batch that was paid out, as its bank should show it; minor units."""

    number: int
    merchant_id: str
    account_id: str
    currency: str
    batch_id: str
    settled_on: str
    paid: int
    bank: str
    earliest: str
    """One day of banks before it was settled: none of it can stand on a statement before."""
    due_on: str
    opening: bool
    """Due before the first statement: listed, not judged."""

    @property
    def key(self) -> str:
        """What its break is known by, as by the books."""
        return f"payout:{self.currency}:{self.batch_id}"

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """In which order payouts stand."""
        return (self.settled_on, self.batch_id, self.merchant_id, self.account_id, self.currency)


def expected_payouts(
    paid: pd.DataFrame, *, rules: Rules, covers: Mapping[str, Cover]
) -> tuple[tuple[Payout, ...], tuple[str, ...]]:
    """Every payout of an account that a bank serves, and the accounts that none serves.

    Args:
        paid: PAID_OUT_COLUMNS.
        rules: banks, calendar and grace.
        covers: what the statements of each bank prove.
    """
    grace, calendar = Grace.parse(rules.grace.payout_to_bank), rules.bank_calendar
    found, alone = [], set()
    names = ("merchant_id", "account_id", "currency", "batch_id", "settled_on", "paid")
    for cells in zip(*(paid[name].tolist() for name in names), strict=True):
        merchant, account, currency, batch, settled, amount = cells
        bank = bank_of(merchant, account, currency=currency, rules=rules)
        if not bank:
            alone.add(f"{merchant}/{account}")
            continue
        if not amount or bank not in covers:
            continue
        due = _due_on(settled, grace=grace, calendar=calendar)
        first = covers[bank].first_day
        found.append(
            Payout(
                number=0,
                merchant_id=merchant,
                account_id=account,
                currency=currency,
                batch_id=batch,
                settled_on=settled,
                paid=int(amount),
                bank=bank,
                earliest=_day_before(settled, calendar=calendar),
                due_on=due,
                opening=bool(first) and due < first,
            )
        )
    ordered = sorted(found, key=lambda one: one.place)
    return tuple(_numbered(ordered)), tuple(sorted(alone))


def bank_of(merchant: str, account: str, *, currency: str, rules: Rules) -> str:
    """The bank that an account is paid out to: of its currency, else any that serves it."""
    serving = [name for name, bank in rules.bank.items() if (merchant, account) in bank.served]
    same = [name for name in serving if rules.bank[name].currency == currency]
    return next(iter(sorted(same) or sorted(serving)), "")


def _numbered(payouts: Sequence[Payout]) -> list[Payout]:
    return [replace(one, number=number) for number, one in enumerate(payouts)]


def _due_on(settled: str, *, grace: Grace, calendar: BusinessCalendar) -> str:
    if settled >= LAST_COUNTED:
        return settled  # no calendar counts on from it
    start = date.fromisoformat(settled)
    moved = calendar.due_at(midnight(start, zone=calendar.zone), grace=grace)
    due = calendar.local_date(moved)
    while not calendar.is_business_day(due):
        due += timedelta(days=1)
    return due.isoformat()


def _day_before(settled: str, *, calendar: BusinessCalendar) -> str:
    day = date.fromisoformat(settled) - timedelta(days=1)
    while not calendar.is_business_day(day):
        day -= timedelta(days=1)
    return day.isoformat()
