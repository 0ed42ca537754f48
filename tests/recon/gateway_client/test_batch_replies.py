import copy
import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.gateway_client import (
    BatchReply,
    FindingKind,
    GatewayInterface,
    NotSentError,
    PreparedRequest,
    ReplyOutcome,
    ReplyPolicy,
    UnknownOutcomeError,
    read_batch_reply,
    without_reply,
)
from recon.gateway_client.batch_replies import _shows_same
from tests.recon.gateway_client.played import raw_of, success_of


class Reader:
    """Reads replies with the shipped interface."""

    def __init__(self, interface: GatewayInterface) -> None:
        self.interface = interface

    def __call__(
        self,
        prepared: PreparedRequest,
        reply: object,
        *,
        status: int = 200,
        policy: ReplyPolicy = "enforce",
        headers: dict[str, str] | None = None,
    ) -> BatchReply:
        return read_batch_reply(
            replace(prepared, interface=self.interface),
            raw_of(reply, status=status, headers=headers),
            policy=policy,
        )

    def with_refusals(self, **changes: object) -> "Reader":
        """The same with other rules of refusal."""
        status_map = self.interface.status_map
        refusals = status_map.refusals.model_copy(update=changes)
        changed = status_map.model_copy(update={"refusals": refusals})
        return Reader(self.interface.model_copy(update={"status_map": changed}))


@pytest.fixture
def read(interface: GatewayInterface) -> Reader:
    """Reads replies as shipped."""
    return Reader(interface)


def outcomes(reply: BatchReply) -> list[str]:
    """The words, in request order."""
    return [row.outcome.value for row in reply.rows]


def kinds(reply: BatchReply) -> set[FindingKind]:
    """Which kinds of findings there are."""
    return {finding.kind for finding in reply.findings}


def refusal(code: str, *, signature: str) -> dict[str, Any]:
    """A whole request refused: no rows."""
    return {
        "merchant_id": "100042",
        "account_id": "100042001",
        "return_status": "0",
        "return_message": f"{code}:refused",
        "encryption_data": signature,
        "capture_orders": [],
    }


def test_a_whole_success_is_done_row_by_row(read: Reader, captures: PreparedRequest) -> None:
    """Signature, echo and status agree: done, in request order, nothing found."""
    reply = success_of(captures)
    reply["capture_orders"].reverse()

    got = read(captures, reply)

    assert [(row.position, row.transaction_id) for row in got.rows] == [(0, "T1"), (1, "T2")]
    assert outcomes(got) == ["done", "done"]
    assert (got.findings, got.stop_sending, got.signature) == ((), False, "valid")


def test_a_refund_that_succeeds_is_accepted_with_its_reference(
    read: Reader, refunds: PreparedRequest
) -> None:
    """Refunds are processed later: accepted is not done."""
    got = read(refunds, success_of(refunds))

    assert outcomes(got) == ["accepted", "accepted"]
    assert got.rows[0].refund_reference_id == "T1-01"
    assert (got.rows[0].code, got.rows[0].message) == ("V0000", "OK")


@pytest.mark.parametrize(
    ("status", "word"),
    [("1", "done"), ("0", "failed"), ("-1", "pending"), ("-2", "pending")]
    + [(value, "unknown") for value in ("", None, "9", "01", True, [], {}, "done", 1.5)],
)
def test_a_row_status_means_what_the_table_says_and_nothing_else(
    read: Reader, captures: PreparedRequest, status: object, word: str
) -> None:
    """A status that is not in the table is unknown, never failed."""
    reply = success_of(captures)
    reply["capture_orders"][0]["capture_status"] = status

    assert outcomes(read(captures, reply)) == [word, "done"]


def test_a_failed_row_keeps_its_code_and_text(read: Reader, captures: PreparedRequest) -> None:
    """`<code>:<text>` is split at the first colon; a card number in it is masked."""
    reply = success_of(captures)
    text = "A0008:not possible: 4111111111111111"
    reply["capture_orders"][0] |= {"capture_status": "0", "error_message": text}

    row = read(captures, reply).rows[0]

    assert (row.outcome, row.code) == (ReplyOutcome.FAILED, "A0008")
    assert row.message == "not possible: 411111******1111"


