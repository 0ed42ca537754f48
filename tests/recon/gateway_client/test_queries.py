import asyncio
import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    FindingKind,
    FraudCheck,
    GatewayInterface,
    QueryClient,
    QueryLimits,
    QueryRefusedError,
    RiskFacts,
    RiskReason,
    Transport,
)
from recon.gateway_client.pace import AccountPace
from recon.gateway_client.queries import (
    ORDER_FIELDS,
    REFUND_FIELDS,
    REFUND_QUERY,
    WAIT_FIRST_SECONDS,
    WAIT_MAX_SECONDS,
    RefundRecord,
    _extra,
    read_group,
)
from recon.privacy.foreign_text import PRIVATE_NAMES, is_private
from tests.recon.gateway_client.played import (
    NOW,
    answer,
    asked,
    pieces,
    raw_of,
    reached,
    reset,
)

ROW = {
    "order_no": "SO1",
    "transaction_id": "T1",
    "currency": "EUR",
    "amount": "10.00",
    "payment_status": "3000",
    "query_result": "1",
    "reference_no": "R1",
    "transaction_date": "20261119010203",
}
CARD = "4111111111111111"


@pytest.fixture(scope="session")
def context(account):
    """An enforcing reader of a query by order number."""
    return asked(account)


def read(context, *rows, **head):
    """The answer of a reply with these rows to a query of SO1."""
    reply = {"return_status": "1", "orders_list": list(rows)} | head
    return read_group(["SO1"], raw=raw_of(reply), sent=context, kind="order_no")


def records_of(answer):
    """The records of every key."""
    return [one for end in answer.ended.values() if isinstance(end, tuple) for one in end]


def test_a_record_keeps_what_the_gateway_said(context):
    row = ROW | {"payment_status": 3000, "website": f"shop {CARD}", "card": CARD}
    (record,) = records_of(read(context, row, is3ds="Y"))

    assert (record.amount, record.payment_status) == (Decimal("10.00"), "3000")
    assert record.transaction_at == datetime(2026, 11, 19, 1, 2, 3, tzinfo=UTC)
    assert (record.transaction_date, record.queried_at) == ("20261119010203", NOW)
    assert record.extra == {"website": "shop 411111******1111"}
    assert record.reply_extra == {"is3ds": "Y"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("amount", "10.3"),
        ("amount", 7.5),
        ("amount", "-10.00"),
        ("amount", "1,000.00"),
        ("amount", ""),
        ("amount", "1e3"),
        ("amount", "10"),
        ("amount", "10.005"),
        ("currency", "eur"),
        ("currency", "XYZ"),
        ("currency", None),
        ("transaction_id", ""),
        ("transaction_id", "a b"),
        ("payment_status", ["3000"]),
        ("query_result", ["1"]),
        ("query_result", {"code": "1"}),
        ("query_result", True),
    ],
)
def test_a_malformed_row_fails_its_key_and_is_never_guessed(context, field, value):
    """A finding names it; a good second row does not save the key."""
    got = read(context, ROW | {field: value}, ROW | {"transaction_id": "T2"})

    assert isinstance(got.ended["SO1"], str)
    assert FindingKind.MALFORMED in {finding.kind for finding in got.findings}


def test_what_stands_beside_a_row_of_nobody_is_of_nobody(context):
    """Risk said once a reply is of its only row, else of none: who knows of which payment it is."""
    beside = {"antifraud_provider": "P", "is3ds": "1"}
    others = ([ROW | {"order_no": "SO9"}], ["no row"], [ROW | {"order_no": "SO9"}, ROW])

    assert records_of(read(context, ROW, **beside))[0].risk.antifraud_provider == "P"
    for other in others:
        (record,) = records_of(read(context, ROW, *other, **beside))
        assert record.risk == RiskFacts()


