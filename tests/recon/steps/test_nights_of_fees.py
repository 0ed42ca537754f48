"""Live nights under a fee contract: break, sheet, claim file, and the credit that ends them."""

from decimal import Decimal
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.steps.compare.rebuild import rebuild_night
from reports.handed import workbooks
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


def _pay_out(*lines: dict[str, str]) -> dict[str, str]:
    """The row that pays a batch out, with the sums of its lines."""
    sums = {
        name: str(sum(Decimal(each[name]) for each in lines)) for name in ("gross", "fee", "net")
    }
    kept = {"entry_type": "payout", "order_no": "", "transaction_id": "", "brand": ""}
    return {**lines[0], **kept, **sums}


def _adds_up(merchant: Any, day: str) -> list[tuple[Any, ...]]:
    """Outside of the contract, and whether the sums of the sheet add up, by currency."""
    (path,) = merchant.folder.joinpath("reports").glob(f"reconciliation-*{day}*.xlsx")
    sheet = load_workbook(path, data_only=True)["Fees"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    return [(row[0], float(row[2]), row[4]) for row in rows if row[4] in {"OK", "CHECK"}]


def _variances(merchant: Any) -> list[str]:
    breaks = merchant.result().breaks
    return breaks[breaks["code"].eq("FEE_VARIANCE")]["order_no"].tolist()


MONTHLY = """
rounding = "half_up"
volumes_from = 2026-11-01
[[lines]]
name = "all"
from = 2026-01-01
type = "capture"
currency = "EUR"
tiers = [{ up_to_lines = 1, basis_points = 100 }, { basis_points = 50 }]
tiers_by = "month"
"""


def _at(payment: Any, *, day: int, basis_points: int) -> dict[str, str]:
    gross = Decimal(payment.amount)
    fee = (gross * basis_points / 10_000).quantize(Decimal("0.01"), rounding="ROUND_HALF_UP")
    told = {"fee": str(fee), "net": str(gross - fee), "settled_on": f"2026-11-{day}"}
    return line(payment, **told, batch_id=f"S{day}")


def _expected(merchant: Any, business_date: str) -> Any:
    """The months of the sheet of a night, made again from its folder."""
    with merchant.environment() as environment:
        return rebuild_night(business_date, out=None, environment=environment)


def test_a_late_line_prices_later_days_anew_and_leaves_earlier_nights_as_they_were(
    settling: Any,
) -> None:
    """One line of the 18th came late: the 20th is in the next tier, and the sheet says by what."""
    (settling.folder / "config" / "fees.toml").write_text(MONTHLY)
    first, second, late = booked(settling, 3)
    lines = [_at(first, day=19, basis_points=100), _at(second, day=20, basis_points=50)]
    for name, each in zip(("S1.csv", "S2.csv"), lines, strict=True):
        send(settling, name, each, _pay_out(each))
    settling.night(workbooks=workbooks())
    assert _variances(settling) == [second.order_no]

    send(settling, "S3.csv", _at(late, day=18, basis_points=100))
    settling.wait(hours=24)
    settling.night(date="2026-11-21", workbooks=workbooks())

    assert _variances(settling) == []
    moved = settling.result().movements
    assert moved.loc[moved["order_no"] == second.order_no, "movement"].tolist() == ["resolved"]
    (path,) = settling.folder.joinpath("reports").glob("reconciliation-*2026-11-21*.xlsx")
    rows = [[cell.value for cell in row] for row in load_workbook(path)["Fees"].iter_rows()]
    (month,) = [row for row in rows if row[:2] == ["all", "2026-11"]]
    assert month[4] == "50.00 bp"
    assert [month[6], month[8], month[10]] == [3, 1, 1]
    assert _adds_up(settling, "2026-11-21") == [("EUR", 0.0, "OK")]
    for day in ("2026-11-20", "2026-11-21"):
        assert _expected(settling, day).same
