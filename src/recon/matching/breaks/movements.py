"""What became of last night's open breaks, and where tonight's come from: the roll-forward.

Closing is read off the frame of breaks. The movements are read off what tonight's sets came to, so
that a break which gets lost on its way to the report leaves a difference (T7).
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from recon.matching.breaks.result import MOVEMENT_COLUMNS
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, among, frame_of_cells
from recon.matching.frames.grouping import Rows
from recon.matching.frames.sources import Previous
from recon.matching.frames.total_rows import ACCOUNT, counted, paired, sums
from recon.model.words import ControlTotal, Flag, SetState

NEW, REOPENED, RETURNED = "new", "reopened", "returned"
"""Where a break comes from: `reopened`: it had closed, and points to the closed one; `returned`: it
was out of sight for some nights and is the same break."""
STAYS, REVALUED, RECLASSIFIED = "stays", "revalued", "reclassified"
LATE, RESOLVED, WRITTEN_OFF = "matched late", "resolved", "written off"
PENDING, UNVERIFIED, EXPLAINED, NOT_SEEN = "pending", "unverified", "explained", "not seen"
COMES_IN = (NEW, REOPENED, RETURNED)
STILL_OPEN = (STAYS, REVALUED, RECLASSIFIED)
FOR_GOOD = (LATE, RESOLVED, WRITTEN_OFF)
CLOSED = (*FOR_GOOD, PENDING, UNVERIFIED, EXPLAINED, NOT_SEEN)
"""How a break stops being one. `explained`: the break of another account says it now; `not seen`:
no row of tonight speaks of it: it left the window, or the books that it is about were not read."""


_LACKS_A_SIDE = frozenset(code for code, row in CODES.items() if row.lacks_a_side)


class Fate(NamedTuple):
    """What a set came to tonight."""

    state: str
    flags: str
    hosted: bool
    """Another set's break explains it."""


def fates_of(rows: Arrays, *, hosts: Rows, previous: Previous | None) -> dict[str, Fate]:
    """Id -> fate of every set that is broken tonight or was last night.

    Args:
        rows: what every set shows, before any frame of the result was made.
        hosts: the set whose break explains a set, else -1.
        previous: the night before.
    """
    asked = rows["state"] == SetState.BREAK.value
    if previous is not None:
        asked |= among(rows["identity"], {*previous.breaks["break_id"].tolist()})
    chosen = rows.take(asked & rows["own"])
    hosted = (hosts[chosen["set"]] >= 0).tolist()
    chosen_rows = chosen.rows("identity", "state", "flags")
    return {
        identity: Fate(state, words, away)
        for (identity, state, words), away in zip(chosen_rows, hosted, strict=True)
    }


def movements(
    breaks: pd.DataFrame,
    *,
    fates: Mapping[str, Fate],
    previous: Previous | None,
    reopens: Mapping[str, str],
    books: bool,
) -> pd.DataFrame:
    """One row per break of last night or tonight (MOVEMENT_COLUMNS).

    `reopens` is id -> the closed break that it opens again; `books`: a ledger was compared.
    """
    before = {} if previous is None else _by_id(previous.breaks)
    now = _by_id(breaks)
    broken = [
        identity
        for identity, fate in fates.items()
        if fate.state == SetState.BREAK and not fate.hosted
    ]
    rows = [*_of_last_night(before, now=now, fates=fates, books=books)]
    rows += [
        _row(
            identity,
            movement=_coming(identity, reopens, previous),
            before={},
            now=now.get(identity, {}),
        )
        for identity in broken
        if identity not in before
    ]
    pointed = [{**row, "reopens": reopens.get(row["break_id"], "")} for row in rows]
    by = ("merchant_id", "account_id", "movement", "order_no", "break_id")
    pointed.sort(key=lambda row: tuple(row[name] for name in by))
    numbers = {"exposure_before", "exposure"}
    return frame_of_cells(pointed, names=MOVEMENT_COLUMNS, numbers=numbers)


def roll_forward(
    breaks: pd.DataFrame, *, moved: pd.DataFrame, previous: Previous | None
) -> Iterator[ControlTotal]:
    """T7: opening + new + reopened ± revalued - closed = closing, by count and by exposure."""
    if previous is None:
        return
    opening = previous.breaks
    left = pd.concat(
        [
            opening[~opening["break_id"].isin(moved[moved["movement"].isin(CLOSED)]["break_id"])][
                ACCOUNT
            ],
            moved[moved["movement"].isin(COMES_IN)][ACCOUNT],
        ]
    )
    name = "opening + new + reopened - closed = closing"
    yield from counted("T7", name, left=left, right=breaks)
    parts = [
        sums(opening, column="exposure"),
        _signed(moved, column="exposure_before", currency="currency_before", sign=-1),
        _signed(moved, column="exposure", currency="currency", sign=1),
    ]
    together: dict[tuple[str, str, str], int] = {}
    for part in parts:
        for key, amount in part.items():
            together[key] = together.get(key, 0) + amount
    closing = sums(breaks, column="exposure")
    name = "opening + new + reopened ± revalued - closed = closing"
    yield from paired("T7", name, left=together, right=closing, measure="amount")


def _signed(
    moved: pd.DataFrame, *, column: str, currency: str, sign: int
) -> dict[tuple[str, str, str], int]:
    rows = moved.assign(currency=moved[currency], amount=sign * moved[column])
    return sums(rows[rows["amount"].ne(0)])


def _of_last_night(
    before: Mapping[str, Mapping[str, Any]],
    *,
    now: Mapping[str, Mapping[str, Any]],
    fates: Mapping[str, Fate],
    books: bool,
) -> Iterator[dict[str, Any]]:
    for identity, was in before.items():
        movement = _closing(was, fate=fates.get(identity))
        if movement in FOR_GOOD and not books and _is_of_books(was):
            movement = NOT_SEEN
        yield _row(
            identity,
            movement=movement or _staying(was, now=now.get(identity, {})),
            before=was,
            now={} if movement else now.get(identity, {}),
        )


def _coming(identity: str, reopens: Mapping[str, str], previous: Previous | None) -> str:
    if previous is not None and identity in previous.away:
        return RETURNED
    return REOPENED if identity in reopens else NEW


def _closing(was: Mapping[str, Any], *, fate: Fate | None) -> str:
    """How a break of last night ended, "" while it is open."""
    if fate is None or not fate.state:
        return NOT_SEEN
    if fate.hosted:
        return EXPLAINED
    if fate.state == SetState.BREAK:
        return ""
    if fate.state != SetState.MATCHED:
        return PENDING if fate.state == SetState.PENDING else UNVERIFIED
    if Flag.WRITTEN_OFF in fate.flags.split(";"):
        return WRITTEN_OFF
    return LATE if was["code"] in _LACKS_A_SIDE else RESOLVED


def _is_of_books(was: Mapping[str, Any]) -> bool:
    """Whether the books are a side of a break: without them nobody knows that it ended."""
    effect = was["effect_ledger"]
    return bool(pd.notna(effect) and effect != 0)


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
