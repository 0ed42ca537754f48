from dataclasses import replace
from datetime import UTC, datetime

from recon.model.words import InstructionKind, InstructionState
from recon.settlement.instruction import Instruction
from recon.settlement.planning import Plan
from recon.store.database.engine import Store
from recon.store.money import case_rows, instruction_rows, open_money
from recon.store.nights.runs import Run
from tests.recon.settlement.instructions import INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


def _item(run: Run, number: int, **changed: object) -> Instruction:
    base = replace(
        INSTRUCTION,
        instruction_id=f"i{number}",
        natural_key=f"k{number}",
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        file_id=None,
        currency="EUR",
    )
    return replace(base, **changed)  # type: ignore[arg-type]


def test_open_money_is_added_up_by_kind_and_currency(store: Store, run: Run) -> None:
    """In flight, in doubt, undecided and contradicted are doubtful; approved is unsent; no more."""
    items = (
        _item(run, 1, state=InstructionState.IN_DOUBT, amount=100),
        _item(run, 2, state=InstructionState.NEEDS_HUMAN, amount=20, currency="USD"),
        _item(run, 3, state=InstructionState.IN_FLIGHT, amount=3, kind=InstructionKind.REFUND),
        _item(run, 4, state=InstructionState.CONFIRMED, amount=5_000),
        _item(run, 5, state=InstructionState.APPROVED, amount=7),
        _item(run, 6, state=InstructionState.PLANNED, amount=9),
        _item(run, 7, state=InstructionState.IN_DOUBT, amount=11, account_id="other"),
    )
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)
        case_rows.open_case(connection, items[3], reason="the gateway shows it not", at=AT)
    with store.reading() as connection:
        doubtful, unsent = (
            open_money.doubtful(connection, run),
            open_money.unsent(connection, run),
        )

    assert doubtful.kinds == {InstructionKind.CAPTURE: 3, InstructionKind.REFUND: 1}
    assert doubtful.sums == {"EUR": 5_103, "USD": 20}
    assert (doubtful.count, unsent.count, unsent.sums) == (4, 1, {"EUR": 7})
