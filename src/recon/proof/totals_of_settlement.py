"""What the totals need of payouts and settlement files, straight from the sources; and T11."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Column, filled, texts
from recon.matching.frames.coding import is_word, placed, sums_of
from recon.matching.frames.grouping import Bools, Ints, amounts_of
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY, Place, paired
from recon.matching.sides.settlement_side import pay_outs
from recon.model.words import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    ControlTotal,
    InstructionKind,
)


def sent_payouts(instructions: pd.DataFrame) -> Bools:
    """The payouts among our instructions that left, whatever became of them."""
    sent = is_word(instructions["state"], *CONFIRMED_STATES, *DOUBTFUL_STATES, *REJECTED_STATES)
    return sent & is_word(instructions["kind"], InstructionKind.PAYOUT)


def paid_items(sources: Sources) -> tuple[list[Column], Ints]:
    """Merchant, account and currency of every payout that was sent, and what leg B counts of it."""
    parts, amounts = [], [np.zeros(0, dtype=np.int64)]
    if sources.instructions is not None:
        rows = sources.instructions
        sent = sent_payouts(rows)
        sure = is_word(rows["state"], *CONFIRMED_STATES)
        parts.append((rows, sent))
        amounts.append(np.where(sure, -amounts_of(rows["amount"]), 0)[sent])
    if sources.settlement is not None:
        paid = pay_outs(sources.settlement)
        parts.append((sources.settlement, paid))
        amounts.append(-amounts_of(sources.settlement["net"])[paid])
    columns = [
        np.concatenate([filled("", size=0), *(texts(rows[name])[mine] for rows, mine in parts)])
        for name in ACCOUNT_CURRENCY
    ]
    return columns, np.concatenate(amounts)


def settlement_totals(sources: Sources) -> Iterator[ControlTotal]:
    """T11: gross less fees of the lines of each batch = its pay-out, where a row names one.

    A night proves the batches that its own files tell of.
    """
    settlement = batches_to_prove(sources)
    if settlement is None:
        return
    paid = pay_outs(settlement)
    gross, fee, net = (amounts_of(settlement[name]) for name in ("gross", "fee", "net"))
    moved = np.where(paid, net, gross - fee)
    groups, batches = placed(settlement, by=("merchant_id", "batch_id", *ACCOUNT_CURRENCY[1:]))
    lines: dict[tuple[str, str], dict[Place, int]] = {}
    totals: dict[tuple[str, str], dict[Place, int]] = {}
    for stated, rows in ((lines, ~paid), (totals, paid)):
        sums = sums_of(moved[rows], groups=groups[rows], size=len(batches)).tolist()
        for group in np.unique(groups[rows]).tolist():
            merchant, batch, account, currency = batches[group]
            stated.setdefault((merchant, batch), {})[merchant, account, currency] = sums[group]
    for (merchant, batch), right in sorted(totals.items()):
        name = f"settlement {batch}: gross - fees = pay-out"
        left = lines.get((merchant, batch), {})
        yield from paired("T11", name, left=left, right=right, measure="amount")


def batches_to_prove(sources: Sources) -> pd.DataFrame | None:
    """The lines of all batches that are proven tonight; None: settlement has no source."""
    lines, days = sources.settlement, sources.settled
    if lines is None or days is None:
        return lines
    return lines[lines["batch_id"].isin(days.batches)]
