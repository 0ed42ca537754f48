from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.cli.workbooks import workbooks
from recon.steps.ground.risk_told import risk_told
from tests.recon.sandbox.conftest import Caller, elements

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def row(transaction_id: str, detail: str, *, minutes: int = 0) -> dict[str, Any]:
    """A row of the table of observations."""
    at = NOW + timedelta(minutes=minutes)
    return {"transaction_id": transaction_id, "detail": detail, "queried_at": at}


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        ('{"risk": {"risk_action": "review", "risk_score": "82"}}', "action review; score 82"),
        ('{"risk": {"is3ds": "1", "antifraud_provider": "P"}}', "3-D Secure 1; provider P"),
        (
            (
                '{"risk": {"risk_reasons": [{"name": "velocity", "status": "hit"}], '
                '"fraud_checks": [{"check_items": "ip", "status": ""}]}}'
            ),
            "reasons velocity (hit); checks ip",
        ),
    ],
)
def test_what_was_said_is_one_sentence(detail: str, told: str) -> None:
    """Each of the documented fields has its place, and none that is silent takes one."""
    assert risk_told([row("T1", detail), row("T2", "{}")]) == {"T1": told}


def test_the_newest_word_stands() -> None:
    """A later answer takes the place of an earlier one; silence takes nothing back."""
    rows = [
        row("T1", '{"risk": {"risk_score": "82"}}', minutes=5),
        row("T1", '{"risk": {"risk_score": "10"}}'),
        row("T1", "{}", minutes=9),
    ]

    assert risk_told(rows) == {"T1": "score 82"}


def test_risk_of_a_payment_stands_beside_its_break(merchant: Any) -> None:
    """What the gateway answers about risk comes through client, store and workbook."""
    caller = Caller(merchant.sandbox.base_url)
    with caller.http:
        paid = elements(caller.authorise())
    payment = merchant.payments("captured")[0]
    order = merchant.order(payment, order_no=paid["order_no"], currency="EUR", amount="1.23")
    merchant.drop("orders.csv", order)
    merchant.night(workbooks=workbooks())
    (path,) = (merchant.folder / "reports").glob("reconciliation*.xlsx")
    rows = load_workbook(path)["Breaks"].values
    said = {str(cell) for cells in rows for cell in cells if "provider" in str(cell)}

    assert said == {"3-D Secure 0; provider sandbox; checks risk_score (accept)"}
