from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving

OPERATIONS = ("capture", "cancel", "review", "refund")
WRONG = "0" * 64
SIGNED_QUERY = "96eaf173daed21fe05c2185bd38541dc87ef0e70008e6c9e0cb0bf0df1cbf16e"
"""Over merchant 100042, account 100042001 and the key `sandbox`."""


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", "<a", '{"a": NaN}', "a", "\xff", "{" * 9999]
)
@pytest.mark.parametrize("path", ["capture", "retrievalTrans", "authorise"])
def test_only_an_unreadable_body_is_http_400(gateway: Any, path: str, body: str) -> None:
    """Bytes that are no message are refused with code, source and message."""
    reply = gateway.http.post(f"/v1/{path}", content=body.encode("latin-1"))
    assert reply.status_code == 400
    assert set(reply.json()) == {"code", "source", "message"}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_whole_batches_are_refused_in_the_order_of_the_checks(gateway: Any, operation: str) -> None:
    """Shape, merchant, account, signature, group size: the first that fails gives its code."""
    rows = gateway.authorised()[:1]
    many = rows * 101
    key = f"{operation}_orders"
    ladder = [
        ({"merchant_id": "1", key: "x", "encryption_data": WRONG}, "I0002:"),
        ({"merchant_id": "1", "account_id": "1", key: many, "encryption_data": WRONG}, "I0003:"),
        ({"account_id": "1", key: many, "encryption_data": WRONG}, "I0004:"),
        ({key: many, "encryption_data": WRONG}, "I0013:"),
    ]
    for changed, code in ladder:
        reply = gateway.batch(operation, rows, **changed)
        assert reply.status_code == 200
        assert reply.json()["return_status"] == "0"
        assert reply.json()["return_message"].startswith(code)
        assert reply.json()[key] == []
    assert gateway.batch(operation, many).json()["return_message"].startswith("I0005:")
    assert gateway.batch(operation, []).json()["return_message"].startswith("I0002:")
    assert gateway.effects() == []


@pytest.mark.parametrize(
    ("operation", "rows_max"), [*zip(OPERATIONS, (50, 50, 100, 50), strict=True)]
)
def test_group_limits_are_exact(gateway: Any, operation: str, rows_max: int) -> None:
    """The documented number of rows passes, one more is refused before any row is looked at."""
    row = gateway.authorised()[0]
    assert gateway.batch(operation, [row] * rows_max).json()["return_status"] == "1"
    before = len(gateway.effects())
    assert gateway.batch(operation, [row] * (rows_max + 1)).json()["return_status"] == "0"
    assert len(gateway.effects()) == before


def test_a_reply_repeats_the_signature_except_one_that_it_refuses(gateway: Any) -> None:
    """A recomputed signature in a refusal would sign for whoever asks."""
    rows = gateway.authorised()[:1]
    good = gateway.batch("capture", rows)
    sent = gateway.sign("100042", "100042001", rows[0]["transaction_id"])
    assert good.json()["encryption_data"] == sent
    assert gateway.batch("capture", rows, encryption_data=WRONG).json()["encryption_data"] == ""
    assert gateway.query(orders="x", encryption_data=WRONG).json()["encryption_data"] == ""


@pytest.mark.parametrize("given", [None, "", 5, "sandbox", WRONG])
def test_a_wrong_or_missing_signature_commits_nothing(gateway: Any, given: Any) -> None:
    """Without the right signature not a single row takes effect."""
    reply = gateway.batch("capture", gateway.authorised()[:2], encryption_data=given)
    assert reply.json()["return_message"].startswith("I0013:")
    assert gateway.effects() == []


def test_signature_case_does_not_matter_but_its_rows_do(gateway: Any) -> None:
    """Upper-case hex is the same signature; other transactions under it are not."""
    first, second = gateway.authorised()[:2]
    signed = gateway.sign("100042", "100042001", first["transaction_id"])
    assert gateway.batch("capture", [second], encryption_data=signed).json()["return_status"] == "0"
    upper = gateway.batch("capture", [first], encryption_data=signed.upper())
    assert upper.json()["return_status"] == "1"


@pytest.mark.parametrize("path", ["/v2/capture", "/capture", "/v1/unknown", "/v1/capture/x"])
def test_other_versions_and_paths_are_not_found(gateway: Any, path: str) -> None:
    """Only /v1 exists."""
    assert gateway.http.post(path, json={}).status_code == 404


def test_a_body_larger_than_the_limit_is_refused(gateway: Any) -> None:
    """Two mebibytes are enough for any request."""
    assert gateway.http.post("/v1/capture", content=b" " * 2_200_000).status_code == 413


def test_content_type_is_ignored_in_favour_of_the_first_byte(gateway: Any) -> None:
    """JSON text under a form's type is JSON, as the samples send it."""
    rows = gateway.authorised()[:1]
    signed = gateway.sign("100042", "100042001", rows[0]["transaction_id"])
    body = {"merchant_id": "100042", "account_id": "100042001", "encryption_data": signed}
    reply = httpx.post(
        f"{gateway.base_url}/v1/capture",
        content=httpx.Request("POST", "http://x", json=body | {"capture_orders": rows}).content,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        trust_env=False,
    )
    assert reply.json()["capture_orders"][0]["capture_status"] == "1"


def test_extended_profile_bounds_lengths() -> None:
    """Under `extended` a joined list has at most 1,000 characters; `base` knows no bound."""
    keys = ",".join(f"{number:020d}" for number in range(60))
    for profile, status in (("base", "1"), ("extended", "3")):
        with serving(SandboxOptions(orders=0, profile=profile)) as sandbox:
            body = {
                "merchant_id": "100042",
                "account_id": "100042001",
                "orders": keys,
                "encryption_data": SIGNED_QUERY,
            }
            url = f"{sandbox.base_url}/v1/retrievalTrans"
            assert httpx.post(url, data=body, trust_env=False).json()["return_status"] == status
