"""Adjustments of no order that wait: booked and in no batch yet, or settled and not booked yet.

No night compares them, so nothing but this says why the books differ by them. One is answered by
another of its amount: an entry by a line, or by what takes it back; first by one of the same name,
then, of two of which one at least names no batch that a night told, by the oldest. Rows of two
batches never answer each other. An entry that names a batch from before the first night's window is
settled with it: the nights have the sum of that batch, and its lines with no names.
"""

import pandas as pd

from recon.matching.sides.settlement_side import EARLIER
from recon.period.looked_up import is_among

NOT_IN_BATCH, NOT_BOOKED = "not_in_batch", "not_booked"
WAITS = (NOT_IN_BATCH, NOT_BOOKED)
"""Booked, and no line of the settlement has it; settled, and no entry has it."""
ADJUSTMENTS_KEY = "adjustments"
BATCH = "batch_id"
"""Column of the batch that an entry names, or that a fact is of; "" for none."""
IS_TOLD = "is_told"
"""Column of rows whose BATCH is one that a night told: those are of it, and of no other."""
BY_NAME, BY_AMOUNT = ["currency", BATCH, "amount"], ["currency", "amount", IS_TOLD]
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
    is_told = is_among(loose[BATCH], lines[BATCH])
    left = _unanswered_by_amount(loose.assign(**{IS_TOLD: is_told})[~is_before])
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


def _unanswered_by_amount(loose: pd.DataFrame) -> pd.DataFrame:
    """What nothing answers: what is of a batch by what is of none, then these by each other."""
    left = _unanswered(loose, by=BY_AMOUNT, across=True)
    is_told = left[IS_TOLD]
    return pd.concat([left[is_told], _unanswered(left[~is_told], by=BY_AMOUNT)])


def _unanswered(rows: pd.DataFrame, *, by: list[str], across: bool = False) -> pd.DataFrame:
    """The rows that no other of the opposite amount answers, the oldest first.

    `across`: of two that answer each other one is of a batch, and the other of none.
    """
    ranked = rows.assign(nth=rows.groupby(by).cumcount())
    others = ranked.assign(amount=-ranked["amount"])
    if across:
        others = others.assign(**{IS_TOLD: ~others[IS_TOLD]})
    places = [*by, "nth"]
    answers = pd.MultiIndex.from_frame(others[places])
    return rows[~pd.MultiIndex.from_frame(ranked[places]).isin(answers)]


def _keyed(rows: pd.DataFrame, *, waits: pd.Index, name: str) -> pd.DataFrame:
    own = _KEYS[name] + rows["day"]
    keyed = rows.assign(key=rows["key"].where(~rows.index.isin(waits), own))
    return keyed.drop(columns=BATCH)
