"""What was paid out and is not at the bank, from what the newest night found of each pay-out.

Pay-outs that one entry of the bank stands for are one finding; it is open by what was paid out by a
day, less what was booked at the bank by then, less what the bank kept or exchanged of it.
"""

from dataclasses import dataclass

import pandas as pd

from recon.period.looked_up import words_at
from recon.period.month_nights import BANKS, MonthNight, frame_of

PAID, RECEIVED, RETURNED, KEPT = "paid", "received", "returned", "kept"
MOVES = (PAID, RECEIVED, RETURNED, KEPT)
"""Paid out, came to the bank, went back from it, kept or exchanged by the bank."""
BEFORE = "OPENING"
"""State of a pay-out from before the first statement: the bank is not asked for it."""
_KEPT = ("charges", "exchanged", "exchanged at a rate", "allowed by the rate")
TRANSIT_COLUMNS = ("move", "finding", "currency", "batch_id", "moved_on", "counts_on", "amount")
_OF_PAY_OUT = ["batch_id", "currency", "settled_on"]


@dataclass(frozen=True, slots=True)
class Transit:
    """What the bank was covered for."""

    moves: pd.DataFrame
    """TRANSIT_COLUMNS: amount as it moves what is in transit; counts_on is moved_on, but of a
    pay-out that was told after the close of its month (see `prior_periods`)."""
    states: pd.DataFrame
    """finding, state, code of each finding with a pay-out of the account."""
    before: dict[str, int]
    """Currency -> pay-outs from before the first statement."""
    closed: pd.DataFrame
    """batch_id, currency, settled_on, amount, came_on of each pay-out at the bank."""


def transit_of(
    night: MonthNight, *, account: tuple[str, str], settled: pd.DataFrame
) -> Transit | None:
    """What the newest night knows of banks; None where it knows none.

    `settled`: the lines of the settlement with the day by which each counts.
    """
    if not BANKS.issubset(night.files):
        return None
    every = frame_of(night, "paid")
    own = every["merchant_id"].eq(account[0]) & every["account_id"].eq(account[1])
    if not own.any():
        return None
    judged = own & every["state"].ne(BEFORE)
    rows, others = every[judged], every[~own]
    received = frame_of(night, "received")
    last = received.groupby("result_id")["booked_on"].max()
    shared = {*others["result_id"]} & {*rows["result_id"]}
    unknown = _unknown(night, account=account, paid=every)
    alone = {*rows["result_id"]} - shared
    came = received[received["result_id"].isin(alone | unknown)]
    ours = rows[rows["result_id"].isin(shared) & rows["bank_amount"].notna()]
    ours_on = words_at(ours["result_id"], words=last)
    parts = [
        _moves(rows, PAID, finding="result_id", on=rows["settled_on"], amount=rows["amount"]),
        _moves(came, "", finding="result_id", on=came["booked_on"], amount=-came["amount"]),
        _moves(ours, "", finding="result_id", on=ours_on, amount=-ours["bank_amount"]),
        _kept(night, findings=alone, last=last),
    ]
    moves = _counted(pd.concat(parts, ignore_index=True), settled=settled)
    moves["amount"] = moves["amount"].astype("int64")
    blank = moves["move"].eq("")
    back = blank & moves["amount"].gt(0)
    moves["move"] = moves["move"].where(~blank, RECEIVED).where(~back, RETURNED)
    opening = every[own & every["state"].eq(BEFORE)]
    return Transit(
        moves=moves[moves["amount"].ne(0)].reset_index(drop=True),
        states=rows.rename(columns={"result_id": "finding"})[
            ["finding", "state", "code"]
        ].drop_duplicates("finding"),
        before={
            str(key): int(value)
            for key, value in opening.groupby("currency")["amount"].sum().items()
        },
        closed=_closed(rows, last=last),
    )


def in_transit(transit: Transit, *, at: str) -> pd.DataFrame:
    """What is open at the close of a business date (grain: finding and currency).

    Columns: finding, currency, batch_id, since, state, code, amount.
    """
    moves = transit.moves[transit.moves["counts_on"] <= at]
    rows = moves.groupby(["finding", "currency"], as_index=False).agg(
        amount=("amount", "sum"), batch_id=("batch_id", "max"), since=("moved_on", "min")
    )
    rows = rows[rows["amount"].ne(0)].merge(transit.states, on="finding", how="left")
    alone = rows["state"].isna()
    rows["state"] = rows["state"].where(~alone, "BREAK").astype("str")
    rows["code"] = rows["code"].where(~alone, "BANK_RECEIPT_UNKNOWN").astype("str")
    return rows.sort_values(["currency", "since", "batch_id", "finding"], ignore_index=True)


def _closed(rows: pd.DataFrame, *, last: "pd.Series[str]") -> pd.DataFrame:
    """The pay-outs that are at the bank, with the day on which the last of each came."""
    at_bank = rows.assign(came_on=words_at(rows["result_id"], words=last))
    at_bank = at_bank[at_bank["came_on"].ne("")]
    columns = ["batch_id", "currency", "settled_on", "amount", "came_on"]
    return at_bank[columns].reset_index(drop=True)


def _counted(moves: pd.DataFrame, *, settled: pd.DataFrame) -> pd.DataFrame:
    """The moves with the day by which each counts: of a pay-out that of its line."""
    lines = settled[settled["is_pay_out"] & settled["counts_on"].ne(settled["settled_on"])]
    lines = lines[[*_OF_PAY_OUT, "counts_on"]].drop_duplicates(_OF_PAY_OUT)
    rows = moves.merge(lines.rename(columns={"settled_on": "moved_on"}), how="left")
    is_late = moves["move"].eq(PAID) & rows["counts_on"].notna()
    return rows.assign(counts_on=rows["counts_on"].where(is_late, rows["moved_on"]).astype("str"))


def _unknown(night: MonthNight, *, account: tuple[str, str], paid: pd.DataFrame) -> set[str]:
    """Receipts that belong to no pay-out and are a break of the account."""
    return {*frame_of(night, "breaks", account=account)["break_id"]} - {*paid["result_id"]}


def _kept(night: MonthNight, *, findings: set[str], last: "pd.Series[str]") -> pd.DataFrame:
    rows = frame_of(night, "explained")
    rows = rows[rows["what"].isin(_KEPT) & rows["result_id"].isin(findings)]
    return _moves(
        rows,
        KEPT,
        finding="result_id",
        on=words_at(rows["result_id"], words=last),
        amount=-rows["amount"],
    )


def _moves(
    rows: pd.DataFrame, move: str, *, finding: str, on: "pd.Series[str]", amount: "pd.Series[int]"
) -> pd.DataFrame:
    batch = rows["batch_id"] if "batch_id" in rows else pd.Series("", rows.index, dtype="str")
    cells = {
        "move": pd.Series(move, rows.index, dtype="str"),
        "finding": rows[finding].astype("str"),
        "currency": rows["currency"].astype("str"),
        "batch_id": batch.astype("str"),
        "moved_on": on.astype("str"),
        "amount": amount.astype("int64"),
    }
    return pd.DataFrame(cells)
