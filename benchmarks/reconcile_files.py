"""The planted orders as the files of `recon reconcile`: CSV by the contract, rules as TOML."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from recon.config.fee_contract import FACTS
from recon.matching.frames.sources import Sources

NAMES = ("orders", "gateway", "ledger", "instructions", "settlement")
NOT_IN_FILES = ("source", "line", "answer")
EXPONENT = 2
"""Of every planted currency."""


def write_files(sources: Sources, *, rules: Mapping[str, Any], folder: Path) -> None:
    """A CSV file for each source that there is, and rules.toml."""
    for name in NAMES:
        if (whole := getattr(sources, name)) is None:
            continue
        unreported = [fact for fact in FACTS if fact in whole and whole[fact].eq("").all()]
        frame = whole.drop(columns=[*NOT_IN_FILES, *unreported], errors="ignore")
        cells = {column: _cells(frame[column]) for column in frame.columns}
        pd.DataFrame(cells).to_csv(folder / f"{name}.csv", index=False)
    text = "\n".join(line for name, table in rules.items() for line in _toml([name], table=table))
    (folder / "rules.toml").write_text(text + "\n", encoding="utf-8")


def _cells(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if pd.api.types.is_datetime64_any_dtype(column):
        known = {at: f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in column.dropna().unique()}
        return column.map(known)
    if pd.api.types.is_integer_dtype(column):
        written = {amount: _written(int(amount)) for amount in column.dropna().unique()}
        return column.map(written)
    return column


def _written(minor_units: int) -> str:
    units, cents = divmod(abs(minor_units), 10**EXPONENT)
    return f"{'-' if minor_units < 0 else ''}{units}.{cents:0{EXPONENT}}"


def _toml(names: list[str], *, table: Mapping[str, Any]) -> list[str]:
    """A table whose values are texts, numbers or tables of them."""
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    plain = [(name, value) for name, value in table.items() if name not in inner]
    lines = ["[" + ".".join(f'"{name}"' for name in names) + "]"] if plain else []
    lines += [f'"{n}" = "{v}"' if isinstance(v, str) else f'"{n}" = {v}' for n, v in plain]
    return lines + [line for n, value in inner.items() for line in _toml([*names, n], table=value)]
