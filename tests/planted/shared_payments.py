"""Payments that the gateway names under two orders of one account.

The truth is one movement of money for each pair of orders; one of the two was never paid for.
"""

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    Sources,
    frame_of,
)
from recon.model.words import BreakCode
from tests.planted.planted_files import AS_OF, MERCHANT, Planted
from tests.planted.recipes import RULES, Scene

COLUMNS = {"orders": ORDER_COLUMNS, "gateway": GATEWAY_COLUMNS, "ledger": LEDGER_COLUMNS}


def shared_payments(*, pairs: int, agreeing: int, state: str = "paid") -> Planted:
    """So many pairs of orders that share one payment, among orders that agree.

    Args:
        pairs: each is two orders, two entries and two answers with one transaction_id.
        agreeing: orders beside them of which every file says the same.
        state: what the gateway says of the shared payments.
    """
    scenes = [Scene(f"A{number}").order().payment().entry() for number in range(agreeing)]
    names: list[str] = []
    for number in range(pairs):
        first, other = Scene(f"S{number}"), Scene(f"S{number}B")
        for scene in (first, other):
            scene.order().payment(state, transaction_id=first.transaction).entry()
        scenes += [first, other]
        names += [first.order_no, other.order_no]
    rows = {
        source: [
            {"merchant_id": MERCHANT, "source": f"{source}.csv", "line": 1, **row}
            for scene in scenes
            for row in scene.rows[source]
        ]
        for source in COLUMNS
    }
    frames = {name: frame_of(rows[name], columns=columns) for name, columns in COLUMNS.items()}
    answer = {"code": BreakCode.AMBIGUOUS_MATCH.value, "effect_orders": 0, "effect_ledger": 0}
    key = pd.DataFrame([{**answer, "name": name} for name in names])
    rules = Rules.of(RULES, source="files with shared payments")
    sources = Sources(frames["orders"], frames["gateway"], frames["ledger"], instructions=None)
    return Planted(sources, rules, AS_OF, key)
