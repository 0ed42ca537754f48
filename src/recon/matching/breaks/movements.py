"""The roll-forward: how the previous run's breaks ended, and where this run's breaks come from.

Closing balances are counted in the frame of breaks, but movements are derived from the outcomes of
sets, so that a break lost on its way to the report leaves a difference (T7).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.matching.breaks.result import Reconciliation
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, among, columns_of
from recon.matching.frames.digest import id_of
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.frames.sources import Previous, frame_of
from recon.model.terms import Flag, SetState

NEW, REOPENED, RETURNED = "new", "reopened", "returned"
"""Origins of a break. `reopened`: it had closed, and refers to the closed break; `returned`: it was
out of sight for some runs and is the same break."""
STAYS, REVALUED, RECLASSIFIED = "stays", "revalued", "reclassified"
LATE, RESOLVED, WRITTEN_OFF = "matched late", "resolved", "written off"
PENDING, UNVERIFIED, EXPLAINED, NEVER_SEEN = "pending", "unverified", "explained", "not seen"
STILL_OPEN = (STAYS, REVALUED, RECLASSIFIED)
FOR_GOOD = (LATE, RESOLVED, WRITTEN_OFF)
CLOSED = (*FOR_GOOD, PENDING, UNVERIFIED, EXPLAINED, NEVER_SEEN)
"""How a break ends. `explained`: another account's break covers it; `not seen`: no row of this run
refers to it: it left the window, or its ledger was not read."""


_LACKS_A_SIDE = frozenset(code for code, row in CODES.items() if row.lacks_a_side)


class Disposition(NamedTuple):
    """The outcome of a set in this run."""

    state: str
    flags: str
    is_linked: bool
    """Another set's break explains it."""


def dispositions_of(
    rows: Arrays, *, primaries: Rows, previous: Previous | None
) -> dict[str, Disposition]:
    """Return id -> disposition of every set that is broken in this run or was in the previous one.

    Args:
        rows: rows of all sets, before any frame of the result is made.
        primaries: the set whose break explains a set, else -1.
        previous: the previous run.
    """
    is_break = rows["state"] == SetState.BREAK.value
    if previous is not None:
        is_break |= among(rows["identity"], {*previous.breaks["break_id"].tolist()})
    chosen = rows.take(is_break & rows["own"])
    is_linked = (primaries[chosen["set"]] >= 0).tolist()
    chosen_rows = chosen.rows("identity", "state", "flags")
    return {
        identity: Disposition(state, labels, away)
        for (identity, state, labels), away in zip(chosen_rows, is_linked, strict=True)
    }


def movements(
    breaks: pd.DataFrame,
    *,
    dispositions: Mapping[str, Disposition],
    previous: Previous | None,
    reopens: Mapping[str, str],
    has_ledger: bool,
) -> pd.DataFrame:
    """Return one row per break of the previous run or this one (MOVEMENT_COLUMNS).

    `reopens` is id -> the closed break that it reopens; `has_ledger`: a ledger was compared.
    """
    before = {} if previous is None else _by_id(previous.breaks)
    now, away = _by_id(breaks), {} if previous is None else previous.away
    rows = []
    for identity, was in before.items():
        ended = _closing(was, disposition=dispositions.get(identity))
        effect = was["effect_ledger"]
        if ended in FOR_GOOD and not has_ledger and pd.notna(effect) and effect:
            ended = NEVER_SEEN  # the ledger is one of its sides
        own = {} if ended else now.get(identity, {})
        movement = ended or _staying(was, now=own)
        rows.append(_row(identity, movement=movement, before=was, now=own))
    for identity, disposition in dispositions.items():
        is_open = disposition.state == SetState.BREAK and not disposition.is_linked
        if is_open and identity not in before:
            movement = REOPENED if identity in reopens else NEW
            movement = RETURNED if identity in away else movement
            own = now.get(identity, {})
            rows.append(_row(identity, movement=movement, before={}, now=own))
    pointed = [{**row, "reopens": reopens.get(row["break_id"], "")} for row in rows]
    by = ("merchant_id", "account_id", "movement", "order_no", "break_id")
    pointed.sort(key=lambda row: tuple(row[name] for name in by))
    return frame_of(pointed, columns=columns_of("movements"))


def _closing(was: Mapping[str, Any], *, disposition: Disposition | None) -> str:
    """Return how a break of the previous run ended, "" while it is open."""
    if disposition is None or not disposition.state:
        return NEVER_SEEN
    if disposition.is_linked:
        return EXPLAINED
    if disposition.state == SetState.BREAK:
        return ""
    if disposition.state != SetState.MATCHED:
        return PENDING if disposition.state == SetState.PENDING else UNVERIFIED
    if Flag.WRITTEN_OFF in disposition.flags.split(";"):
        return WRITTEN_OFF
    return LATE if was["code"] in _LACKS_A_SIDE else RESOLVED


