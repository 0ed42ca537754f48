"""What is no set of orders as rows of the result: groups of the books, what is held, the bank.

Whoever judges such a thing tells it once, as a row of FOUND; breaks, effects, matches, pending and
unverified rows, fates and ids of all of them are made here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.movements import Fate
from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.matching.breaks.result_rows import (
    BREAKS_SORTED_BY,
    EFFECTS_SORTED_BY,
    NO_AMOUNT,
    OPEN_SORTED_BY,
    Frames,
    business_date,
    first_seen,
    frame_of_rows,
    instants,
)
from recon.matching.frames.arrays import Arrays, Column, filled
from recon.matching.frames.digest import id_of_text
from recon.matching.frames.grouping import NO_INSTANT
from recon.matching.frames.sorting import in_order
from recon.matching.frames.sources import Previous
from recon.matching.judging.severity import graver, money_at_risk, severity_of
from recon.model.words import BreakCode, SetState

_NUMBERS: Mapping[str, int] = {
    **dict.fromkeys(
        ("gateway_amount", "ledger_amount", "effect_orders", "effect_ledger"), NO_AMOUNT
    ),
    **dict.fromkeys(("bank_amount", "effect_bank", "effect"), NO_AMOUNT),
    "exposure": 0,
    "due_at": NO_INSTANT,
}
_TEXTS = (
    *("id", "merchant_id", "account_id", "currency", "state", "code", "flags", "entry_id", "rule"),
    *("leg", "since", "expected_side", "owed_to", "reason", "about", "part"),
)
FOUND = (*_TEXTS, *_NUMBERS)
"""Columns of what is told; minor units, NO_AMOUNT where a side is absent, days as ISO dates.

