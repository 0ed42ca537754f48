"""Answers of an old night that may still decide money: they stay as long as they may.

A night asks the merchant's other accounts too, so its answers are evidence for each of them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from recon.settlement.contradiction import Ended, against
from recon.settlement.resolution import quarantine
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import parts_table
from recon.store import Connection
from recon.store.money import case_rows, instruction_rows, retention_rows
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AnswerPart
from recon.store.nights.runs import Run
from recon.store.schema.account_filter import OfAccount


def undecided(connection: Connection, run: Run, *, before: datetime) -> str:
    """An account with money that answers of a run, or what is as old, may decide; "" when none.

    Only answers that came after an instruction was planned say anything of it.
    """
    parts = [part for part in answer_parts.of_run(connection, run.run_id) if part.answered]
    newest = max((part.last_at for part in parts if part.last_at is not None), default=before)
    owners: Iterable[OfAccount] = (run, *_by_account(parts).values())
    for owner in owners:
        if retention_rows.open_money(connection, owner, before=max(before, newest)):
            which = f"{owner.merchant_id}/{owner.account_id}"
            return f"an instruction or a case of {which} from before is still open (`recon status`)"
    return ""


def speaks_against(connection: Connection, run: Run, *, environment: Environment) -> str:
    """An instruction that ended, and of which answers of a run show the opposite; "" when none.

    One more such answer makes a case of it, and a case stops money: the first must still be there.

    Raises:
        ArchiveError: answers cannot be read, or are not as they were sealed.
    """
    parts = [part for part in answer_parts.of_run(connection, run.run_id) if part.answered]
    for owner in _by_account(parts).values():
        of_owner = [part for part in parts if part.account_id == owner.account_id]
        table = parts_table(of_owner, environment=environment)
        for ended in _against(connection, owner, table=table, environment=environment):
            return (
                f"its answers speak against instruction {ended.instruction.instruction_id}, which "
                "has no case yet"
            )
    return ""


def _by_account(parts: Iterable[AnswerPart]) -> dict[tuple[str, str], AnswerPart]:
    return {(part.merchant_id, part.account_id): part for part in parts}


def _against(
    connection: Connection, owner: OfAccount, *, table: pa.Table, environment: Environment
) -> Iterable[Ended]:
    shown: dict[str, dict[str, datetime]] = {}
    for row in _payments(table):
        last = shown.setdefault(row["transaction_id"], {})
        status = row["payment_status"]
        last[status] = max(row["queried_at"], last.get(status, row["queried_at"]))
    statuses = {payment: [*last] for payment, last in shown.items()}
    pairs = case_rows.shown_ended(connection, owner, shown=statuses)
    payments = {ended.instruction.transaction_id for ended, _ in pairs}
    beside = instruction_rows.of_payments(connection, owner, transaction_ids=payments)
    waits = quarantine(timedelta(seconds=environment.settings.gateway.deadline_seconds))
    rules = environment.settings.rules
    for ended, status in pairs:
        item = ended.instruction
        others = [
            other
            for other in beside.get(item.transaction_id, ())
            if other.instruction_id != item.instruction_id
        ]
        is_ripe = shown[item.transaction_id][status] >= ended.ended_at + waits
        if is_ripe and rules.state_of(status) in against(ended, others=others):
            yield ended


def _payments(table: pa.Table) -> list[Mapping[str, Any]]:
    columns = table.select(["transaction_id", "payment_status", "queried_at"])
    return [row for row in columns.to_pylist() if row["queried_at"] is not None]
