from typing import Any

from recon.model import Mode
from recon.steps.identity import identify
from recon.steps.people import status
from recon.steps.verdicts import resolve

PEOPLE = '[approvers.anna]\nname = "Anna Berg"\n[approvers.ben]\nname = "Ben Roy"\n'


def _attention(merchant: Any) -> list[Any]:
    with merchant.environment() as environment:
        return [one for _, found in status(environment) for one in found]


def _ended_without_effect(merchant: Any) -> Any:
    """A capture whose request never arrived and whose doubt has ended as not applied."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    paid = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(paid, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "before", "nth": 1})
    merchant.night()
    merchant.fault()
    for day in ("2026-11-21", "2026-11-22"):
        merchant.wait(hours=24)
        merchant.night(date=day)
    assert merchant.instruction_states() == {"resolved_not_applied": 1}
    return paid


def _two_people(merchant: Any, *, said: str) -> None:
    wanted = next(one.instruction_id for one in _attention(merchant))
    for name in ("anna", "ben"):
        with merchant.environment() as environment:
            person = identify(name, code=None, environment=environment)
            resolve(
                wanted,
                said=said,
                evidence="seen in the portal, screenshot 7",
                person=person,
                environment=environment,
            )


def test_an_effect_after_the_end_is_a_case_and_closes_the_payment(merchant: Any) -> None:
    """The state stays, page one names it, nothing more goes out; two people close the case."""
    paid = _ended_without_effect(merchant)
    merchant.post("/_sandbox/portal", {"action": "capture", "key": paid.order_no})
    merchant.wait(hours=24)
    merchant.night(date="2026-11-23")
    merchant.wait(hours=24)
    merchant.night(date="2026-11-24", mode=Mode.DRY_RUN)
    merchant.drop(
        "refunds.csv",
        merchant.order(paid, status="refunded", refund_amount=paid.amount, action="refund"),
    )
    dry = [one.what for one in _attention(merchant)]
    merchant.night(date="2026-11-24")
    told = _attention(merchant)

    assert "capture contradicted" not in dry
    assert told[0].what == "capture contradicted"
    assert "the gateway shows paid" in told[0].next_step
    assert merchant.instruction_states() == {"resolved_not_applied": 1, "approved": 1}
    assert any("has an open case" in one.next_step for one in told[1:])
    assert merchant.effects() == []

    _two_people(merchant, said="applied")

    assert "capture contradicted" not in [one.what for one in _attention(merchant)]
    assert merchant.instruction_states() == {"resolved_not_applied": 1, "approved": 1}
