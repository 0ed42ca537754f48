"""Every reader of replies against bytes that nobody meant: JSON, XML, HTML and headers.

`REPLY_FUZZ_CASES` sets how many cases run in all (campaign `fuzz` runs 20,000 and more).
"""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from recon.gateway_client import (
    CancelSubscriptionRow,
    FindingKind,
    GatewayInterface,
    OurAccount,
    RawReply,
    ReplyOutcome,
    ReplyPolicy,
    RiskFacts,
    Transport,
    UnknownOutcomeError,
    prepare,
    prepare_payment,
    read_batch_reply,
    read_payment_reply,
)
from recon.gateway_client.queries import QUERY, REFUND_QUERY, read_group
from tests.recon.gateway_client.fuzzed import BESIDE, TOKENS, bent_rows, replies
from tests.recon.gateway_client.played import NOW, Player, asked, pieces, reached, success_of, under
from tests.recon.gateway_client.sample_payments import (
    TODAY,
    apm_payment,
    card_payment,
    hosted_payment,
    page_of,
    result_of,
)
from tests.recon.gateway_client.sample_payouts import payout_with, record_of
from tests.recon.gateway_client.test_queries import HEAD, REFUND_ROW, rows_of

CASES_DEFAULT = 600
CASES = int(os.environ.get("REPLY_FUZZ_CASES", CASES_DEFAULT))

STATUSES = st.sampled_from([200, 200, 200, 200, 201, 204, 302, 400, 401, 404, 418, 429, 500, 503])
POLICIES = st.sampled_from(["enforce", "warn", "off"])

Read = Callable[[RawReply, ReplyPolicy], object]
LONGEST_SECONDS = 10**12
"""Until the last year that a date can name."""

UNPROVEN = {ReplyOutcome.UNKNOWN, ReplyOutcome.REJECTED}
"""A status that is configured as final rejects, whatever the body."""


EXPONENTS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}


def refute(answer, *, body, listed):
    """Hold every record against the reply itself, read once more and strictly."""
    records = [one for end in answer.ended.values() if isinstance(end, tuple) for one in end]
    if not records:
        return
    reply = json.loads(body.decode("utf-8-sig"), parse_float=Decimal)
    elements = reply[listed] if isinstance(reply[listed], list) else [reply[listed]]
    rows = [row for row in elements if isinstance(row, dict)]
    for record in records:
        own = [
            row
            for row in rows
            if said(row, "order_no") == record.key
            and said(row, "transaction_id") == record.transaction_id
        ]
        assert any(is_believable(row) for row in own), f"{record} of {own}"
        if len(elements) > 1 and not any(BESIDE.keys() & row.keys() for row in own):
            assert getattr(record, "risk", RiskFacts()) == RiskFacts()
        dates = {said(row, name) for row in own for name in row if name.endswith("_date")}
        if not all(is_date(text) for text in dates if text):
            assert FindingKind.MALFORMED in {finding.kind for finding in answer.findings}


def echoed_whole(prepared, reply, *, body):
    """Whoever is done was echoed whole, with status 1, by every row that names it."""
    done = [
        row
        for row, came_to in zip(prepared.rows, reply.rows, strict=True)
        if came_to.outcome is ReplyOutcome.DONE
    ]
    listed = json.loads(body.decode("utf-8-sig"))["capture_orders"] if done else []
    rows = [one for one in (listed if isinstance(listed, list) else [listed]) if one]
    for row in done:
        named = [
            one
            for one in rows
            if isinstance(one, dict) and said(one, "transaction_id") == row.transaction_id
        ]
        assert named
        for one in named:
            assert (said(one, "capture_status"), said(one, "order_no")) == ("1", row.order_no)
            assert said(one, "currency") == row.currency
            assert Decimal(str(one["amount"])) == row.amount


def said(row, name):
    """The text of a cell, None for what is no text."""
    value = row.get(name)
    is_text = value is None or (isinstance(value, str | int | Decimal) and value is not True)
    return ("" if value is None else str(value).strip(" \t\r\n")) if is_text else None


def is_date(text):
    """Fourteen digits of a day and a time that there are."""
    if re.fullmatch("[0-9]{14}", text or "", re.ASCII) is None:
        return False
    with contextlib.suppress(ValueError):
        return bool(datetime.strptime(text or "", "%Y%m%d%H%M%S"))  # noqa: DTZ007 - only its form
    return False


def is_believable(row):
    """Whether a row may be a record at all: text in every cell, exact amounts of a currency."""
    if None in {said(row, name) for name in row if name not in BESIDE}:
        return False
    if (decimals := EXPONENTS.get(said(row, "currency") or "")) is None:
        return False
    form = rf"[0-9]{{1,15}}(\.[0-9]{{{decimals}}}0*)?" if decimals == 0 else ""
    form = form or rf"[0-9]{{1,15}}\.[0-9]{{{decimals}}}0*"
    amounts = [said(row, name) or "" for name in ("amount", "refund_amount") if name in row]
    return all(re.fullmatch(form, text, re.ASCII) and text[-1] != "." for text in amounts)


