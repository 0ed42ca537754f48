from datetime import UTC, datetime

import pytest

from recon.config.settings import load_settings
from recon.gateway_client import CancelSubscriptionRow, Operation
from recon.instructions.account import GatewayAccount, gateway_account, send_row, start_payment
from recon.model.errors import UsageError
from tests.recon.cli.played_gateway import played_gateway
from tests.recon.gateway_client.sample_payments import (
    CARD,
    PRIVATE,
    TODAY,
    card_payment,
    hosted_payment,
)


def place_of(base_url: str) -> GatewayAccount:
    """The demo's account at a gateway."""
    variables = {
        "RECON_GATEWAY_BASE_URL": base_url,
        "RECON_SIGN_KEY": "sandbox",
        "RECON_DATABASE_URL": "sqlite:////nowhere/recon.sqlite",
    }
    settings = load_settings(variables)
    return gateway_account(settings, merchant_id="100042", account_id="100042001")


def clock() -> datetime:
    """The day on which the card is still good."""
    return datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=UTC)


def test_a_payment_comes_back_as_what_may_be_shown() -> None:
    """Outcome, ids and the masked card; nothing that names the shopper, not even in a repr."""
    with played_gateway() as (base_url, asked):
        found = start_payment(card_payment(), account=place_of(base_url), clock=clock)
        page = start_payment(hosted_payment(), account=place_of(base_url), clock=clock)

    assert (found.outcome, found.facts["transaction_id"]) == ("done", "T1")
    assert asked[0]["card"] == CARD
    assert [value for value in PRIVATE if value in repr((found, page))] == []
    assert page.outcome == "pending"
    assert b"orderAmount" in page.page


def test_what_must_not_be_sent_names_fields_only() -> None:
    """A card that cannot be one is refused before the wire, without its digits."""
    wrong = card_payment(card="4111111111111112")

    with played_gateway() as (base_url, asked), pytest.raises(UsageError) as refused:
        start_payment(wrong, account=place_of(base_url), clock=clock)

    assert asked == []
    assert "card is not a card number" in str(refused.value)
    assert "4111" not in str(refused.value)


def test_a_gateway_that_is_not_there_was_surely_not_asked() -> None:
    """The one failure after which it may be tried again."""
    row = CancelSubscriptionRow(recurring_id="R1", contract_name="Gold plan")

    found = send_row(
        Operation.CANCEL_SUBSCRIPTION, row, account=place_of("http://127.0.0.1:9"), clock=clock
    )

    assert found.outcome == "not_sent"
