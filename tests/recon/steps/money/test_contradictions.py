import pytest
from sqlalchemy import update

from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.model.terms import InstructionKind
from recon.steps.approvals.people import status
from recon.steps.approvals.verdicts import resolve
from recon.steps.money.by_hand import HandRequest, carry_out
from recon.steps.runtime.identity import identify
from recon.store.schema import instruction
from tests.recon.steps.approvals.test_reported_messages import receive
from tests.recon.steps.people import declared
from tests.recon.webhooks.told import REFUND

PEOPLE = declared(anna="Anna Berg", ben="Ben Roy")


def _attention(merchant):
    with merchant.environment() as environment:
        return [one for _, found in status(environment) for one in found]


def _ended_without_effect(merchant):
    """A capture whose request never arrived and whose doubt has ended as not applied."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    paid = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(paid, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "before", "nth": 1})
    merchant.move_money()
    merchant.fault()
    for day in ("2026-11-21", "2026-11-22"):
        merchant.wait(hours=24)
        merchant.move_money(date=day)
    assert merchant.instruction_states() == {"resolved_not_applied": 1}
    return paid


def _two_people(merchant, *, said):
    wanted = next(one.instruction_id for one in _attention(merchant))
    for name in ("anna", "ben"):
        with merchant.environment() as environment:
            person = identify(name, code=None, environment=environment)
            resolve(
                wanted, verdict=said, evidence="seen in the portal, screenshot 7", person=person
            )


def _refund(merchant, payment, amount, *, date):
    merchant.drop(
        f"refund-{date}.csv",
        merchant.order(payment, action="refund", action_amount=amount),
    )
    merchant.move_money(date=date)
    merchant.wait(hours=24)


def _refunds(merchant):
    return [one["amount"] for one in merchant.effects() if one["operation"] == "refund"]


@pytest.mark.parametrize(
    ("said", "sent", "shown"), [("applied", 3, "repeated"), ("not_applied", 2, "skipped")]
)
def test_a_number_that_does_not_fit_stops_refunds_until_two_people_closed_it(
    merchant, shown, said, sent
):
    """-01 then -03, or -01 twice: a case before the next refund, which waits until it is closed."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    payment = next(one for one in merchant.payments("captured") if one.currency == "EUR")
    _refund(merchant, payment, "1.00", date="2026-11-20")
    if shown == "skipped":
        merchant.post(
            "/_sandbox/portal", {"action": "refund", "key": payment.order_no, "amount": "4.00"}
        )
    _refund(merchant, payment, "2.00", date="2026-11-21")
    at_once = [one.what for one in _attention(merchant)].count("refund contradicted")
    about = {"transaction_id": payment.transaction_id, "order_no": payment.order_no}
    receive(merchant, REFUND | about | {"currency": "EUR", "amount": payment.amount})
    first = f"{payment.transaction_id}-01"
    if shown == "repeated":
        merchant.as_owner(update(instruction).values(refund_reference_id=first))
    _refund(merchant, payment, "3.00", date="2026-11-22")
    (told,) = (one.next_step for one in _attention(merchant) if one.what == "refund contradicted")

    assert at_once == (1 if shown == "skipped" else 0)
    assert "Notified by the gateway: refund result 1 of 2.50 EUR" in told
    words = {"skipped": "numbered it -03 after -01", "repeated": f"gave it the id {first}"}
    assert words[shown] in told
    assert _refunds(merchant) == ["1.00", "2.00"]

    _two_people(merchant, said=said)
    merchant.move_money(date="2026-11-23")
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-24")

    assert len(_refunds(merchant)) == sent
    assert not [one for one in _attention(merchant) if one.what == "refund contradicted"]


def test_by_hand_a_number_that_does_not_fit_stops_the_next(merchant):
    """The same holds for calls by hand, from the very next one on."""
    payment = next(one for one in merchant.payments("captured") if one.currency == "EUR")

    def ask(amount):
        request = HandRequest(
            *(InstructionKind.REFUND, "100042", "100042001", payment.order_no),
            by="anna",
            amount=amount,
        )
        with merchant.environment() as environment:
            return carry_out(request, environment=environment)

    ask("1.00")
    merchant.post(
        "/_sandbox/portal", {"action": "refund", "key": payment.order_no, "amount": "4.00"}
    )
    ask("2.00")

    with pytest.raises(UsageError, match="has an open case"):
        ask("3.00")
    assert _refunds(merchant) == ["1.00", "2.00"]


def test_an_effect_after_the_end_is_a_case_and_closes_the_payment(merchant):
    paid = _ended_without_effect(merchant)
    merchant.post("/_sandbox/portal", {"action": "capture", "key": paid.order_no})
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-23")
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-24", mode=Mode.DRY_RUN)
    merchant.drop(
        "refunds.csv",
        merchant.order(paid, status="refunded", refund_amount=paid.amount, action="refund"),
    )
    dry = [one.what for one in _attention(merchant)]
    merchant.move_money(date="2026-11-24")
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


def test_what_was_refused_and_took_effect_is_a_case(merchant):
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    payment = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(payment, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "refuse_signature", "nth": 1})
    merchant.move_money()
    merchant.fault()
    refused = merchant.instruction_states()
    merchant.post("/_sandbox/portal", {"action": "capture", "key": payment.order_no})
    for day in ("2026-11-21", "2026-11-22"):
        merchant.wait(hours=24)
        merchant.move_money(date=day)

    assert refused == {"rejected": 1}
    assert [one.what for one in _attention(merchant)] == ["capture contradicted"]
    _two_people(merchant, said="applied")
    assert _attention(merchant) == []
