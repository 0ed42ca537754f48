"""The lines of a payment as steps of what was settled of it, and what part of a movement each is.

A payment that is refunded twice has a line for each: the second one settles what lies beyond the
first. So what a night shows of a level is dated by the lines that reach it, part by part.
"""

import pandas as pd

from recon.period.looked_up import amounts_at, is_among

_BY = ["payment", "settled_on"]


def dated_by_lines(rows: pd.DataFrame, *, lines: pd.DataFrame) -> pd.DataFrame:
    """The rows with `event_on`: the day of the line that settled a part before the night, or its.

    Args:
        rows: payment, business_date, amount, `above` (what a level had reached before it).
        lines: of the kind that settles them, none of its reversals.
    """
    steps = _steps(lines[is_among(lines["payment"], rows["payment"])])
    raised = rows[rows["amount"].gt(0)]
    both = raised.assign(row=raised.index).merge(steps, on="payment")
    both = both[both["settled_on"] < both["business_date"]]
    top = (both["above"] + both["amount"]).where(lambda own: own < both["reached"], both["reached"])
    bottom = both["above"].where(both["above"] > both["below"], both["below"])
    both = both.assign(amount=(top - bottom).clip(lower=0), event_on=both["settled_on"])
    settled = both.groupby("row")["amount"].sum()
    night = rows["business_date"].astype("str")
    left = rows["amount"] - amounts_at(rows.index.to_series(), sums=settled)
    whole = [both[[*rows.columns, "event_on"]], rows.assign(amount=left, event_on=night)]
    dated = pd.concat(whole, ignore_index=True)
    return dated[dated["amount"].ne(0)]


def beyond_what_is_known(
    lines: pd.DataFrame, *, known: "pd.Series[int]", sign: int
) -> pd.DataFrame:
    """What the lines of each payment and day come to beyond what is known of it otherwise.

    The first lines settle what is known. Columns: payment, currency, event_on, order_no, told,
    amount (`sign`: the way in which gross settles it), batch_id.
    """
    by_day = lines[lines["payment"].ne("")].groupby(["payment", "currency", "settled_on"])
    rows = by_day.agg(gross=("gross", "sum"), order_no=("order_no", "max"), told=("told", "max"))
    rows = rows.reset_index().rename(columns={"settled_on": "event_on"})
    size = rows["gross"] * sign
    reached = size.groupby([rows["payment"], rows["currency"]]).cumsum()
    otherwise = amounts_at(rows["payment"], sums=known)
    before = (reached - size).where(lambda own: own > otherwise, otherwise)
    after = reached.where(reached > otherwise, otherwise)
    rows = rows.assign(amount=after - before, batch_id="")
    return rows[rows["amount"].ne(0)]


def _steps(lines: pd.DataFrame) -> pd.DataFrame:
    """payment, settled_on, below, reached (grain: payment and day): settled before, and by it."""
    rows = lines.groupby(_BY, as_index=False).agg(gross=("gross", "sum"))
    size = rows["gross"].abs()
    reached = size.groupby(rows["payment"]).cumsum()
    return rows.assign(reached=reached, below=reached - size)[[*_BY, "below", "reached"]]
