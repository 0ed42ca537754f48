import ast
import hashlib
import hmac
from dataclasses import replace
from pathlib import Path

import pytest

import recon.gateway_client
from recon.gateway_client import GatewayInterface, OurAccount
from recon.gateway_client.interface import same_signature


def signed_with(interface: GatewayInterface, account: OurAccount, **changes: object) -> str:
    """A refund of two transactions under changed rules."""
    rules = interface.signature.model_copy(update=changes)
    changed = replace(account, interface=interface.model_copy(update={"signature": rules}))
    rows = [{"transaction_id": " T 1"}, {"transaction_id": "T2"}]
    return changed.sign("refund", fields={}, rows=rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "100042100042001T1T2sandbox"),
        ({"whitespace": "strip"}, "100042100042001T 1T2sandbox"),
        ({"whitespace": "none"}, "100042100042001 T 1T2sandbox"),
        ({"templates": {"refund": ("nothing", "account_id")}}, "100042001sandbox"),
    ],
)
def test_a_signature_is_the_template_then_the_key(
    interface: GatewayInterface,
    account: OurAccount,
    changes: dict[str, object],
    message: str,
) -> None:
    """Concatenated without delimiter, missing fields as nothing, key last, SHA-256."""
    expected = hashlib.sha256(message.encode()).hexdigest()

    assert signed_with(interface, account, **changes) == expected
    upper = signed_with(interface, account, **changes, hex_case="upper")
    assert upper == expected.upper()


def test_an_hmac_takes_the_key_as_its_key(interface: GatewayInterface, account: OurAccount) -> None:
    """The newer family."""
    expected = hmac.new(b"sandbox", b"100042100042001T1T2", hashlib.sha256).hexdigest()

    assert signed_with(interface, account, algorithm="hmac-sha256") == expected


@pytest.mark.parametrize(
    ("given", "same"), [("AB", True), ("ab", True), ("a", False), ("", False), ("\udcff", False)]
)
def test_signatures_are_compared_without_case_and_over_any_text(given: str, *, same: bool) -> None:
    """Never an exception, whatever came."""
    assert same_signature(given, expected="ab") is same


def test_no_signature_is_compared_by_equality() -> None:
    """Only hmac.compare_digest sees one."""
    folder = Path(recon.gateway_client.__file__).parent
    compared = [
        ast.unparse(node)
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        and "signature" in ast.unparse(node.left).replace("interface.signature", "")
    ]

    assert compared == []


def test_the_key_never_shows(account: OurAccount) -> None:
    """Not in a repr."""
    assert "sandbox" not in repr(account)
