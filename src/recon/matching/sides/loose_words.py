"""The ids that rows without an order key name, and payouts: what they mean, they alone know."""

from collections.abc import Iterator, Mapping

import pandas as pd

from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import Sources
from recon.matching.sides.ledger_side import JUDGED, marked_as
from recon.model.words import InstructionKind

_IDS = (
    *("order_no", "transaction_id", "reference_no", "entry_id"),
    *("request_id", "instruction_id", "batch_id"),
)


def loose_words(sources: Sources, *, belongs: Mapping[str, Bools]) -> set[str]:
    """Every id of every row that is no row of an order.

    Args:
        sources: the whole sources.
        belongs: for each leg, the rows that make up sets.
    """
    return {word for rows in _loose_rows(sources, belongs=belongs) for word in _words(rows)} - {""}


def _loose_rows(sources: Sources, *, belongs: Mapping[str, Bools]) -> Iterator[pd.DataFrame]:
    for name, inside in belongs.items():
        frame: pd.DataFrame = getattr(sources, name)
        loose = inside & frame["order_no"].eq("").to_numpy()
        if name == "settlement":
            loose |= ~inside
        if name == "ledger":
            loose |= marked_as(frame, JUDGED)
        yield frame[loose]
    if sources.instructions is not None:
        moves = sources.instructions
        yield moves[moves["order_no"].eq("") | moves["kind"].eq(InstructionKind.PAYOUT)]


def _words(rows: pd.DataFrame) -> Iterator[str]:
    for name in _IDS:
        if name in rows.columns:
            yield from rows[name].unique()
    if "batch_id" in rows.columns:
        yield from (rows["batch_id"] + "/" + rows["currency"]).unique()
