"""What an earlier `recon reconcile` left behind: its open breaks and the chargebacks it saw."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recon.files.formats.json_text import read_json_object
from recon.files.formats.raw_reader import read_raw
from recon.files.formats.raw_table import RawTable
from recon.files.typing.amounts import read_amounts
from recon.files.typing.text_cells import distinct
from recon.matching.breaks.result import AMOUNT_COLUMNS, BREAK_COLUMNS
from recon.matching.frames.sources import KEY_COLUMNS, MINOR_UNITS_OR_BLANK, TEXT, Previous
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.words import GatewayState
from recon.steps.compare.result_files import BREAKS, CLOSED_BREAKS, OUT_OF_SIGHT, SUMMARY

_SEEN_STATES = (BREAKS, "matches.csv", "pending.csv", "unverified.csv")


def read_earlier_run(folder: Path) -> Previous:
    """The breaks, with their ids and dates, of the run that wrote a folder.

    Raises:
        SourceMissingError: the folder or one of its files is missing.
        SourceUnreadableError: a file there is not what recon writes.
    """
    if not folder.is_dir():
        msg = f"the folder of the earlier run {folder} does not exist"
        raise SourceMissingError(msg)
    path = folder / SUMMARY
    summary = read_json_object(path)
    closed, away = summary.get(CLOSED_BREAKS, []), summary.get(OUT_OF_SIGHT, {})
    if not isinstance(closed, list) or not isinstance(away, dict):
        msg = f"{path} is not the summary of a run: {CLOSED_BREAKS} or {OUT_OF_SIGHT} is wrong"
        raise SourceUnreadableError(msg)
    return Previous(
        as_of=_as_of(summary, path=path),
        breaks=_breaks(folder / BREAKS),
        chargebacks=_chargebacks(folder),
        closed=frozenset(map(str, closed)),
        away={str(break_id): str(day)[:10] for break_id, day in away.items()},
    )


def _as_of(summary: Mapping[str, object], *, path: Path) -> datetime:
    as_of = summary.get("as_of")
    try:
        moment = datetime.fromisoformat(str(as_of))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        msg = f"{path} is not the summary of a run: as_of is {str(as_of)[:40]!r}"
        raise SourceUnreadableError(msg)
    return moment


def _breaks(path: Path) -> pd.DataFrame:
    raw = _raw(path, columns=BREAK_COLUMNS)
    return pd.DataFrame({name: _column(raw, name, path=path) for name in BREAK_COLUMNS})


def _raw(path: Path, *, columns: tuple[str, ...]) -> RawTable:
    raw = read_raw(path, wanted=frozenset(columns))
    missing = [name for name in columns if name not in raw.header]
    if missing or raw.bad_rows:
        what = f"lacks {', '.join(missing)}" if missing else f"line {raw.bad_rows[0].line} is bad"
        msg = f"{path} is not a file of an earlier run: {what}"
        raise SourceUnreadableError(msg)
    return raw


def _column(raw: RawTable, name: str, *, path: Path) -> "pd.Series[Any]":
    cells = raw.columns[name]
    if name in AMOUNT_COLUMNS:
        every = np.ones(len(cells), dtype=bool)
        currencies = distinct(raw.columns["currency"])
        amounts = read_amounts(cells, currencies=currencies, signed=every)
        if amounts.problems:
            row, reason = next(iter(amounts.problems.items()))
            msg = f"{path}, line {raw.lines[row]}, {name}: {reason}"
            raise SourceUnreadableError(msg)
        return pd.Series(pd.arrays.IntegerArray(amounts.minor_units, ~amounts.given))
    if name == "age_days":
        return _whole_numbers(cells.to_pylist(), path=path)
    return pd.Series(cells.to_pylist(), dtype=TEXT)


def _whole_numbers(texts: list[str], *, path: Path) -> "pd.Series[Any]":
    wrong = [text for text in texts if not (text.isascii() and text.isdecimal())]
    if wrong:
        msg = f"{path} is not a file of an earlier run: age_days is {wrong[0][:20]!r}"
        raise SourceUnreadableError(msg)
    return pd.Series([int(text) for text in texts], dtype=MINOR_UNITS_OR_BLANK)


def _chargebacks(folder: Path) -> pd.DataFrame:
    """KEY_COLUMNS of every set that the earlier run saw as charged back."""
    columns = (*KEY_COLUMNS, "state_gateway")
    parts = []
    for name in _SEEN_STATES:
        raw = _raw(folder / name, columns=columns)
        frame = pd.DataFrame({each: raw.columns[each].to_pylist() for each in columns}, dtype=TEXT)
        seen = frame["state_gateway"] == str(GatewayState.CHARGEBACK)
        parts.append(frame.loc[seen, list(KEY_COLUMNS)])
    return pd.concat(parts, ignore_index=True).drop_duplicates(ignore_index=True)
