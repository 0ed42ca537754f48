from typing import Any

from recon.model import Mode


def test_a_dry_run_ends_no_doubt(merchant: Any) -> None:
    """Evidence that would end a doubt changes nothing in a dry run; the next live night ends it."""
    paid = merchant.payments("authorised")[:2]
    rows = [merchant.order(one, status="paid", action="capture") for one in paid]
    merchant.drop("orders.csv", *rows)
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.night()
    merchant.fault()
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21")
    merchant.wait(hours=24)
    merchant.night(date="2026-11-22", mode=Mode.DRY_RUN)
    dry = merchant.instruction_states()
    merchant.night(date="2026-11-22")

    assert dry == {"in_doubt": 2}
    assert merchant.instruction_states() == {"resolved_applied": 2}
