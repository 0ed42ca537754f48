"""P6 and P7: the books once the proposed journals are booked, and that each journal balances.

Permanent ones are those that the newest night proposes for its breaks, those of the month dated on
its last day (`journal_dates`), and the books at the close have these. What was charged by the
close and is booked later, or by no journal of the month, is accrued: booked on the last day, and
taken back on the first of the next month, so that the books of the month have its fees and later
entries count once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pandas as pd

from recon.period.books_of_month import FEES_KEY, OPEN, Books
from recon.period.business_month import BusinessMonth
from recon.period.journal_dates import OF_RESERVES, Dating, dated_journals
from recon.period.journal_names import JournalNames
from recon.period.looked_up import currencies_of
from recon.period.month_equation import AMOUNT, COUNT, MonthEquation
from recon.period.month_evidence import MonthEvidence
from recon.period.month_nights import frame_of

PERMANENT, ACCRUAL, REVERSAL = "permanent", "accrual", "reversal"
JOURNAL_COLUMNS = (
    *("kind", "journal_id", "date", "account", "debit", "credit", "currency"),
    *("order_no", "break_id", "text"),
)
AFTER = "books with the journals = gateway + booked in another month + left to decide"
BREAKS = "breaks that journals book = breaks of the night with an effect on the books"
BALANCED = "debits = credits of all journals"
UNBALANCED = "journals whose debits are not their credits"
TAKEN_BACK = "accruals + reversals = 0"


@dataclass(frozen=True, slots=True)
class MonthJournals:
    """What the books are to be told at a close."""

    lines: pd.DataFrame
    """JOURNAL_COLUMNS (grain: line of a journal)."""
    booked: pd.DataFrame
    """break_id, currency, amount (how its journals move the clearing account by the close), later
    (and after it), effect (of the break on the books; null: the night shows none), by_close: some
    are dated by it, of_fees: and book fees."""


def month_journals(
    evidence: MonthEvidence, *, dating: Dating, differing: pd.DataFrame | None
) -> MonthJournals:
    """The journals of a close; `differing` as it is listed there."""
    account, month, names = dating.account, dating.month, dating.names
    rows = frame_of(evidence.newest, "journals", account=account)
    rows = rows.fillna({"debit": 0, "credit": 0}).astype({"debit": "int64", "credit": "int64"})
    rows = dated_journals(rows, evidence=evidence, dating=dating)
    booked = _booked(rows, evidence=evidence, account=account, last=month.last.isoformat())
    permanent = rows.assign(kind=PERMANENT)[[*JOURNAL_COLUMNS]]
    accrued = _accruals(booked, month=month, differing=differing, names=names)
    lines = pd.concat([permanent, accrued], ignore_index=True)
    return MonthJournals(lines.astype({"debit": "int64", "credit": "int64"}), booked)


def _booked(
    rows: pd.DataFrame, *, evidence: MonthEvidence, account: tuple[str, str], last: str
) -> pd.DataFrame:
    """What journals move of the clearing account, by break and currency, with its effect.

    Of breaks between clearing and reserve account nothing: a month counts both together.
    """
    night = evidence.newest
    breaks = frame_of(night, "breaks", account=account, columns=("break_id", "code"))
    codes = dict(zip(breaks["break_id"], breaks["code"], strict=True))
    code = pd.Series([str(codes.get(key, "")) for key in rows["break_id"]], rows.index, dtype="str")
    clearing = {*evidence.terms.loc[evidence.terms["name"].eq("clearing"), "word"]}
    by_close, amount = rows["date"].astype("str") <= last, rows["debit"] - rows["credit"]
    # One that is dated after the month leaves its fee to the accrual, which it follows.
    moved = rows.assign(
        amount=amount.where(by_close, 0),
        later=amount.where(~by_close, 0),
        by_close=by_close,
        of_fees=by_close & code.str.startswith("FEE_"),
    )
    booked = (
        moved[rows["account"].isin(clearing) & ~code.str.startswith(OF_RESERVES)]
        .groupby(["break_id", "currency"], as_index=False)
        .agg(
            amount=("amount", "sum"),
            later=("later", "sum"),
            by_close=("by_close", "any"),
            of_fees=("of_fees", "any"),
        )
    )
    effects = frame_of(night, "effects", account=account)
    effects = effects[effects["leg"].eq("ledger")].rename(columns={"amount": "effect"})
    return booked.merge(
        effects[["break_id", "currency", "effect"]], on=["break_id", "currency"], how="left"
    )


def to_accrue(differing: pd.DataFrame) -> dict[str, int]:
    """Currency -> fees charged by a close less those booked by it."""
    fees = differing[differing["key"].eq(FEES_KEY)]
    return {str(key): int(value) for key, value in fees.groupby("currency")["amount"].sum().items()}


def _accruals(
    booked: pd.DataFrame,
    *,
    month: BusinessMonth,
    differing: pd.DataFrame | None,
    names: JournalNames | None,
) -> pd.DataFrame:
    """What no journal books of the fees to accrue, on the last day and back on the next."""
    lines = []
    if differing is not None and names is not None and names.fees:
        fees = booked[booked["of_fees"].astype(bool)].groupby("currency")["amount"].sum()
        for currency, charged in sorted(to_accrue(differing).items()):
            left = charged + int(fees.get(currency, 0))
            if left:
                lines += [*_both_ways(left, currency=currency, month=month, names=names)]
    numbers = {"debit": "int64", "credit": "int64"}
    cells = {
        name: pd.Series([line[name] for line in lines], dtype=numbers.get(name, "str"))
        for name in JOURNAL_COLUMNS
    }
    return pd.DataFrame(cells)


def _both_ways(
    amount: int, *, currency: str, month: BusinessMonth, names: JournalNames
) -> Iterator[dict[str, str | int]]:
    for kind, day, sign in (
        (ACCRUAL, month.last, 1),
        (REVERSAL, month.last + timedelta(days=1), -1),
    ):
        debited, credited = names.fees, names.clearing
        if amount * sign < 0:
            debited, credited = credited, debited
        shared: dict[str, str | int] = {
            "kind": kind,
            "journal_id": f"{kind}-fees-{currency}-{month.name}",
            "date": day.isoformat(),
            "currency": currency,
            "order_no": "",
            "break_id": "",
            "text": f"fees of {month.name}, {kind}",
        }
        yield {**shared, "account": debited, "debit": abs(amount), "credit": 0}
        yield {**shared, "account": credited, "debit": 0, "credit": abs(amount)}


def journal_equations(
    journals: MonthJournals,
    *,
    month: BusinessMonth,
    books: Books | None,
    differing: pd.DataFrame | None,
    names: JournalNames | None,
) -> Iterator[MonthEquation]:
    """P6, where there are books, and P7."""
    if books is not None and differing is not None:
        yield from _after(journals, last=month.last.isoformat(), books=books, differing=differing)
    yield from _balanced(journals.lines, clearing="" if names is None else names.clearing)


def _after(
    journals: MonthJournals, *, last: str, books: Books, differing: pd.DataFrame
) -> Iterator[MonthEquation]:
    booked = journals.booked
    for currency in sorted(currencies_of(books.entries, books.facts, booked)):
        sides = books.moved_by(last, currency=currency)
        own, rows = (part[part["currency"].eq(currency)] for part in (booked, differing))
        by_close = own[own["by_close"].astype(bool)]
        answered = int((by_close["effect"].fillna(0) - by_close["later"]).sum())
        left_open = int(rows["shown"].sum()) + answered
        timing = int(rows.loc[rows["what"].ne(OPEN), "amount"].sum())
        left = sides[0] + int(by_close["amount"].sum())
        right = sides[1] + timing + left_open
        yield MonthEquation("P6", AFTER, currency, AMOUNT, left, right)
        known = int(own["effect"].notna().sum())
        yield MonthEquation("P6", BREAKS, currency, COUNT, len(own), known)


def _balanced(lines: pd.DataFrame, *, clearing: str) -> Iterator[MonthEquation]:
    sums = lines.groupby(["journal_id", "date", "currency"])[["debit", "credit"]].sum()
    unlike = sums[sums["debit"].ne(sums["credit"])]
    yield MonthEquation("P7", UNBALANCED, "", COUNT, len(unlike), 0)
    for currency in sorted(currencies_of(lines)):
        own = lines[lines["currency"].eq(currency)]
        both = int(own["debit"].sum()), int(own["credit"].sum())
        yield MonthEquation("P7", BALANCED, currency, AMOUNT, *both)
        kinds = {*own["kind"]}
        if {ACCRUAL, REVERSAL} & kinds:
            back = [_at(own, kind=kind, account=clearing) for kind in (ACCRUAL, REVERSAL)]
            yield MonthEquation("P7", TAKEN_BACK, currency, AMOUNT, back[0], -back[1])


def _at(lines: pd.DataFrame, *, kind: str, account: str) -> int:
    """How journals of a kind move an account."""
    own = lines[lines["kind"].eq(kind) & lines["account"].eq(account)]
    return int(own["debit"].sum()) - int(own["credit"].sum())
