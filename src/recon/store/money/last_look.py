"""The last look at a batch's rows, in the transaction that claims them: may each still leave?

Between the judgement of a night and its claim people may have taken a row back, and another night
may have carried out what a row means. Nothing leaves on the word of an earlier look.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam

from recon.model.words import InstructionKind, InstructionState
from recon.settlement.eligibility import Cleared
from recon.settlement.instruction import Instruction
from recon.settlement.intention import told_repeats, unagreed
from recon.store.money.instruction_reading import INSTRUCTIONS, read_instructions
from recon.store.nights.proofs import MAY_HAVE_MOVED
from recon.store.schema import instruction
from recon.store.schema.account_filter import account_values, in_account

_STANDING = INSTRUCTIONS.with_only_columns(
    instruction.c.instruction_id, instruction.c.state, instruction.c.message
).where(instruction.c.instruction_id.in_(bindparam("wanted", expanding=True)))
_OTHERS = INSTRUCTIONS.where(
    *in_account(instruction),
    instruction.c.state.in_([state.value for state in MAY_HAVE_MOVED]),
)
_ABOUT = {
    name: _OTHERS.where(instruction.c[name].in_(bindparam("wanted", expanding=True)))
    for name in ("transaction_id", "payee_digest", "recurring_id")
}
_BY: Mapping[InstructionKind, str] = {
    InstructionKind.PAYOUT: "payee_digest",
    InstructionKind.CANCEL_SUBSCRIPTION: "recurring_id",
}
"""What others of the same intention have in common; the payment for all other kinds."""


def left_out(
    connection: Connection, rows: Sequence[Cleared], *, ids_unique: bool
) -> dict[str, str]:
    """Instruction id -> why it may not leave after all; empty when every row may.

    Args:
        connection: Of the transaction that would claim them.
        rows: Of one account and one kind.
        ids_unique: What the merchant declares of request ids.
    """
    reasons = _not_approved(connection, rows)
    for row, others in _beside(connection, rows):
        repeats = unagreed(
            row.instruction,
            others=others,
            transaction_id=row.payment.transaction_id,
            ids_unique=ids_unique,
        )
        if repeats:
            reasons.setdefault(row.instruction.instruction_id, told_repeats(repeats))
    return reasons


def _not_approved(connection: Connection, rows: Sequence[Cleared]) -> dict[str, str]:
    wanted = [row.instruction.instruction_id for row in rows]
    standing_rows = connection.execute(_STANDING, {"wanted": wanted}).all()
    standing = {standing_row.instruction_id: standing_row for standing_row in standing_rows}
    reasons = {}
    for instruction_id in wanted:
        stands = standing.get(instruction_id)
        if stands is None:
            reasons[instruction_id] = "the journal does not have it any more"
        elif stands.state != InstructionState.APPROVED:
            why = f": {stands.message}" if stands.message else ""
            reasons[instruction_id] = f"it is {stands.state} since this run looked{why}"
    return reasons


def _beside(
    connection: Connection, rows: Sequence[Cleared]
) -> list[tuple[Cleared, list[Instruction]]]:
    """Each row with what may have moved for its payment, payee or subscription."""
    if not rows:
        return []
    first = rows[0].instruction
    name = _BY.get(first.kind, "transaction_id")
    about = [
        row.payment.transaction_id if name == "transaction_id" else getattr(row.instruction, name)
        for row in rows
    ]
    of_account = account_values(first)
    instructions = read_instructions(
        connection, _ABOUT[name], of_account | {"wanted": sorted(set(about) - {""})}
    )
    return [
        (row, [instruction for instruction in instructions if getattr(instruction, name) == wanted])
        for row, wanted in zip(rows, about, strict=True)
    ]