@pytest.mark.parametrize(
    ("rule", "signature", "word"),
    [
        ("echo", "", "unknown"),
        ("echo-or-absent", "", "done"),
        ("echo-or-absent", "0" * 64, "unknown"),
        ("signed", "", "unknown"),
    ],
)
def test_whether_a_reply_must_be_signed_is_data_of_its_operation(
    interface: GatewayInterface,
    captures: PreparedRequest,
    rule: str,
    signature: str,
    word: str,
) -> None:
    """As shipped every batch reply is; a gateway that signs none is configured so."""
    replies = interface.signature.replies | {"capture": rule}
    rules = interface.signature.model_copy(update={"replies": replies})
    reader = Reader(interface.model_copy(update={"signature": rules}))
    got = reader(captures, success_of(captures) | {"encryption_data": signature})

    assert outcomes(got) == [word, word]
    assert bool(got.findings) is (word == "unknown")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("amount", "10.01"),
        ("amount", "1e1"),
        ("amount", "\u0661\u0660.00"),
        ("amount", ""),
        ("amount", None),
        ("amount", True),
        ("currency", "USD"),
        ("currency", "eur"),
        ("order_no", "SO2"),
        ("order_no", None),
    ],
)
def test_a_row_that_echoes_something_else_is_unknown(
    read: Reader, captures: PreparedRequest, field: str, value: object
) -> None:
    """Another amount, currency or order, or none: the row proves nothing, the other one stands."""
    reply = success_of(captures)
    reply["capture_orders"][0][field] = value

    got = read(captures, reply)

    assert outcomes(got) == ["unknown", "done"]
    assert FindingKind.ECHO_DIFFERS in kinds(got)


@pytest.mark.parametrize("field", ["amount", "refund_amount"])
def test_a_refund_that_echoes_another_amount_is_unknown(
    read: Reader, refunds: PreparedRequest, field: str
) -> None:
    """Both amounts of a refund must come back."""
    reply = success_of(refunds)
    reply["refund_orders"][1][field] = "9.99"

    assert outcomes(read(refunds, reply)) == ["accepted", "unknown"]


@pytest.mark.parametrize("amount", ["10.0", "10.000", 10])
def test_amounts_are_compared_as_numbers(
    read: Reader, captures: PreparedRequest, amount: object
) -> None:
    """10, 10.0 and "10.00" are one amount; types and decimals of a reply are tolerated."""
    reply = success_of(captures)
    reply["capture_orders"][0]["amount"] = amount

    assert outcomes(read(captures, reply)) == ["done", "done"]


@pytest.mark.parametrize(
    ("reference", "word", "kept"),
    [
        ("T1-07", "accepted", "T1-07"),
        ("", "accepted", ""),
        ("T1-7", "accepted", ""),
        ("T2-01", "unknown", ""),
        ("T11-01", "unknown", ""),
        (["T1-01"], "unknown", ""),
    ],
)
def test_a_refund_reference_must_belong_to_its_transaction(
    read: Reader, refunds: PreparedRequest, reference: object, word: str, kept: str
) -> None:
    """transaction_id, hyphen, two digits; another transaction's proves nothing."""
    reply = success_of(refunds)
    reply["refund_orders"][0]["refund_reference_id"] = reference

    row = read(refunds, reply).rows[0]

    assert (row.outcome.value, row.refund_reference_id) == (word, kept)


def test_a_missing_row_is_unknown_and_the_others_stand(
    read: Reader, captures: PreparedRequest
) -> None:
    """A row that is absent is never failed."""
    reply = success_of(captures)
    del reply["capture_orders"][0]

    got = read(captures, reply)

    assert outcomes(got) == ["unknown", "done"]
    assert (kinds(got), got.stop_sending) == ({FindingKind.ROW_MISSING}, False)