@pytest.mark.parametrize("code", ["3", "4", "5", "6", "7", "999"])
def test_a_row_that_says_it_failed_fails_its_key(context, code):
    """Not an answer about the payment."""
    assert read(context, {"order_no": "SO1", "query_result": code}).ended == {
        "SO1": f"query_result {code}"
    }


def test_a_code_outside_the_table_stays_a_record_with_a_finding(context):
    """The reconciliation decides what an unmapped code is worth."""
    got = read(context, ROW | {"query_result": "42"})

    assert [record.query_result for record in records_of(got)] == ["42"]
    assert [finding.kind for finding in got.findings] == [FindingKind.UNMAPPED_CODE]


def test_found_and_not_found_at_once_is_failed(context):
    got = read(context, ROW, {"order_no": "SO1", "query_result": "2"})

    assert got.ended == {"SO1": "found and not found in one reply"}


@pytest.mark.parametrize(
    ("head", "trusted"),
    [
        ({}, True),
        ({"encryption_data": ""}, True),
        ({"encryption_data": "AB" * 32}, True),
        ({"encryption_data": "cd" * 32}, False),
        ({"merchant_id": "100042", "account_id": "100042001"}, True),
        ({"merchant_id": "1"}, False),
        ({"account_id": "1"}, False),
    ],
)
def test_a_reply_that_is_not_ours_fails_its_keys(context, head, *, trusted):
    """The signature may be absent but not wrong; the account may be absent but not another."""
    assert bool(records_of(read(context, ROW, **head))) is trusted


def test_facts_of_risk_are_typed_at_both_levels(context):
    """The row comes first, the whole reply where the row is silent."""
    row = ROW | {
        "risk_action": "REVIEW",
        "risk_score": 71,
        "risk_reasons": {"name": "ip", "status": "high"},
        "fraud_check_result": "",
    }
    head = {
        "antifraud_provider": "watcher",
        "is3ds": "Y",
        "risk_action": "ACCEPT",
        "fraud_check_result": [{"check_items": f"cvv {CARD}", "status": "pass"}, "x"],
    }
    (record,) = records_of(read(context, row, **head))

    assert record.risk == RiskFacts(
        antifraud_provider="watcher",
        fraud_checks=(FraudCheck("cvv 411111******1111", "pass"),),
        is3ds="Y",
        risk_action="REVIEW",
        risk_score="71",
        risk_reasons=(RiskReason("ip", "high"),),
    )


def test_a_key_that_a_reply_quotes_is_kept_nowhere(account):
    """Whatever field it stands in; the row counts."""
    ours = asked(replace(account, sign_key=SecretStr("the-sign-key-77ab")))
    row = ROW | {"reference_no": "the-sign-key-77ab", "note": "the-sign-key-77ab"}
    (record,) = records_of(read(ours, row))

    assert "the-sign-key-77ab" not in repr(record)


SIGNATURE = "ab" * 32
HEAD: dict[str, object] = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "return_status": "1",
}
REFUND_ROW: dict[str, Any] = {
    "transaction_id": "1379868618653958144",
    "order_no": "SO1",
    "amount": "10.36",
    "currency": "USD",
    "refund_status": 1,
    "payment_status": "4100",
    "refund_amount": "3.33",
    "refund_reference": "ours-1",
    "refund_reason": "No stock",
    "refund_reference_id": "1379868618653958144-02",
    "refund_date": "20241113063528",
    "refund_processing_date": "",
}


@pytest.fixture(scope="session")
def searched(tables, account):
    """An enforcing reader of a search by our own reference, profile extended."""
    interface = GatewayInterface.of(**tables, profile="extended")
    return asked(replace(account, interface=interface), operation=REFUND_QUERY)


def read_refunds(searched, *rows, **head):
    """The answer about the refunds ours-1 and ours-2."""
    reply = HEAD | {"refunds_list": list(rows), "encryption_data": SIGNATURE} | head
    keys = ["ours-1", "ours-2"]
    return read_group(keys, raw=raw_of(reply), sent=searched, kind="refund_reference")


