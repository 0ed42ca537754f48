"""No private value leaves the client by any way but the body that it sends."""

import asyncio
import json
import logging
import re
import traceback
from typing import Any

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    BatchReply,
    GatewayClientError,
    GatewayInterface,
    Operation,
    OurAccount,
    Payment,
    PaymentReply,
    PayoutRow,
    Transport,
    prepare,
    prepare_payment,
    read_batch_reply,
    read_payment_reply,
)
from tests.recon.gateway_client import sample_payments as payments
from tests.recon.gateway_client import sample_payouts as payouts
from tests.recon.gateway_client.played import NOW, Play, Player, answer, pieces, reset, under

KEY = SecretStr("the-sign-key-canary")


def tell_tales(secrets: tuple[str, ...]) -> list[Play]:
    """Ways in which a gateway, or the wire, gives back what it was sent."""
    glued = f"EUR10{KEY.get_secret_value()}x4929\u20117801\u20116452\u20113877"
    leak = " ".join([*secrets, glued, "cvv 917", "917 is not a CVV"])
    xml = payments.result_of(result_info=f"C0001:{leak}", note=leak, acquirer=leak, card=leak)
    names = ("status", "failure_reason", "failure_type", "code", "message", "return_status")
    fields: dict[str, object] = dict.fromkeys((*names, "return_message", "more", leak), leak)
    fields |= {"orders_list": [{"order_no": leak}], "request_id": payouts.REQUEST_ID}
    html = f"<html>{leak}<form><input type=hidden name='{leak}' value='{leak}'></form>"
    bodies = [xml, json.dumps(fields).encode(), html.encode(), leak.encode()]
    return [
        *(answer(status, body) for status in (200, 400, 500) for body in bodies),
        answer(200, b"{}", headers=f"Content-Encoding: {leak}\r\n"),
        pieces(f"HTTP/1.1 200 {leak}\r\n{leak}\r\n\r\n".encode()),
        reset(),
    ]


class Sinks:
    """Runs every operation against a gateway and gathers all that the client shows."""

    def __init__(self, account: OurAccount) -> None:
        self.account = account
        self.shown: list[str] = []

    async def run(self, player: Player, play: Play, *, message: PayoutRow | Payment) -> None:
        """Send it, read what came, show all of it."""
        async with player.playing(play):
            transport = Transport(base_url=player.base_url, clock=lambda: NOW, deadline_seconds=2)
            if isinstance(message, PayoutRow):
                await self._payout(transport, message)
            else:
                await self._payment(transport, message)

    async def _payout(self, transport: Transport, row: PayoutRow) -> None:
        prepared = prepare(
            Operation.PAYOUT,
            [row],
            account=self.account,
        )
        self._show(prepared)
        raw = await self._tried(transport.send(prepared))
        if raw is not None:
            for policy in ("enforce", "off"):
                reply: BatchReply = read_batch_reply(under(prepared, policy), raw)
                self._show(reply)

    async def _payment(self, transport: Transport, payment: Payment) -> None:
        prepared = prepare_payment(
            payment,
            account=self.account,
            today=payments.TODAY,
        )
        self._show(prepared)
        raw = await self._tried(transport.send(prepared))
        if raw is not None:
            for policy in ("enforce", "off"):
                reply: PaymentReply = read_payment_reply(under(prepared, policy), raw)
                self._show(reply)

    async def _tried(self, sending: Any) -> Any:
        try:
            return await sending
        except GatewayClientError as error:
            self._show(error)
            self.shown.append("".join(traceback.format_exception(error)))
            return None

    def _show(self, value: object) -> None:
        self.shown += [repr(value), str(value)]


@pytest.mark.parametrize(
    ("message", "secrets"),
    [
        (payouts.payout_with(), payouts.PRIVATE),
        (payments.card_payment(), payments.PRIVATE),
        (payments.apm_payment(), payments.PRIVATE[2:]),
        (payments.hosted_payment(), payments.PRIVATE[2:]),
    ],
    ids=["payout", "card", "other method", "hosted page"],
)
def test_nothing_private_shows_in_a_repr_an_error_or_a_log(
    interface: GatewayInterface,
    caplog: pytest.LogCaptureFixture,
    message: PayoutRow | Payment,
    secrets: tuple[str, ...],
) -> None:
    caplog.set_level(logging.DEBUG)
    sinks = Sinks(OurAccount("100042", "100042001", KEY, interface))
    for play in tell_tales(secrets):
        asyncio.run(sinks.run(Player(), play, message=message))
    text = "\n".join([*sinks.shown, caplog.text])

    assert len(sinks.shown) > 50
    looked_for = [*secrets, KEY.get_secret_value()]
    assert KEY.get_secret_value() not in text
    assert "7801\u20116452" not in text
    assert [secret for secret in looked_for if re.search(rf"\b{re.escape(secret)}\b", text)] == []