def test_a_row_twice_with_one_outcome_counts_once(read: Reader, captures: PreparedRequest) -> None:
    """Doubled and agreeing: taken once, noted."""
    reply = success_of(captures)
    reply["capture_orders"].append(reply["capture_orders"][0])

    got = read(captures, reply)

    assert (outcomes(got), kinds(got)) == (["done", "done"], {FindingKind.DOUBLED_ROW})


@pytest.mark.parametrize(
    "change", [{"capture_status": "0"}, {"amount": "9.00"}, {"error_message": "S0001:late"}]
)
def test_a_row_twice_that_contradicts_itself_is_unknown(
    read: Reader, captures: PreparedRequest, change: dict[str, str]
) -> None:
    """Doubled and different in anything that counts."""
    reply = success_of(captures)
    reply["capture_orders"].append(reply["capture_orders"][0] | change)

    got = read(captures, reply)

    assert (outcomes(got), kinds(got)) == (["unknown", "done"], {FindingKind.CONTRADICTION})


@pytest.mark.parametrize(("extras", "stops"), [(1, False), (2, True)])
def test_rows_that_nobody_asked_for_are_kept_as_findings(
    read: Reader, captures: PreparedRequest, extras: int, *, stops: bool
) -> None:
    """One stranger is a finding; two say that the reply is not ours: stop."""
    reply = success_of(captures)
    strangers = [reply["capture_orders"][0] | {"transaction_id": f"X{n}"} for n in range(extras)]
    reply["capture_orders"].extend(strangers)

    got = read(captures, reply, policy="warn")

    assert outcomes(got) == ["done", "done"]
    assert FindingKind.FOREIGN_ROW in kinds(got)
    assert got.stop_sending is stops


def test_a_single_object_stands_for_a_list_of_one(read: Reader, captures: PreparedRequest) -> None:
    """Array or object: both are accepted."""
    reply = success_of(captures)
    reply["capture_orders"] = reply["capture_orders"][0]

    assert outcomes(read(captures, reply)) == ["done", "unknown"]


@pytest.mark.parametrize("rows", [None, "", [], 7, "x", [1, 2], [[]]])
def test_a_list_without_rows_leaves_everything_unknown(
    read: Reader, captures: PreparedRequest, rows: object
) -> None:
    """Accepted but silent proves nothing."""
    assert outcomes(read(captures, success_of(captures) | {"capture_orders": rows})) == [
        "unknown",
        "unknown",
    ]


@pytest.mark.parametrize(
    ("signature", "policy", "word", "stops"),
    [
        ("", "enforce", "unknown", True),
        ("0" * 64, "enforce", "unknown", True),
        (["x"], "enforce", "unknown", True),
        ("é" * 64, "enforce", "unknown", True),
        ("", "warn", "done", False),
        ("0" * 64, "warn", "done", False),
        ("0" * 64, "off", "done", False),
    ],
)
def test_a_signature_that_is_wrong_or_missing(
    read: Reader,
    captures: PreparedRequest,
    *,
    signature: object,
    policy: ReplyPolicy,
    word: str,
    stops: bool,
) -> None:
    """Enforce: unknown and stop. Warn: the echo decides, a finding says so. Off: not looked at."""
    got = read(captures, success_of(captures) | {"encryption_data": signature}, policy=policy)

    assert (set(outcomes(got)), got.stop_sending) == ({word}, stops)
    assert (FindingKind.SIGNATURE in kinds(got)) is (policy != "off")


def test_every_changed_character_of_a_signature_is_refused(
    read: Reader, captures: PreparedRequest
) -> None:
    """64 of 64; upper case alone is the same signature."""
    reply = success_of(captures)
    good = reply["encryption_data"]
    changed = [f"{good[:at]}{'0' if good[at] != '0' else '1'}{good[at + 1 :]}" for at in range(64)]

    states = {read(captures, reply | {"encryption_data": one}).signature for one in changed}

    assert states == {"wrong"}
    assert read(captures, reply | {"encryption_data": good.upper()}).signature == "valid"


