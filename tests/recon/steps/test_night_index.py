from datetime import date
from typing import Any

from recon.cli.workbooks import workbooks
from recon.steps.night_index import index_of


def test_the_index_counts_what_the_night_left_open(merchant: Any) -> None:
    """A high break and all breaks, as the result of the newest run has them."""
    one = merchant.payments("captured")[0]
    merchant.drop("orders.csv", merchant.order(one, amount="900000.00", currency="EUR"))
    merchant.night(workbooks=workbooks())
    with merchant.environment() as environment:
        ran = index_of(date(2026, 11, 20), environment=environment)
        missing = index_of(date(2026, 11, 19), environment=environment)

    (line,) = [one for one in ran if one.night.run_id]
    assert line.grave_breaks
    assert line.breaks is not None
    assert line.breaks >= line.grave_breaks
    assert line.night.workbook.endswith(".xlsx")
    assert [one.breaks for one in missing] == [None] * len(ran)
    assert {one.night.standing for one in missing} == {"missing"}