def test_a_refund_is_read_with_its_dates_and_its_number(searched):
    answer = read_refunds(searched, REFUND_ROW, REFUND_ROW)

    assert records_of(answer) == [
        RefundRecord(
            key="ours-1",
            order_no="SO1",
            transaction_id="1379868618653958144",
            currency="USD",
            amount=Decimal("10.36"),
            refund_amount=Decimal("3.33"),
            refund_status="1",
            payment_status="4100",
            refund_reference="ours-1",
            refund_reference_id="1379868618653958144-02",
            refund_reason="No stock",
            refund_date="20241113063528",
            refund_at=datetime(2024, 11, 13, 6, 35, 28, tzinfo=UTC),
            refund_processing_date="",
            processed_at=None,
            queried_at=NOW,
        )
    ]
    assert answer.missing == ["ours-2"]


@pytest.mark.parametrize("name", ["refund_date", "refund_processing_date"])
@pytest.mark.parametrize("text", ["2024-11-15", "20241315000000", "\ud800", "\x00", "\u202e"])
def test_a_date_that_cannot_be_read_is_told(searched, name, text):
    """It must not pass for a refund that is not yet paid back, even where none of it is shown."""
    answer = read_refunds(searched, *[REFUND_ROW | {name: text}] * 2)

    assert [record.processed_at for record in records_of(answer)] == [None]
    finding, doubled = answer.findings
    assert doubled.kind is FindingKind.DOUBLED_ROW
    assert (finding.kind, finding.order_no) == (FindingKind.MALFORMED, "SO1")
    assert finding.message == f"ours-1: {name} is not a date"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("refund_amount", "3.3"),
        ("refund_amount", "3"),
        ("refund_amount", "3.335"),
        ("currency", "XYZ"),
        ("amount", None),
        ("currency", "usd"),
        ("order_no", "a,b"),
        ("transaction_id", ""),
        ("refund_reference_id", "T2-02"),
        ("refund_reference_id", "1379868618653958144-2x"),
        ("refund_status", []),
    ],
)
def test_a_malformed_refund_fails_its_key(searched, field, value):
    """Never repaired, and never beside a good row of the same key."""
    answer = read_refunds(searched, REFUND_ROW, REFUND_ROW | {field: value})

    assert isinstance(answer.ended["ours-1"], str)
    assert [found.kind for found in answer.findings] == [FindingKind.MALFORMED]


@pytest.mark.parametrize("signature", ["", "0" * 64])
def test_a_refund_search_must_be_signed(searched, signature):
    answer = read_refunds(searched, REFUND_ROW, encryption_data=signature)

    assert [type(end) for end in answer.ended.values()] == [str, str]


PERSON = {"birth_date": "1980-02-29", "Document": "4417119900", "personal_id_number": 917}


def test_an_unknown_field_of_a_query_keeps_its_name_only():
    """Fields that the document does not list are kept, but for the values of private ones."""
    row = {"order_no": "A-1", "acquirer": "bank-1", **PERSON, "payer": {"last_name": "Quill"}}
    kept = _extra(row, listed={"order_no"})
    assert kept == {
        "acquirer": "bank-1",
        **dict.fromkeys(PERSON, "***"),
        "payer": '{"last_name": "***"}',
    }


def test_no_field_that_a_query_needs_is_private():
    """The names cannot take away what an outcome is read from."""
    assert PRIVATE_NAMES.isdisjoint({*ORDER_FIELDS, *REFUND_FIELDS})
    assert not is_private("amount")
    assert is_private(" IBAN ")


def rows_of(keys):
    """Good rows about some orders."""
    return [ROW | {"order_no": key, "transaction_id": f"T{key}"} for key in keys]


def known(keys):
    """The good reply about them."""
    return HEAD | {"orders_list": rows_of(keys)}


