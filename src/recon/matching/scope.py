"""What was proven, what was not, and what this gateway's interface cannot show."""

from collections.abc import Iterator, Mapping

import pandas as pd

from recon.matching.result_frames import Frames
from recon.matching.settlement_side import pay_outs
from recon.matching.sources import Sources
from recon.matching.total_rows import ITEMS
from recon.matching.totals_of_settlement import batches_to_prove
from recon.model import Answer, Flag, GatewayState
from recon.rules import Rules

Line = Mapping[str, str | int]


def unmapped_codes(sources: Sources, *, rules: Rules) -> tuple[Line, ...]:
    """Codes of the gateway that the rules do not know, with their count and a sample."""
    gateway = sources.gateway
    found = gateway["answer"].eq(Answer.FOUND)
    known = {str(c): rules.state_of(str(c)) for c in gateway["payment_status"].unique()}
    unknown = [code for code, state in known.items() if state is GatewayState.UNMAPPED]
    rows = {
        "payment_status": gateway[found & gateway["payment_status"].isin(unknown)],
        "query_result": gateway[gateway["answer"].eq(Answer.UNMAPPED)],
    }
    return tuple(line for field, part in rows.items() for line in _codes(field, rows=part))


def _codes(field: str, *, rows: pd.DataFrame) -> Iterator[Line]:
    groups = rows.groupby(field, sort=True)["order_no"].agg(["size", "min"])
    for code, count, sample in groups.itertuples():
        yield {"field": field, "code": str(code), "count": int(count), "order_no": str(sample)}


def not_covered(sources: Sources, *, rules: Rules) -> tuple[str, ...]:
    """Legs and controls that had no source, in words."""
    words = []
    if sources.ledger is None:
        words.append("leg B (gateway to ledger), T5B and T5C: no ledger was given")
    if sources.instructions is None:
        words.append("our own instructions, T8: no instruction file was given")
    words += _settlement_not_covered(sources)
    if rules.journal.accounts is None:
        words.append("proposed journals, T12: the rules name no [journal.accounts]")
    if sources.agreed_write_offs is None:
        words.append("approval of write-offs, T10: no list of approved write-offs was given")
    elif earlier := _written_off_before(sources, entries=sources.agreed_write_offs.entries or {}):
        words.append(
            f"approval of write-offs, T10: {earlier} stood in the books before anybody could agree "
            "to them here, and were taken over as they are"
        )
    return tuple(words)


def _written_off_before(sources: Sources, *, entries: Mapping[str, object]) -> int:
    if sources.ledger is None or not entries:
        return 0
    return int(sources.ledger["entry_id"].isin([*entries]).sum())


def _settlement_not_covered(sources: Sources) -> Iterator[str]:
    lines, days = batches_to_prove(sources), sources.settled
    if lines is None:
        yield "settlement and fees, T11: no settlement file was given"
        return
    paid = lines.loc[pay_outs(lines), "batch_id"]
    if without := len({*lines["batch_id"]} - {*paid}):
        yield f"T11: {without} settlement batches name no pay-out yet"
    if days is not None and days.waits_for:
        yield f"settlement due after {days.last}: {days.waits_for} is missing"


def scope_of_assurance(
    frames: Frames, *, tallies: pd.DataFrame, sources: Sources
) -> tuple[Line, ...]:
    """Statements with currency, count and amount (minor units, absolute gateway or order net).

    Args:
        frames: the result, without the matches that were set aside.
        tallies: what was set aside (see exact_rows.exact_tallies).
        sources: the whole sources.
    """
    aside = tallies[tallies["source"].eq("gateway")].rename(columns={"amount": "gateway_amount"})
    proven = pd.concat([frames.matches, frames.breaks, aside])[[*_SHOWN, ITEMS]]
    hidden = frames.matches[frames.matches["flags"].str.contains(Flag.REPLY_ONLY.value)]
    lines = [
        *_lines("keys proven", rows=proven),
        *_lines("within grace, not yet due", rows=frames.pending),
        *_lines("not proven: no usable evidence", rows=frames.unverified),
        *_lines("refunds known from replies only, which the query cannot show", rows=hidden),
    ]
    lines += [
        {
            "statement": f"{one.what} older than the window, not compared: opening balance",
            "currency": one.currency,
            "count": one.count,
            "amount": one.amount,
        }
        for one in sources.opening_balance
    ]
    count = len(sources.rejects)
    if count:
        statement = "rows of the sources that could not be read"
        lines.append({"statement": statement, "currency": "", "count": count, "amount": 0})
    statement = "payments under keys that nobody asked for cannot be seen through this interface"
    lines.append({"statement": statement, "currency": "", "count": 0, "amount": 0})
    return tuple(lines)


_SHOWN = ("currency", "order_amount", "gateway_amount", "ledger_amount")


def _items(rows: pd.DataFrame) -> "pd.Series[int]":
    """How many each row stands for: one, but for tallies."""
    if ITEMS not in rows.columns:
        return pd.Series(1, index=rows.index)
    return rows[ITEMS].fillna(1).astype("int64")


def _lines(statement: str, *, rows: pd.DataFrame) -> Iterator[Line]:
    if rows.empty:
        return
    amount = rows["gateway_amount"].fillna(rows["order_amount"]).fillna(rows["ledger_amount"])
    told = rows[["currency"]].assign(amount=amount.fillna(0).astype("int64"), count=_items(rows))
    parts = told.groupby("currency")[["count", "amount"]].sum()
    for currency, count, total in parts.itertuples():
        yield {
            "statement": statement,
            "currency": str(currency),
            "count": int(count),
            "amount": int(total),
        }
