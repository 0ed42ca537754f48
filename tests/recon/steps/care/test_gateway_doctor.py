import http.client
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from recon.config.settings import load_settings
from recon.steps.care.doctor import Check
from recon.steps.care.gateway_doctor import MATCHES_FOR_ENFORCE, gateway_checks

ACCOUNT = ("100042", "100042001")


def now() -> datetime:
    """The machine's clock, as the doctor's command hands it in."""
    return datetime.now(UTC)


def found(merchant: Any, *, clock: Any = now, **variables: str) -> dict[str, Check]:
    """The doctor's lines by name."""
    settings = load_settings(merchant.variables | variables)
    return {check.name: check for check in gateway_checks(settings, account=ACCOUNT, clock=clock)}


def test_a_right_gateway_passes_every_line(merchant: Any) -> None:
    """Connection, query, signature rule, replies and codes are all told, and all are right."""
    checks = found(merchant)

    assert {"profile", "connection", "query", "signature rule", "replies", "codes"} <= set(checks)
    assert all(check.ok for check in checks.values()), checks
    assert "no TLS" in checks["connection"].sentence
    assert checks["signature rule"].sentence == "accepted as configured"


def test_looking_moves_and_stores_nothing(merchant: Any) -> None:
    """The gateway has no effect of ours afterwards, the database no answer."""
    found(merchant)

    assert merchant.effects() == []
    url = merchant.sqlite_path
    with closing(sqlite3.connect(url)) as connection:
        assert connection.execute("SELECT count(*) FROM answer_part").fetchone() == (0,)


def test_another_signature_rule_is_found_and_written_out(merchant: Any) -> None:
    """Ours refused, another accepted: its lines stand there, ready to be pasted."""
    config = merchant.folder / "config" / "signature.toml"
    config.write_text('[user]\nalgorithm = "hmac-sha256"\n')

    rule = found(merchant)["signature rule"]

    assert not rule.ok
    assert "sha256 over merchant_id + account_id" in rule.sentence
    config.write_text("\n".join(rule.sentence.splitlines()[1:]))
    assert found(merchant)["signature rule"].ok


def test_a_wrong_key_is_no_wrong_rule(merchant: Any) -> None:
    """All rules refused: the sentence says to check the key."""
    rule = found(merchant, RECON_SIGN_KEY="wrong")["signature rule"]

    assert not rule.ok
    assert "check the sign key" in rule.sentence
    assert "wrong" not in rule.sentence


def test_an_address_that_is_not_registered_says_what_to_register(merchant: Any) -> None:
    """Status 7 is not a question of signatures."""
    with merchant.unregistered():
        checks = found(merchant)

    assert not checks["query"].ok
    assert "register the outgoing IP address" in checks["query"].sentence
    assert "signature rule" not in checks


def test_a_code_that_nobody_mapped_is_named_with_the_line_to_paste(merchant: Any) -> None:
    """A code of a stored answer that rules.toml does not have is counted and written out."""
    payment = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(payment))
    merchant.night()
    rules = merchant.folder / "config" / "rules.toml"
    rules.write_text(
        "\n".join(line for line in rules.read_text().splitlines() if "2000" not in line)
    )

    codes = found(merchant)["codes"]

    assert not codes.ok
    assert "payment_status 2000 (1 answers" in codes.sentence
    assert payment.order_no in codes.sentence
    assert '2000 = "?"' in codes.sentence


def test_after_enough_right_replies_enforce_is_proposed(merchant: Any) -> None:
    """Under warn the doctor proposes what the replies have earned."""
    path = merchant.folder / "config" / "gateway.toml"
    with path.open("a") as file:
        file.write('reply_signatures = "warn"\n')

    with played(merchant, skew=timedelta(), tamper=False) as base_url:
        replies = found(merchant, RECON_GATEWAY_BASE_URL=base_url)["replies"]

    assert replies.ok
    assert f"{MATCHES_FOR_ENFORCE} replies in a row" in replies.sentence
    assert 'reply_signatures = "enforce"' in replies.sentence


def test_a_wrong_signature_under_enforce_is_a_fault(merchant: Any) -> None:
    """A reply whose signature is not the request's will never be believed: said before a night."""
    with played(merchant, skew=timedelta(), tamper=True) as base_url:
        replies = found(merchant, RECON_GATEWAY_BASE_URL=base_url)["replies"]

    assert not replies.ok
    assert "wrong signature" in replies.sentence


@pytest.mark.parametrize(("skew", "ok"), [(0, True), (20, True), (-600, False), (600, False)])
def test_a_clock_that_differs_is_told(merchant: Any, skew: int, *, ok: bool) -> None:
    """The gateway's Date header beside our clock; a minute is too much."""
    with played(merchant, skew=timedelta(seconds=skew), tamper=False) as base_url:
        clock = found(merchant, RECON_GATEWAY_BASE_URL=base_url)["clock"]

    assert clock.ok is ok
    assert ("NTP" in clock.sentence) is not ok


@contextmanager
def played(merchant: Any, *, skew: timedelta, tamper: bool) -> Iterator[str]:
    """A gateway in front of the sandbox with a clock of its own, perhaps with wrong signatures."""
    host, port = merchant.sandbox.base_url.removeprefix("http://").split(":")

    class Front(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            behind = http.client.HTTPConnection(host, int(port), timeout=5)
            behind.request("POST", self.path, body, {"Content-Type": self.headers["Content-Type"]})
            reply = json.loads(behind.getresponse().read())
            behind.close()
            asked = parse_qs(body.decode())["encryption_data"][0]
            reply["encryption_data"] = "0" * 64 if tamper else asked
            self.send_response(200)
            text = json.dumps(reply).encode()
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def date_time_string(self, timestamp: float | None = None) -> str:
            shifted = datetime.now(UTC) + skew
            return super().date_time_string((timestamp or 0) or shifted.timestamp())

        def log_message(self, *_words: Any) -> None:
            """A test says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Front)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
