"""Many orders of which nearly all agree, with planted breaks among them, as typed frames.

The orders that agree are made column by column, so that a million takes seconds; the planted ones
are few and are made row by row from their recipes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Sources,
    frame_of,
)
from recon.model.terms import BreakCode
from tests.injected.recipes import LONG_AGO, RECIPES, RULES, SETTLED_FROM, Scene

AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
"""The end of Friday 2026-11-20."""
MERCHANT = "M1"
BATCH = "S1"
PREFIXES = np.array(["A", "SO-2026/", "web:1#", "INV.2026.11.20-0000-"])
"""Order numbers are of mixed width, as those of several shops are."""
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "orders": ORDER_COLUMNS,
    "gateway": GATEWAY_COLUMNS,
    "ledger": LEDGER_COLUMNS,
    "instructions": INSTRUCTION_COLUMNS,
    "settlement": SETTLEMENT_COLUMNS,
}


@dataclass(frozen=True, slots=True)
class Injected:
    """The files as frames."""

    sources: Sources
    rules: Rules
    as_of: datetime


def planted(*, size: int, broken: int, seed: int = 1, settled: bool = True) -> Injected:
    """`size` orders of which `broken` carry one break each, every code in turn.

    Args:
        size: orders, the broken ones among them.
        broken: how many breaks to plant.
        seed: of the amounts and of the order of the rows.
        settled: with a settlement file; without it, its codes and the payouts' are left out.
    """
    draw = np.random.default_rng(seed)
    names = order_numbers(size)
    chosen = np.sort(draw.choice(size, size=broken, replace=False))
    agreeing = np.delete(names, chosen)
    codes = [code for code in RECIPES if settled or not _beyond(code)]
    scenes = [
        (code, RECIPES[code](Scene(name)))
        for code, name in zip(_in_turn(codes), names[chosen].tolist(), strict=False)
    ]
    frames = {
        source: _shuffled([whole, _rows_of(scenes, source=source)], draw=draw)
        for source, whole in _agreeing(agreeing, draw=draw).items()
        if settled or source != "settlement"
    }
    if settled:
        frames["settlement"] = _with_pay_out(frames["settlement"])
        frames["ledger"] = _with_booked_cash(frames["ledger"], settlement=frames["settlement"])
    sources = Sources(
        orders=frames["orders"],
        gateway=frames["gateway"],
        ledger=frames["ledger"],
        instructions=frames["instructions"],
        settlement=frames.get("settlement"),
    )
    return Injected(sources, Rules.of(RULES, source="planted files"), AS_OF)


def order_numbers(size: int) -> "np.ndarray[Any, Any]":
    """So many order numbers of mixed width, each once."""
    numbers = np.arange(size)
    return np.char.add(PREFIXES[numbers % len(PREFIXES)], (numbers * 7 + 11).astype(str))


def _beyond(code: BreakCode) -> bool:
    return code.startswith(("SETTLEMENT_", "PAYOUT_", "FEE_", "UNEXPECTED_"))


def _in_turn(codes: list[BreakCode]) -> Iterator[BreakCode]:
    while True:
        yield from codes


def _agreeing(names: Any, *, draw: np.random.Generator) -> dict[str, pd.DataFrame]:
    """The rows of the orders of which every file says the same."""
    order_no = pd.Series(names, dtype="str")
    amount = draw.integers(100, 1_000_000, len(names))
    at = pd.Series(np.full(len(names), LONG_AGO), dtype="str").astype("datetime64[us, UTC]")
    transaction = ("T" + order_no.str.replace(r"[#/:]", "-", regex=True)).astype("str")
    fee = amount * 140 // 10_000 + 25
    cells: dict[str, dict[str, Any]] = {
        "orders": {"amount": amount, "status": "paid", "ordered_at": at},
        "gateway": {
            "transaction_id": transaction,
            "amount": amount,
            "payment_status": "3000",
            "query_result": "1",
            "answer": "found",
            "transaction_date": at,
        },
        "ledger": {
            "entry_id": ("L-" + order_no).astype("str"),
            "entry_type": "capture",
            "amount": amount,
            "booked_at": at,
        },
        "settlement": {
            "batch_id": BATCH,
            "settled_on": SETTLED_FROM,
            "entry_type": "capture",
            "transaction_id": transaction,
            "gross": amount,
            "fee": fee,
            "net": amount - fee,
        },
    }
    frames = {
        source: _frame(source, order_no=order_no, cells=cell) for source, cell in cells.items()
    }
    return {**frames, "instructions": frame_of([], columns=INSTRUCTION_COLUMNS)}


def _frame(source: str, *, order_no: Any, cells: dict[str, Any]) -> pd.DataFrame:
    size = len(order_no)
    cells |= {"merchant_id": MERCHANT, "account_id": "1", "order_no": order_no, "currency": "EUR"}
    cells |= {"source": f"{source}.csv", "line": np.arange(size) + 2}
    return pd.DataFrame(
        {
            name: _column(cells.get(name), kind=kind, size=size)
            for name, kind in COLUMNS[source].items()
        }
    )


def _column(value: Any, *, kind: str, size: int) -> "pd.Series[Any]":
    if isinstance(value, pd.Series):
        return value.reset_index(drop=True)
    if isinstance(value, np.ndarray):
        return pd.Series(value).astype(_KINDS[kind])
    blank = {"str": "", "Int64": pd.NA}.get(kind, pd.NaT)
    cell = pd.Series([blank if value is None else value], dtype=_KINDS[kind])
    return cell.repeat(size).reset_index(drop=True)


_KINDS: Mapping[str, Any] = {kind: kind for kinds in COLUMNS.values() for kind in kinds.values()}


def _rows_of(scenes: list[tuple[BreakCode, Scene]], *, source: str) -> pd.DataFrame:
    rows = [
        {"merchant_id": MERCHANT, "batch_id": BATCH, "source": f"{source}.csv", "line": 1, **row}
        for _, scene in scenes
        for row in scene.rows.get(source, ())
    ]
    for row in rows:
        for name in _PLAIN_IDS & row.keys():
            row[name] = row[name].translate(_PLAIN)
    return frame_of(rows, columns=COLUMNS[source])


_PLAIN = str.maketrans("#/:", "---")
_PLAIN_IDS = {"transaction_id", "request_id", "reference_no"}
"""These have fewer characters than an order number may have."""


def _shuffled(parts: list[pd.DataFrame], *, draw: np.random.Generator) -> pd.DataFrame:
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return rows.iloc[draw.permutation(len(rows))].reset_index(drop=True)


def _named(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items()}


def _with_pay_out(settlement: pd.DataFrame) -> pd.DataFrame:
    """The batch's payout of every account and currency, as the lines above it come to."""
    named = ["merchant_id", "account_id", "currency"]
    sums = settlement.groupby(named)[["gross", "fee", "net"]].sum().reset_index()
    rows: list[dict[str, Any]] = [
        {"batch_id": BATCH, "settled_on": SETTLED_FROM, "entry_type": "payout", **_named(row)}
        for row in sums.to_dict("records")
    ]
    pay_out_rows = [{**row, "source": "settlement.csv", "line": 1} for row in rows]
    return _joined(settlement, frame_of(pay_out_rows, columns=SETTLEMENT_COLUMNS))


def _with_booked_cash(ledger: pd.DataFrame, *, settlement: pd.DataFrame) -> pd.DataFrame:
    """The ledger has the payout and the fees of the batch."""
    paid = settlement[settlement["entry_type"].eq("payout")]
    rows: list[dict[str, Any]] = [
        {
            **_named(row),
            "entry_id": f"{entry_type}-{row['account_id']}-{row['currency']}",
            "amount": row[column],
            "entry_type": entry_type,
            "booked_at": LONG_AGO,
            "reference_no": row["batch_id"],
            "source": "ledger.csv",
        }
        for row in paid.to_dict("records")
        for entry_type, column in (("payout", "net"), ("fee", "fee"))
        if row[column]
    ]
    return _joined(ledger, frame_of(rows, columns=LEDGER_COLUMNS))


def _joined(*parts: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([*parts], ignore_index=True)
