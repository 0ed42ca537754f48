import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recon.gateway_client.query.query_reply as reader
from recon.gateway_client import Credentials, GatewayInterface
from recon.gateway_client.interface.signing import sign
from recon.gateway_client.query.query_reading import GroupAnswer, KeyKind, QueryReading
from tests.recon.gateway_client.played import raw_of
from tests.recon.gateway_client.query.test_key_rounds import keys_of, reply_of, row_of

KEYS = keys_of(6)
ODD = st.sampled_from(
    ["", " ", " x", "x\u00a0", "4111111111111111", "1" * 14, "20261332010203", "é", "a\nb", "-1"]
)
ANY_CELL = st.one_of(ODD, st.none(), st.integers(0, 10**20), st.just([]), st.just({"a": "b"}))
FIELDS = (*row_of("SO0001"), "website", "risk_score", "first_name", "acquirer")


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Mostly ordinary rows: some repeated, not found, odd in a cell, of a further field."""
    more = draw(st.sampled_from([{}, {"website": "a.example"}, {"acquirer": "4111111111111111"}]))
    made: list[dict[str, Any]] = []
    for key in draw(st.lists(st.sampled_from([*KEYS, "foreign"]), max_size=8)):
        if draw(st.integers(0, 9)) == 0:
            made.append({"order_no": key, "query_result": "2"})
            continue
        changes: dict[str, Any] = {}
        if draw(st.integers(0, 4)) == 0:
            changes["transaction_id"] = f"T{draw(st.integers(0, 2))}"
        if draw(st.integers(0, 9)) == 0:
            changes[draw(st.sampled_from(FIELDS))] = draw(ANY_CELL)
        made.append(row_of(key, **changes) | more)
    return made


def read(interface: GatewayInterface, credentials: Credentials, reply: object) -> GroupAnswer[Any]:
    """The answer to the keys."""
    signature = sign("retrievalTrans", fields={}, credentials=credentials, interface=interface)
    reading = QueryReading(interface, "enforce", credentials, signature, KeyKind.ORDER_NO)
    body = json.dumps(reply).encode()
    return reader.read_query_reply(KEYS, raw=raw_of(body), reading=reading)


def told(answer: GroupAnswer[Any]) -> tuple[Any, ...]:
    """Everything that an answer says."""
    parts = (answer.records, answer.not_found, answer.missing, answer.failed, answer.findings)
    return (answer.refusal, *parts)


@settings(max_examples=300)
@given(rows=rows())
def test_columns_and_single_rows_are_read_alike(
    interface: GatewayInterface, credentials: Credentials, rows: list[dict[str, Any]]
) -> None:
    """The quick reader of ordinary rows never says anything else than the careful one."""
    reply = reply_of(rows)
    quick = read(interface, credentials, reply)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_read_ordinary", lambda *_given, **_named: False)
        careful = read(interface, credentials, reply)

    assert told(quick) == told(careful)


def test_ordinary_replies_are_read_by_columns(
    interface: GatewayInterface, credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found, twice found, not found and silent keys together need no look at single rows."""
    first = row_of("SO0000") | {"website": "a.example"}
    rows = [first, first | {"transaction_id": "T9"}, *(first | row_of(key) for key in KEYS[1:4])]
    reply = reply_of([*rows, {"order_no": KEYS[4], "query_result": "2"}])
    monkeypatch.delattr(reader, "_read_key")
    answer = read(interface, credentials, reply)

    assert len(answer.records) == 5
    assert answer.records[0].extra == {"website": "a.example"}
    assert (answer.not_found, answer.missing) == ([KEYS[4]], [KEYS[5]])


def test_what_stands_beside_several_rows_is_of_none_of_them(
    interface: GatewayInterface, credentials: Credentials
) -> None:
    """The document shows risk once a reply: of one payment it is its own, of several nobody's."""
    beside = {"antifraud_provider": "P", "is3ds": "1", "fraud_check_result": []}
    one = read(interface, credentials, reply_of([row_of("SO0000")], **beside))
    two = read(interface, credentials, reply_of([row_of(key) for key in KEYS[:2]], **beside))

    assert [record.risk.antifraud_provider for record in one.records] == ["P"]
    assert [record.risk.antifraud_provider for record in two.records] == ["", ""]
    assert two.records[0].reply_extra["antifraud_provider"] == "P"
