"""What must hold between the cells of one row, checked behind the column that completes it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.typing.amounts import AmountColumn
from recon.files.typing.days import what_is_wrong_with_day
from recon.files.typing.table_schema import KINDS_WITHOUT_TRANSACTION, TableSchema
from recon.model.words import InstructionKind, OrderStatus, SourceKind

Columns = Mapping[str, pa.Array]
Values = Mapping[str, Any]
Finding = tuple[str, dict[int, str]]
"""(column, row number -> reason)"""


def relations(
    schema: TableSchema, column: str, cells: Columns, values: Values
) -> Iterator[Finding]:
    """Findings of every rule that can be judged once this column has been read."""
    for kind, last, rule in _RULES:
        if schema.kind is kind and last == column:
            yield rule(cells, values)


def _refund_amount_given(cells: Columns, values: Values) -> Finding:
    del values
    partly = _is(cells["status"], OrderStatus.PARTIALLY_REFUNDED)
    rows = _rows(partly & _blank(cells["refund_amount"]))
    reason = "is blank on a partially_refunded order"
    return "refund_amount", dict.fromkeys(rows, reason)


def _action_given(cells: Columns, values: Values) -> Finding:
    del values
    details = np.zeros(len(cells["action"]), dtype=bool)
    for name in ("action_amount", "action_reason", "request_id"):
        details |= ~_blank(cells[name])
    rows = _rows(details & _blank(cells["action"]))
    return "action", dict.fromkeys(rows, "is blank although the row carries details of an action")


def _action_amount_fits(cells: Columns, values: Values) -> Finding:
    action: AmountColumn = values["action_amount"]
    order: AmountColumn = values["amount"]
    both = action.given & order.given
    moved = ~_is(cells["action"], InstructionKind.REVIEW)
    zero = both & (action.minor_units == 0) & moved
    above = both & (action.minor_units > order.minor_units)
    whole = _is(cells["action"], InstructionKind.CANCEL, InstructionKind.REVIEW)
    part = both & whole & (action.minor_units != order.minor_units)
    reasons = dict.fromkeys(_rows(part), "differs from the order: a cancel or review is whole")
    reasons |= dict.fromkeys(_rows(above), "is more than the amount of the order")
    reasons |= dict.fromkeys(_rows(zero), "is zero; an action moves money or is left out")
    return "action_amount", reasons


def _instruction_names(name: str) -> Callable[[Columns, Values], Finding]:
    """An instruction names its order and payment, unless its kind has none."""

    def rule(cells: Columns, values: Values) -> Finding:
        del values
        free = _is(cells["kind"], *KINDS_WITHOUT_TRANSACTION)
        return name, dict.fromkeys(_rows(_blank(cells[name]) & ~free), "is blank")

    return rule


def _amount_with_currency(of: str) -> Callable[[Columns, Values], Finding]:
    """An amount that may be blank has its own currency, or both are blank."""
    currency, amount = f"{of}_currency", f"{of}_amount"

    def rule(cells: Columns, values: Values) -> Finding:
        del values
        alone = _blank(cells[currency]) != _blank(cells[amount])
        return amount, dict.fromkeys(_rows(alone), f"needs {currency} and {amount} together")

    return rule


def _day_exists(name: str) -> Callable[[Columns, Values], Finding]:
    """A date is a day of the calendar, and not centuries away."""

    def rule(cells: Columns, values: Values) -> Finding:
        del values
        days = [text for text in pc.unique(cells[name]).to_pylist() if text]
        wrong = {text: why for text in days if (why := what_is_wrong_with_day(text))}
        texts = pa.array([*wrong], pa.large_string())
        rows = _rows(np.array(pc.is_in(cells[name], value_set=texts), dtype=bool))
        return name, {row: wrong[cells[name][row].as_py()] for row in rows}

    return rule


def _net_adds_up(cells: Columns, values: Values) -> Finding:
    del cells
    gross, fee, net = (values[name] for name in ("gross", "fee", "net"))
    given = gross.given & fee.given & net.given
    wrong = given & (gross.minor_units - fee.minor_units != net.minor_units)
    return "net", dict.fromkeys(_rows(wrong), "is not gross less fee")


def _entry_whole(cells: Columns, values: Values) -> Finding:
    """An entry has its number, its days and its amount; a statement without entries has none."""
    amount: AmountColumn = values["amount"]
    filled = [~_blank(cells[name]) for name in ("entry_no", "booked_on", "value_on")]
    some, every = amount.given.copy(), amount.given.copy()
    for column in filled:
        some |= column
        every &= column
    reason = "needs entry_no, booked_on, value_on and amount together"
    return "amount", dict.fromkeys(_rows(some & ~every), reason)


_RULES: tuple[tuple[SourceKind, str, Callable[[Columns, Values], Finding]], ...] = (
    (SourceKind.ORDERS, "refund_amount", _refund_amount_given),
    (SourceKind.ORDERS, "action", _action_given),
    (SourceKind.ORDERS, "action_amount", _action_amount_fits),
    (SourceKind.LEDGER, "transaction_amount", _amount_with_currency("transaction")),
    (SourceKind.SETTLEMENT, "settled_on", _day_exists("settled_on")),
    (SourceKind.SETTLEMENT, "net", _net_adds_up),
    (SourceKind.BANK, "from_date", _day_exists("from_date")),
    (SourceKind.BANK, "to_date", _day_exists("to_date")),
    (SourceKind.BANK, "amount", _entry_whole),
    (SourceKind.BANK, "booked_on", _day_exists("booked_on")),
    (SourceKind.BANK, "value_on", _day_exists("value_on")),
    (SourceKind.BANK, "instructed_amount", _amount_with_currency("instructed")),
    (SourceKind.INSTRUCTIONS, "order_no", _instruction_names("order_no")),
    (SourceKind.INSTRUCTIONS, "transaction_id", _instruction_names("transaction_id")),
)


def _blank(cells: pa.Array) -> npt.NDArray[np.bool_]:
    return np.array(pc.equal(cells, ""), dtype=bool)


def _is(cells: pa.Array, *words: str) -> npt.NDArray[np.bool_]:
    known = pa.array([str(word) for word in words], pa.large_string())
    return np.array(pc.is_in(cells, value_set=known), dtype=bool)


def _rows(mask: npt.NDArray[np.bool_]) -> list[int]:
    return [int(row) for row in np.flatnonzero(mask)]
