"""The refund search over HTTP: what it finds, how it is asked, and what it refuses."""

from collections.abc import Iterator
from typing import Any

import pytest

from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import ACCOUNT, MERCHANT, Caller, signature

OURS = {"merchant_id": MERCHANT, "account_id": ACCOUNT}


@pytest.fixture(scope="module")
def extended() -> Iterator[Caller]:
    """A client of a sandbox that has the search."""
    with serving(SandboxOptions(orders=120, profile="extended")) as running:
        caller = Caller(running.base_url)
        with caller.http:
            yield caller


@pytest.fixture
def refunded(extended: Caller) -> dict[str, str]:
    """A payment with two partial refunds of ours."""
    extended.http.post("/_sandbox/reset").raise_for_status()
    row = next(row for row in extended.captured() if row["currency"] == "EUR")
    for number in (1, 2):
        asked = {"refund_amount": f"0.{number}0", "refund_reference": f"ours-{number}"}
        assert extended.row("refund", row | asked | {"refund_reason": "r"})["refund_status"] == "1"
    return row


def search(extended: Caller, **asked: str) -> dict[str, Any]:
    """The reply to one search."""
    body = OURS | {"encryption_data": signature(MERCHANT, ACCOUNT)} | asked
    return extended.http.post("/v1/retrievalRefund", data=body).json()


def numbers(reply: dict[str, Any]) -> list[str]:
    """The two digits of the refunds in a reply."""
    assert reply["return_status"] == "1", reply
    return [row["refund_reference_id"][-2:] for row in reply["refunds_list"]]


@pytest.mark.parametrize(
    ("field", "key", "expected"),
    [
        ("refund_orders", "{order_no}", ["01", "02"]),
        ("refund_references", "ours-2", ["02"]),
        ("merchant_refunds", "ours-1", ["01"]),
        ("refund_references", "{transaction_id}-02", ["02"]),
        ("refund_references", "ours-2,ours-1,ours-9", ["01", "02"]),
        ("refund_references", "ours-9", []),
        ("refund_orders", "no-such-order", []),
    ],
)
def test_refunds_are_found_by_every_key(
    extended: Caller, refunded: dict[str, str], field: str, key: str, expected: list[str]
) -> None:
    """By order, by our reference, by the gateway's; what is not known has no row."""
    assert numbers(search(extended, **{field: key.format(**refunded)})) == expected


def test_a_row_shows_the_refund_and_its_payment(extended: Caller, refunded: dict[str, str]) -> None:
    """Accepted first; processed when two virtual days are over."""
    first = search(extended, refund_references="ours-1")["refunds_list"][0]
    extended.pass_days(2)
    later = search(extended, refund_references="ours-1")["refunds_list"][0]
    assert first == refunded | {
        "refund_status": "1",
        "payment_status": "4000",
        "refund_amount": "0.10",
        "refund_reference": "ours-1",
        "refund_reason": "r",
        "refund_reference_id": f"{refunded['transaction_id']}-01",
        "refund_date": "20261120220000",
        "refund_processing_date": "",
    }
    assert later == first | {"refund_processing_date": "20261122220000"}


def test_a_refund_that_flipped_is_shown_as_failed(
    extended: Caller, refunded: dict[str, str]
) -> None:
    """It keeps its number and is never processed."""
    extended.faults({"kind": "late_flip", "operation": "refund", "seconds": 60})
    extended.row("refund", refunded | {"refund_amount": "0.30", "refund_reference": "ours-3"})
    extended.pass_days(3)
    rows = search(extended, refund_orders=refunded["order_no"])["refunds_list"]
    assert [row["refund_status"] for row in rows] == ["1", "1", "0"]
    assert [bool(row["refund_processing_date"]) for row in rows] == [True, True, False]


def test_another_account_sees_nothing(extended: Caller, refunded: dict[str, str]) -> None:
    """Neither by order nor by reference."""
    other = "100042002"
    theirs = {"account_id": other, "encryption_data": signature(MERCHANT, other)}
    for asked in ({"refund_orders": refunded["order_no"]}, {"refund_references": "ours-1"}):
        assert numbers(search(extended, **theirs, **asked)) == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, "3"),
        ({"refund_orders": "a", "refund_references": "b"}, "3"),
        ({"refund_orders": "a,,b"}, "3"),
        ({"refund_orders": "x" * 1001}, "3"),
        ({"refund_orders": ",".join(["a"] * 101)}, "4"),
        ({"refund_orders": "a", "merchant_id": "1"}, "5"),
        ({"refund_orders": "a", "encryption_data": "0" * 64}, "6"),
    ],
)
def test_what_is_refused_says_why(extended: Caller, asked: dict[str, str], status: str) -> None:
    """With the codes of the order query, and no rows."""
    reply = search(extended, **asked)
    assert (reply["return_status"], reply["refunds_list"]) == (status, [])


@pytest.mark.parametrize("operation", ["retrievalRefund", "optimise"])
def test_the_base_profile_has_no_such_address(gateway: Any, operation: str) -> None:
    """The document shows neither path nor fields."""
    assert gateway.http.post(f"/v1/{operation}", data=OURS).status_code == 404


def test_a_search_that_lags_does_not_show_the_last_refund(
    extended: Caller, refunded: dict[str, str]
) -> None:
    """And the page of the transaction tells that the client was told something else."""
    extended.faults({"kind": "lag", "operation": "retrievalRefund"})
    asked = {"refund_orders": refunded["order_no"]}
    assert [numbers(search(extended, **asked)) for _ in range(2)] == [["01"], ["01", "02"]]
