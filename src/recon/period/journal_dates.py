"""On which day the journals of a close are booked.

A night dates all that it proposes with its own day. What moved by a close is the closing month's:
a journal is booked on the month's last day by as much as was open there of its order and account,
and was made even by nothing that was booked or took place since. The rest of it keeps its day: what
moved later, and fees, which are accrued. Pay-outs and what arrived at the bank go whole, by the age
of their break.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from recon.model.business_date import BusinessCalendar
from recon.period.books_of_month import (
    FEES_KEY,
    PAYOUTS_KEY,
    Books,
    keys_of,
    orders_of_payments,
)
from recon.period.business_month import BusinessMonth
from recon.period.dated_facts import PAY_OUT, PAYEE, RESERVE, DatedFacts
from recon.period.journal_names import JournalNames
from recon.period.looked_up import is_among, words_at
from recon.period.month_evidence import MonthEvidence
from recon.period.month_nights import frame_of

RESERVES_KEY = "reserves"
OF_RESERVES = "RESERVE_"
"""How codes of breaks between clearing and reserve account begin."""
AT_BANK = "BANK_NOT_BOOKED"
_PLACE = ["currency", "key", "account"]
_DATED = ("currency", "key", "kind", "day", "amount", "way")
_ALIKE = ["journal_id", "currency", "size"]


def age_of_month(month: BusinessMonth, *, calendar: BusinessCalendar, newest: str) -> int:
    """Business days from which a break of the newest night is surely of the month or older.

    Days off right after the month share their age with its last day.
    """
    age = calendar.business_days_between(month.last, end=date.fromisoformat(newest))
    return age if calendar.business_days_between(month.last, end=month.after.first) else age + 1


@dataclass(frozen=True, slots=True)
class Dating:
    """By what the journals of a close get their days."""

    account: tuple[str, str]
    month: BusinessMonth
    age: int
    """See `age_of_month`."""
    facts: DatedFacts
    books: Books | None
    """None without a ledger."""
    names: JournalNames | None
    """None where the rules name no accounts."""


def dated_journals(rows: pd.DataFrame, *, evidence: MonthEvidence, dating: Dating) -> pd.DataFrame:
    """The lines that the newest night proposes, each with the day on which it is booked.

    A line of which a part is the month's is two: that part on the last day, the rest on its own.
    `rows`: debit and credit are numbers.
    """
    last, names = dating.month.last.isoformat(), dating.names
    is_later = rows["date"].astype("str") > last
    if dating.books is None or names is None or not is_later.any():
        return rows
    keyed = _keyed(rows[is_later], evidence=evidence, account=dating.account)
    is_counter = keyed["account"].ne(names.clearing) & keyed["key"].ne("")
    is_old = keyed["age_days"].fillna(-1) >= dating.age
    counter = keyed[is_counter & (keyed["key"].ne(PAYOUTS_KEY) | is_old)]
    left_open = _left_open(
        {*counter["key"]},
        evidence=evidence,
        movements=dating.facts.movements,
        books=dating.books,
        accounts=names.by_kind,
        last=last,
    )
    shares = _shares(counter, left_open=left_open).reindex(keyed.index, fill_value=0)
    shares = shares.where(is_counter, _of_clearing(keyed, shares=shares, is_counter=is_counter))
    is_of_bank = keyed["named"].eq(AT_BANK) & is_old
    shares = shares.where(~is_of_bank, keyed["size"]).reindex(rows.index, fill_value=0)
    return _split(rows, shares=shares, last=last)


def _keyed(
    rows: pd.DataFrame, *, evidence: MonthEvidence, account: tuple[str, str]
) -> pd.DataFrame:
    """Lines with the code, age and key of their break, `size` and how each pair moves clearing."""
    columns = ("break_id", "code", "order_no", "transaction_id", "age_days")
    breaks = frame_of(evidence.newest, "breaks", account=account, columns=columns)
    breaks = breaks.rename(columns={"code": "named"})
    key = keys_of(breaks, orders=orders_of_payments(evidence))
    key = key.where(~breaks["named"].str.startswith(OF_RESERVES), RESERVES_KEY)
    breaks = breaks.assign(key=key.where(key.ne(FEES_KEY) & breaks["named"].ne(AT_BANK), ""))
    own = rows.reset_index(names="line").merge(
        breaks[["break_id", "named", "key", "age_days"]], on="break_id", how="left"
    )
    own = own.set_index("line").rename_axis(None).fillna({"named": "", "key": ""})
    size = own["debit"] + own["credit"]
    return own.assign(size=size, amount=own["credit"] - own["debit"])


def _left_open(
    keys: set[str],
    *,
    evidence: MonthEvidence,
    movements: pd.DataFrame,
    books: Books,
    accounts: Mapping[str, str],
    last: str,
) -> pd.DataFrame:
    """Books less gateway by order or group and account: _PLACE, open at the close, still by now."""
    moved = movements[movements["kind"].isin(accounts)]
    key = moved["order_no"].where(moved["order_no"].ne(""), moved["payment"]).astype("str")
    key = key.where(~moved["kind"].isin((PAY_OUT, PAYEE)), PAYOUTS_KEY)
    is_reserve = moved["kind"].eq(RESERVE)
    amount = moved["amount"].where(~is_reserve, -moved["amount"])
    moved = moved.assign(key=key.where(~is_reserve, RESERVES_KEY), amount=amount, way=-1)
    booked = _booked(evidence, books=books).assign(way=1)
    rows = pd.concat(
        [
            moved.rename(columns={"event_on": "day"})[[*_DATED]][is_among(moved["key"], keys)],
            booked[[*_DATED]][booked["kind"].isin(accounts) & is_among(booked["key"], keys)],
        ],
        ignore_index=True,
    )
    return _open_at(rows.assign(account=words_at(rows["kind"], words=accounts)), last=last)


def _booked(evidence: MonthEvidence, *, books: Books) -> pd.DataFrame:
    """The entries with their kind; those of reserves as they move the clearing account alone."""
    entries = books.entries
    kind = entries["entry_type"].str.removesuffix("_reversal")
    is_reserve = kind.eq(RESERVE)
    own = evidence.entries.loc[entries.index[is_reserve]]
    amount = own["transaction_amount"].fillna(own["amount"]).astype("int64")
    amount = amount.where(own["entry_type"].str.endswith("_reversal"), -amount)
    return entries.assign(
        kind=kind,
        key=entries["key"].where(~is_reserve, RESERVES_KEY),
        amount=entries["amount"].where(~is_reserve, amount.reindex(entries.index, fill_value=0)),
    )


def _open_at(rows: pd.DataFrame, *, last: str) -> pd.DataFrame:
    by_close, is_booked = rows["day"] <= last, rows["way"].eq(1)
    signed = rows["amount"] * rows["way"]
    sums = rows.assign(
        still=signed,
        gap=signed.where(by_close, 0),
        booked_later=rows["amount"].where(~by_close & is_booked, 0),
        moved_later=rows["amount"].where(~by_close & ~is_booked, 0),
    )
    names = ["still", "gap", "booked_later", "moved_later"]
    sums = sums.groupby(_PLACE, as_index=False)[names].sum()
    # Of a balance nobody knows which booking answers which movement: they count against each other.
    is_balance = sums["key"].eq(RESERVES_KEY)
    net = sums["booked_later"] - sums["moved_later"]
    sums = sums.assign(
        booked_later=sums["booked_later"].where(~is_balance, net),
        moved_later=sums["moved_later"].where(~is_balance, 0),
    )
    way = np.sign(sums["gap"])
    since = (-way * sums["booked_later"]).clip(lower=0) + (way * sums["moved_later"]).clip(lower=0)
    left = (sums["gap"].abs() - since.where(sums["key"].ne(PAYOUTS_KEY), 0)).clip(lower=0)
    return sums[[*_PLACE, "still"]].assign(open=way * left)


def _shares(counter: pd.DataFrame, *, left_open: pd.DataFrame) -> "pd.Series[int]":
    """By line, how much of it is of the month.

    All of a place where that takes no more than is open; else, of those that make it less, one
    after the other. Pay-outs go whole or not at all, each is of one day; reserves, which are
    compared as a balance, only where the journals are all that differs.
    """
    rows = counter.reset_index(names="line").merge(left_open, on=_PLACE, how="left")
    rows = rows.fillna({"open": 0, "still": 0}).astype({"open": "int64", "still": "int64"})
    rows = rows.sort_values(["journal_id", "size"], kind="stable")
    total = rows.groupby(_PLACE)["amount"].transform("sum")
    is_known = rows["key"].ne(RESERVES_KEY) | rows["still"].eq(-total)
    rows["open"] = rows["open"].where(is_known, 0)
    way = -np.sign(rows["open"])
    fits = np.sign(total).eq(way) & total.ne(0) & (total.abs() <= rows["open"].abs())
    own = rows["size"].where(np.sign(rows["amount"]).eq(way), 0)
    before = own.groupby([rows[name] for name in _PLACE]).cumsum() - own
    room = (rows["open"].abs() - before).clip(lower=0)
    part = own.where(own <= room, room).where(rows["key"].ne(PAYOUTS_KEY), 0)
    return part.where(~fits, rows["size"]).set_axis(rows["line"])


def _of_clearing(
    keyed: pd.DataFrame, *, shares: "pd.Series[int]", is_counter: "pd.Series[bool]"
) -> "pd.Series[int]":
    """The other lines' shares: each of the line of its journal that it was written with."""
    names = [*_ALIKE, "is_debit"]
    rows = keyed.assign(share=shares, is_debit=keyed["debit"].ne(0))
    counter = rows[is_counter].assign(is_debit=~rows.loc[is_counter, "is_debit"])
    counter, others = (
        own.assign(nth=own.groupby(names).cumcount()) for own in (counter, rows[~is_counter])
    )
    places = pd.MultiIndex.from_frame(others[[*names, "nth"]])
    known = counter.set_index([*names, "nth"])["share"]
    own = known.reindex(places, fill_value=0).set_axis(others.index)
    return own.reindex(keyed.index, fill_value=0)


def _split(rows: pd.DataFrame, *, shares: "pd.Series[int]", last: str) -> pd.DataFrame:
    """Each line as its part of the month, on the last day, and the rest on its own.

    The lines of a journal stand together, those of each day behind one another.
    """
    day, is_debit = rows["date"].astype("str"), rows["debit"].ne(0)
    size = rows["debit"] + rows["credit"]
    parts = [
        rows.assign(date=on, debit=own.where(is_debit, 0), credit=own.where(~is_debit, 0))[
            own.ne(0)
        ]
        for on, own in ((last, shares), (day, size - shares))
    ]
    lines = pd.concat(parts).sort_index(kind="stable")
    journals, _ = pd.factorize(lines["journal_id"])
    lines = lines.assign(journal=journals).sort_values(["journal", "date"], kind="stable")
    return lines.drop(columns="journal").reset_index(drop=True)
