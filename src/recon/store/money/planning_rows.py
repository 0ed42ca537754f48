"""What planning asks the database: rows without an instruction, and the instructions there are."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from recon.instructions.intention import Intention
from recon.instructions.own_row import OrderRow
from recon.instructions.planning import Action, Earlier, Known
from recon.model.words import InstructionKind, InstructionState, OrderStatus, SourceKind
from recon.store.money.instruction_rows import INSTRUCTIONS, instruction_of
from recon.store.nights.runs import Run
from recon.store.schema import instruction, order_action, order_file
from recon.store.schema.account_filter import account_values, in_account

_CARRIED = (
    *("review_flag", "recurring_id", "contract_name"),
    *("payee", "payee_digest", "content_digest", "sealed"),
)


_OF = in_account(instruction)
_UNPLANNED = (
    select(order_action, order_file.c.name.label("file_name"), order_file.c.kind.label("file_kind"))
    .join(order_file, order_file.c.file_id == order_action.c.file_id)
    .where(
        *in_account(order_action),
        order_action.c.instruction_id == "",
    )
    .order_by(order_action.c.action_id)
)
_UNPLANNED_ORDERS = (
    select(order_action.c.order_no)
    .where(
        *in_account(order_action),
        order_action.c.instruction_id == "",
    )
    .distinct()
)
_ENDED_ORDERS = select(instruction.c.order_no).where(*_OF).distinct()
_KNOWN = (
    INSTRUCTIONS.add_columns(order_file.c.name.label("file_name"))
    .outerjoin(order_file, order_file.c.file_id == instruction.c.file_id)
    .where(*_OF)
)
_UNNAMED = (
    select(order_action.c.order_no)
    .where(
        *in_account(order_action),
        order_action.c.instruction_id == "",
        order_action.c.transaction_id == "",
    )
    .distinct(),
    select(instruction.c.order_no)
    .where(
        *_OF,
        instruction.c.transaction_id == "",
        instruction.c.state.in_([InstructionState.PLANNED.value, InstructionState.APPROVED.value]),
    )
    .distinct(),
)
"""Orders of rows and instructions that name none, which only the gateway's answers tell."""


def unplanned_actions(connection: Connection, run: Run) -> list[Action]:
    """Actions of the account's order files that have no instruction yet, oldest first."""
    rows = connection.execute(_UNPLANNED, account_values(run)).mappings()
    return [
        Action(
            action_id=row["action_id"],
            file_id=row["file_id"],
            file_name=row["file_name"],
            line=row["line"],
            merchant_id=row["merchant_id"],
            account_id=row["account_id"],
            order_no=row["order_no"],
            transaction_id=row["transaction_id"],
            kind=InstructionKind(row["action"]),
            currency=row["currency"],
            order_amount=row["amount"],
            action_amount=row["action_amount"],
            reason=row["action_reason"],
            request_id=row["request_id"],
            strict=row["file_kind"] == SourceKind.INSTRUCTIONS.value,
            row=_order_row(row),
            **{name: row[name] for name in _CARRIED},
        )
        for row in rows
    ]


def _order_row(row: Mapping[Any, Any]) -> OrderRow | None:
    """What the order row of an action says; an instruction file has none."""
    if not row["status"]:
        return None
    names = ("currency", "amount", "expected_captured_amount", "refund_amount")
    return OrderRow(OrderStatus(row["status"]), **{name: row[name] for name in names})


def unplanned_orders(connection: Connection, run: Run) -> set[str]:
    """Order numbers that the account's files name in actions without an instruction yet."""
    return set(connection.execute(_UNPLANNED_ORDERS, account_values(run)).scalars()) - {""}


def ended_orders(
    connection: Connection, run: Run, *, spans: Iterable[tuple[datetime, datetime]]
) -> set[str]:
    """Orders of instructions that ended within these spans (after, up to).

    No order file need name them, and what the gateway shows of them later may deny their end.
    """
    order_nos: set[str] = set()
    for after, up_to in spans:
        ended = _ENDED_ORDERS.where(
            instruction.c.outcome_at > after, instruction.c.outcome_at <= up_to
        )
        order_nos.update(connection.execute(ended, account_values(run)).scalars())
    return order_nos - {""}


def known(connection: Connection, run: Run, *, shown: Mapping[str, str]) -> Known:
    """What the journal already has of the account, for planning.

    `shown` is the one transaction that the gateway shows for an order.
    """
    rows = connection.execute(_KNOWN, account_values(run))
    return Known((_earlier(row, shown=shown) for row in rows), shown=shown)


def _earlier(row: Row[Any], *, shown: Mapping[str, str]) -> Earlier:
    item = instruction_of(row)
    return Earlier(
        Intention.of(item, shown="" if item.transaction_id else shown.get(item.order_no, "")),
        item.instruction_id,
        item.natural_key,
        row.file_name or "",
        item.state,
        is_again=bool(item.again_for),
    )


def unnamed_orders(connection: Connection, run: Run) -> set[str]:
    """Orders of the account for which something is asked whose payment is not named yet."""
    order_nos: set[str] = set()
    for query in _UNNAMED:
        order_nos.update(connection.execute(query, account_values(run)).scalars())
    return order_nos - {""}
