from typing import Any

from openpyxl import load_workbook

from reports.handed import workbooks
from tests.recon.sandbox.conftest import Caller


def test_risk_of_a_payment_stands_beside_its_break(merchant: Any) -> None:
    """What the gateway answers about risk comes through client, store and workbook."""
    caller = Caller(merchant.sandbox.base_url)
    with caller.http:
        caller.authorise(order_no="web-1").raise_for_status()
    payment = merchant.payments("captured")[0]
    order = merchant.order(payment, order_no="web-1", currency="EUR", amount="1.23")
    merchant.drop("orders.csv", order)
    merchant.night(workbooks=workbooks())
    (path,) = (merchant.folder / "reports").glob("reconciliation*.xlsx")
    rows = load_workbook(path)["Breaks"].values
    (said,) = {str(cell) for cells in rows for cell in cells if "provider" in str(cell)}

    told = "3-D Secure 0; provider sandbox; checks risk_score (accept)"
    assert said.endswith(f"risk, says the gateway: {told}")