def _staying(was: Mapping[str, Any], *, now: Mapping[str, Any]) -> str:
    if now.get("code") != was["code"]:
        return RECLASSIFIED
    same = (was["exposure"], was["currency"]) == (now["exposure"], now["currency"])
    return STAYS if same else REVALUED


_PLACE = ("merchant_id", "account_id", "order_no", "transaction_id")


def _row(
    identity: str, *, movement: str, before: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    known = now or before
    return {
        "break_id": identity,
        **{name: known.get(name, "") for name in _PLACE},
        "movement": movement,
        "code_before": before.get("code", ""),
        "code": now.get("code", ""),
        "currency_before": before.get("currency", ""),
        "currency": now.get("currency", ""),
        "exposure_before": int(before.get("exposure", 0)),
        "exposure": int(now.get("exposure", 0)),
    }


def _by_id(breaks: pd.DataFrame) -> dict[str, dict[str, Any]]:
    named = ["break_id", *_PLACE, "code", "currency", "exposure", "effect_ledger"]
    cells = zip(*(breaks[name].tolist() for name in named), strict=True)
    return {str(row[0]): dict(zip(named, row, strict=True)) for row in cells}


Ids = np.ndarray[tuple[int], np.dtype[np.object_]]


def sequenced(
    ids: Ids, *, sets: Arrays, broken: Bools, previous: Previous | None
) -> tuple[Ids, Mapping[str, str]]:
    """Return the id of each set in this run, and id -> the closed break that it reopens.

    Args:
        ids: the first id of each set.
        sets: columns merchant_id, account_id, key.
        broken: the sets that are breaks in this run.
        previous: what closed, and what is open.
    """
    if previous is None or not previous.closed:
        return ids, {}
    seen = np.fromiter(
        (identity in previous.closed for identity in ids), dtype=np.bool_, count=len(ids)
    )
    again = np.flatnonzero(seen)
    if not again.size:
        return ids, {}
    # A break that is out of sight has not closed: it continues under its number, and closes under
    # it.
    known, used = {*previous.breaks["break_id"], *previous.away}, set(ids)
    changed, older = ids.copy(), {}
    for number in again.tolist():
        set_key = tuple(sets[name][number] for name in ("merchant_id", "account_id", "key"))
        # A set of another kind with the same key may have a number in between.
        fresh, last = next_id(set_key, closed=previous.closed, used=used)
        if fresh in known or broken[number]:
            changed[number], older[fresh] = fresh, last
    return changed, older


def next_id(
    key: Sequence[str], *, closed: Collection[str], used: Collection[str] = ()
) -> tuple[str, str]:
    """Return a key's first id that is neither closed nor taken, and the closed one it reopens."""
    number, last = 1, ""
    while (own := id_of(*key, str(number))) in closed or own in used:
        number, last = number + 1, own if own in closed else last
    return own, last


def left_open(
    breaks: pd.DataFrame,
    *,
    moved: pd.DataFrame,
    matched: Iterable[str],
    as_of: datetime,
    previous: Previous | None,
    chargebacks: pd.DataFrame,
) -> Previous:
    """Return the state that a result passes on to the next run.

    Args:
        breaks: its open breaks.
        moved: its movements (MOVEMENT_COLUMNS).
        matched: the ids of its matches: a break that was out of sight closes when its set matches
            again.
        as_of: of the result.
        previous: what was passed on to it.
        chargebacks: KEY_COLUMNS of what was charged back.
    """
    closed, away = set[str](), dict[str, str]()
    if previous is not None:
        closed, away = {*previous.closed}, {**previous.away}
        closed |= {identity for identity in (matched if away else ()) if identity in away}
        seen = dict(zip(previous.breaks["break_id"], previous.breaks["first_seen"], strict=True))
        for identity, movement in zip(moved["break_id"], moved["movement"], strict=True):
            if movement in FOR_GOOD:
                closed.add(identity)
            elif movement in CLOSED:
                closed.discard(identity)
                away[identity] = str(seen[identity])[:10]
        # An open break has not ended, whatever was recorded before.
        closed -= {*breaks["break_id"]}
        ended = closed | {*breaks["break_id"]}
        away = {identity: day for identity, day in away.items() if identity not in ended}
    return Previous(as_of, breaks, chargebacks, frozenset(closed), away)


def with_reopened(result: Reconciliation) -> pd.DataFrame:
    """Return the breaks with the closed break that each reopens (`reopens`, "" for most)."""
    moved = result.movements
    older = dict(zip(moved["break_id"], moved["reopens"], strict=True))
    return result.breaks.assign(
        reopens=[older.get(identity, "") for identity in result.breaks["break_id"]]
    )
