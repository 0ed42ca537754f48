import ast
import copy
import hashlib
import hmac
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import recon.gateway_client
from recon.config.settings import bundled_config_dir
from recon.gateway_client import (
    CaptureRow,
    GatewayInterface,
    InterfaceError,
    InvalidRequestError,
    prepare,
)
from recon.gateway_client.interface import same_signature
from tests.recon.gateway_client.conftest import interface_with


def test_the_shipped_profiles_have_the_documented_limits(tables):
    """50, 50, 50, 100, 100; base has no bound on characters, extended has 1,000."""
    base = GatewayInterface.of(**tables)
    extended = GatewayInterface.of(**tables, profile="extended")

    assert {name: one.rows_max for name, one in base.profile.batch.items()} == {
        "capture": 50,
        "cancel": 50,
        "refund": 50,
        "review": 100,
        "payout": 1,
        "cancelsubscription": 1,
    }
    assert base.profile.query.retrievalTrans.rows_max == 100
    assert (base.profile.query_characters_max, extended.profile.query_characters_max) == (0, 1000)


def test_the_users_layer_wins_over_every_profile(tables):
    """Base < extended < user."""
    mine = tables | {"profiles": tables["profiles"] | {"user": {"query_characters_max": 500}}}

    assert GatewayInterface.of(**mine, profile="extended").profile.query_characters_max == 500


@pytest.mark.parametrize(
    ("file", "path", "value", "says"),
    [
        ("profiles", ["base", "batch", "capture", "rowsmax"], 5, "capture.rowsmax"),
        ("profiles", ["base", "batch", "capture", "rows_max"], 0, "capture.rows_max"),
        ("profiles", ["basic"], {}, "basic"),
        ("profiles", ["base", "grammar", "order_no"], "[", "grammar.order_no"),
        ("profiles", ["base", "batch", "void"], None, "void"),
        ("profiles", ["base", "batch", "review", "body"], "xml", "in JSON only"),
        ("profiles", ["base", "batch", "payout", "rows_max"], 2, "needs a rows_field"),
        ("profiles", ["base", "amounts", "of_currency", "kwd"], 2, "of_currency.kwd"),
        ("profiles", ["base", "amounts", "decimals"], 9, "decimals"),
        ("profiles", ["base", "amounts", "rounding"], "up", "rounding"),
        ("signature", ["base", "algorithm"], "md5", "algorithm"),
        ("signature", ["base", "salt"], "x", "salt"),
        ("signature", ["base", "templates"], {"refund": ["merchant_id"]}, "capture"),
        ("status_map", ["base", "row_status", "refund", "5"], "maybe", "row_status.refund.5"),
        ("status_map", ["base", "query", "timezone"], "Mars/Olympus", "query.timezone"),
        ("status_map", ["base", "refusals", "before_processing_http"], [500], "before_processing"),
    ],
)
def test_what_is_wrong_in_a_table_is_refused_by_name(tables, file, path, value, says):
    wrong = copy.deepcopy(tables)
    table = wrong[file]
    for name in path[:-1]:
        table = table[name]
    table[path[-1]] = copy.deepcopy(table["capture"]) if value is None else value

    with pytest.raises(InterfaceError, match=says) as caught:
        GatewayInterface.of(**wrong)

    assert ".toml" in str(caught.value)


ROW = CaptureRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("10.00"))


@pytest.mark.parametrize(
    ("amounts", "currency", "given", "written"),
    [
        ({}, "EUR", "12.50", "12.50"),
        ({}, "EUR", "12.500", "12.50"),
        ({}, "EUR", "12.5", None),
        ({}, "JPY", "1000", "1000.00"),
        ({}, "JPY", "1000.00", "1000.00"),
        ({}, "JPY", "1000.50", None),
        ({}, "KWD", "1.250", "1.250"),
        ({}, "KWD", "1.25", None),
        ({"own_decimals_if_more": False}, "KWD", "1.23", "1.23"),
        ({"of_currency": {"KWD": 2}}, "KWD", "1.230", "1.23"),
        ({"of_currency": {"KWD": 2}}, "KWD", "1.234", None),
        ({"of_currency": {"JPY": 0}}, "JPY", "1000", "1000"),
        ({"of_currency": {"XQZ": 1}}, "XQZ", "1.5", "1.5"),
        ({"of_currency": {"XQZ": 1}}, "XQZ", "1", None),
        ({"decimals": 0}, "JPY", "1000.00", "1000"),
    ],
)
def test_an_amount_goes_out_with_the_decimals_of_the_gateway_and_is_never_rounded(
    tables, account, *, amounts, currency, given, written
):
    """Given with those of its currency, or those of the wire: yen of 1000 and of 1000.00 alike."""
    account = replace(account, interface=interface_with(tables, amounts=amounts))
    row = replace(ROW, currency=currency, amount=Decimal(given))
    if written is None:
        with pytest.raises(InvalidRequestError, match="row 1, amount"):
            prepare("capture", [row], account=account)
        return
    assert f'"amount":"{written}"'.encode() in prepare("capture", [row], account=account).body


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
    interface, text, currency, *, strict, as_written
):
    """A query has all decimals of its currency, an echo of ours may leave zeros out."""
    amounts = interface.profile.amounts
    read = {
        operation: amounts.amount_of(text, currency=currency, operation=operation)
        for operation in ("retrievalTrans", "retrievalRefund", "capture", "payout")
    }

    assert {read["retrievalTrans"], read["retrievalRefund"]} == {Decimal(text) if strict else None}
    assert {read["capture"], read["payout"]} == {Decimal(text) if as_written else None}


def signed_with(interface, account, **changes):
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
def test_a_signature_is_the_template_then_the_key(interface, account, changes, message):
    """Concatenated without delimiter, missing fields as nothing, key last, SHA-256."""
    expected = hashlib.sha256(message.encode()).hexdigest()

    assert signed_with(interface, account, **changes) == expected
    upper = signed_with(interface, account, **changes, hex_case="upper")
    assert upper == expected.upper()


def test_an_hmac_takes_the_key_as_its_key(interface, account):
    expected = hmac.new(b"sandbox", b"100042100042001T1T2", hashlib.sha256).hexdigest()

    assert signed_with(interface, account, algorithm="hmac-sha256") == expected


@pytest.mark.parametrize(
    ("given", "same"), [("AB", True), ("ab", True), ("a", False), ("", False), ("\udcff", False)]
)
def test_signatures_are_compared_without_case_and_over_any_text(given, *, same):
    """Never an exception, whatever came."""
    assert same_signature(given, expected="ab") is same


def test_no_signature_is_compared_by_equality():
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


PAGE = Path(__file__).parents[3] / "docs" / "GATEWAY.md"
NUMBER = re.compile(r"\bA-[0-9]{2}\b")


def test_every_assumption_of_the_configuration_is_explained():
    """Who meets a number in a file finds what it means and what if it is wrong."""
    used = {
        number
        for path in bundled_config_dir().glob("*.toml")
        for number in NUMBER.findall(path.read_text(encoding="utf-8"))
    }
    explained = re.findall(
        r"^- (?:\*\*)?(A-[0-9]{2})(?:\*\*)?:", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert sorted(explained) == sorted(set(explained))
    assert used - set(explained) == set()
