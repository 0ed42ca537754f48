"""Refund amounts that settlement lines tell where the query shows a refund without its amount."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import by_word, is_word
from recon.matching.frames.grouping import Bools, amounts_of, given
from recon.matching.frames.sources import Sources
from recon.model.words import REVERSAL_SUFFIX, EntryType, GatewayState, KeyAnswer

_REFUNDS = (EntryType.REFUND.value, EntryType.REFUND.value + REVERSAL_SUFFIX)
FROM_SETTLEMENT = "refund_from_settlement"
"""Column that the engine adds to the answers: the refunded amount is what was settled."""
_PLACE = ("merchant_id", "account_id", "currency")
_PAYMENT = ("merchant_id", "account_id", "order_no", "transaction_id")
_NAMES = ("transaction_id", "order_no")
Key = tuple[str, ...]


def with_refunds_settled(
    sources: Sources, *, rules: Rules, others: pd.DataFrame | None = None
) -> Sources:
    """The sources, with refunded amounts where only settlement lines tell them.

    A line is of a payment whose transaction it names; one without a transaction is of the only
    payment of its order.

    Args:
        sources: all rows, or all of some order numbers.
        rules: which states are known.
        others: of all rows the lines that `refunds_of_others` marks, where these are not all.
    """
    lines, gateway = sources.settlement, sources.gateway
    if lines is None:
        return sources
    if others is not None:
        mine = lines[~refunds_of_others(lines, gateway=gateway)]
        lines = pd.concat([mine, others[mine.columns]], ignore_index=True)
    part = GatewayState.PARTIALLY_REFUNDED
    partly = by_word(gateway["payment_status"], of=lambda code: rules.state_of(code) is part)
    answered = is_word(gateway["answer"], KeyAnswer.FOUND)
    silent = partly.astype(np.bool_) & answered & ~given(gateway["refunded_amount"])
    by_payment, by_order = _refunds(lines)
    if not silent.any() or not (by_payment or by_order):
        return sources
    single = _single_payments(gateway[answered])
    amounts = gateway["refunded_amount"].astype("Int64").array.copy()
    marks = np.zeros(len(gateway), dtype=np.bool_)
    rows = np.flatnonzero(silent)
    columns = [texts(gateway[name])[rows].tolist() for name in (*_PLACE, *_NAMES)]
    for row, *holder, transaction, order_no in zip(rows.tolist(), *columns, strict=True):
        keys = [(*holder, transaction)] if transaction else []
        own = [by_payment[key] for key in keys if key in by_payment]
        if order_no and (*holder[:2], order_no) in single:
            own += [by_order[*holder, order_no]] if (*holder, order_no) in by_order else []
        if own and sum(own) >= 0:
            amounts[row] = sum(own)
            marks[row] = True
    completed = gateway.assign(refunded_amount=amounts)
    completed[FROM_SETTLEMENT] = marks
    return replace(sources, gateway=completed)


def refunds_of_others(lines: pd.DataFrame, *, gateway: pd.DataFrame) -> Bools:
    """The refunds of transactions that no answer shows under the order number of the line.

    Args:
        lines: SETTLEMENT_COLUMNS.
        gateway: all answers of their order numbers.
    """
    strange = is_word(lines["entry_type"], *_REFUNDS)
    if strange.any():
        strange[strange] = texts(lines["transaction_id"])[strange] != ""
    if not strange.any():
        return strange
    named = pa.array(texts(lines["transaction_id"])[strange], pa.large_string())
    known = np.asarray(pc.is_in(pa.array(gateway["transaction_id"]), value_set=named), np.bool_)
    own = {*zip(*(texts(gateway[name])[known].tolist() for name in _PAYMENT), strict=True)}
    cells = zip(*(texts(lines[name])[strange].tolist() for name in _PAYMENT), strict=True)
    strange[strange] = [cell not in own for cell in cells]
    return strange


def _refunds(lines: pd.DataFrame) -> tuple[Counter[Key], Counter[Key]]:
    """What was settled as refunded, by transaction, and by order where none is named."""
    rows = np.flatnonzero(is_word(lines["entry_type"], *_REFUNDS))
    by_payment: Counter[Key] = Counter()
    by_order: Counter[Key] = Counter()
    columns = [texts(lines[name])[rows].tolist() for name in (*_PLACE, *_NAMES)]
    gross = amounts_of(lines["gross"])[rows].tolist()
    for *holder, transaction, order_no, amount in zip(*columns, gross, strict=True):
        if transaction:
            by_payment[*holder, transaction] -= amount
        elif order_no:
            by_order[*holder, order_no] -= amount
    return by_payment, by_order


def _single_payments(answered: pd.DataFrame) -> set[Key]:
    """Orders with one payment."""
    payments = {*zip(*(texts(answered[name]).tolist() for name in _PAYMENT), strict=True)}
    counts = Counter(key[:3] for key in payments)
    return {key for key, count in counts.items() if count == 1}
