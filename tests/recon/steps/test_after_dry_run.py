from typing import Any

from recon.model.nights import Mode


def test_a_live_night_sends_all_that_a_dry_run_planned_from_several_files(merchant: Any) -> None:
    """What a dry run read is read anew, and each file still asks for its own instruction."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:3]
    for number, one in enumerate(paid):
        refund = {"action": "refund", "action_amount": "0.50", "action_reason": "late"}
        merchant.drop(f"orders-{number}.csv", merchant.order(one, **refund))
    merchant.night(mode=Mode.DRY_RUN)
    assert merchant.effects() == []
    merchant.move_money()

    moved = {(row["operation"], row["transaction_id"]) for row in merchant.effects()}
    assert moved == {("refund", one.transaction_id) for one in paid}
    assert merchant.instruction_states() == {"confirmed": 3}
