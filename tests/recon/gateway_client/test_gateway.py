import asyncio
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.gateway_client import (
    AsyncGateway,
    CaptureRow,
    Gateway,
    GatewayInterface,
    InterfaceError,
    ReplyOutcome,
)
from recon.sandbox import SandboxOptions, serving
from tests.recon.gateway_client.played import reached
from tests.recon.gateway_client.sample_payments import apm_payment
from tests.recon.gateway_client.sample_payouts import payout_with

PAGE = Path(__file__).parents[3] / "docs" / "GATEWAY.md"
ROW = CaptureRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("10.00"))
ECHO = {"capture_status": "1", "error_message": ""}


def place_of(answer):
    """A connection whose network is a function."""
    return reached("https://gateway.example.test", transport=httpx.MockTransport(answer))


def captured(request):
    """Every row done, as the document shows it."""
    reply = json.loads(request.content)
    rows = [row | ECHO for row in reply["capture_orders"]]
    head = {"return_status": "1", "return_message": "OK"}
    return httpx.Response(200, json=reply | head | {"capture_orders": rows})


def failing(error):
    """A network that breaks."""

    def answer(request):
        raise error("broken", request=request)

    return answer


def test_a_batch_has_an_outcome_for_each_row_with_and_without_asyncio():
    with Gateway(place_of(captured)) as gateway:
        told = gateway.capture([ROW])
    awaited = asyncio.run(AsyncGateway(place_of(captured)).capture([ROW]))

    assert [row.outcome for row in told.rows] == [ReplyOutcome.DONE]
    assert awaited == told


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectError, httpx.ConnectTimeout])
def test_a_broken_network_is_an_outcome_and_never_a_safe_one(error):
    with Gateway(place_of(failing(error))) as gateway:
        batch = gateway.capture([ROW])
        payment = gateway.pay(apm_payment())
        payout = gateway.payout(payout_with())

    assert [row.outcome for row in (*batch.rows, *payout.rows)] == [ReplyOutcome.UNKNOWN] * 2
    assert (payment.outcome, payment.code) == (ReplyOutcome.UNKNOWN, error.__name__)


def test_a_retry_after_holds_every_call_and_what_would_wait_too_long_is_not_sent():
    """Money obeys it as reads do: the refused call is in doubt, the next one never leaves."""
    asked: list[str] = []

    def answer(request):
        asked.append(request.url.path)
        return httpx.Response(429, headers={"Retry-After": "7200"})

    with Gateway(place_of(answer)) as gateway:
        batches = [gateway.capture([ROW]), gateway.capture([ROW])]
        payment = gateway.pay(apm_payment())
        known = gateway.query(order_nos=["SO1"])

    assert asked == ["/v1/capture"]
    assert [row.outcome for batch in batches for row in batch.rows] == [
        ReplyOutcome.UNKNOWN,
        ReplyOutcome.NOT_SENT,
    ]
    assert "asked for no call for another 7200 s; nothing was sent" in batches[1].return_message
    assert payment.outcome is ReplyOutcome.NOT_SENT
    assert "asked for no call" in known.failed[0].reason


def test_the_bundled_interface_is_the_one_of_the_settings(tables):
    for profile in ("base", "extended"):
        assert GatewayInterface.bundled(profile) == GatewayInterface.of(**tables, profile=profile)
    with pytest.raises(InterfaceError, match="profile is no file of the interface"):
        GatewayInterface.bundled(user={"profile": {}})
    with pytest.raises(InterfaceError, match="rows_max"):
        GatewayInterface.bundled(user={"profiles": {"batch": {"capture": {"rows_max": 0}}}})


def test_the_programs_of_the_page_work(capsys):
    """Each of docs/GATEWAY.md by itself, as somebody new copies it: an outcome for each order."""
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with serving(SandboxOptions()) as running:
        for program in programs:
            placed = program.replace("http://127.0.0.1:8042", running.base_url)
            names: dict[str, Any] = {}
            exec(compile(placed, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    printed = capsys.readouterr().out.splitlines()

    assert printed == ["SO1000003 done  ", "SO1000009 done  "]
    assert len(programs[0].splitlines()) <= 30