@pytest.mark.parametrize("field", ["merchant_id", "account_id"])
@pytest.mark.parametrize("policy", ["enforce", "warn", "off"])
def test_a_reply_for_another_account_is_unknown_and_stops(
    read: Reader, captures: PreparedRequest, field: str, policy: ReplyPolicy
) -> None:
    """Under every policy, even with our own signature."""
    got = read(captures, success_of(captures) | {field: "999"}, policy=policy)

    assert (set(outcomes(got)), got.stop_sending) == ({"unknown"}, True)


def test_a_reply_that_names_no_account_needs_a_valid_signature(
    read: Reader, captures: PreparedRequest
) -> None:
    """Without either, nothing says whose reply it is."""
    reply = success_of(captures)
    del reply["merchant_id"]
    unsigned = reply | {"encryption_data": ""}

    assert set(outcomes(read(captures, reply))) == {"done"}
    assert set(outcomes(read(captures, unsigned, policy="warn"))) == {"unknown"}


@pytest.mark.parametrize("status", ["0", "2", "7", "", "01"])
@pytest.mark.parametrize("row_status", ["1", "0", "-1"])
def test_rows_under_a_return_status_that_is_not_one_prove_nothing(
    read: Reader, captures: PreparedRequest, status: str, row_status: str
) -> None:
    """The signature covers neither the rows nor the status: in doubt, signed or not."""
    reply = success_of(captures) | {"return_status": status}
    for row in reply["capture_orders"]:
        row["capture_status"] = row_status

    verified = read(captures, reply)
    unverified = read(captures, reply | {"encryption_data": ""}, policy="warn")

    assert (set(outcomes(verified)), set(outcomes(unverified))) == ({"unknown"}, {"unknown"})
    assert FindingKind.RETURN_STATUS in kinds(verified) & kinds(unverified)


@pytest.mark.parametrize(
    ("code", "signed", "policy", "word", "stops"),
    [
        ("I0013", False, "enforce", "rejected", True),
        ("I0013", False, "off", "rejected", True),
        ("I0013", True, "enforce", "rejected", True),
        ("I0005", True, "enforce", "rejected", True),
        ("I0005", True, "warn", "rejected", True),
        ("I0005", True, "off", "unknown", False),
        ("I0005", False, "warn", "unknown", False),
        ("I0005", False, "enforce", "unknown", True),
        ("S0001", True, "enforce", "unknown", False),
        ("E0002", True, "warn", "unknown", False),
    ],
)
def test_a_whole_refusal_rejects_only_when_proven(
    read: Reader,
    captures: PreparedRequest,
    *,
    code: str,
    signed: bool,
    policy: ReplyPolicy,
    word: str,
    stops: bool,
) -> None:
    """Verified and known as "before processing", or a refusal of our own signature."""
    reply = refusal(code, signature=captures.signature if signed else "")

    got = read(captures, reply, policy=policy)

    assert (set(outcomes(got)), got.stop_sending) == ({word}, stops)
    assert got.return_message.startswith(code)


def test_a_refusal_of_the_signature_beside_rows_rejects_nothing(
    read: Reader, captures: PreparedRequest
) -> None:
    """Rows say that something was processed: not a refusal of the whole."""
    reply = success_of(captures) | {"return_status": "0", "return_message": "I0013:x"}

    assert "rejected" not in outcomes(read(captures, reply | {"encryption_data": ""}))


