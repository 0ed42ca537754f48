"""The sandbox over HTTP: the socket, the doors of control, replies as they leave, late effects."""

import json
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from recon.model.errors import ConfigurationError
from recon.sandbox import SandboxOptions, serving

OPTIONS = "orders=20, account='8', sign_key='k'"
SERVE = f"from recon.sandbox import SandboxOptions, serve; serve(SandboxOptions({OPTIONS}))"


@pytest.mark.process
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_where_it_is_and_ends_on_a_signal(stop):
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline().strip() for _ in range(5)]
        base_url = lines[0]
        assert httpx.get(f"{base_url}/_sandbox/health", trust_env=False).status_code == 200
        run.send_signal(stop)
        assert run.wait(10) == 0
    assert lines[1:] == [
        f"RECON_GATEWAY_BASE_URL={base_url}",
        "RECON_SIGN_KEY=k",
        "RECON_MERCHANT=100042",
        "RECON_ACCOUNT=8",
    ]


@pytest.mark.process
def test_what_was_answered_survives_a_killed_process(gateway, tmp_path):
    state = tmp_path / "s.sqlite"
    served = (
        "from pathlib import Path; from recon.sandbox import SandboxOptions, serve;"
        f" serve(SandboxOptions(orders=20, state=Path({str(state)!r})))"
    )
    with subprocess.Popen([sys.executable, "-c", served], stdout=subprocess.PIPE, text=True) as run:
        client = type(gateway)(run.stdout.readline().strip())
        with client.http:
            client.row("capture", client.authorised()[0])
            told = client.effects()
        run.kill()
    with serving(SandboxOptions(state=state)) as sandbox:
        client = type(gateway)(sandbox.base_url)
        with client.http:
            assert client.effects() == told
            assert len(told) == 1


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigurationError, match=f"port {port} .* name another"),
            serving(SandboxOptions(port=port, orders=0)),
        ):
            pass


def test_a_state_that_is_no_sandbox_is_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be read as one by mistake" * 20)
    before = text.read_bytes()
    with (
        pytest.raises(ConfigurationError, match=r"notes\.txt"),
        serving(SandboxOptions(state=text)),
    ):
        pass
    assert text.read_bytes() == before
    with (
        pytest.raises(ConfigurationError, match="nowhere"),
        serving(SandboxOptions(state=tmp_path / "nowhere" / "s.sqlite")),
    ):
        pass
    state = tmp_path / "s.sqlite"
    with serving(SandboxOptions(state=state, orders=5)):
        assert state.exists()
    with (
        pytest.raises(ConfigurationError, match="belongs to merchant 100042"),
        serving(SandboxOptions(state=state, merchant="7")),
    ):
        pass


@pytest.mark.parametrize("body", ["", "{}", '{"seconds": -1}', '{"seconds": 1e99}', "[1]", "x"])
def test_the_clock_refuses_what_is_no_count_of_seconds(gateway, body):
    assert gateway.http.post("/_sandbox/clock", content=body).status_code == 400
    assert gateway.http.get("/_sandbox/clock").json() == {"now": "2026-11-20T22:00:00Z"}


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\xff", b"{", b"[1]", b'{"a": NaN}', b'{"a": "\\ud800"}', b"a=1&a=2", b"<a>"),
        b"<!DOCTYPE a><a><b>1</b></a>",
    ],
)
def test_a_body_that_is_no_message_is_refused(gateway, body):
    reply = gateway.http.post("/v1/capture", content=body)

    assert (reply.status_code, reply.json()["code"]) == (400, "I0001")


def test_real_clock_runs_by_itself():
    with serving(SandboxOptions(orders=0, real_clock=True)) as sandbox:
        url = f"{sandbox.base_url}/_sandbox/clock"
        seen = {httpx.get(url, trust_env=False).json()["now"]}
        for _ in range(500):
            seen.add(httpx.get(url, trust_env=False).json()["now"])
            if len(seen) > 1:
                break
    assert len(seen) > 1


def test_the_page_links_what_there_is_and_lists_every_payment(gateway):
    """Benchmarks make a merchant's orders of that list."""
    links = re.findall(r'href="(/_sandbox/[a-z/]+)"', gateway.http.get("/_sandbox/").text)
    answers = {each: gateway.http.get(each) for each in links}
    lines = [json.loads(line) for line in answers["/_sandbox/payments"].text.splitlines()]

    assert {answer.status_code for answer in answers.values()} == {200}
    authorised = {payment["transaction_id"] for payment in gateway.authorised()}
    assert authorised <= {line["transaction_id"] for line in lines}
    assert {"authorised", "paid"} <= {line["state"] for line in lines}


def test_reset_begins_again_from_the_seed(gateway):
    start = gateway.http.get("/_sandbox/effects").content
    gateway.row("capture", gateway.authorised()[0])
    gateway.authorise()
    gateway.pass_days(1)
    gateway.faults({"kind": "fin"})
    assert gateway.http.post("/_sandbox/reset").json()["status"] == "ok"
    assert gateway.http.get("/_sandbox/effects").content == start
    assert gateway.http.get("/_sandbox/clock").json() == {"now": "2026-11-20T22:00:00Z"}
    assert gateway.authorise().status_code == 200


def test_the_server_ends_quickly_while_a_request_is_silent(capfd):
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


@pytest.mark.parametrize("operation", ["capture", "cancel", "refund"])
def test_a_late_effect_comes_after_its_client_has_gone(gateway, operation):
    row = (gateway.captured() if operation == "refund" else gateway.authorised())[0]
    gateway.faults({"operation": operation, "kind": "late", "seconds": 600})
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch(operation, [row | {"refund_amount": row["amount"]}])
    before = gateway.status(row["order_no"])
    assert gateway.effects() == []
    gateway.http.post("/_sandbox/clock", json={"seconds": 599})
    assert gateway.effects() == []
    moved = gateway.http.post("/_sandbox/clock", json={"seconds": 1}).json()
    assert moved["late_effects"] == 1
    (effect,) = gateway.effects()
    assert effect["committed_at"] == "2026-11-20T22:10:00Z"
    assert gateway.status(row["order_no"]) != before
    assert gateway.invariants()["effects_without_client_record"] == 0


def test_a_late_effect_is_judged_when_it_comes(gateway):
    row = gateway.authorised()[0]
    gateway.faults({"operation": "capture", "kind": "late", "seconds": 60})
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", [row])
    gateway.row("cancel", row)
    gateway.http.post("/_sandbox/clock", json={"seconds": 60})
    assert [effect["operation"] for effect in gateway.effects()] == ["cancel"]


def test_no_card_number_is_ever_kept(gateway):
    """A payment cannot be put off, because it would have to be kept with its card."""
    gateway.faults({"operation": "authorise", "kind": "late"})
    assert "0000:Success" in gateway.authorise().text


def test_two_faults_may_meet_in_one_call(gateway):
    rows = gateway.authorised()[:2]
    gateway.faults(
        {"operation": "capture", "kind": "drop_row", "when": "before", "row": 0},
        {"operation": "capture", "kind": "fin", "when": "after"},
    )
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", rows)
    assert [effect["order_no"] for effect in gateway.effects()] == [rows[1]["order_no"]]
