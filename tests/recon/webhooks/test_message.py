from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from recon.config.settings import GATEWAY_FILES, load_tables
from recon.gateway_client import GatewayInterface, OurAccount
from recon.model.errors import SourceUnreadableError
from recon.store.nights.notification_rows import GatewayMessage
from recon.webhooks.receiver import (
    FORM_BYTES_MAX,
    PAIRS_MAX,
    MessageRefusal,
    form_pairs,
    read_message,
)
from tests.recon.webhooks.told import ACCOUNT, MERCHANT, PAYMENT, REFUND, signed

INTERFACE = GatewayInterface.of(
    **{name: load_tables(name, config_dir=None) for name in GATEWAY_FILES}
)
AT = datetime(2026, 11, 20, tzinfo=UTC)
OURS = OurAccount(MERCHANT, ACCOUNT, SecretStr("sandbox"), INTERFACE)


def read(pairs):
    return read_message(pairs, account=OURS, at=AT)


def test_a_payment_and_a_refund_tell_their_own_amount():
    payment, refund = read(signed(PAYMENT)), read(signed(REFUND))

    assert isinstance(payment, GatewayMessage)
    assert isinstance(refund, GatewayMessage)
    assert (payment.kind, payment.amount, payment.status) == ("payment", 1000, "1")
    assert (refund.kind, refund.amount, refund.currency) == ("refund result", 250, "EUR")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"encryption_data": "0" * 64}, "forged"),
        ({"encryption_data": ""}, "forged"),
        ({"encryption_data": "é"}, "forged"),
        ({"amount": "99.00"}, "forged"),
        ({"account_id": "100042002"}, "other account"),
        ({"merchant_id": ""}, "other account"),
    ],
)
def test_what_is_not_from_the_gateway_or_not_for_us_is_refused(changed, problem):
    """A signature that covers something else, or another account, is not believed."""
    refused = read(signed(PAYMENT) | changed)

    assert isinstance(refused, MessageRefusal)
    assert refused.problem == problem


def test_a_message_about_nothing_is_malformed():
    refused = read(signed({"merchant_id": MERCHANT, "account_id": ACCOUNT}))

    assert isinstance(refused, MessageRefusal)
    assert refused.problem == "malformed"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"webhooks_type": "DISPUTE RECIEVED"}, "dispute received"),
        ({"webhooks_type": "refund accepted"}, "refund accepted"),
        ({"webhooks_type": "SOMETHING NEW"}, "other"),
        ({"webhooks_type": "", "request_id": "r-1"}, "payout"),
        ({"webhooks_type": "", "recurring_status": "Inactived"}, "subscription"),
        ({"webhooks_type": ""}, "payment"),
    ],
)
def test_the_type_is_told_in_our_words(given, kind):
    found: Any = read(signed(PAYMENT | given))

    assert found.kind == kind


def test_a_payments_status_is_not_its_refunds():
    without = {name: value for name, value in REFUND.items() if name != "refund_status"}
    found: Any = read(signed(without))

    assert found.status == ""


def test_a_form_gives_its_pairs_trimmed():
    """Plus and percent are undone, blanks at the ends go, an empty value stays."""
    assert form_pairs(b"a=1+2&b=%C3%A9+&c=") == {"a": "1 2", "b": "é", "c": ""}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no pair at all",
        b"a=1&a=2",
        b"a=%FF%FE",
        b"a=\xff",
        b"a=" + b"x" * FORM_BYTES_MAX,
        b"a=" + b"x" * 5_001,
        b"&".join(b"n%d=1" % number for number in range(PAIRS_MAX + 1)),
        b'{"a": "4111111111111111"}',
    ],
    ids=["empty", "text", "twice", "utf-8", "bytes", "big", "long", "many", "json"],
)
def test_anything_else_is_refused_without_its_words(body):
    with pytest.raises(SourceUnreadableError) as refused:
        form_pairs(body)

    assert "4111" not in str(refused.value)
    assert len(str(refused.value)) < 100
