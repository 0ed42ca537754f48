import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import Caller, elements

NINE = (
    *("amount", "currency", "order_no", "payment_status", "query_result", "reference_no"),
    *("transaction_date", "transaction_id", "website"),
)
"""The fields of a row of the query, as the document lists them."""


def test_a_card_payment_is_authorised_and_found(gateway: Any) -> None:
    """The result is XML with order_status 1; the truth and the query have the payment."""
    reply = gateway.authorise()
    result = elements(reply)
    assert reply.headers["content-type"].startswith("application/xml")
    assert (result["order_status"], result["result_info"]) == ("1", "0000:Success")
    assert result["card"] == "411111***1111"
    (effect,) = gateway.effects()
    assert (effect["operation"], effect["amount"]) == ("authorise", "10.00")
    assert effect["transaction_id"] == result["transaction_id"]
    assert gateway.status("web-1") == "2000"


def test_the_result_is_signed_by_the_payment_reply_template(gateway: Any) -> None:
    """SHA-256 over eight fields of the reply and the key, spaces removed."""
    result = elements(gateway.authorise())
    names = (
        "merchant_id account_id transaction_id order_no currency amount order_status result_info"
    )
    plain = "".join(result[name] for name in names.split()) + "sandbox"
    expected = hashlib.sha256(plain.replace(" ", "").encode()).hexdigest()
    assert result["encryption_data"] == expected


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"card": "4111111111111112"}, "R0005"),
        ({"card": "4000000000000002"}, "R0001"),
        ({"card": "4000000000009995"}, "R0002"),
        ({"expiration_year": "2026", "expiration_month": "10"}, "R0006"),
        ({"expiration_month": "13"}, "R0006"),
    ],
)
def test_declined_cards_leave_an_attempt_and_no_effect(
    gateway: Any, changed: dict[str, str], code: str
) -> None:
    """Luhn, expiry and documented test numbers decline: order_status 0, status 6000, no effect."""
    result = elements(gateway.authorise(**changed))
    assert result["order_status"] == "0"
    assert result["result_info"].startswith(f"{code}:")
    assert gateway.effects() == []
    assert gateway.status("web-1") == "6000"


def test_a_card_is_good_to_the_end_of_its_month(gateway: Any) -> None:
    """The virtual clock decides, not the machine's."""
    result = elements(gateway.authorise(expiration_year="26", expiration_month="11"))
    assert result["order_status"] == "1"


def test_an_order_number_is_used_once_unless_every_attempt_was_declined(gateway: Any) -> None:
    """I0061 after a success; after declines the shopper may try again."""
    gateway.authorise(card="4000000000000002")
    assert elements(gateway.authorise())["order_status"] == "1"
    again = elements(gateway.authorise())
    assert again["result_info"].startswith("I0061:")
    assert again["transaction_id"] == ""
    assert len(gateway.effects()) == 1


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"merchant_id": "1"}, "I0003"),
        ({"account_id": "1"}, "I0004"),
        ({"encryption_data": "0" * 64, "amount": "x"}, "I0013"),
        ({"first_name": ""}, "I0002"),
        ({"security_code": ""}, "I0002"),
        ({"amount": "10.3"}, "I0002"),
        ({"amount": "0.00"}, "I0002"),
        ({"currency": "XXX"}, "I0002"),
        ({"order_no": "a,b"}, "I0002"),
    ],
)
def test_card_refusals_are_xml_with_status_0(
    gateway: Any, changed: dict[str, str], code: str
) -> None:
    """Merchant, account, signature, then the fields; nothing is kept of a refused payment."""
    reply = gateway.authorise(**changed)
    result = elements(reply)
    assert reply.status_code == 200
    assert result["order_status"] == "0"
    assert result["result_info"].startswith(f"{code}:")
    assert (result["encryption_data"] == "") == (code == "I0013")
    assert gateway.effects() == []


def test_a_token_that_nobody_saved_does_not_stand_in_for_the_card(gateway: Any) -> None:
    """The twelve signed fields are required of a card payment, but for a saved card's own."""
    result = elements(gateway.authorise(card="", token_id="t1"))
    assert result["result_info"].startswith("I0002:")