def refusing(status, message="OK"):
    """A reply without a row."""
    return HEAD | {"return_status": status, "return_message": message, "orders_list": []}


class Gateway:
    """Plays the query: remembers the groups it was asked, answers by a function."""

    def __init__(self, answering):
        self.groups: list[list[str]] = []
        self._answering = answering

    async def __call__(self, body, writer):
        form = parse_qs(body.decode(), strict_parsing=True)
        keys = (form.get("orders") or form["trades"])[0].split(",")
        self.groups.append(keys)
        said = self._answering(keys)
        play = answer(200, json.dumps(said).encode()) if isinstance(said, dict) else said
        await play(body, writer)


def client_of(player, *, account, **how):
    """A client of a played gateway."""
    transport = Transport(reached(player.base_url, deadline_seconds=5))
    return QueryClient(transport, account=account, **how)


class Asker:
    """Asks one played gateway, without real waits: they pass at once."""

    LEAST = 0.001
    """Of a wait that is not the pace's own."""

    def __init__(self, player, account):
        self.player = player
        self.account = account
        self.waits: list[float] = []
        self.pace = (0.0, 0)
        self.now = 0.0

    def __call__(
        self, play, keys, *, trades=False, in_flight=2, patience=300, ends_in=None, rate=10000
    ):
        limits = QueryLimits(
            calls_per_second=rate,
            in_flight=in_flight,
            retry_seconds=patience,
        )
        pace = AccountPace(limits, ends_in_seconds=ends_in, seconds=lambda: self.now)
        return asyncio.run(self._ask(play, keys, trades=trades, pace=pace))

    async def _ask(self, play, keys, *, trades, pace):
        async with self.player.playing(play):
            how: dict[str, Any] = {"randomness": random.Random(7), "sleep": self._sleep}
            async with client_of(self.player, account=self.account, pace=pace, **how) as client:
                asked = {"trades": keys} if trades else {"order_nos": keys}
                answers = await client.query(**asked)
                self.pace = (client._pace.calls_per_second, client._pace.in_flight)
                return answers

    def _sleep(self, seconds):
        if seconds > self.LEAST:
            self.waits.append(seconds)
        self.now += seconds
        return asyncio.sleep(0)


@pytest.fixture
def ask(player, account):
    """Asks under the shipped profile."""
    return Asker(player, account)


def keys_of(count):
    """Order numbers."""
    return [f"SO{n:04d}" for n in range(count)]


def test_every_key_is_asked_in_groups_of_a_hundred_over_one_connection_a_worker(ask):
    gateway = Gateway(lambda keys: known(reversed(keys)))
    keys = keys_of(250)

    got = ask(gateway, [*keys, keys[0]])

    assert [record.key for record in got.found] == keys
    assert sorted(map(len, gateway.groups)) == [50, 100, 100]
    assert ask.player.connections <= 2
    assert (got.calls, got.failed, got.not_found) == (3, (), ())


def test_only_the_gateways_own_word_means_not_found(ask):
    """query_result 2 is not found; a row that never comes is failed, after asking alone."""

    def answering(keys):
        unknown = [{"order_no": key, "query_result": "2"} for key in keys if key == "SO0001"]
        return HEAD | {"orders_list": [*unknown, *rows_of(k for k in keys if k > "SO0002")]}

    gateway = Gateway(answering)
    got = ask(gateway, keys_of(6))

    assert got.not_found == ("SO0001",)
    assert [failed.key for failed in got.failed] == ["SO0000", "SO0002"]
    assert ["SO0000"] in gateway.groups


def test_a_gateway_that_cuts_its_list_short_is_asked_in_halves(ask):
    gateway = Gateway(lambda keys: known(keys[:50]))

    got = ask(gateway, keys_of(100), in_flight=1)

    assert (len(got.found), got.failed) == (100, ())
    assert got.calls <= 4


