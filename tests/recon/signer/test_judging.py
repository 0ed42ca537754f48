"""What the signer says yes to, with its clock in hand."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from recon.model.terms import InstructionKind
from recon.signer.configured import COUNTS_AS, signer_settings
from recon.signer.signature_log import SignatureLog
from recon.signer.signing import Signing, signing_request_of
from tests.recon.signer.conftest import (
    ACCOUNT,
    BY_RULE,
    MERCHANT,
    Desk,
    Terms,
    capture_terms,
    grounds,
    refund_terms,
    wire,
    write_rules,
)

ANY = """
[accounts."100042/100042001".by_rule.refund.any]
count = 2
"""


class Bench:
    """A judge, and the time as it says."""

    def __init__(self, folder, *, desk, more=BY_RULE):
        self.now = datetime.now(UTC)
        rules = write_rules(folder, desk=desk, more=more)
        self.signature_log = SignatureLog(folder / "signed.sqlite")
        self.signing = Signing(
            signer_settings(rules), signature_log=self.signature_log, clock=lambda: self.now
        )

    def asked(self, items, *, kind="capture", endorsements=()):
        said = grounds(items, endorsements)  # type: ignore[arg-type] # endorsements
        rows = [wire(terms) for terms in items.values()]
        return self.signing.sign(signing_request_of(document(kind, rows=rows, said=said)))


def document(template, *, rows=(), fields=None, said=None):
    return {
        "template": template,
        "merchant_id": MERCHANT,
        "account_id": ACCOUNT,
        "fields": fields or {},
        "rows": list(rows),  # type: ignore[call-overload] # rows of a test
        "grounds": said or {},
    }


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def bench(tmp_path, desk):
    """A signer that signs captures of at most 500 EUR, three and 800 EUR in 24 hours."""
    bench = Bench(tmp_path, desk=desk)
    with closing(bench.signature_log):
        yield bench


def test_a_limit_is_of_any_24_hours(bench):
    """Not of a calendar day, at whose end twice as much could leave."""
    for number in (1, 2, 3):
        assert bench.asked({f"c-{number}": capture_terms(number)}).signature
        bench.now += timedelta(hours=1)
    bench.now += timedelta(hours=20)
    assert "3 of 24 hours" in bench.asked({"c-4": capture_terms(4)}).why_not
    bench.now += timedelta(hours=1.5)  # the first is 24.5 hours old
    assert bench.asked({"c-4": capture_terms(4)}).signature
    assert "3 of 24 hours" in bench.asked({"c-5": capture_terms(5)}).why_not


def test_the_sum_is_bounded_too(bench):
    large = {"amount": 40_000, "payment_amount": 40_000}
    for number in (1, 2):
        assert bench.asked({f"c-{number}": capture_terms(number, **large)}).signature
    cent = capture_terms(3, amount=1, payment_amount=1)
    told = bench.asked({"c-3": cent}).why_not
    assert "the own limit of 24 hours is 800 EUR, not 800.01 EUR" in told


def test_a_list_is_signed_whole_or_not_at_all(bench):
    """What was refused counts against nothing: the good row alone is signed after it."""
    many = {f"c-{number}": capture_terms(number) for number in range(1, 5)}
    assert set(bench.asked(many).refused) == {3}
    assert bench.asked(dict(list(many.items())[:3])).signature


def test_another_currency_has_no_limit_and_so_needs_people(bench):
    dollars = capture_terms(1, currency="USD")
    assert "no capture USD is signed without people" in bench.asked({"c-1": dollars}).why_not


def test_each_kind_has_its_place_among_the_limits():
    """A kind that is new is decided on here: whose limit it uses up, or that people decide."""
    assert {kind: COUNTS_AS[kind] for kind in InstructionKind} == {
        InstructionKind.CAPTURE: InstructionKind.CAPTURE,
        InstructionKind.REFUND: InstructionKind.REFUND,
        InstructionKind.CANCEL: InstructionKind.CANCEL,
        InstructionKind.PAYOUT: InstructionKind.PAYOUT,
        InstructionKind.REVIEW: InstructionKind.REFUND,
        InstructionKind.CANCEL_SUBSCRIPTION: None,
    }


def test_other_currencies_are_counted_together(tmp_path, desk):
    """Under "any", refunds and reviews alike: two in 24 hours, whatever they come to."""
    bench = Bench(tmp_path, desk=desk, more=ANY)
    for number, (kind, signed) in enumerate(
        (("refund", True), ("review", True), ("refund", False))
    ):
        terms = refund_terms(
            number, kind=kind, review_flag="1", currency=("USD", "CHF", "SEK")[number]
        )
        assert bool(bench.asked({f"i-{number}": terms}, kind=kind).signature) is signed


def test_an_altered_row_is_another_row(bench, desk):
    terms = refund_terms(1)
    endorsements = desk.agreed({"i-1": terms})
    assert bench.asked({"i-1": terms}, kind="refund", endorsements=endorsements).signature
    bench.now += timedelta(days=9)
    assert bench.asked({"i-1": terms}, kind="refund", endorsements=endorsements).signature
    more = terms | {"amount": 1001}
    told = bench.asked({"i-1": more}, kind="refund", endorsements=endorsements).why_not
    assert "the desk endorsed it for nobody" in told


def test_a_row_stands_in_a_list_once(bench, desk):
    """One instruction, or one payment, twice: the money would move twice."""
    terms = refund_terms(1)
    items = {"i-1": terms, "i-2": terms}
    answer = bench.asked(items, kind="refund", endorsements=desk.agreed(items))
    assert set(answer.refused.values()) == {"it stands in this list twice"}


def test_what_is_judged_is_what_is_signed(bench, desk):
    """A payout that was endorsed stands in the rows; the fields, which are signed, say another."""
    terms: Terms = {
        "merchant_id": MERCHANT,
        "account_id": ACCOUNT,
        "kind": "payout",
        "gateway_request_id": "Q1",
        "currency": "EUR",
        "amount": 1000,
    }
    good = {"request_id": "Q1", "payment_currency": "EUR", "payment_amount": "10.00"}
    said = grounds({"p-1": terms}, desk.agreed({"p-1": terms}))
    evil = good | {"request_id": "Q2", "payment_amount": "9000.00"}
    for document_ in (
        document("payout", rows=[good], fields=evil, said=said),
        document("payout", rows=[good], said=said),
        document("refund", fields=good, said=said),
        document("capture", rows=[good], fields={"more": "x"}, said=said),
    ):
        answer = bench.signing.sign(signing_request_of(document_))
        assert "are not in the form of this operation" in answer.why_not
    assert (
        "payment_amount is not"
        in bench.signing.sign(
            signing_request_of(document("payout", fields=evil | {"request_id": "Q1"}, said=said))
        ).why_not
    )
    assert bench.signing.sign(
        signing_request_of(document("payout", fields=good, said=said))
    ).signature


def test_an_order_names_one_payment_once(bench, desk):
    seen = refund_terms(1, transaction_id="", payment_amount=0)
    endorsements = desk.agreed({"i-1": seen})
    for number, signed in ((1, True), (2, False), (1, True)):
        terms = seen | {"transaction_id": f"T{number}", "payment_amount": 2500}
        said = grounds({"i-1": terms}, endorsements)
        said["rows"][0]["seen"] = seen
        answer = bench.signing.sign(
            signing_request_of(document("refund", rows=[wire(terms)], said=said))
        )
        assert bool(answer.signature) is signed
        assert signed or "signed for another payment" in answer.why_not


@pytest.mark.parametrize(
    "amount", ["-500.00", "5e0", "0_5.00", " 5.00", "\u0665.00", "NaN", "+5.00"]
)
def test_only_a_plain_amount_is_one(bench, amount):
    """A minus gives a limit back what was used of it; a gateway may read another sum."""
    terms = capture_terms(1, amount=-50_000 if amount[0] == "-" else 500)
    row = wire(terms, amount=amount)
    asked = signing_request_of(document("capture", rows=[row], said=grounds({"c-1": terms})))
    assert "its amount is not the instruction's" in bench.signing.sign(asked).why_not
