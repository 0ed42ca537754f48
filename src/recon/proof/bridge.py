"""From the rows that were accepted to the rows that were compared: every step has a name.

A step is a signed number of rows. The report adds them up and holds them against what the
comparison itself counted.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recon.matching.frames.fingerprints import are_repeated
from recon.matching.frames.grouping import Rows
from recon.matching.frames.sources import KEY_COLUMNS, Sources
from recon.matching.frames.versions import REPEAT, SUPERSEDED, versions
from recon.matching.sides.ledger_side import entry_versions
from recon.model.words import SourceKind

REPEATS = "identical repeats"
REPLACED = "replaced by a newer row"
OTHER_ACCOUNTS = "of other accounts"
UNDECLARED = "of accounts that nobody declared"
BEFORE_WINDOW = "from before the window"
KNOWN_BEFORE = "known from earlier files"
FROM_OTHERS = "of other accounts, their other side is here"
SET_ASIDE = "equal to or older than another row"
STEPS = (
    REPEATS,
    REPLACED,
    OTHER_ACCOUNTS,
    UNDECLARED,
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    FROM_OTHERS,
    SET_ASIDE,
)
"""In the order in which they are told."""
Bridge = Mapping[SourceKind, Mapping[str, int]]
"""Source -> step -> rows it adds (less than 0: takes away)."""


def bridge_of(sources: Sources) -> Bridge:
    """The steps of the sources, with those that the comparison itself takes."""
    bridges = {SourceKind.ORDERS: -_orders_aside(sources.orders)}
    if sources.ledger is not None:
        bridges[SourceKind.LEDGER] = -_aside(entry_versions(sources.ledger))
    return {
        kind: {**sources.arrived.get(kind, {}), SET_ASIDE: rows} for kind, rows in bridges.items()
    }


def _orders_aside(orders: pd.DataFrame) -> int:
    # Only a number that stands twice can be set aside: the others need not be grouped.
    shared = are_repeated(orders["order_no"]) | orders["order_no"].eq("").to_numpy()
    rows = orders[shared]
    groups = rows.groupby([*KEY_COLUMNS], sort=False).ngroup()
    numbers: Rows = groups.to_numpy().astype(np.intp)
    return _aside(versions(rows, groups=numbers, newest="updated_at"))


def _aside(outcome: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> int:
    return int(np.isin(outcome, (REPEAT, SUPERSEDED)).sum())
