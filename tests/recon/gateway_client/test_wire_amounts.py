from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from recon.gateway_client import (
    CaptureRow,
    GatewayInterface,
    InterfaceError,
    InvalidBatchError,
    InvalidPaymentError,
    OurAccount,
    prepare,
    prepare_payment,
)
from tests.recon.gateway_client.sample_payments import TODAY, card_payment
from tests.recon.gateway_client.sample_payouts import payout_with

ROW = CaptureRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("10.00"))


def interface_with(tables: dict[str, dict[str, Any]], **amounts: object) -> GatewayInterface:
    """The shipped interface, with a gateway's own way to write amounts."""
    user = {"user": {"amounts": amounts}}
    return GatewayInterface.of(**tables | {"profiles": tables["profiles"] | user})


@pytest.mark.parametrize(
    ("currency", "decimals"),
    [("EUR", 2), ("JPY", 2), ("KWD", 3), ("CLF", 4), ("XQZ", None), ("XAU", None), ("eur", None)],
)
def test_as_shipped_a_currency_has_two_decimals_or_its_own_if_more(
    interface: GatewayInterface, currency: str, decimals: int | None
) -> None:
    """Two as the document says, three and four by A-18; what is no currency has none."""
    assert interface.profile.amounts.decimals_of(currency) == decimals


@pytest.mark.parametrize(
    ("amounts", "currency", "written"),
    [
        ({"own_decimals_if_more": False}, "KWD", "1.23"),
        ({"of_currency": {"KWD": 2}}, "KWD", "1.23"),
        ({"of_currency": {"JPY": 0}}, "JPY", "1000"),
        ({"of_currency": {"XQZ": 1}}, "XQZ", "1.5"),
        ({"decimals": 0}, "JPY", "1000"),
    ],
)
def test_a_gateways_own_decimals_are_configured_and_then_the_only_ones(
    tables: dict[str, dict[str, Any]],
    account: OurAccount,
    amounts: dict[str, object],
    currency: str,
    written: str,
) -> None:
    """An amount goes out as it is configured, any other number of decimals does not."""
    interface = interface_with(tables, **amounts)
    account = replace(account, interface=interface)
    row = replace(ROW, currency=currency, amount=Decimal(written))
    prepared = prepare("capture", [row], account=account)
    assert f'"amount":"{written}"'.encode() in prepared.body

    longer = replace(row, amount=Decimal(f"{written}{'' if '.' in written else '.'}0"))
    with pytest.raises(InvalidBatchError, match="amount has"):
        prepare("capture", [longer], account=account)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"payment_amount": Decimal(250)}, "payment_amount"),
        ({"payment_amount": Decimal("250.000")}, "payment_amount"),
        ({"payment_currency": "XQZ"}, "payment_currency"),
        (
            {"source_currency": "EUR", "source_amount": Decimal("250.0")},
            "source_amount",
        ),
    ],
)
def test_a_payout_of_another_form_is_not_sent(
    account: OurAccount, changes: dict[str, Any], field: str
) -> None:
    """Refused before a byte leaves, by field."""
    with pytest.raises(InvalidBatchError) as caught:
        prepare("payout", [payout_with(**changes)], account=account)

    assert field in {problem.field for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"amount": Decimal(12)}, "amount"),
        ({"amount": Decimal("12.345")}, "amount"),
        ({"currency": "XQZ"}, "currency"),
        ({"tax_total": Decimal("1.5")}, "tax_total"),
        ({"shipping": Decimal(0)}, "shipping"),
        ({"subscription": {"contract_name": "G", "contract_amount": "9.9"}}, "contract_amount"),
    ],
)
def test_a_payment_of_another_form_is_not_sent(
    account: OurAccount, changes: dict[str, Any], field: str
) -> None:
    """Every amount of it, by field."""
    with pytest.raises(InvalidPaymentError, match=field):
        prepare_payment(card_payment(**changes), account=account, today=TODAY)


@pytest.mark.parametrize(
    ("amounts", "says"),
    [
        ({"of_currency": {"kwd": 2}}, "of_currency.kwd"),
        ({"decimals": 9}, "decimals"),
        ({"rounding": "up"}, "rounding"),
    ],
)
def test_a_wrong_table_of_decimals_is_refused_by_name(
    tables: dict[str, dict[str, Any]], amounts: dict[str, object], says: str
) -> None:
    """Nothing is guessed of how a gateway writes money."""
    with pytest.raises(InterfaceError, match=says):
        interface_with(tables, **amounts)


@pytest.mark.parametrize(
    ("text", "currency", "strict", "as_written"),
    [
        ("12.50", "EUR", True, True),
        ("12.5", "EUR", False, True),
        ("12", "EUR", False, True),
        ("12.5000", "EUR", True, True),
        ("12.505", "EUR", False, False),
        ("12.", "EUR", False, False),
        ("1e3", "EUR", False, False),
        ("-12.50", "EUR", False, False),
        ("1200", "JPY", True, True),
        ("1200.00", "JPY", True, True),
        ("1200.50", "JPY", False, False),
        ("1.25", "KWD", False, True),
        ("12.50", "XQZ", False, False),
    ],
)
def test_replies_have_one_grammar_of_amounts_and_a_leniency_per_operation(
    interface: GatewayInterface, text: str, currency: str, *, strict: bool, as_written: bool
) -> None:
    """A query has all decimals of its currency, an echo of ours may leave zeros out."""
    amounts = interface.profile.amounts
    read = {
        operation: amounts.amount_of(text, currency=currency, operation=operation)
        for operation in ("retrievalTrans", "retrievalRefund", "capture", "payout")
    }

    assert {read["retrievalTrans"], read["retrievalRefund"]} == {Decimal(text) if strict else None}
    assert {read["capture"], read["payout"]} == {Decimal(text) if as_written else None}
