"""One worked example for each operation's signature: the bytes that are signed, and their hex."""

import hashlib
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from recon.gateway_client import (
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    GatewayInterface,
    OurAccount,
    RefundRow,
    ReviewRow,
    Row,
    prepare,
    prepare_methods,
    prepare_payment,
)
from recon.gateway_client.documents import element_texts, xml_root
from tests.recon.gateway_client.sample_payments import (
    TODAY,
    apm_payment,
    card_payment,
    hosted_payment,
    result_of,
)
from tests.recon.gateway_client.sample_payouts import payout_with
from tests.recon.gateway_client.test_payment_methods import request_of

PAGE = Path(__file__).parents[3] / "docs" / "GATEWAY.md"
IDS: dict[str, Any] = {"currency": "EUR", "amount": Decimal("10.36")}
TWO = ("1379868618653958144", "1379868618653958145")

EXAMPLES = {
    "retrievalTrans": (
        "100042100042001sandbox",
        "96eaf173daed21fe05c2185bd38541dc87ef0e70008e6c9e0cb0bf0df1cbf16e",
    ),
    "retrievalRefund": (
        "100042100042001sandbox",
        "96eaf173daed21fe05c2185bd38541dc87ef0e70008e6c9e0cb0bf0df1cbf16e",
    ),
    "capture": (
        f"100042100042001{TWO[0]}{TWO[1]}sandbox",
        "2ddb39f5f379e01bf5698b524bebdb41237172df1bda1e59337fd4c599a67b47",
    ),
    "cancel": (
        f"100042100042001{TWO[0]}{TWO[1]}sandbox",
        "2ddb39f5f379e01bf5698b524bebdb41237172df1bda1e59337fd4c599a67b47",
    ),
    "review": (
        f"100042100042001{TWO[0]}{TWO[1]}sandbox",
        "2ddb39f5f379e01bf5698b524bebdb41237172df1bda1e59337fd4c599a67b47",
    ),
    "refund": (
        f"100042100042001{TWO[0]}{TWO[1]}sandbox",
        "2ddb39f5f379e01bf5698b524bebdb41237172df1bda1e59337fd4c599a67b47",
    ),
    "payout": (
        "1000421000420017b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a11EUR250.00sandbox",
        "0ec3d4189a34f0023137e14a5979ac12c5cbe73fd077049f57a3fe45658c4d50",
    ),
    "cancelsubscription": (
        "100042100042001R1Goldplansandbox",
        "160e4558f35e08715b0ed157ba55ec639a917eb3b9e0afa7904ac7cbbf01576c",
    ),
    "authorise_card": (
        "100042100042001SO-1EUR42.50AnaExample4111111111111111202611917ana@example.testsandbox",
        "63cb1df7720e58f838c0568719ffa507da304183f4e1b306b523320ab9753d8e",
    ),
    "authorise_apm": (
        "100042100042001SO-1EUR42.50https://shop.example.test/backsandbox",
        "bbd185cef06a3e5d144310de51b1f63bcaa76df2f21fda36354c84f0bcf677f0",
    ),
    "checkout": (
        "100042100042001SO-1EUR42.50https://shop.example.test/backsandbox",
        "bbd185cef06a3e5d144310de51b1f63bcaa76df2f21fda36354c84f0bcf677f0",
    ),
    "optimise": (
        "100042100042001q-1JPY1200.00ana@example.testsandbox",
        "e352e7332c8e4a33e3bbecce58abe8ad3999ad9dc5f4b049db7a5ade9df40f4d",
    ),
    "payment_reply": (
        "100042100042001T20261120000001SO-1EUR42.5010000:Successsandbox",
        "1ec15ae28a466a2f77b2bdee28b4d8a73a81b9d2eb2e4459d585621709dd5b5e",
    ),
}
"""Operation -> what is signed, and the SHA-256 of it as `printf %s ... | sha256sum` gives it."""


def row_of(operation: str, *, transaction_id: str) -> Row:
    """One row of a batch."""
    ids = IDS | {"order_no": "SO1", "transaction_id": transaction_id}
    kinds: dict[str, type[Any]] = {"capture": CaptureRow, "cancel": CancelRow, "review": ReviewRow}
    if operation == "refund":
        return RefundRow(**ids, refund_amount=Decimal("3.33"), refund_reason="No stock")
    row: Row = kinds[operation](**ids)
    return row


def signatures(account: OurAccount) -> dict[str, str]:
    """The signature of each operation as its request carries it."""
    found = {
        operation: account.sign(operation, fields={})
        for operation in ("retrievalTrans", "retrievalRefund")
    }
    rows: dict[str, list[Row]] = {
        operation: [row_of(operation, transaction_id=one) for one in TWO]
        for operation in ("capture", "cancel", "review", "refund")
    }
    rows["payout"] = [payout_with()]
    rows["cancelsubscription"] = [
        CancelSubscriptionRow(recurring_id="R1", contract_name=" Gold plan")
    ]
    for operation, batch in rows.items():
        prepared = prepare(operation, batch, account=account)
        found[operation] = prepared.signature
    for payment in (card_payment(), apm_payment(), hosted_payment()):
        found[payment.operation] = prepare_payment(payment, account=account, today=TODAY).signature
    found["optimise"] = prepare_methods(request_of(), account=account).signature
    root = xml_root(result_of(), root="respon")
    texts = element_texts(root, repeated="risk_reasons")
    found["payment_reply"] = account.sign("payment_reply", fields=texts)
    return found


def test_every_template_stands_on_the_page(tables: dict[str, Any]) -> None:
    """As the configuration has it, so that a gateway's people can say what is otherwise."""
    page = PAGE.read_text("utf-8").partition("## What is signed")[2].partition("\n## ")[0]
    shown = {
        name: [
            "merchant_id",
            "account_id",
            *re.findall(r"\w+_\w+(?:\[\])?|card|currency|amount", of),
        ]
        for names, of in re.findall(r"^- (`[^:]*): (.*)$", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    assert shown == tables["signature"]["base"]["templates"]


def test_every_template_has_a_worked_example(tables: dict[str, Any]) -> None:
    """A new operation comes with its bytes."""
    assert set(tables["signature"]["base"]["templates"]) == set(EXAMPLES)


@pytest.mark.parametrize("operation", EXAMPLES)
def test_each_operation_signs_the_bytes_of_its_example(
    tables: dict[str, Any], account: OurAccount, operation: str
) -> None:
    """Concatenated in the template's order without spaces, the key last, SHA-256 in lower case."""
    plain, expected = EXAMPLES[operation]
    interface = GatewayInterface.of(**tables, profile="extended")

    assert hashlib.sha256(plain.encode()).hexdigest() == expected
    assert signatures(replace(account, interface=interface))[operation] == expected
