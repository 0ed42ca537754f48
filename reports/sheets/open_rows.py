"""What waits and what could not be verified: the rows of the sheet, and the sums of all of them.

Nobody answers these rows. Of a large night the sheet has their sums by reason and the first rows by
money at risk; all rows are a file that the sheet names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.frames.grouping import Ints, amounts_of
from recon.model.figures import NightFigures
from recon.model.money import Money
from recon.model.words import InstructionKind, InstructionState
from reports.drawing.listing import rows_of
from reports.sheets.matched_totals import AMOUNT_NAMES, largest_of, sums_by

WAITING = "Waiting"
NOT_VERIFIED = "Not verified"
RISK = "risk"
"""What a set may cost: the effect that shows, else all of it; minor units."""
GROUP_NAMES = ("result", "reason", "expected_side", "account_id", "currency")
_EFFECTS = ("effect_orders", "effect_ledger")
_SIDES = ("order_amount", "gateway_amount", "ledger_amount")
_BLANK: Mapping[str, Any] = {"reason": "", "expected_side": "", "due_at": None}
_KINDS: Mapping[str, str] = {
    InstructionKind.CAPTURE: "capture",
    InstructionKind.REFUND: "refund",
    InstructionKind.CANCEL: "cancellation",
}
_WAITS_FOR: Mapping[str, str] = {
    InstructionState.PLANNED: "for a person's approval",
    InstructionState.APPROVED: "to be sent",
}
Told = Callable[[Mapping[str, Any]], str | None]
"""What is known of a row beside its codes, in words."""


@dataclass(frozen=True, slots=True)
class OpenRows:
    """Of both kinds; `result` says which a row or a group is of."""

    shown: list[dict[str, Any]]
    """As the sheet lists them."""
    groups: list[dict[str, Any]]
    """`rows`, and sums of amounts and RISK: of all rows, those that are not shown with them."""
    is_cut: bool = False
    """Whether not every row is shown."""
    largest: Mapping[str, int] = field(default_factory=dict)
    """Where it is cut: currency -> the largest amount of any one row, without sign."""

    def count(self, *results: str) -> int:
        """How many sets came to these results; without one: how many there are."""
        return sum(
            group["rows"] for group in self.groups if group["result"] in results or not results
        )

    def formula(self, result: str) -> str:
        """The same, as the sheet counts them."""
        if self.is_cut:
            return f'SUMIFS(opnRows,opnResult,"{result}")'
        return f'COUNTIF(opnResult,"{result}")'


def open_rows(figures: NightFigures, *, reason_of: Told) -> OpenRows:
    """What is not verified, then what waits; of too many rows those with most money at risk."""
    frames = {NOT_VERIFIED: figures.unverified, WAITING: figures.pending}
    ours = _waiting(figures.instructions)
    words_of: Mapping[str, Told] = {
        NOT_VERIFIED: reason_of,
        WAITING: lambda row: (
            ours.get(row["order_no"]) if row["expected_side"] == "gateway" else None
        ),
    }
    if sum(map(len, frames.values())) <= figures.open_rows_max:
        rows = [
            row
            for result, frame in frames.items()
            for row in sorted(_rows(frame, result=result, words_of=words_of[result]), key=_place)
        ]
        return OpenRows(rows, [{**row, "rows": 1, RISK: _risk_of_row(row)} for row in rows])
    return _cut(frames, shown=figures.open_rows_shown, words_of=words_of)


def _waiting(instructions: pd.DataFrame) -> dict[str, str]:
    """Order -> what of ours waits to be sent, and whether a person is to approve it first."""
    rows = instructions[instructions["state"].isin(_WAITS_FOR) & instructions["kind"].isin(_KINDS)]
    sentences: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        what = _KINDS[row["kind"]]
        if row["kind"] != InstructionKind.CANCEL:
            what += f" of {Money.of_minor_units(row['amount'], currency=row['currency'])}"
        sentence = f"Our {what} waits {_WAITS_FOR[row['state']]}."
        sentences.setdefault(row["order_no"], []).append(sentence)
    return {order: " ".join(each) for order, each in sentences.items()}


def _cut(
    frames: Mapping[str, pd.DataFrame], *, shown: int, words_of: Mapping[str, Told]
) -> OpenRows:
    first: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    largest: dict[str, int] = {}
    for result, frame in frames.items():
        risk = _risk(frame)
        of_result = _by_reason(frame, result=result, risk=risk)
        sums = sums_by(of_result, by=GROUP_NAMES, of=(*AMOUNT_NAMES, RISK)) if len(frame) else {}
        groups += [
            {**dict(zip(GROUP_NAMES, group, strict=True)), **sums[group]} for group in sorted(sums)
        ]
        for currency, amount in (largest_of(frame) if len(frame) else {}).items():
            largest[currency] = max(largest.get(currency, 0), amount)
        most = frame.iloc[np.argsort(-risk, kind="stable")[:shown]]
        first += _rows(most, result=result, words_of=words_of[result])
    first.sort(key=lambda row: (-_risk_of_row(row), *_place(row)))
    return OpenRows(first[:shown], groups, is_cut=True, largest=largest)


def _by_reason(frame: pd.DataFrame, *, result: str, risk: Ints) -> pd.DataFrame:
    """The rows with all of GROUP_NAMES, and their risk."""
    whole = frame.assign(**{RISK: risk})
    for name in GROUP_NAMES:
        if name not in frame.columns:
            whole[name] = result if name == "result" else ""
    return whole


def _rows(frame: pd.DataFrame, *, result: str, words_of: Told) -> list[dict[str, Any]]:
    rows = [{**_BLANK, **row, "result": result} for row in rows_of(frame)]
    return [{**row, "told": words_of(row)} for row in rows]


def _risk(frame: pd.DataFrame) -> Ints:
    """RISK of each row."""
    effect, whole = (
        np.maximum.reduce([np.abs(amounts_of(frame[name])) for name in names])
        for names in (_EFFECTS, _SIDES)
    )
    risk: Ints = np.where(effect > 0, effect, whole)
    return risk


def _risk_of_row(row: Mapping[str, Any]) -> int:
    effect, whole = (
        max(abs(int(row[name] or 0)) for name in names) for names in (_EFFECTS, _SIDES)
    )
    return effect or whole


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["account_id"], row["order_no"] or "", row["transaction_id"] or "")
