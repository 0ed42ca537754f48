import errno
import socket
import time
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving

SIDES = ("before", "after")


def captured_by(gateway: Any) -> int:
    """How many captures truly happened."""
    return sum(effect["operation"] == "capture" for effect in gateway.effects())


def raw_reply(gateway: Any, body: bytes) -> tuple[bytes, int]:
    """All bytes that a plain socket gets for one capture, and the error that ended it or 0."""
    address = (gateway.http.base_url.host, gateway.http.base_url.port)
    head = f"POST /v1/capture HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    got = b""
    with socket.create_connection(address, timeout=5) as plain:
        plain.sendall(head + body)
        try:
            while more := plain.recv(65536):
                got += more
        except ConnectionResetError as error:
            return got, error.errno
    return got, 0


def capture_body(gateway: Any) -> bytes:
    """A good capture of one payment, as bytes."""
    row = gateway.authorised()[0]
    signed = gateway.sign("100042", "100042001", row["transaction_id"])
    body = {
        "merchant_id": "100042",
        "account_id": "100042001",
        "encryption_data": signed,
        "capture_orders": [row],
    }
    return httpx.Request("POST", "http://x", json=body).content


@pytest.mark.parametrize("when", SIDES)
def test_reset_is_a_tcp_reset(gateway: Any, when: str) -> None:
    """A plain socket sees ECONNRESET, httpx ReadError; `when` decides whether it was captured."""
    gateway.faults({"operation": "capture", "kind": "reset", "when": when})
    assert raw_reply(gateway, capture_body(gateway)) == (b"", errno.ECONNRESET)
    assert captured_by(gateway) == (when == "after")
    with pytest.raises(httpx.ReadError):
        gateway.batch("capture", gateway.authorised()[3:4])


@pytest.mark.parametrize("when", SIDES)
def test_fin_is_a_closed_connection_without_a_byte(gateway: Any, when: str) -> None:
    """A plain socket sees the end, httpx RemoteProtocolError."""
    gateway.faults({"operation": "capture", "kind": "fin", "when": when})
    assert raw_reply(gateway, capture_body(gateway)) == (b"", 0)
    assert captured_by(gateway) == (when == "after")
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", gateway.authorised()[3:4])


@pytest.mark.parametrize("when", SIDES)
def test_silence_says_nothing_for_its_seconds(gateway: Any, when: str) -> None:
    """A client that waits less gets ReadTimeout, one that waits longer a closed connection."""
    gateway.faults({"operation": "capture", "kind": "silence", "seconds": 0.4, "when": when})
    began = time.perf_counter()
    assert raw_reply(gateway, capture_body(gateway)) == (b"", 0)
    assert time.perf_counter() - began >= 0.4
    assert captured_by(gateway) == (when == "after")
    gateway.http.timeout = httpx.Timeout(0.1)
    with pytest.raises(httpx.ReadTimeout):
        gateway.batch("capture", [{"transaction_id": "1"}])


@pytest.mark.parametrize("when", SIDES)
def test_truncated_reply_with_a_length_is_an_error(gateway: Any, when: str) -> None:
    """Half a body under a whole Content-Length: RemoteProtocolError."""
    gateway.faults({"operation": "capture", "kind": "truncate", "when": when})
    got, ended = raw_reply(gateway, capture_body(gateway))
    assert got.startswith(b"HTTP/1.1 200 OK")
    assert ended == 0
    assert captured_by(gateway) == (when == "after")
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", gateway.authorised()[3:4])


def test_truncated_reply_without_a_length_looks_whole(gateway: Any) -> None:
    """Nothing but its JSON tells that the reply is only a half."""
    gateway.faults({"operation": "capture", "kind": "truncate", "without_length": True})
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert reply.status_code == 200
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        reply.json()


@pytest.mark.parametrize("when", SIDES)
def test_garbage_is_no_http(gateway: Any, when: str) -> None:
    """Bytes that are no status line: RemoteProtocolError."""
    gateway.faults({"operation": "capture", "kind": "garbage", "when": when})
    got, _ = raw_reply(gateway, capture_body(gateway))
    assert got.startswith(b"\x16\x03\x01")
    assert captured_by(gateway) == (when == "after")
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", gateway.authorised()[3:4])


@pytest.mark.parametrize("when", SIDES)
@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_status_faults_answer_their_code(gateway: Any, when: str, status: int) -> None:
    """An HTTP error on either side of the commit, with Retry-After where it is given."""
    rule = {"operation": "capture", "kind": "status", "status": status, "retry_after": "7"}
    gateway.faults(rule | {"when": when})
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert (reply.status_code, reply.headers["retry-after"]) == (status, "7")
    assert captured_by(gateway) == (when == "after")


def test_a_redirect_points_where_the_plan_says(gateway: Any) -> None:
    """A status below 400 carries its Location; the effect is there all the same."""
    rule = {"kind": "status", "status": 307, "location": "http://elsewhere.example/"}
    gateway.faults(rule)
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert (reply.status_code, reply.headers["location"]) == (307, rule["location"])
    assert captured_by(gateway) == 1


@pytest.mark.parametrize("when", SIDES)
def test_an_html_page_may_stand_in_for_the_reply(gateway: Any, when: str) -> None:
    """HTTP 200 with a page of a proxy."""
    gateway.faults({"operation": "capture", "kind": "html", "when": when})
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert reply.status_code == 200
    assert reply.text.startswith("<!DOCTYPE html>")
    assert captured_by(gateway) == (when == "after")


def test_delay_answers_late_but_whole(gateway: Any) -> None:
    """The reply comes after its seconds."""
    gateway.faults({"operation": "capture", "kind": "delay", "seconds": 0.2})
    began = time.perf_counter()
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert time.perf_counter() - began >= 0.2
    assert reply.json()["return_status"] == "1"


def test_a_kept_connection_is_hit_as_well(gateway: Any) -> None:
    """The fault breaks the connection of its own request, whatever came over it before."""
    assert gateway.query(orders="a").status_code == 200
    gateway.faults({"operation": "retrievalTrans", "kind": "fin", "nth": 2})
    assert gateway.query(orders="a").status_code == 200
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.query(orders="a")
    assert gateway.query(orders="a").status_code == 200


def test_the_server_ends_quickly_while_a_request_is_silent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Stopping does not wait out a silence, and says nothing about it."""
    with serving(SandboxOptions(orders=0)) as sandbox:
        rule = {"kind": "silence", "seconds": 60}
        httpx.post(f"{sandbox.base_url}/_sandbox/faults", json=[rule], trust_env=False)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{sandbox.base_url}/v1/capture", json={}, timeout=0.1, trust_env=False)
        waiting = socket.create_connection(("127.0.0.1", sandbox.port))
        waiting.sendall(b"POST /v1/capture HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        time.sleep(0.1)
        began = time.perf_counter()
    assert time.perf_counter() - began < 3
    waiting.close()
    assert capfd.readouterr().err == ""
