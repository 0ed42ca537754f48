"""Since when the books of a set say something that nothing in them takes back."""

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays
from recon.matching.frames.grouping import Bools, Ints, latest

_LATER = int(np.iinfo(np.int64).max)
_ALIKE = ["set", "kind", "currency", "amount"]


def open_since(items: Arrays, *, size: int) -> Ints:
    """When each set's first entry was booked that no reversal takes back (grain: set).

    New entries never move it, so what only the books know becomes late however often they are
    added to. Where all entries cancel out, the latest; NO_INSTANT without any.

    Args:
        items: see ledger_side.ledger_items, with the set of each entry.
        size: how many sets there are.
    """
    groups, at = items["set"], items["booked_at"]
    stands = ~_taken_back(items) & (items["net"] != 0)
    first = np.full(size, _LATER, dtype=np.int64)
    np.minimum.at(first, groups[stands], at[stands])
    return np.where(first == _LATER, latest(at, groups=groups, size=size), first)


def _taken_back(items: Arrays) -> Bools:
    """Entries that a reversal of their amount takes back, and those reversals."""
    marks = np.zeros(len(items), dtype=np.bool_)
    reversal = items["reversal"]
    if not reversal.any():
        return marks
    at = np.flatnonzero(np.isin(items["set"], items["set"][reversal]))
    names = (*_ALIKE, "booked_at", "entry_id", "reversal", "reverses")
    inside = pd.DataFrame({"at": at, **{name: items[name][at] for name in names}})
    inside = inside.sort_values(["booked_at", "entry_id"], kind="stable")
    back, plain = inside[inside["reversal"]], inside[~inside["reversal"]]
    named = back[back["reverses"].ne("")].drop_duplicates(["set", "reverses"])
    pairs = named.merge(plain, left_on=[*_ALIKE, "reverses"], right_on=[*_ALIKE, "entry_id"])
    marks[pairs["at_x"]] = marks[pairs["at_y"]] = True
    plain = plain[~plain["at"].isin(pairs["at_y"])]
    unnamed = back[back["reverses"].eq("")]
    counted = [part.assign(nth=part.groupby(_ALIKE).cumcount()) for part in (unnamed, plain)]
    pairs = counted[0].merge(counted[1], on=[*_ALIKE, "nth"])
    marks[pairs["at_x"]] = marks[pairs["at_y"]] = True
    return marks
