"""What lies across the end of a month: one class each, with both dates.

Sold and captured, captured and settled, settled and at the bank; a refund of an earlier month's
sale; a fact of the month that was first told after its last night; one of a closed month that was
told after its close; an entry of the books that was deleted. What is booked in another month
than it took place stands with the books.
"""

import pandas as pd

from recon.period.books_of_month import Books
from recon.period.business_month import BusinessMonth, DayTable
from recon.period.cash_in_transit import Transit
from recon.period.dated_facts import CAPTURE, REFUND, DatedFacts
from recon.period.looked_up import words_at
from recon.period.month_evidence import MonthEvidence
from recon.period.prior_periods import prior_items

SOLD, SETTLED, AT_BANK, OLD_SALE, LATE = "sold", "settled", "at_bank", "old_sale", "late"
PRIOR, VANISHED = "prior", "entry_vanished"
STRADDLES = (SOLD, SETTLED, AT_BANK, OLD_SALE, LATE, PRIOR, VANISHED)
STRADDLING_COLUMNS = ("what", "currency", "key", "order_no", "first_on", "then_on", "amount")


def straddling_items(
    evidence: MonthEvidence,
    *,
    facts: DatedFacts,
    transit: Transit | None,
    books: Books | None,
    month: BusinessMonth,
    days: DayTable,
) -> pd.DataFrame:
    """STRADDLING_COLUMNS (grain: item and class); `then_on` is "" for what has not come yet."""
    movements = facts.movements
    captures = movements[movements["kind"].eq(CAPTURE) & (movements["amount"] > 0)]
    ordered = evidence.ordered
    sold_on = days.dates_of(ordered["ordered_at"]).set_axis(ordered["order_no"])
    lines = facts.settled[facts.settled["entry_type"].eq(CAPTURE)]
    settled_on = lines.groupby("payment")["settled_on"].min()
    by_payment = words_at(captures["payment"], words=settled_on)
    by_order = words_at(captures["order_no"], words=sold_on)
    sold = captures.assign(what=SOLD, first_on=by_order, then_on=captures["own_on"])
    settled = captures.assign(what=SETTLED, first_on=captures["own_on"], then_on=by_payment)
    parts = [sold[by_order.ne("")], settled, _at_bank(transit)]
    both = pd.concat([_named(part) for part in parts], ignore_index=True)
    inside = [month.has(both[name]) for name in ("first_on", "then_on")]
    across = both[inside[0] ^ inside[1]]
    refunds = movements[movements["kind"].eq(REFUND) & month.has(movements["event_on"])]
    old = refunds.assign(
        what=OLD_SALE,
        first_on=words_at(refunds["order_no"], words=sold_on),
        then_on=refunds["event_on"],
    )
    old = old[old["first_on"].ne("") & (old["first_on"] < month.first.isoformat())]
    own = movements[month.has(movements["event_on"])]
    late, prior = _late(evidence, own, month=month), _prior(evidence, own)
    gone = _vanished(evidence, books=books, days=days)
    whole = pd.concat([across, _named(old), late, prior, gone[month.has(gone["then_on"])]])
    return whole.sort_values(["currency", "what", "first_on", "key"], ignore_index=True)


def _at_bank(transit: Transit | None) -> pd.DataFrame:
    if transit is None:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in STRADDLING_COLUMNS})
    rows = transit.moves[transit.moves["move"].eq("paid")]
    came = dict(zip(transit.closed["batch_id"], transit.closed["came_on"], strict=True))
    return rows.assign(
        what=AT_BANK,
        key=rows["batch_id"],
        order_no="",
        first_on=rows["moved_on"],
        then_on=words_at(rows["batch_id"], words=came),
    )


def _vanished(evidence: MonthEvidence, *, books: Books | None, days: DayTable) -> pd.DataFrame:
    """Entries that were deleted: booked on, gone by the night of, and what their going moved."""
    if books is None:
        return _named(_at_bank(None))
    gone = books.entries[books.entries["gone_on"].ne("")]
    own = evidence.entries.loc[gone.index]
    return _named(
        gone.assign(
            what=VANISHED,
            key=own["entry_id"],
            order_no=own["order_no"],
            first_on=days.dates_of(own["booked_at"]),
            then_on=gone["gone_on"],
        )
    )


def _prior(evidence: MonthEvidence, own: pd.DataFrame) -> pd.DataFrame:
    """Dated in a closed month and told after its close, with the date of who told it."""
    rows = prior_items(own)
    then_on = words_at(rows["told"], words=evidence.dates)
    return _named(rows.assign(what=PRIOR, first_on=rows["own_on"], then_on=then_on))


def _late(evidence: MonthEvidence, rows: pd.DataFrame, *, month: BusinessMonth) -> pd.DataFrame:
    then_on = words_at(rows["told"], words=evidence.dates)
    rows = rows.assign(what=LATE, first_on=rows["event_on"], then_on=then_on)
    return _named(rows[rows["then_on"] > month.last.isoformat()])


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    if "key" not in rows:
        named = rows["payment"].where(rows["payment"].ne(""), rows["batch_id"])
        rows = rows.assign(key=named)
    return rows[[*STRADDLING_COLUMNS]].astype({"amount": "int64"})