@pytest.mark.parametrize(
    "refusal",
    [refusing("4"), refusing("3"), answer(413, b""), answer(400, b"{}")],
    ids=["4", "3", "413", "400"],
)
def test_a_group_refused_for_its_size_is_halved(ask, refusal):
    gateway = Gateway(lambda keys: refusal if len(keys) > 30 else known(keys))

    got = ask(gateway, keys_of(200))

    assert (len(got.found), got.failed) == (200, ())


def test_one_key_that_poisons_its_group_fails_alone(ask):
    gateway = Gateway(lambda keys: refusing("3") if "SO0042" in keys else known(keys))

    got = ask(gateway, keys_of(100))

    assert len(got.found) == 99
    assert [failed.key for failed in got.failed] == ["SO0042"]


def test_a_gateway_that_refuses_everything_is_not_asked_for_ever(ask):
    gateway = Gateway(lambda _: refusing("3"))

    got = ask(gateway, keys_of(1000))

    assert len(got.failed) == 1000
    assert got.calls < 60


@pytest.mark.parametrize(
    ("play", "cause", "says"),
    [
        (refusing("7"), "address", "register"),
        (answer(403, b""), "address", "register"),
        (refusing("6"), "signature", "sign key"),
        (refusing("0", "I0013:no"), "signature", "sign key"),
        (refusing("5"), "merchant", "ids"),
    ],
    ids=["7", "403", "6", "I0013", "5"],
)
def test_a_refusal_that_a_person_must_cure_stops_at_once(ask, play, cause, says):
    with pytest.raises(QueryRefusedError, match=says) as refused:
        ask(Gateway(lambda _: play), keys_of(1000), in_flight=1)

    assert refused.value.cause == cause
    assert len(ask.player.requests) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        answer(500, b""),
        answer(429, b"", headers="Retry-After: 3\r\n"),
        answer(200, b"<html>"),
        reset(),
        pieces(),
        refusing("999"),
        refusing("77"),
    ],
    ids=["500", "429", "html", "reset", "fin", "999", "unmapped"],
)
def test_reads_are_repeated_until_they_succeed(ask, trouble):
    left = [trouble, trouble]
    gateway = Gateway(lambda keys: left.pop() if left else known(keys))

    got = ask(gateway, ["SO1"], in_flight=1)

    assert (len(got.found), got.calls) == (1, 3)
    assert len(ask.waits) >= 2


def test_waits_are_drawn_below_a_bound_that_doubles(ask):
    """Full jitter: workers that failed together do not come back together."""
    ask(answer(500, b""), ["SO1"], in_flight=1, patience=30)

    bounds = [min(WAIT_MAX_SECONDS, WAIT_FIRST_SECONDS * 2**n) for n in range(len(ask.waits))]
    assert len(bounds) >= 2
    assert all(0 < wait < bound for wait, bound in zip(ask.waits, bounds, strict=True))
    assert len({wait / bound for wait, bound in zip(ask.waits, bounds, strict=True)}) > 1


def test_what_the_gateway_asks_to_wait_is_waited(ask):
    left = [answer(503, b"", headers="Retry-After: 7\r\n")]
    gateway = Gateway(lambda keys: left.pop() if left else known(keys))

    ask(gateway, ["SO1"], in_flight=1)

    assert 7 <= sum(ask.waits) <= 7.1


@pytest.mark.parametrize("in_flight", [2, 4, 16])
def test_no_worker_sleeps_a_long_retry_after_out(ask, in_flight):
    """Who waits for a turn already gives up as the one that was told to wait does."""
    play = answer(429, b"{}", headers="Retry-After: 7200\r\n")

    answers = ask(play, keys_of(3_000), in_flight=in_flight, patience=20)

    assert max(ask.waits, default=0.0) < 20
    assert (ask.now < 20, answers.calls <= in_flight) == (True, True)
    assert (len(answers.failed), answers.found, answers.not_found) == (3_000, (), ())
    assert "asked to wait 7200 s" in answers.failed[0].reason
    assert "asked again" not in answers.failed[0].reason
    assert "not asked any more: the gateway asked for no call" in answers.failed[-1].reason


