import socket
import time
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving


def captured_by(gateway: Any) -> int:
    """How many captures truly happened."""
    return sum(effect["operation"] == "capture" for effect in gateway.effects())


def test_truncated_reply_without_a_length_looks_whole(gateway: Any) -> None:
    """Nothing but its JSON tells that the reply is only a half."""
    gateway.faults({"operation": "capture", "kind": "truncate", "without_length": True})
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert reply.status_code == 200
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        reply.json()


def test_a_redirect_points_where_the_plan_says(gateway: Any) -> None:
    """A status below 400 carries its Location; the effect is there all the same."""
    rule = {"kind": "status", "status": 307, "location": "http://elsewhere.example/"}
    gateway.faults(rule)
    reply = gateway.batch("capture", gateway.authorised()[:1])
    assert (reply.status_code, reply.headers["location"]) == (307, rule["location"])
    assert captured_by(gateway) == 1


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