`effect` is that of `leg`, the `effect_…` are what the rows show of it; `since`: the day from which
on a break is one; `due_at`: until when it may wait, in microseconds; `reason`: the sentence of a
break, or why something is unverified; `rule`: of a match, of which one without a rule is not told;
`part`: the account of its journal (proposed_journals.PARTS)."""
_BLANK = {**dict.fromkeys(_TEXTS, ""), **_NUMBERS, "owed_to": "none"}
_CALM: Mapping[str, tuple[SetState, tuple[str, ...]]] = {
    "matches": (SetState.MATCHED, MATCH_COLUMNS),
    "pending": (SetState.PENDING, PENDING_COLUMNS),
    "unverified": (SetState.UNVERIFIED, UNVERIFIED_COLUMNS),
}


def found_of(rows: Iterable[Mapping[str, Any]]) -> Arrays:
    """A few rows as columns of FOUND; what a row does not tell is blank."""
    whole = [{**_BLANK, **row} for row in rows]
    columns: dict[str, Column] = {}
    for name in FOUND:
        kind: Any = np.int64 if name in _NUMBERS else object
        columns[name] = np.array([row[name] for row in whole], dtype=kind)
    return Arrays(columns, size=len(whole))


def found_in(columns: Mapping[str, Any], *, size: int) -> Arrays:
    """The same of many rows: columns, or one cell for all."""
    given: dict[str, Column] = {}
    for name, cells in columns.items():
        given[name] = np.empty(size, dtype=np.int64 if name in _NUMBERS else object)
        given[name][:] = cells
    return found_of([{}] * size).assign(**given)


def next_id(
    key: Sequence[str], *, closed: Collection[str], taken: Collection[str] = ()
) -> tuple[str, str]:
    """The id of a key that neither closed nor is taken, and the closed one that it opens again."""
    number, last = 1, ""
    while (own := id_of_text("\x1f".join((*key, str(number))))) in closed or own in taken:
        number, last = number + 1, own if own in closed else last
    return own, last


def fates_of_found(rows: Arrays) -> dict[str, Fate]:
    """What became of every id, for the roll-forward."""
    cells = rows.rows("id", "state", "flags")
    return {own: Fate(state, flags, hosted=False) for own, state, flags in cells}


def with_found(
    frames: Frames, found: Arrays, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> Frames:
    """The frames with what was found; what is a break already stays one break.

    Args:
        frames: of everything else.
        found: columns of FOUND.
        rules: severity and calendar.
        as_of: the instant that is judged.
        previous: since when a break is known.
    """
    size = len(found)
    blank, nothing = filled("", size=size), np.full(size, NO_AMOUNT)
    shown = found.assign(
        match_id=found["id"],
        break_id=found["id"],
        order_no=blank,
        transaction_id=blank,
        state_orders=filled("none", size=size),
        state_gateway=filled("none", size=size),
        order_amount=nothing,
        amount=found["effect"],
        cause=blank,
    )
    broken = shown.take(shown["state"] == SetState.BREAK.value)
    moved = (broken["effect"] != 0) & (broken["effect"] != NO_AMOUNT)
    is_told = (shown["state"] != SetState.MATCHED.value) | (shown["rule"] != "")
    calm = {
        name: _added(
            getattr(frames, name),
            shown.take((shown["state"] == state.value) & is_told),
            names=names,
            by=OPEN_SORTED_BY,
        )
        for name, (state, names) in _CALM.items()
    }
    return Frames(
        breaks=_with_breaks(
            frames.breaks, _graded(broken, rules=rules, as_of=as_of, previous=previous)
        ),
        effects=_added(
            frames.effects, broken.take(moved), names=EFFECT_COLUMNS, by=EFFECTS_SORTED_BY
        ),
        **calm,
    )


def _graded(rows: Arrays, *, rules: Rules, as_of: datetime, previous: Previous | None) -> Arrays:
    """Breaks with their age, their severity and since when they are known."""
    today = business_date(as_of, rules=rules)
    known, ages, severities = first_seen(previous), [], []
    for since, code, currency, exposure, effect in rows.rows(
        "since", "code", "currency", "exposure", "effect"
    ):
        age = rules.business_calendar.business_days_between(date.fromisoformat(since), end=today)
        risk = money_at_risk(exposure, effects=(0 if effect == NO_AMOUNT else effect,))
        codes = (BreakCode(code),)
        severity = severity_of(codes, at_risk=risk, currency=currency, age_days=age, rules=rules)
        ages.append(age)
        severities.append(severity.value)
    seen = [known.get(own, today.isoformat()) for own in rows["id"].tolist()]
    return rows.assign(
        age_days=np.array(ages, dtype=np.int64),
        severity=np.array(severities, dtype=object),
        first_seen=np.array(seen, dtype=object),
    )


_JOINED = (*("flags", "bank_amount", "effect_bank", "exposure", "severity", "owed_to", "reason"),)
"""What a break takes over from what else is found of it."""


def _with_breaks(breaks: pd.DataFrame, rows: Arrays) -> pd.DataFrame:
    """The breaks with more of them; what is one already bears the other code as a flag.

    It is as grave as the graver of the two, and owed to whom either of them says.
    """
    known = {one: at for at, one in enumerate(breaks["break_id"].tolist())}
    both = np.array([one in known for one in rows["id"].tolist()], dtype=np.bool_)
    if both.any():
        # Whole columns: each cell that is written into a frame copies its column.
        cells = {name: breaks[name].tolist() for name in _JOINED}
        joined = rows.take(both)
        for at, code, row in zip(
            (known[one] for one in joined["id"].tolist()),
            joined["code"].tolist(),
            (dict(zip(_JOINED, row, strict=True)) for row in joined.rows(*_JOINED)),
            strict=True,
        ):
            flags = {*cells["flags"][at].split(";"), *row["flags"].split(";"), code}
            cells["flags"][at] = flags_in_order(flags - {""})
            for name in ("bank_amount", "effect_bank"):
                if row["effect_bank"] != NO_AMOUNT:
                    cells[name][at] = row[name]
            cells["exposure"][at] = max(cells["exposure"][at], row["exposure"])
            cells["severity"][at] = graver(cells["severity"][at], row["severity"])
            if cells["owed_to"][at] == "none":
                cells["owed_to"][at] = row["owed_to"]
            cells["reason"][at] = f"{cells['reason'][at]} {row['reason']}"
        breaks = breaks.assign(
            **{
                name: pd.Series(values, index=breaks.index, dtype=breaks[name].dtype)
                for name, values in cells.items()
            }
        )
    return _added(breaks, rows.take(~both), names=BREAK_COLUMNS, by=BREAKS_SORTED_BY)


def flags_in_order(flags: Iterable[str]) -> str:
    """Codes as the contract lists them, then words."""
    codes = [code.value for code in BreakCode]
    words = sorted(
        flags, key=lambda one: (one not in codes, codes.index(one) if one in codes else 0, one)
    )
    return ";".join(words)


def _added(
    frame: pd.DataFrame, rows: Arrays, *, names: tuple[str, ...], by: list[str]
) -> pd.DataFrame:
    """A frame of the result with more rows, in its order."""
    if not len(rows):
        return frame
    amounts = tuple(name for name in AMOUNT_COLUMNS if name in names)
    more = frame_of_rows(rows, names=names, amounts=amounts)
    if "due_at" in names:
        more["due_at"] = instants(rows["due_at"])
    for name in names:
        if more[name].dtype != frame[name].dtype:
            more[name] = more[name].astype(frame[name].dtype)
    if not len(frame):
        return in_order(more, by=by)
    return in_order(pd.concat([frame, more], ignore_index=True), by=by)
