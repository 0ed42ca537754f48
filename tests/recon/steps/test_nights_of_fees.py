"""Live nights under a fee contract: break, sheet, claim file, and the credit that ends them."""

import csv
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.cli.workbooks import workbooks
from recon.steps.compare.rebuild import rebuild_night
from tests.recon.steps.files.test_settlement_files import booked, declare, line, place, send

CONTRACT = """
rounding = "half_up"
[[lines]]
name = "visa"
from = 2026-01-01
type = "capture"
currency = "EUR"
brand = "visa"
basis_points = 100
"""


@pytest.fixture
def settling(merchant: Any) -> Any:
    """A merchant with a contract, whose gateway sends settlement files."""
    place(merchant).mkdir()
    declare(merchant)
    (merchant.folder / "config" / "fees.toml").write_text(CONTRACT)
    return merchant


def _charged(payment: Any, *, more: str = "0.00") -> dict[str, str]:
    gross = Decimal(payment.amount)
    fee = (gross / 100).quantize(Decimal("0.01"), rounding="ROUND_HALF_UP") + Decimal(more)
    return line(payment, fee=str(fee), net=str(gross - fee), brand="VISA")


def _variances(merchant: Any) -> list[str]:
    breaks = merchant.result().breaks
    return breaks[breaks["code"].eq("FEE_VARIANCE")]["order_no"].tolist()


def _claims(merchant: Any, day: str) -> list[tuple[str, str]]:
    name = f"fee-claims-100042-100042001-{day}.csv"
    with Path(merchant.folder, "reports", name).open() as file:
        return [(row["order_no"], row["claimed"]) for row in csv.DictReader(file)]


def test_a_night_claims_what_was_charged_too_much_until_it_is_given_back(settling: Any) -> None:
    """FEE_VARIANCE, the sheet and the claim on the first night; none of it after the credit."""
    right, dear = booked(settling, 2)
    send(settling, "S1.csv", _charged(right), _charged(dear, more="0.30"))
    settling.night(workbooks=workbooks())

    assert _variances(settling) == [dear.order_no]
    assert _claims(settling, "2026-11-20") == [(dear.order_no, "0.30")]
    (path,) = settling.folder.joinpath("reports").glob("reconciliation-*.xlsx")
    rows = [[cell.value for cell in row] for row in load_workbook(path)["Fees"].iter_rows()]
    (visa,) = [row for row in rows if row[0] == "visa" and row[2] == "brand visa"]
    assert [float(visa[6]), float(visa[10])] == [2, 0.30]

    credit = {"entry_type": "fee", "gross": "0.00", "fee": "-0.30", "net": "0.30"}
    send(settling, "S2.csv", line(dear, **credit, batch_id="S2", settled_on="2026-11-21"))
    settling.wait(hours=24)
    settling.night(date="2026-11-21", workbooks=workbooks())

    assert _variances(settling) == []
    assert _claims(settling, "2026-11-21") == []
    with settling.environment() as environment:
        assert rebuild_night("2026-11-20", out=None, environment=environment).same