@pytest.mark.parametrize("status", [300, 301, 302, 307, 308, 408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_never_prove_anything(
    read: Reader, captures: PreparedRequest, status: int
) -> None:
    """Even over a signed success, the rows are unknown."""
    got = read(captures, success_of(captures), status=status)

    assert (set(outcomes(got)), got.stop_sending) == ({"unknown"}, False)
    assert kinds(got) == {FindingKind.HTTP_STATUS}


@pytest.mark.parametrize("body", [b"", b"<html>", {"code": "I0002", "message": "no"}])
@pytest.mark.parametrize(
    ("status", "stops"),
    [(400, False), (401, True), (403, True), (404, False), (409, False), (413, False)],
)
def test_a_4xx_without_a_signed_body_is_unknown(
    read: Reader, captures: PreparedRequest, *, body: object, status: int, stops: bool
) -> None:
    """401 and 403 stop sending; no 4xx rejects by itself."""
    got = read(captures, body, status=status)

    assert (set(outcomes(got)), got.stop_sending) == ({"unknown"}, stops)


def test_a_4xx_that_is_signed_or_configured_says_what_it_says(
    read: Reader, captures: PreparedRequest
) -> None:
    """Signed: as the body says. Configured as before processing: rejected."""
    signed = read(captures, refusal("I0005", signature=captures.signature), status=400)
    configured = read.with_refusals(before_processing_http=frozenset({413}))(
        captures, b"too large", status=413
    )
    our_signature = read(captures, {"code": "I0013", "message": "signature"}, status=401)

    assert set(outcomes(signed)) == {"rejected"}
    assert set(outcomes(configured)) == {"rejected"}
    assert (set(outcomes(our_signature)), our_signature.stop_sending) == ({"rejected"}, True)


def test_slow_down_means_not_processed_only_on_the_gateways_word(
    read: Reader, captures: PreparedRequest
) -> None:
    """429 with Retry-After: unknown, unless the configuration says that it is final."""
    final = read.with_refusals(refusal_is_final=True)
    headers = {"retry-after": "5"}

    assert set(outcomes(read(captures, b"", status=429, headers=headers))) == {"unknown"}
    refused = final(captures, b"", status=429, headers=headers)
    assert (set(outcomes(refused)), refused.stop_sending) == ({"not_sent"}, False)
    assert set(outcomes(final(captures, b"", status=429))) == {"unknown"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"<html>200</html>",
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        '{"a":"é"}'.encode("latin-1"),
        b"\xff\xfe{}",
    ],
)
def test_bytes_that_are_no_json_object_are_unknown(
    read: Reader, captures: PreparedRequest, body: bytes
) -> None:
    """Whole batch unknown, one finding, sending may go on until the circuit opens."""
    got = read(captures, body)

    assert (set(outcomes(got)), kinds(got)) == ({"unknown"}, {FindingKind.UNREADABLE})


def test_a_truncated_success_is_unknown(read: Reader, captures: PreparedRequest) -> None:
    """Cut anywhere, no prefix of a reply proves anything."""
    body = json.dumps(success_of(captures)).encode()

    words = {word for at in range(len(body)) for word in outcomes(read(captures, body[:at]))}

    assert words == {"unknown"}


def test_a_byte_order_mark_and_unknown_fields_are_tolerated(
    read: Reader, captures: PreparedRequest
) -> None:
    """Neither changes what a reply says."""
    body = b"\xef\xbb\xbf" + json.dumps(success_of(captures) | {"new": {"x": [1]}}).encode()

    assert set(outcomes(read(captures, body))) == {"done"}


def test_without_a_reply_rows_are_not_sent_or_unknown(captures: PreparedRequest) -> None:
    """The class of the error decides, for every row."""
    not_sent = without_reply(captures, error=NotSentError("no", kind="ConnectError"))
    unknown = without_reply(captures, error=UnknownOutcomeError("?", kind="ReadTimeout"))

    assert outcomes(not_sent) == ["not_sent"] * 2
    assert outcomes(unknown) == ["unknown"] * 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["transaction_id", "order_no", "capture_status", "return_status", "code", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "row",
                "drop",
                "double",
                "transaction_id",
                "order_no",
                "amount",
                "currency",
                "capture_status",
                "error_message",
                "return_status",
                "merchant_id",
                "capture_orders",
            ]
        ),
        st.integers(0, 1),
        JSON | st.sampled_from(["1", "0", "T1", "T2", "SO1", "10.00", "EUR", "100042"]),
    ),
    max_size=4,
)


