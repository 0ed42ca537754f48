"""`recon verify` names each word of people that the desk did not sign."""

from typing import Any

import pytest
from sqlalchemy import insert

from recon.steps.care.verify import unendorsed
from recon.store.schema import agreement, sign_off, verdict


@pytest.mark.parametrize(
    ("table", "row", "said"),
    [
        (
            agreement,
            {"what": "allow sending", "subject": "1", "reason": "fine", "state": "complete"}
            | {"first_by": "Jo", "second_by": "Kim", "first_authenticated": True}
            | {"second_authenticated": True},
            "allow sending: 1: two people are said to have agreed, but the desk",
        ),
        (
            verdict,
            {"instruction_id": "i1", "verdict": "applied", "evidence": "x", "given_by": "Jo"}
            | {"authenticated": True, "state": "agreed"},
            "instruction i1 counts as decided (applied), but the desk endorsed it for nobody",
        ),
        (
            sign_off,
            {"run_id": "r1", "role": "reviewer", "signed_by": "Jo", "authenticated": True}
            | {"workbook_sha256": "00"},
            "run r1 counts as signed by Jo (reviewer), but the desk did not endorse it",
        ),
    ],
    ids=["override", "decision", "signature"],
)
def test_a_forged_word_is_named(merchant: Any, table: Any, row: dict[str, Any], said: str) -> None:
    """Whatever table it was written into."""
    merchant.sqlite_path  # noqa: B018 - on PostgreSQL the night's login may not write there
    with merchant.environment() as environment, environment.store.writing() as connection:
        now = environment.clock()
        instants = {
            column.name: now
            for column in table.columns
            if column.name.endswith("_at") or column.name == "valid_until"
        }
        connection.execute(insert(table).values(**row, **instants))
        assert any(said in one for one in unendorsed(connection, environment=environment))