class Subjects:
    """Each reader of replies with the replies it is made for."""

    def __init__(self, account):
        self.account = account

    def batch(self, prepared, *good):
        """A batch: every row gets exactly one outcome; what is no object proves nothing."""

        def read(raw, policy):
            reply = read_batch_reply(under(prepared, policy), raw)
            assert [row.position for row in reply.rows] == list(range(len(prepared.rows)))
            if b"{" not in raw.body:
                assert {row.outcome for row in reply.rows} <= UNPROVEN
            if prepared.operation == "capture" and policy != "off":
                echoed_whole(prepared, reply, body=raw.body)
            return reply

        return read, replies(*good)

    def subscription(self):
        """A batch of one that answers with its own fields."""
        row = CancelSubscriptionRow(recurring_id="R1", contract_name="Gold")
        prepared = prepare("cancelsubscription", [row], account=self.account)
        good = {"recurring_id": "R1", "contract_name": "Gold", "cancel_status": "1"}
        return self.batch(prepared, good | {"encryption_data": prepared.signature})

    def payout(self):
        """A batch of one with a large record."""
        prepared = prepare("payout", [payout_with()], account=self.account)
        return self.batch(prepared, record_of(prepared))

    def payment(self, payment, *good):
        """A payment of any kind."""
        prepared = prepare_payment(payment, account=self.account, today=TODAY)

        def read(raw, policy):
            return read_payment_reply(under(prepared, policy), raw)

        return read, replies(*good, {"code": "I0013", "message": "m", "source": "s"})

    def query(self, *, refunds):
        """A query: every key is found, not found, failed or missing, or all are refused."""
        operation = REFUND_QUERY if refunds else QUERY
        rows = [REFUND_ROW | {"order_no": "SO1"}] if refunds else rows_of(["SO1"])
        good = HEAD | {"orders_list": rows, "encryption_data": "ab" * 32}
        good["refunds_list"] = good["orders_list"]

        def read(raw, policy):
            context = asked(replace(self.account, policy=policy), operation=operation)
            keys = ["SO1", "SO2"]
            answer = read_group(keys, raw=raw, sent=context, kind="order_no")
            assert sorted([*answer.ended, *answer.missing]) == ([] if answer.refusal else keys)
            listed = "refunds_list" if refunds else "orders_list"
            refute(answer, body=raw.body, listed=listed)
            return answer

        bent = [bent_rows(good, listed=listed) for listed in ("orders_list", "refunds_list")]
        return read, st.booleans().flatmap(lambda odd: bent[refunds] if odd else replies(good))


@pytest.fixture(scope="session")
def subjects(tables, captures, refunds):
    """Every reader, under the profile that has them all."""
    extended = GatewayInterface.of(**tables, profile="extended")
    made = Subjects(OurAccount("100042", "100042001", SecretStr("sandbox"), extended))
    return {
        "capture": made.batch(captures, success_of(captures)),
        "refund": made.batch(refunds, success_of(refunds)),
        "cancelsubscription": made.subscription(),
        "payout": made.payout(),
        "card": made.payment(card_payment(), result_of()),
        "other method": made.payment(apm_payment(), result_of(issuer_url="https://i.example")),
        "checkout": made.payment(hosted_payment(), page_of()),
        "query": made.query(refunds=False),
        "refund search": made.query(refunds=True),
    }


READERS = (
    *("capture", "refund", "cancelsubscription", "payout", "card", "other method"),
    *("checkout", "query", "refund search"),
)
SHARES = len(READERS) + 2
"""Headers on the wire and Retry-After take a share each."""

fuzzed = settings(max_examples=CASES // SHARES + 1, derandomize=CASES == CASES_DEFAULT)


@pytest.mark.parametrize("reader", READERS)
def test_no_reply_makes_a_reader_fail(subjects, reader):
    read, bodies = subjects[reader]
    ran = 0

    @fuzzed
    @given(bodies, STATUSES, POLICIES)
    def run(body, status, policy):
        nonlocal ran
        ran += 1
        assert repr(read(RawReply(status, {}, body, NOW), policy)).encode()

    run()

    assert ran >= CASES // SHARES


HEADER = st.binary(max_size=30) | st.sampled_from(TOKENS)


@fuzzed
@given(
    status=st.sampled_from([b"200 OK", b"200", b"999 x", b"099 x", b"2 0", b"", b"100 Continue"]),
    headers=st.lists(st.tuples(HEADER, HEADER), max_size=4),
    body=st.binary(max_size=20) | st.sampled_from(TOKENS),
)
def test_no_header_makes_the_transport_fail(captures, status, headers, body):
    """A whole reply, or an unknown outcome; never not sent, for it was."""
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    said = b"HTTP/1.1 " + status + b"\r\n" + lines + b"\r\n" + body

    async def run():
        player = Player()
        async with player.playing(pieces(said)):
            transport = Transport(reached(player.base_url, deadline_seconds=2))
            with contextlib.suppress(UnknownOutcomeError):
                reply = await transport.send(captures)
                assert reply.status >= 100

    asyncio.run(run())


@fuzzed
@given(
    text=st.text(max_size=40)
    | st.from_regex(r"-?[0-9]{1,12}(\.[0-9]+)?|[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4}.*"),
    status=STATUSES,
)
def test_no_retry_after_makes_a_query_wait_for_ever(text, status):
    """What it asks for is a number of seconds within bounds; longer than the patience ends it."""
    raw = RawReply(status, {"retry-after": text}, b"", NOW)
    assert 0 <= raw.retry_after_seconds < LONGEST_SECONDS
