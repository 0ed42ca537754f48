"""Adjustments of no order that wait: booked and in no batch yet, or settled and not booked yet.

No night compares them, so nothing but this says why the books differ by them. One is answered by
another of its amount: an entry by a line, or by what takes it back; first by those of the batch
that it names, then by the oldest. An entry that names a batch from before the first night's window
is settled with it: the nights have the sum of that batch, and its lines with no names.
"""

import pandas as pd

from recon.matching.sides.settlement_side import EARLIER

NOT_IN_BATCH, NOT_BOOKED = "not_in_batch", "not_booked"
WAITS = (NOT_IN_BATCH, NOT_BOOKED)
"""Booked, and no line of the settlement has it; settled, and no entry has it."""
ADJUSTMENTS_KEY = "adjustments"
BATCH = "batch_id"
"""Column of the batch that an entry names, or that a fact is of; "" for none."""
BY_NAME, BY_AMOUNT = ["currency", BATCH, "amount"], ["currency", "amount"]
_KEYS = {name: f"{ADJUSTMENTS_KEY}, {name.replace('_', ' ')}, " for name in WAITS}
_OF_BATCH = ["currency", BATCH]


def with_waiting_keys(
    entries: pd.DataFrame, *, facts: pd.DataFrame, lines: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Entries and facts of the books; what waits has a key of its own, with its day.

    `lines`: the settlement as it counts. Without BATCH, which nothing else asks for.
    """
    loose = _unanswered_by_name(_loose(entries, facts=facts))
    sums = lines[lines["entry_type"].eq(EARLIER)].groupby(_OF_BATCH, as_index=False)
    before = loose[loose["name"].eq(NOT_IN_BATCH)].merge(
        sums.agg(settled_on=("settled_on", "min")), on=_OF_BATCH
    )
    is_before = loose["name"].eq(NOT_IN_BATCH) & loose["row"].isin(before["row"])
    left = _unanswered(loose[~is_before], by=BY_AMOUNT)
    keyed = [
        _keyed(rows, waits=pd.Index(left.loc[left["name"].eq(name), "row"]), name=name)
        for rows, name in zip((entries, facts), WAITS, strict=True)
    ]
    settled = before.assign(key=ADJUSTMENTS_KEY, day=before["settled_on"])[[*keyed[1].columns]]
    whole = pd.concat([keyed[1], settled], ignore_index=True) if len(settled) else keyed[1]
    return keyed[0], whole


def class_of(keys: "pd.Series[str]", *, otherwise: str) -> "pd.Series[str]":
    """One of WAITS for each key of what waits."""
    classes = pd.Series(otherwise, keys.index, dtype="str")
    for name, start in _KEYS.items():
        classes = classes.where(~keys.str.startswith(start), name)
    return classes


def _loose(entries: pd.DataFrame, *, facts: pd.DataFrame) -> pd.DataFrame:
    """Both sides' adjustments of no order, those of the settlement the other way round."""
    sides = [
        rows[rows["key"].eq(ADJUSTMENTS_KEY)].assign(name=name, row=lambda own: own.index)
        for rows, name in zip((entries, facts), WAITS, strict=True)
    ]
    sides[1] = sides[1].assign(amount=-sides[1]["amount"])
    return pd.concat(sides).sort_values(["day", "name"], kind="stable", ignore_index=True)


def _unanswered_by_name(loose: pd.DataFrame) -> pd.DataFrame:
    """What no other of its batch answers, and what names no batch."""
    named = loose[BATCH].ne("")
    left = _unanswered(loose[named], by=BY_NAME)
    return loose[~named | loose.index.isin(left.index)]


def _unanswered(rows: pd.DataFrame, *, by: list[str]) -> pd.DataFrame:
    """The rows that no other of the opposite amount answers, the oldest first."""
    ranked = rows.assign(nth=rows.groupby(by).cumcount())
    places = [*by, "nth"]
    others = pd.MultiIndex.from_frame(ranked.assign(amount=-ranked["amount"])[places])
    return rows[~pd.MultiIndex.from_frame(ranked[places]).isin(others)]


def _keyed(rows: pd.DataFrame, *, waits: pd.Index, name: str) -> pd.DataFrame:
    own = _KEYS[name] + rows["day"]
    keyed = rows.assign(key=rows["key"].where(~rows.index.isin(waits), own))
    return keyed.drop(columns=BATCH)
