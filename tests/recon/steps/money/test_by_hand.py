import signal
import time
import urllib.error
from dataclasses import replace
from datetime import timedelta

import pytest

from recon.config.settings import Settings
from recon.model.errors import FolderError, NightHeldError, UsageError
from recon.model.terms import InstructionKind, InstructionState
from recon.steps.approvals import people
from recon.steps.money.approve import approve, lapse, waiting
from recon.steps.money.by_hand import HandRequest, carry_out
from recon.steps.runtime.identity import identify
from recon.store.database.migrate import upgrade
from recon.store.database.night_lock import account_lock
from tests.recon.steps.people import declared

PLACE = {"merchant_id": "100042", "account_id": "100042001"}


PEOPLE = declared(anna="Anna Berg", kim="Kim Day", jo="Jo Hill", limit="EUR = 100000")


def _ask(merchant, kind, payment, **options):
    request = HandRequest(
        InstructionKind(kind),
        "100042",
        "100042001",
        order_no=payment.order_no,
        by=options.pop("by", "anna"),
        **options,
    )
    with merchant.environment() as environment:
        return carry_out(request, environment=environment)


def _ids_unique(merchant):
    merchant.configure("merchants.toml", 'instructions = { ids = "unique" }\n')


def test_where_ids_are_unique_another_one_is_another_movement(merchant):
    _ids_unique(merchant)
    payment = merchant.payments("captured")[0]
    first = _ask(merchant, "refund", payment, amount=_part(payment), request_id="first")
    meant = _ask(merchant, "refund", payment, amount=_part(payment), request_id="second")
    again = _ask(merchant, "refund", payment, amount=_part(payment))

    assert first.state is InstructionState.CONFIRMED
    assert first.refund_reference_id == f"{payment.transaction_id}-01"
    assert again.state is InstructionState.PLANNED
    assert "repeat" in again.hold
    assert meant.state is InstructionState.CONFIRMED
    assert len(merchant.effects()) == 2
    assert merchant.invariants()["over_refunded"] == 0


def test_a_movement_of_the_same_payment_under_another_order_counts(merchant):
    """A refund that is in doubt holds its payment, whichever order it was filed under."""
    _ids_unique(merchant)
    payment = merchant.payments("captured")[0]
    _ask(merchant, "refund", payment, amount=_part(payment))
    merchant.as_owner("UPDATE instruction SET order_no = 'O-2', state = 'in_doubt'")

    with pytest.raises(UsageError, match="of the same payment is not settled yet"):
        _ask(merchant, "refund", payment, amount=_part(payment), request_id="second")
    assert len(merchant.effects()) == 1


def _part(payment):
    """A tenth and less of a payment, as files write it."""
    return "1" if payment.currency == "JPY" else "1.000" if payment.currency == "KWD" else "1.00"


@pytest.mark.parametrize(
    ("kind", "state", "options", "words"),
    [
        ("refund", "authorised", {"amount": "1.00"}, "a refund needs a captured payment"),
        ("capture", "captured", {}, "not authorised"),
        ("capture", "authorised", {"transaction_id": "T-other"}, "--transaction"),
        ("capture", "authorised", {"by": " "}, "--as"),
        ("capture", "authorised", {"request_id": "a|b"}, "--request-id"),
        (
            *("refund", "captured", {"amount": "1.00", "reason": "card 4929-7801-6452-3877"}),
            "--reason holds a card number",
        ),
    ],
)
def test_what_the_gateway_speaks_against_is_neither_stored_nor_sent(
    merchant, kind, state, options, words
):
    """The judgement of a night holds for one call too."""
    payments = [item for item in merchant.payments(state) if item.currency == "EUR"]

    with pytest.raises(UsageError, match=words) as refused:
        _ask(merchant, kind, payments[0], **options)

    assert "3877" not in str(refused.value)
    assert merchant.effects() == []
    assert merchant.instruction_states() == {}