def test_what_the_deadline_of_all_reads_leaves_says_so(ask):
    gateway = Gateway(known)
    got = ask(gateway, keys_of(5_000), in_flight=1, ends_in=29.5, rate=1)

    assert (len(got.found), len(got.failed), got.calls) == (3_000, 2_000, 30)
    assert {failed.reason for failed in got.failed} == {
        "not asked any more: the time for asking the gateway was over"
    }


@pytest.mark.parametrize("status", [429, 503])
def test_a_gateway_that_asks_to_slow_down_is_asked_half_as_fast(ask, status):
    """Half the calls a second, half the calls in flight; time brings the pace back."""
    turns = iter([status])

    def answering(keys):
        if next(turns, 0):
            return answer(status, b"{}", headers="Retry-After: -1\r\n")
        return known(keys)

    answers = ask(Gateway(answering), ["SO1"], in_flight=4)

    assert len(answers.found) == 1
    assert 5_000 <= ask.pace[0] < 6_500
    assert ask.pace[1] == 2


def test_a_gateway_that_stays_down_fails_every_key_and_ends(ask):
    """Failed, never not found; the calls are those of one patience, whatever the number of keys."""
    got = ask(Gateway(lambda _: answer(500, b"")), keys_of(5000), patience=60)

    assert (len(got.failed), got.not_found, got.found) == (5000, (), ())
    assert 60 <= ask.now <= 75
    assert got.calls <= 60


def test_one_group_without_an_answer_holds_up_no_other(ask):
    gateway = Gateway(lambda keys: answer(500, b"") if "SO0150" in keys else known(keys))

    got = ask(gateway, keys_of(1000), in_flight=2, patience=30)

    assert len(got.found) == 900
    assert {failed.key for failed in got.failed} == set(keys_of(1000)[100:200])
    assert "asked again for" in got.failed[0].reason
    assert [keys for keys in gateway.groups if "SO0150" not in keys] == [
        keys for keys in gateway.groups[:11] if "SO0150" not in keys
    ]


def test_without_patience_every_group_is_asked_once(ask):
    """And after six silent calls in a row none any more."""
    got = ask(Gateway(lambda _: answer(502, b"")), keys_of(2000), in_flight=1, patience=0)

    assert (len(got.failed), got.calls, ask.waits) == (2000, 6, [])


def test_refunds_are_searched_in_groups_within_both_bounds(player, tables, account):
    """100 keys and 1,000 characters; a key in silence is asked alone before it has no refund."""
    interface = GatewayInterface.of(**tables, profile="extended")
    account = replace(account, interface=interface)
    keys = [f"recon-{n:026d}" for n in range(60)]
    asked: list[list[str]] = []

    async def play(body, writer):
        form = parse_qs(body.decode(), strict_parsing=True)
        group = form["refund_references"][0].split(",")
        asked.append(group)
        rows = [REFUND_ROW | {"refund_reference": key} for key in group if key not in keys[::20]]
        said = HEAD | {"refunds_list": rows, "encryption_data": form["encryption_data"][0]}
        await answer(200, json.dumps(said).encode())(body, writer)

    async def search():
        async with player.playing(play):
            pace = AccountPace(QueryLimits(calls_per_second=10_000))
            async with client_of(player, account=account, pace=pace) as client:
                return await client.refunds(references=[*keys, "not,sent", ""])

    answers = asyncio.run(search())

    assert max(len(",".join(group)) for group in asked) <= 1000
    assert [group for group in asked if len(group) == 1] != []
    assert list(answers.not_found) == keys[::20]
    assert [record.refund_reference for record in answers.found] == [
        key for key in keys if key not in keys[::20]
    ]
    assert [failed.key for failed in answers.failed] == ["not,sent", ""]
