"""Adjustments of no order that wait: booked and in no batch yet, or settled and not booked yet.

No night compares them, so nothing but this says why the books differ by them. One is answered by
another of its amount: an entry by a line, or by what takes it back; the oldest first.
"""

import pandas as pd

NOT_IN_BATCH, NOT_BOOKED = "not_in_batch", "not_booked"
WAITS = (NOT_IN_BATCH, NOT_BOOKED)
"""Booked, and no line of the settlement has it; settled, and no entry has it."""
ADJUSTMENTS_KEY = "adjustments"
_KEYS = {name: f"{ADJUSTMENTS_KEY}, {name.replace('_', ' ')}, " for name in WAITS}
_PLACE = ["currency", "amount", "nth"]


def with_waiting_keys(
    entries: pd.DataFrame, *, facts: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Entries and facts of the books; what waits has a key of its own, with its day."""
    waits = _waits(entries, facts=facts)
    names = zip((entries, facts), WAITS, strict=True)
    keyed = [_keyed(rows, waits=waits[name], name=name) for rows, name in names]
    return keyed[0], keyed[1]


def class_of(keys: "pd.Series[str]", *, otherwise: str) -> "pd.Series[str]":
    """One of WAITS for each key of what waits."""
    classes = pd.Series(otherwise, keys.index, dtype="str")
    for name, start in _KEYS.items():
        classes = classes.where(~keys.str.startswith(start), name)
    return classes


def _waits(entries: pd.DataFrame, *, facts: pd.DataFrame) -> dict[str, pd.Index]:
    """The rows of either that no other of the opposite amount answers."""
    loose = [
        rows[rows["key"].eq(ADJUSTMENTS_KEY)].assign(name=name, row=lambda own: own.index)
        for rows, name in zip((entries, facts), WAITS, strict=True)
    ]
    loose[1] = loose[1].assign(amount=-loose[1]["amount"])
    both = pd.concat(loose).sort_values(["day", "name"], kind="stable", ignore_index=True)
    both["nth"] = both.groupby(_PLACE[:-1]).cumcount()
    others = pd.MultiIndex.from_frame(both.assign(amount=-both["amount"])[_PLACE])
    left = both[~pd.MultiIndex.from_frame(both[_PLACE]).isin(others)]
    return {name: pd.Index(left.loc[left["name"].eq(name), "row"]) for name in WAITS}


def _keyed(rows: pd.DataFrame, *, waits: pd.Index, name: str) -> pd.DataFrame:
    own = _KEYS[name] + rows["day"]
    return rows.assign(key=rows["key"].where(~rows.index.isin(waits), own))