@pytest.fixture
def interrupts():
    """SIGINT interrupts, also where these tests were begun in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_a_signal_waits_for_the_end_of_the_movement(merchant):
    """Told to end while it is on its way: the answer is kept first, then the signal comes."""
    payment = merchant.payments("authorised")[0]

    def reported_to_end(point):
        if point == "after claim":
            signal.raise_signal(signal.SIGINT)

    request = HandRequest(InstructionKind.CAPTURE, **PLACE, order_no=payment.order_no, by="anna")
    with merchant.environment() as environment, pytest.raises(KeyboardInterrupt):
        carry_out(request, environment=replace(environment, crash_point=reported_to_end))

    assert merchant.instruction_states() == {"confirmed": 1}
    assert [effect["operation"] for effect in merchant.effects()] == ["capture"]


def test_an_answer_that_never_came_leaves_a_doubt(merchant):
    payment = merchant.payments("authorised")[0]
    merchant.fault({"operation": "capture", "kind": "reset", "when": "after"})

    result = _ask(merchant, "capture", payment)

    assert result.state is InstructionState.IN_DOUBT
    assert len(merchant.effects()) == 1
    with pytest.raises(UsageError, match="nothing was stored or sent"):
        _ask(merchant, "capture", payment)
    assert len(merchant.effects()) == 1


def test_what_waits_for_another_person_is_not_yet_held_to_the_limits(merchant, monkeypatch):
    """The night that sends it counts it; until then it can be asked for."""
    payment = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    (merchant.folder / "config" / "limits.toml").write_text("[limits.EUR]\nday = 0.01\n")
    monkeypatch.setattr(Settings, "is_sandbox", property(lambda _settings: False))

    result = _ask(merchant, "capture", payment)

    assert result.state is InstructionState.PLANNED
    assert "asked for by hand by Anna Berg: another person approves it" in result.hold
    assert merchant.effects() == []


@pytest.mark.parametrize("lapsed", [False, True])
@pytest.mark.parametrize("by", ["anna", "Anna Berg", " ANNA  berg"])
def test_whoever_asked_by_hand_approves_it_under_no_name(merchant, monkeypatch, by, *, lapsed):
    """Also when the hold that named them has given way to another reason to wait."""
    payment = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    (merchant.folder / "config" / "approvers.toml").write_text(
        PEOPLE.replace('"Kim Day"', '"Kim Day"\nrole = "reviewer"')
    )
    monkeypatch.setattr(Settings, "is_sandbox", property(lambda _settings: False))
    asked = _ask(merchant, "capture", payment, by=by)
    with merchant.environment() as environment:
        if lapsed:
            _approve(environment, "kim", "jo")
            merchant.now += timedelta(days=9)
            assert lapse(environment) == 1
        _approve(environment, "kim")
        with pytest.raises(UsageError, match="Anna Berg asked for it"):
            _approve(environment, "anna")
        _approve(environment, "jo")

    assert asked.state is InstructionState.PLANNED
    assert merchant.instruction_states() == {"approved": 1}


def _approve(environment, *names):
    for name in names:
        person = identify(name, code=None, environment=environment)
        approve(waiting(environment).approvals.digest, person=person, environment=environment)


def test_a_night_at_work_is_not_disturbed(merchant):
    payment = merchant.payments("authorised")[0]
    with (
        merchant.environment() as environment,
        account_lock(environment.store, ("100042", "100042001")),
        pytest.raises(NightHeldError),
    ):
        _ask(merchant, "capture", payment)

    assert merchant.effects() == []


def test_limits_count_what_goes_by_hand(merchant):
    (merchant.folder / "config" / "limits.toml").write_text("[limits.EUR]\nday = 1.50\n")
    first, second = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    _ask(merchant, "refund", first, amount="1.00")

    with pytest.raises(UsageError, match=r"this day would have sent .*more than its limit"):
        _ask(merchant, "refund", second, amount="1.00")
    assert len(merchant.effects()) == 1


def test_what_goes_by_hand_is_noted_beside_the_reports(merchant):
    first, second = merchant.payments("authorised")[:2]
    _ask(merchant, "capture", first)
    other = f"sqlite:///{merchant.folder / 'other.sqlite'}"
    upgrade(other)
    merchant.variables["RECON_DATABASE_URL"] = other

    with pytest.raises(UsageError, match="a backup that was restored"):
        _ask(merchant, "capture", second)
    assert len(merchant.effects()) == 1


def test_without_a_reports_folder_nothing_is_stored_or_sent(merchant):
    (merchant.folder / "reports").rmdir()
    (merchant.folder / "reports").write_text("a file")

    with pytest.raises(FolderError, match=r"cannot be made .* nothing was stored or sent"):
        _ask(merchant, "capture", merchant.payments("authorised")[0])
    assert merchant.instruction_states() == {}
    assert merchant.effects() == []


def _status(merchant):
    with merchant.environment() as environment:
        return [one.next_step for _, told in people.status(environment) for one in told]


def _await_gateway(merchant):
    for _ in range(400):
        try:
            merchant.invariants()
        except urllib.error.URLError:
            time.sleep(0.02)
        else:
            return
    pytest.fail("nobody answers again")


def test_what_did_not_leave_is_seen_until_it_does(merchant):
    payment = merchant.payments("authorised")[0]
    merchant.move_money()
    merchant.fault({"operation": "retrievalTrans", "kind": "refuse", "seconds": 3})
    result = _ask(merchant, "capture", payment)
    told = _status(merchant)
    _await_gateway(merchant)
    merchant.fault()
    merchant.wait(hours=24)
    merchant.drop("orders.csv", merchant.order(payment))
    merchant.move_money(date="2026-11-21")

    assert result.state is InstructionState.APPROVED
    assert "By hand: anna, and it was not sent: nothing could be sent 3 times in a row" in told[0]
    assert "the gateway could not be reached" in told[0]
    assert [effect["operation"] for effect in merchant.effects()] == ["capture"]


def test_a_call_that_ended_before_it_sent_is_seen(merchant):
    payment = merchant.payments("authorised")[0]
    merchant.move_money()

    def killed(point):
        if point == "before claim":
            raise KeyboardInterrupt

    request = HandRequest(InstructionKind.CAPTURE, **PLACE, order_no=payment.order_no, by="anna")
    with merchant.environment() as environment, pytest.raises(KeyboardInterrupt):
        carry_out(request, environment=replace(environment, crash_point=killed))

    assert merchant.instruction_states() == {"approved": 1}
    assert [one.startswith("It waits for the next night") for one in _status(merchant)] == [True]


def test_what_was_sent_is_never_told_as_not_sent(merchant):
    """Another run that took the account over meanwhile: the sentence does not deny the sending."""
    payment = merchant.payments("authorised")[0]

    def taken_over(point):
        if point == "after send":
            raise NightHeldError(point)

    request = HandRequest(InstructionKind.CAPTURE, **PLACE, order_no=payment.order_no, by="anna")
    with merchant.environment() as environment, pytest.raises(NightHeldError) as error:
        carry_out(request, environment=replace(environment, crash_point=taken_over))

    assert "nothing was stored or sent" not in str(error.value)
    assert len(merchant.effects()) == 1