def test_amount_as_a_number_is_refused(gateway: Any) -> None:
    """A payment's amount is text."""
    assert elements(gateway.authorise(amount=10))["order_status"] == "0"


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"currency": "JPY", "amount": "1000"}, "amount"),
        ({"currency": "KWD", "amount": "1.23"}, "amount"),
        ({"amount": "12"}, "amount"),
        ({"amount": "12.345"}, "amount"),
        ({"currency": "XQZ"}, "currency"),
        ({"tax_total": "1.5"}, "tax_total"),
        ({"order_no": "a,b"}, "order_no"),
        ({"last_name": ""}, "last_name"),
        ({"subscription": {"contract_name": "G", "interval": "fortnight"}}, "subscription"),
    ],
)
def test_the_refusal_of_a_payment_names_its_parameter(
    gateway: Any, changed: dict[str, Any], parameter: str
) -> None:
    """Amounts have a point and exactly the decimals of their currency."""
    told = elements(gateway.authorise(**changed))
    assert told["result_info"] == f"I0002:A parameter is missing or malformed ({parameter})"
    assert gateway.effects() == []


def test_capture_mode_auto_captures_at_once() -> None:
    """With --capture-mode auto a payment is paid when it is authorised."""
    fields = {
        "merchant_id": "100042",
        "account_id": "100042001",
        "order_no": "a1",
        "currency": "JPY",
        "amount": "500.00",
        "first_name": "A",
        "last_name": "B",
        "card": "4111111111111111",
        "expiration_year": "2030",
        "expiration_month": "1",
        "security_code": "123",
        "shopper_email": "a@b.example",
    }
    names = (
        "merchant_id account_id order_no currency amount first_name last_name card"
        " expiration_year expiration_month security_code shopper_email"
    )
    plain = "".join(fields[name] for name in names.split()) + "sandbox"
    fields["encryption_data"] = hashlib.sha256(plain.encode()).hexdigest()
    with serving(SandboxOptions(orders=0, capture_mode="auto")) as sandbox:
        httpx.post(f"{sandbox.base_url}/v1/authorise", json=fields, trust_env=False)
        truth = httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False).text
    assert [line.split('"')[3] for line in truth.splitlines()] == ["authorise", "capture"]
    assert truth.count('"amount": "500.00"') == 2


NO_CARD = dict.fromkeys(("card", "expiration_year", "expiration_month", "security_code"), "")


def test_a_saved_card_pays_again_without_its_number(gateway: Any) -> None:
    """token_flag YES gives a token_id; with it alone the next order is paid, by the same card."""
    first = elements(gateway.authorise(token_flag="YES"))
    again = NO_CARD | {"order_no": "web-2", "token_id": first["token_id"]}
    second = elements(gateway.authorise(**again))
    assert len(first["token_id"]) == 32
    assert (second["order_status"], second["card"]) == ("1", "411111***1111")
    assert second["token_id"] == first["token_id"]
    assert [effect["order_no"] for effect in gateway.effects()] == ["web-1", "web-2"]


def test_a_saved_card_belongs_to_its_account_and_expires(gateway: Any) -> None:
    """Another account does not know the token, and after its last month the card is declined."""
    saved = elements(gateway.authorise(token_flag="YES", expiration_year="27"))["token_id"]
    again = NO_CARD | {"order_no": "web-2", "token_id": saved}
    other = elements(gateway.authorise(**again, account_id="100042002"))
    assert other["result_info"].startswith("I0002:")
    gateway.pass_days(200)
    late = elements(gateway.authorise(**again))
    assert late["result_info"].startswith("R0006:")
    assert len(gateway.effects()) == 1


def test_nothing_is_saved_unasked(gateway: Any) -> None:
    """Without token_flag YES, and for a card that was declined, there is no token."""
    assert elements(gateway.authorise())["token_id"] == ""
    declined = gateway.authorise(card="4000000000000002", order_no="web-2", token_flag="YES")
    assert elements(declined)["token_id"] == ""


def test_instalments_and_note_come_back(gateway: Any) -> None:
    """The reply repeats what was chosen, and leaves out what was not."""
    result = elements(gateway.authorise(installments="3", installments_id="p-3", note="gift"))
    assert (result["installments"], result["installments_id"]) == ("3", "p-3")
    assert result["note"] == "gift"
    assert "installments" not in elements(gateway.authorise(order_no="web-2"))


MPI = {"eci": "05", "cavv": "AAABBJg0VhI0VniQEjRWAAAAAAA=", "xid": "", "dsTransID": "d-1"}


