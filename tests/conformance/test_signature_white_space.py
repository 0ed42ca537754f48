"""The one white-space rule of signatures (A-17): both sides over the same worked examples."""

import hashlib

import pytest

from recon.gateway_client import CancelSubscriptionRow, OurAccount, prepare
from recon.sandbox.wire import sign as signed_by_the_sandbox

HEAD = "100042100042001R1"
VECTORS = [
    ("Gold plan", "Goldplan"),
    (" Gold  plan ", "Goldplan"),
    ("Gold\u00a0plan", "Gold\u00a0plan"),
    ("Gold\u3000plan", "Gold\u3000plan"),
    ("\u00a0Gold plan\u2009", "\u00a0Goldplan\u2009"),
    ("\u4f1a\u54e1 \u30d7\u30e9\u30f3", "\u4f1a\u54e1\u30d7\u30e9\u30f3"),
]
"""A contract's name -> what of it is signed: without U+0020, all else as it is."""


@pytest.mark.parametrize(("name", "signed"), VECTORS)
def test_only_u0020_is_removed_before_signing_on_both_sides(target, name, signed):
    """Every other white space is part of the name, and of what is signed."""
    account: OurAccount = target.account
    expected = hashlib.sha256(f"{HEAD}{signed}sandbox".encode()).hexdigest()
    row = CancelSubscriptionRow(recurring_id="R1", contract_name=name)
    prepared = prepare("cancelsubscription", [row], account=account)
    fields = {
        "merchant_id": "100042",
        "account_id": "100042001",
        "recurring_id": "R1",
        "contract_name": name,
    }

    assert prepared.signature == expected
    assert signed_by_the_sandbox("cancelsubscription", fields, sign_key="sandbox") == expected
