"""What `recon status` says of an instruction in each state that a person can meet."""

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from recon.cli import main
from recon.instructions.planning import Plan
from recon.model.nights import Mode, NightRequest
from recon.model.terms import InstructionKind, InstructionState
from recon.steps.runtime.environment import environment_of, system_clock
from recon.store.money import case_rows, instruction_rows
from recon.store.money.instruction_rows import UNFINISHED
from recon.store.nights import runs
from tests.recon.instructions.sample_instructions import INSTRUCTION

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WITH_CASE = (InstructionState.CONFIRMED, InstructionState.RESOLVED_NOT_APPLIED)
KINDS = tuple(InstructionKind)


@pytest.mark.usefixtures("installation")
def test_status_names_each_unfinished_and_each_contradicted_instruction(capsys):
    items = [
        replace(
            INSTRUCTION,
            instruction_id=f"{kind}-{state}",
            natural_key=f"{kind}-{state}",
            order_no=f"{kind}-{state}",
            merchant_id="100042",
            account_id="100042001",
            file_id=None,
            kind=kind,
            state=state,
            attempts=1,
        )
        for kind in KINDS
        for state in (*UNFINISHED, *WITH_CASE)
    ]
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with (
        environment_of(os.environ, clock=system_clock, signs=False) as environment,
        environment.store.writing() as connection,
    ):
        runs.start(connection, request, run_id="20261120-0a", as_of=NOW, now=NOW)
        run = runs.get(connection, "20261120-0a")
        instruction_rows.save_plan(connection, run, plan=Plan(tuple(items), ()), at=NOW)
        for item in items:
            if item.state in WITH_CASE:
                case_rows.open_case(connection, item, reason=f"shown of {item.kind}", at=NOW)
        runs.finish(connection, run.run_id, status="finished", problem="", now=NOW)

    main(["status"])
    said = capsys.readouterr().out
    main(["status", "--json"])
    listed = json.dumps(json.loads(capsys.readouterr().out))

    assert [one.instruction_id for one in items if f'"{one.instruction_id}"' not in listed] == []
    assert [kind for kind in KINDS if f"{kind} contradicted" not in said] == []
    assert [kind for kind in KINDS if f"Shown of {kind}." not in said] == []
