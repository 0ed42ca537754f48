import pytest

from recon.model.errors import UsageError
from recon.model.terms import ControlTotal, InstructionKind
from recon.steps.money.gate import allow_sending, evaluate, stop_sending, tied
from recon.steps.runtime.identity import identify
from recon.store.database.night_lock import account_lock
from tests.recon.steps.people import declared
from tests.recon.store.scripted import journal_of

PEOPLE = declared(bob="Bob Lee", cleo="Cleo Ott")


def _drop_captures(merchant, count=3):
    payments = [p for p in merchant.payments("authorised") if p.currency == "EUR"][:count]
    merchant.drop(
        "orders.csv", *(merchant.order(p, status="paid", action="capture") for p in payments)
    )
    return payments


def _limits(merchant, **keys):
    lines = ["[limits.EUR]", *(f"{name} = {text}" for name, text in keys.items())]
    (merchant.folder / "config" / "limits.toml").write_text("\n".join(lines))


def _cents(text):
    return int(text.replace(".", ""))


def _allow(merchant, *names):
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    with merchant.environment() as environment:
        people = [identify(name, code=None, environment=environment) for name in names]
        return [
            allow_sending(person=one, reason="looked at the orders", environment=environment)
            for one in people
        ]


def _stop(merchant):
    with merchant.environment() as environment:
        stop_sending(by="Ann", reason="odd orders", environment=environment)


def test_the_nights_limit_holds_over_a_repeated_night(merchant):
    payments = _drop_captures(merchant)
    _limits(merchant, night=payments[0].amount)
    merchant.move_money()
    first = len(merchant.effects())
    merchant.move_money()

    assert sum(_cents(row["amount"]) for row in merchant.effects()) <= _cents(payments[0].amount)
    assert len(merchant.effects()) == first < 3


def test_the_days_limit_ends_with_the_day(merchant):
    """Runs of one calendar day share a sum; the next day begins at nothing."""
    payments = _drop_captures(merchant, 2)
    _limits(merchant, day=max((p.amount for p in payments), key=_cents))
    merchant.move_money()
    (held,) = merchant.rows("SELECT hold FROM instruction WHERE state = 'approved'")
    first = len(merchant.effects())
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-21")

    assert (first, len(merchant.effects())) == (1, 2)
    assert "this day would have sent" in held[0]


def test_a_word_for_an_earlier_stop_does_not_end_a_later_one(merchant):
    _stop(merchant)
    _allow(merchant, "bob", "cleo")
    _stop(merchant)

    assert _allow(merchant, "cleo") == [False]


def test_a_journal_of_a_running_night_sees_the_switch(merchant):
    """The switch is read anew before each batch, by nights and by calls made by hand alike."""
    with (
        merchant.environment() as environment,
        account_lock(environment.store, ("100042", "100042001")),
    ):
        journal = journal_of(environment.store, ("100042", "100042001"), run_id="r")
        before = journal.halted()
        stop_sending(by="Ann", reason="odd", environment=environment)
        assert (before, "stopped by Ann" in journal.halted()) == ("", True)


@pytest.mark.parametrize(("by", "reason"), [(" ", "why"), ("Ann", ""), ("A" * 101, "why")])
def test_the_switch_wants_a_name_and_a_reason(merchant, by, reason):
    with merchant.environment() as environment, pytest.raises(UsageError, match="nothing was"):
        stop_sending(by=by, reason=reason, environment=environment)


def test_what_left_counts_when_the_rule_is_asked_again(merchant):
    payments = _drop_captures(merchant)
    by_size = sorted((_cents(p.amount) for p in payments), reverse=True)
    _limits(merchant, night=f"{by_size[0] // 100}.{by_size[0] % 100:02}")
    merchant.move_money()
    sent = sum(_cents(one["amount"]) for one in merchant.effects())
    _limits(merchant, approved_by_rule_night=f"{sent // 100}.{sent % 100:02}")
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-21")

    assert sum(_cents(one["amount"]) for one in merchant.effects()) == sent
    assert "approved" not in merchant.instruction_states()


TIES = ControlTotal("T1", "rows read", "100042", "100042001", "", "count", 10, 10)
FAILS = ControlTotal("T3", "keys answered", "100042", "100042001", "", "count", 10, 9)


@pytest.mark.parametrize(
    ("proofs", "closed", "held"),
    [
        ({}, [], []),
        ({"totals": []}, ["none was asked"], []),
        ({"totals": [TIES, FAILS]}, ["T3 keys answered: 10 is not 9"], []),
        (
            {"totals": [FAILS], "chain_problem": "history 3 is missing"},
            ["T3 keys answered", "history 3"],
            [],
        ),
        ({"chain_problem": "history 3 is missing"}, ["history 3"], []),
        ({"unproven_nights": {"2026-11-19": ""}}, [], ["2026-11-19"]),
        # Authorisations lapse, so captures and cancels go; both holds are told where both hold.
        (
            *({"unproven_nights": {"2026-11-19": ""}, "ledger_unread": "no such file"}, []),
            ["2026-11-19", "no such file"],
        ),
    ],
)
def test_the_gate_closes_for_all_or_holds_what_gives_money(proofs, closed, held):
    proofs = {"totals": [TIES], "chain_problem": "", "unproven_nights": {}} | proofs
    totals = proofs.pop("totals")
    gate = tied(evaluate(**proofs), totals=totals)

    for kind in InstructionKind:
        gives = kind in {InstructionKind.REFUND, InstructionKind.PAYOUT}
        words = closed or (held if gives else [])
        assert [word for word in words if word not in gate.hold_on(kind)] == []
        assert bool(gate.hold_on(kind)) is bool(words)