@pytest.mark.parametrize(
    ("changed", "status", "threeds"),
    [
        ({}, "1", ""),
        ({"open3d": "no3DS", "card": "4000008400001280"}, "1", ""),
        ({"open3d": "do3DS"}, "1", "frictionless"),
        ({"open3d": "do3DS", "card": "4000008400001280"}, "0", "failed"),
        ({"additional_information": [{"mpi_info": MPI}]}, "1", "external"),
        ({"additional_information": [{"mpi_info": MPI | {"eci": "07"}}]}, "0", "failed"),
        ({"additional_information": [{"mpi_info": MPI | {"cavv": ""}}]}, "0", "failed"),
        ({"open3d": "do3DS", "additional_information": [{"mpi_info": {}}]}, "1", "frictionless"),
    ],
)
def test_3d_secure_as_the_test_cards_bank_does_it(
    gateway: Any, changed: dict[str, Any], status: str, threeds: str
) -> None:
    """Frictionless, failed, made elsewhere, proven or not; the query says whether it was used."""
    result = elements(gateway.authorise(**changed))
    assert (result["order_status"], result["threeds_result"]) == (status, threeds)
    assert len(gateway.effects()) == int(status)
    assert gateway.query(orders="web-1").json()["is3ds"] == ("1" if threeds else "0")


def test_a_challenge_waits_for_the_shopper(gateway: Any) -> None:
    """Order_status -2, an issuer_url, no effect; the query shows it pending, the order is taken."""
    reply = gateway.authorise(open3d="do3DS", card="4000000000003220")
    result = elements(reply)
    assert (result["order_status"], result["threeds_result"]) == ("-2", "challenge")
    assert result["issuer_url"].startswith(f"{gateway.base_url}/v1/pay/")
    assert gateway.status("web-1") == "1000"
    assert gateway.effects() == []
    assert elements(gateway.authorise())["result_info"].startswith("I0061:")


def test_a_high_risk_waits_for_review_and_the_highest_is_declined(gateway: Any) -> None:
    """The score decides: 10 passes, 75 waits in state in_review, 95 is declined."""
    passed = elements(gateway.authorise())
    assert (passed["risk_action"], passed["risk_score"]) == ("ACCEPT", "10")
    waiting = elements(gateway.authorise(order_no="web-2", card="4000000000009235"))
    assert (waiting["order_status"], waiting["risk_action"]) == ("-2", "REVIEW")
    assert gateway.status("web-2") == "1500"
    declined = elements(gateway.authorise(order_no="web-3", card="4100000000000019"))
    assert (declined["order_status"], declined["risk_action"]) == ("0", "REJECT")
    assert [effect["order_no"] for effect in gateway.effects()] == ["web-1"]


@pytest.mark.parametrize(
    ("flag", "status", "happened"),
    [("1", "2000", ["authorise", "review"]), ("0", "6000", ["review"]), ("7", "1500", ["review"])],
)
def test_review_flag_ends_a_review(
    gateway: Any, flag: str, status: str, happened: list[str]
) -> None:
    """1 lets the payment take effect, 0 declines it, another flag is only noted."""
    result = elements(gateway.authorise(card="4000000000009235"))
    row = {name: result[name] for name in ("transaction_id", "order_no", "currency", "amount")}
    answer = gateway.row("review", row | {"review_flag": flag})
    assert answer["review_status"] == "1"
    assert gateway.status("web-1") == status
    assert [effect["operation"] for effect in gateway.effects()] == happened
    assert set(gateway.invariants().values()) == {0}
    story = gateway.http.get(f"/_sandbox/transactions/{result['transaction_id']}").text
    assert "The client was told the truth, every time." in story


def test_the_query_shows_risk_beside_one_payment_and_not_at_all_of_several(gateway: Any) -> None:
    """The document shows these fields once a reply, and nine fields of a row."""
    gateway.authorise(open3d="do3DS")
    gateway.authorise(order_no="web-2", card="4000000000009235")
    one = gateway.query(orders="web-2").json()
    assert one["antifraud_provider"] == "sandbox"
    assert one["fraud_check_result"] == [{"check_items": "risk_score", "status": "review"}]
    assert "is3ds" not in one["orders_list"][0]
    both = gateway.query(orders="web-1,web-2").json()
    assert (both["antifraud_provider"], both["fraud_check_result"], both["is3ds"]) == ("", [], "")
    assert {frozenset(row) for row in both["orders_list"]} == {frozenset(NINE)}


def test_no_card_number_stays_in_a_state_file(tmp_path: Path) -> None:
    """Neither the number nor its code is in the database, also of a saved or challenged card."""
    state = tmp_path / "sandbox.sqlite"
    with serving(SandboxOptions(orders=0, state=state)) as sandbox:
        caller = Caller(sandbox.base_url)
        with caller.http:
            caller.authorise(token_flag="YES", security_code="7531")
            caller.authorise(order_no="web-2", open3d="do3DS", card="4000000000003220")
            caller.faults({"operation": "authorise", "kind": "replayed_reply", "nth": 2})
            caller.authorise(order_no="web-3", security_code="7531")
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"web-3" in kept
    assert not any(secret in kept for secret in (b"4111111111111111", b"4000000000003220", b"7531"))