@given(
    body=st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()),
    status=st.integers(0, 999),
    policy=st.sampled_from(["off", "warn", "enforce"]),
)
def test_any_bytes_under_any_status_give_every_row_an_outcome_and_prove_nothing(
    captures: PreparedRequest,
    body: bytes,
    status: int,
    policy: ReplyPolicy,
) -> None:
    """Total, and nothing that is not a reply of ours is ever done or failed."""
    got = read_batch_reply(captures, raw_of(body, status=status), policy=policy)

    assert [row.position for row in got.rows] == [0, 1]
    assert not {
        ReplyOutcome.DONE,
        ReplyOutcome.ACCEPTED,
        ReplyOutcome.FAILED,
        ReplyOutcome.NOT_SENT,
    } & {row.outcome for row in got.rows}


@given(changes=CHANGES, policy=st.sampled_from(["warn", "enforce"]))
def test_a_success_that_was_tampered_with_is_never_done_without_proof(
    captures: PreparedRequest,
    changes: list[tuple[str, int, Any]],
    policy: ReplyPolicy,
) -> None:
    """Whoever is done was echoed whole, with status 1, by every row that names it."""
    reply = tampered(success_of(captures), changes)

    got = read_batch_reply(captures, raw_of(reply), policy=policy)

    for row, outcome in zip(captures.rows, got.rows, strict=True):
        if outcome.outcome is ReplyOutcome.DONE:
            rows = reply["capture_orders"]
            rows = rows if isinstance(rows, list) else [rows]
            named = [
                one
                for one in rows
                if isinstance(one, dict)
                and str(one.get("transaction_id")).strip() == row.transaction_id
            ]
            assert named
            assert all(str(one["capture_status"]).strip() == "1" for one in named)
            assert all(Decimal(str(one["amount"])) == row.amount for one in named)
            assert all(str(one["currency"]).strip() == row.currency for one in named)
            assert all(str(one["order_no"]).strip() == row.order_no for one in named)


def tampered(reply: dict[str, Any], changes: list[tuple[str, int, Any]]) -> dict[str, Any]:
    """The reply with each change made where it still can be."""
    for name, at, value in changes:
        rows = reply["capture_orders"]
        if name in {"return_status", "merchant_id", "capture_orders"}:
            reply[name] = value
        elif not isinstance(rows, list) or at >= len(rows):
            continue
        elif name == "row":
            rows[at] = value
        elif name == "drop":
            del rows[at]
        elif name == "double":
            rows.append(copy.deepcopy(rows[at]))
        elif isinstance(rows[at], dict):
            rows[at][name] = value
    return reply


def test_a_refund_reference_of_ours_that_comes_back_changed_is_unknown(
    refunds: PreparedRequest,
) -> None:
    """Sent or not, another instruction's reference is not ours."""
    rows = tuple(replace(row, refund_reference="ours") for row in refunds.rows)
    reply = success_of(refunds)
    reply["refund_orders"][0]["refund_reference"] = "theirs"

    got = read_batch_reply(replace(refunds, rows=rows), raw_of(reply), policy="enforce")

    assert outcomes(got) == ["unknown", "accepted"]


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=6))
def test_a_masked_echo_is_what_was_sent_where_it_shows_anything(shown: str, sent: str) -> None:
    """The same as a pattern with anything for each masked part."""
    pattern = ".*".join(re.escape(part) for part in re.split(r"\*+", shown))

    assert _shows_same(shown, sent=sent) is (re.fullmatch(pattern, sent) is not None)


@pytest.mark.parametrize("sent", ["a" * 34, "a" * 33 + "b"])
def test_a_mask_of_many_parts_costs_no_time(sent: str) -> None:
    """A foreign pattern never becomes a search that does not end."""
    assert _shows_same("*a" * 50_000 + "*c", sent=sent) is False
