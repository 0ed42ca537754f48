"""One intention moves money once, whatever file told it, whatever name or id it bears."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from recon.model.errors import UsageError
from recon.model.nights import Mode, StepSummary
from recon.steps.approvals import people
from recon.steps.money.approve import approve, waiting
from recon.steps.runtime.identity import identify
from tests.recon.steps.conftest import Payment
from tests.recon.steps.people import declared

PEOPLE = declared(bob="Bob Lee", cleo="Cleo Ott", limit="EUR = 1000")


def _paid(merchant):
    found: Payment = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    return found


def _refunds(merchant):
    return [row["amount"] for row in merchant.effects() if row["operation"] == "refund"]


def _ordered(merchant, payment, **changed):
    """As a row of an order file."""
    asked = {"status": "partially_refunded", "refund_amount": "1.00", "action": "refund"}
    found: dict[str, str] = merchant.order(payment, **asked | {"action_amount": "1.00"} | changed)
    return found


def test_the_second_waits_for_people_who_see_the_first(merchant):
    """It is held by name, can be approved by two people beside the first one, and then goes."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    payment = _paid(merchant)
    merchant.drop("monday.csv", _ordered(merchant, payment, request_id="R-1"))
    merchant.move_money()
    merchant.drop("tuesday.csv", _ordered(merchant, payment, request_id="R-2"))
    merchant.move_money()
    assert _refunds(merchant) == ["1.00"]
    with merchant.environment() as environment:
        found = waiting(environment)
        (item,) = found.approvals.repeats
        (first,) = found.related[item.instruction_id]
        for name in ("bob", "cleo"):
            person = identify(name, code=None, environment=environment)
            approve(found.approvals.digest, person=person, environment=environment)
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-21")

    assert f"repeat of instruction {first.instruction_id} from monday.csv" in item.hold
    assert (first.request_id, first.state) == ("R-1", "confirmed")
    assert _refunds(merchant) == ["1.00", "1.00"]


def _declare_unique(merchant):
    merchant.configure("merchants.toml", 'instructions = { ids = "unique" }\n')


@pytest.mark.parametrize(
    ("second", "sent"), [("R-2", 2), ("r-1", 1), ("", 1)], ids=["another", "case", "none"]
)
def test_ids_declared_unique_make_two(merchant, second, sent):
    """Two given ids that differ in more than case are two refunds where the merchant says so."""
    _declare_unique(merchant)
    payment = _paid(merchant)
    merchant.drop("monday.csv", _ordered(merchant, payment, request_id="R-1"))
    merchant.move_money()
    both = _ordered(merchant, payment, request_id=second, refund_amount="2.00")
    merchant.drop("tuesday.csv", both)
    merchant.move_money()

    assert len(_refunds(merchant)) == sent


def test_ids_declared_unique_refund_no_more_than_their_row_says(merchant):
    """A second id whose row still says 1.00 in all waits for people."""
    _declare_unique(merchant)
    payment = _paid(merchant)
    for day in ("monday", "tuesday"):
        merchant.drop(f"{day}.csv", _ordered(merchant, payment, request_id=day))
        merchant.move_money()

    assert _refunds(merchant) == ["1.00"]
    assert merchant.instruction_states() == {"confirmed": 1, "planned": 1}


def test_names_that_come_to_one_payment_are_one_intention(merchant):
    """What was filed under another order, and sent for the same payment, is seen before sending."""
    payment = _paid(merchant)
    merchant.drop("monday.csv", _ordered(merchant, payment, request_id="R-1"))
    merchant.move_money()
    merchant.as_owner("UPDATE instruction SET order_no = 'O-2'")
    merchant.drop("tuesday.csv", _ordered(merchant, payment, request_id="R-2"))
    merchant.move_money()

    assert len(_refunds(merchant)) == 1
    assert merchant.instruction_states() == {"confirmed": 1, "planned": 1}


def test_what_was_approved_as_two_is_judged_again_before_it_goes(merchant):
    """Ids that are no longer declared unique: of two approved by rule the second goes to people."""
    own = (merchant.folder / "config" / "merchants.toml").read_text()
    _declare_unique(merchant)
    payment = _paid(merchant)
    both = {"refund_amount": "2.00"}
    rows = (_ordered(merchant, payment, request_id=name, **both) for name in ("R-1", "R-2"))
    merchant.drop("orders.csv", *rows)
    merchant.move_money(mode=Mode.DRY_RUN)
    assert merchant.instruction_states() == {"approved": 2}
    (merchant.folder / "config" / "merchants.toml").write_text(own)
    merchant.move_money()
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-21")

    assert len(_refunds(merchant)) == 1
    assert merchant.instruction_states() == {"confirmed": 1, "planned": 1}
    with merchant.environment() as environment:
        (item,) = waiting(environment).approvals.repeats
    assert "looks like a repeat" in item.hold


def _captures(merchant, count):
    found = [p for p in merchant.payments("authorised") if p.currency == "EUR"][:count]
    merchant.drop(
        "orders.csv", *(merchant.order(p, status="paid", action="capture") for p in found)
    )


def _night(merchant, *, at, do):
    """A night in which somebody does something when it first passes a mark; what settle says."""
    passed: list[str] = []
    told: list[StepSummary] = []

    def mark(name):
        if name == at and not passed:
            passed.append(name)
            do(environment)

    with merchant.environment() as environment:
        merchant.run(replace(environment, crash_point=mark), progress=told.append)
    return next(one.sentence for one in told if one.step == "settle")


def _withdraw_one(environment):
    with environment.store.reading() as connection:
        query = text("SELECT min(instruction_id) FROM instruction")
        wanted = connection.execute(query).scalar_one()
    people.withdraw(wanted, by="Ann", reason="not meant", environment=environment)


def test_what_is_withdrawn_before_the_first_byte_is_left_out(merchant):
    """The batch is built again without the row, the others go, and the night says so."""
    _captures(merchant, 3)
    sentence = _night(merchant, at="before claim", do=_withdraw_one)

    assert merchant.instruction_states() == {"confirmed": 2, "withdrawn": 1}
    assert len(merchant.effects()) == 2
    assert "2 sent in 1 batches" in sentence
    assert "1 taken back meanwhile" in sentence


def test_what_is_on_its_way_cannot_be_withdrawn_and_says_so(merchant):
    """After the claim the person is told that it is on its way; the night goes on."""
    _captures(merchant, 2)
    told: list[str] = []

    def withdraw(environment):
        with pytest.raises(UsageError) as error:
            _withdraw_one(environment)
        told.append(str(error.value))

    _night(merchant, at="after claim", do=withdraw)

    assert merchant.instruction_states() == {"confirmed": 2}
    assert "is on its way to the gateway and cannot be taken back" in told[0]
