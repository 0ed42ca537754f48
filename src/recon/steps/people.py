"""What needs a person: the list of page one and of `recon status`."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from recon.errors import NightHeldError, UsageError
from recon.figures import Attention
from recon.model import InstructionState, Mode
from recon.settlement.instruction import Instruction
from recon.steps.environment import Environment
from recon.store import instruction_rows, runs
from recon.store.history import append
from recon.store.journal import move
from recon.store.night_lock import account_lock
from recon.store.runs import Run

WITHDRAWABLE = frozenset({InstructionState.PLANNED, InstructionState.APPROVED})

ATTENTION_MAX = 10_000
"""Rows of the list; more than that is one cause, not so many tasks."""

_WORDS = {
    InstructionState.IN_FLIGHT: "in flight",
    InstructionState.IN_DOUBT: "in doubt",
    InstructionState.NEEDS_HUMAN: "undecided",
    InstructionState.PLANNED: "waiting for approval",
    InstructionState.APPROVED: "not sent",
}
_NEXT = {
    InstructionState.IN_FLIGHT: "Start the night again: it is never sent twice.",
    InstructionState.IN_DOUBT: (
        "Do not send it again. A later night asks the gateway; look it up in the portal if urgent."
    ),
    InstructionState.NEEDS_HUMAN: "Look it up in the gateway's portal and record what you find.",
    InstructionState.PLANNED: "If it is not meant, withdraw it.",
    InstructionState.APPROVED: "It waits for the next night; withdraw it if it is not meant.",
}
_URGENT_FIRST = tuple(_WORDS)


def attention(run: Run, *, environment: Environment) -> tuple[Attention, ...]:
    """Unfinished instructions of an account, money in doubt first, then oldest first."""
    with environment.store.reading() as connection:
        rows = instruction_rows.unfinished_rows(connection, run)
    return tuple(_attention_of(row) for row in _sorted(rows))[:ATTENTION_MAX]


def status(environment: Environment) -> list[tuple[Run, tuple[Attention, ...]]]:
    """The newest run of every account with what needs a person there."""
    with environment.store.reading() as connection:
        newest = runs.newest_of_accounts(connection)
    return [(run, attention(run, environment=environment)) for run in newest]


def standing_of(run: Run, *, environment: Environment) -> str:
    """Where a run stands, in words: verdict, working, died, or stopped and why."""
    dry = " (dry run, nothing was sent)" if run.mode is Mode.DRY_RUN else ""
    if run.status == "active":
        if _is_held(run, environment=environment):
            return f"working, {run.owner}{dry}"
        return (
            f"died after {run.step or 'its start'} ({run.owner}): start the night again, "
            f"what was sent is never sent twice{dry}"
        )
    told = run.verdict if run.status == "finished" else f"stopped after {run.step or 'its start'}"
    return f"{told}{dry}" + (f": {run.problem}" if run.problem else "")


def _is_held(run: Run, *, environment: Environment) -> bool:
    place = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    try:
        with account_lock(environment.store, **place):
            return False
    except NightHeldError:
        return True


def withdraw(instruction_id: str, *, by: str, reason: str, environment: Environment) -> Instruction:
    """Take back an instruction that was never sent; it can never be sent afterwards.

    Withdrawing moves no money, so one name is enough; name and reason stand in the history.

    Raises:
        UsageError: there is no such instruction, it is past taking back, or name or reason is
            missing.
    """
    if not by.strip() or not reason.strip():
        msg = "say who withdraws it (--as) and why (--reason)"
        raise UsageError(msg)
    with environment.store.writing() as connection:
        found = instruction_rows.of_id(connection, instruction_id)
        if found is None:
            msg = f"there is no instruction {instruction_id} (`recon status` shows their ids)"
            raise UsageError(msg)
        if found.state not in WITHDRAWABLE:
            msg = (
                f"instruction {instruction_id} is {found.state}: only one that was never sent "
                "can be withdrawn; nothing was changed"
            )
            raise UsageError(msg)
        told = f"withdrawn by {by.strip()}: {reason.strip()}"
        event = move(
            connection,
            found,
            to=InstructionState.WITHDRAWN,
            values={"hold": "", "message": told[:400]},
        )
        append(connection, [event], at=environment.clock())
    return found


def _sorted(rows: Iterable[Any]) -> list[Any]:
    wanted = [row for row in rows if row["hold"] or row["state"] != InstructionState.APPROVED]
    return sorted(
        wanted,
        key=lambda row: (
            _URGENT_FIRST.index(InstructionState(row["state"])),
            _since(row),
            row["natural_key"],
        ),
    )


def _since(row: Any) -> datetime:
    since: datetime = row["in_doubt_since"] or row["sent_at"] or row["planned_at"]
    return since


def _attention_of(row: Any) -> Attention:
    state = InstructionState(row["state"])
    reason = row["hold"] or row["message"]
    return Attention(
        what=f"{row['kind']} {_WORDS[state]}",
        order_no=row["order_no"],
        transaction_id=row["transaction_id"],
        currency=row["currency"],
        amount=row["amount"],
        since=_since(row),
        next_step=f"{reason[:1].upper()}{reason[1:]}. {_NEXT[state]}" if reason else _NEXT[state],
        instruction_id=row["instruction_id"],
    )
