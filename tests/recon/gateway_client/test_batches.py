import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from recon.gateway_client import (
    CancelRow,
    CaptureRow,
    FindingKind,
    InvalidRequestError,
    RefundRow,
    ReplyOutcome,
    prepare,
    read_batch_reply,
)
from recon.gateway_client.batches import _shows_same
from recon.gateway_client.documents import REPLY_BYTES_MAX
from tests.recon.gateway_client.played import raw_of, success_of

CAPTURE = CaptureRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("10.00"))
REFUND = RefundRow(
    transaction_id="T1",
    order_no="SO1",
    currency="EUR",
    amount=Decimal("10.00"),
    refund_amount=Decimal("10.00"),
    refund_reason="late",
    refund_reference="ours-1",
)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"transaction_id": ""}, "transaction_id"),
        ({"transaction_id": "T,1"}, "transaction_id"),
        ({"transaction_id": "T" * 51}, "transaction_id"),
        ({"transaction_id": "T1\n"}, "transaction_id"),
        ({"order_no": "SO 1"}, "order_no"),
        ({"order_no": "S\u041e1"}, "order_no"),
        ({"currency": "eur"}, "currency"),
        ({"currency": "XQZ"}, "currency"),
        ({"currency": "XAU"}, "currency"),
        ({"amount": Decimal(12)}, "amount"),
        ({"amount": Decimal("12.345")}, "amount"),
        ({"currency": "JPY", "amount": Decimal("1000.5"), "refund_amount": Decimal(1)}, "amount"),
        ({"currency": "KWD", "refund_amount": Decimal("1.234")}, "amount"),
        ({"refund_amount": Decimal(1)}, "refund_amount"),
        ({"currency": "JPY", "refund_amount": Decimal("0.50")}, "refund_amount"),
        ({"amount": Decimal(0)}, "amount"),
        ({"amount": Decimal("-1.00")}, "amount"),
        ({"amount": Decimal("10.5")}, "amount"),
        ({"amount": Decimal("NaN")}, "amount"),
        ({"amount": Decimal("Infinity")}, "amount"),
        ({"amount": Decimal("1E+999999")}, "amount"),
        ({"amount": Decimal("1E-999999")}, "amount"),
        ({"amount": 10.0}, "amount"),
        ({"refund_amount": Decimal("10.01")}, "refund_amount"),
        ({"refund_amount": Decimal("0.00")}, "refund_amount"),
        ({"refund_reason": "x" * 51}, "refund_reason"),
        ({"refund_reason": "a\nb"}, "refund_reason"),
    ],
)
def test_a_row_that_must_not_be_sent_is_named(account, changes, field):
    with pytest.raises(InvalidRequestError, match="nothing was sent") as caught:
        prepare(
            "refund",
            [replace(REFUND, transaction_id="T0"), replace(REFUND, **changes)],
            account=account,
        )

    assert {(problem.position, problem.field) for problem in caught.value.problems} == {(1, field)}


CANCEL = CancelRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("1.00"))


@pytest.mark.parametrize(
    ("rows", "ids", "says"),
    [
        ([CAPTURE, CAPTURE], {}, "more than once"),
        ([CANCEL], {}, "CancelRow, not a CaptureRow"),
        ([], {}, "0 rows"),
        ([CAPTURE], {"merchant_id": ""}, "merchant_id"),
        ([CAPTURE], {"merchant_id": "1,2"}, "merchant_id"),
        ([CAPTURE], {"sign_key": SecretStr("")}, "key"),
    ],
)
def test_a_batch_that_must_not_be_sent_is_refused(account, rows, ids, says):
    with pytest.raises(InvalidRequestError, match=says):
        prepare("capture", rows, account=replace(account, **ids))


Reply = dict[str, Any]
Change = Callable[[Reply], Reply | bytes]
"""What becomes of a signed success of two captures."""


class Reader:
    """Reads replies with the shipped interface."""

    def __init__(self, interface):
        self.interface = interface

    def __call__(self, prepared, reply, *, status=200, policy="enforce", headers=None):
        account = replace(prepared.account, interface=self.interface, policy=policy)
        raw = raw_of(reply, status=status, headers=headers)
        return read_batch_reply(replace(prepared, account=account), raw)

    def with_refusals(self, **changes):
        """The same with other rules of refusal."""
        status_map = self.interface.status_map
        refusals = status_map.refusals.model_copy(update=changes)
        changed = status_map.model_copy(update={"refusals": refusals})
        return Reader(self.interface.model_copy(update={"status_map": changed}))


@pytest.fixture
def read(interface):
    """Reads replies as shipped."""
    return Reader(interface)


def outcomes(reply):
    """The words, in request order."""
    return [row.outcome.value for row in reply.rows]


def kinds(reply):
    """Which kinds of findings there are."""
    return {finding.kind for finding in reply.findings}


def row(**cells):
    """The first row says otherwise."""
    return lambda reply: _with_rows(reply, lambda rows: [rows[0] | cells, *rows[1:]])


def rows_echo(status, **fields):
    """Every row has this status, and the whole says otherwise."""
    every = {"capture_status": status}
    changed = whole(**fields)
    return lambda reply: changed(_with_rows(reply, lambda rows: [one | every for one in rows]))


def twice(**cells):
    """The first row comes again, and says this."""
    return lambda reply: _with_rows(reply, lambda rows: [*rows, rows[0] | cells])


def strangers(count):
    """So many rows that nobody asked for come, too."""
    return lambda reply: _with_rows(
        reply,
        lambda rows: [*rows, *(rows[0] | {"transaction_id": f"X{n}"} for n in range(count))],
    )


def without_a_row(reply):
    """The first row is absent."""
    return _with_rows(reply, lambda rows: rows[1:])


def one_object(reply):
    """The first row alone, in no list."""
    return _with_rows(reply, lambda rows: rows[0])


def _with_rows(reply, change):
    return reply | {"capture_orders": change(reply["capture_orders"])}


def whole(**fields):
    """The whole says otherwise; None takes a field away."""
    return lambda reply: {
        name: value
        for name, value in (reply | fields).items()
        if not (name in fields and fields[name] is None)
    }


def refused(code, *, signed=True):
    """A whole request refused: no rows."""
    return lambda reply: {
        "merchant_id": "100042",
        "account_id": "100042001",
        "return_status": "0",
        "return_message": f"{code}:refused",
        "encryption_data": reply["encryption_data"] if signed else "",
        "capture_orders": [],
    }


def only(body):
    """Something else altogether."""
    return lambda _: body


@dataclass(frozen=True, kw_only=True)
class Says:
    """What is believed of a reply, row by row, and what else is found."""

    words: str
    kinds: frozenset[FindingKind] | None = None
    """All kinds of findings, where they matter."""
    has: FindingKind | None = None
    """One among them."""
    stops: bool | None = None


@dataclass(frozen=True)
class Case:
    """A reply under a policy and an HTTP status, and what it says."""

    change: Change
    says: Says
    given: Mapping[str, Any] = field(default_factory=dict)


DONE, UNKNOWN = "done done", "unknown unknown"
WARN, OFF = {"policy": "warn"}, {"policy": "off"}
F = FindingKind
ONE_UNKNOWN = Says(words="unknown done", has=F.ECHO_DIFFERS)
CONTRADICTS = Says(words="unknown done", kinds=frozenset({F.CONTRADICTION}))
ALL_UNKNOWN = Says(words=UNKNOWN)
IN_DOUBT = Says(words=UNKNOWN, stops=False)
STOPPED = Says(words=UNKNOWN, stops=True)
WRONG_SIGNATURE = Says(words=UNKNOWN, has=F.SIGNATURE, stops=True)
REJECTED = Says(words="rejected rejected", stops=True)
UNSIGNED = {"encryption_data": ""}

CASES: dict[str, Case] = {
    # A status that is not in the table is unknown, never failed.
    **{
        f"a row's status {status!r}": Case(row(capture_status=status), Says(words=f"{word} done"))
        for status, word in [
            *(
                ("1", "done"),
                (" 1 ", "done"),
                ("0", "failed"),
                ("-1", "pending"),
                ("-2", "pending"),
            ),
            *((other, "unknown") for other in ("", None, "9", "01", True, [], {}, "done", 1.5)),
        ]
    },
    # Another amount, currency or order, or none: the row proves nothing, the other one stands.
    **{
        f"a row's {name} {value!a}": Case(row(**{name: value}), ONE_UNKNOWN)
        for name, value in [
            *(("amount", other) for other in ("10.01", "1e1", "\u0661\u0660.00", "", None, True)),
            *(("currency", "USD"), ("currency", "eur"), ("order_no", "SO2"), ("order_no", None)),
        ]
    },
    # 10, 10.0 and "10.00" are one amount; types and decimals of a reply are tolerated.
    **{
        f"an amount as {amount!r}": Case(row(amount=amount), Says(words=DONE))
        for amount in ("10.0", "10.000", 10)
    },
    "a row is missing": Case(
        without_a_row,
        Says(words="unknown done", kinds=frozenset({F.ROW_MISSING}), stops=False),
    ),
    "a row twice": Case(twice(), Says(words=DONE, kinds=frozenset({F.DOUBLED_ROW}))),
    "a row twice, failed": Case(twice(capture_status="0"), CONTRADICTS),
    "a row twice, of less": Case(twice(amount="9.00"), CONTRADICTS),
    "a row twice, with an error": Case(twice(error_message="S0001:late"), CONTRADICTS),
    # One stranger is a finding; two say that the reply is not ours.
    "a stranger": Case(strangers(1), Says(words=DONE, has=F.FOREIGN_ROW, stops=False), WARN),
    "two strangers": Case(strangers(2), Says(words=DONE, has=F.FOREIGN_ROW, stops=True), WARN),
    "an object in place of a list": Case(one_object, Says(words="done unknown")),
    # Accepted but silent proves nothing.
    **{
        f"{rows!r} in place of rows": Case(
            lambda reply, rows=rows: reply | {"capture_orders": rows}, ALL_UNKNOWN
        )
        for rows in (None, "", [], 7, "x", [1, 2], [[]])
    },
    # Enforce: unknown and stop. Warn: the echo decides, a finding says so. Off: not looked at.
    **{
        f"signature {given[:3]!a}": Case(whole(encryption_data=given), WRONG_SIGNATURE)
        for given in ("", "0" * 64, ["x"], "é" * 64)
    },
    **{
        f"signature {given[:3]!r}, warned": Case(
            whole(encryption_data=given), Says(words=DONE, has=F.SIGNATURE, stops=False), WARN
        )
        for given in ("", "0" * 64)
    },
    "a wrong signature, off": Case(
        whole(encryption_data="0" * 64), Says(words=DONE, kinds=frozenset(), stops=False), OFF
    ),
    # Another account: under every policy, even with our own signature.
    **{
        f"another {name}, {policy}": Case(whole(**{name: "999"}), STOPPED, {"policy": policy})
        for name in ("merchant_id", "account_id")
        for policy in ("enforce", "warn", "off")
    },
    # Without account and signature, nothing says whose reply it is.
    "no merchant, signed": Case(whole(merchant_id=None), Says(words=DONE)),
    "no merchant, unsigned": Case(whole(merchant_id=None, **UNSIGNED), ALL_UNKNOWN, WARN),
    # The signature covers neither the rows nor the status: in doubt, signed or not.
    **{
        f"return status {status!r} over rows of {of_rows}{', unsigned' if given else ''}": Case(
            rows_echo(of_rows, return_status=status, **(UNSIGNED if given else {})),
            Says(words=UNKNOWN, has=F.RETURN_STATUS),
            given,
        )
        for status in ("0", "2", "7", "", "01")
        for of_rows in ("1", "0", "-1")
        for given in ({}, WARN)
    },
    # Rejected where it is verified and known as "before processing", or is of our own signature.
    "I0013 unsigned": Case(refused("I0013", signed=False), REJECTED),
    "I0013 unsigned, off": Case(refused("I0013", signed=False), REJECTED, OFF),
    "I0013": Case(refused("I0013"), REJECTED),
    "I0005": Case(refused("I0005"), REJECTED),
    "I0005, warned": Case(refused("I0005"), REJECTED, WARN),
    "I0005, off": Case(refused("I0005"), IN_DOUBT, OFF),
    "I0005 unsigned, warned": Case(refused("I0005", signed=False), IN_DOUBT, WARN),
    "I0005 unsigned": Case(refused("I0005", signed=False), STOPPED),
    "S0001": Case(refused("S0001"), IN_DOUBT),
    "E0002, warned": Case(refused("E0002"), IN_DOUBT, WARN),
    "I0005 as HTTP 400": Case(refused("I0005"), Says(words="rejected rejected"), {"status": 400}),
    "I0013 as HTTP 401": Case(
        only({"code": "I0013", "message": "signature"}), REJECTED, {"status": 401}
    ),
    # Rows say that something was processed: not a refusal of the whole.
    "I0013 beside rows": Case(
        whole(return_status="0", return_message="I0013:x", **UNSIGNED), ALL_UNKNOWN
    ),
    # Even over a signed success.
    **{
        f"HTTP {status} over a success": Case(
            whole(),
            Says(words=UNKNOWN, kinds=frozenset({F.HTTP_STATUS}), stops=False),
            {"status": status},
        )
        for status in (300, 301, 302, 307, 308, 408, 425, 429, 500, 502, 503, 504)
    },
    # 401 and 403 stop sending; no 4xx rejects by itself.
    **{
        f"HTTP {status} with {body!r}": Case(
            only(body), Says(words=UNKNOWN, stops=status in {401, 403}), {"status": status}
        )
        for body in (b"", b"<html>", {"code": "I0002", "message": "no"})
        for status in (400, 401, 403, 404, 409, 413)
    },
    **{
        f"bytes {body[:14]!r}": Case(
            only(body), Says(words=UNKNOWN, kinds=frozenset({F.UNREADABLE}))
        )
        for body in (
            *(b"", b"{", b"[]", b"null", b"<html>200</html>", b'{"a":1,"a":2}', b'{"a":NaN}'),
            *(b'{"a":-Infinity}', b'{"a":' + b"9" * 5000 + b"}"),
            b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            *(b'{"x":{"a":1,"a":2}}', b'{"a":1e' + b"9" * 50 + b"}", b'{"a":1}{"b":2}'),
            b'{"a":"' + b"x" * REPLY_BYTES_MAX + b'"}',
            *('{"a":"é"}'.encode("latin-1"), b"\xff\xfe{}"),
        )
    },
    "a byte order mark and an unknown field": Case(
        lambda reply: b"\xef\xbb\xbf" + json.dumps(reply | {"new": {"x": [1]}}).encode(),
        Says(words=DONE),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_reply_is_believed_row_by_row_as_far_as_it_is_proven(read, captures, case):
    """What is absent, foreign, contradicted or unproven is unknown, and never failed."""
    got = read(captures, case.change(success_of(captures)), **case.given)

    assert outcomes(got) == case.says.words.split()
    assert case.says.kinds in {None, frozenset(kinds(got))}
    assert case.says.has in {None, *kinds(got)}
    assert case.says.stops in {None, bool(got.stop_reason)}


def test_what_is_said_of_a_refusal_is_kept(read, captures):
    text = "A0008:not possible: 4111111111111111"
    failed = row(capture_status="0", error_message=text)(success_of(captures))

    (first, _) = read(captures, failed).rows

    assert (first.outcome, first.code) == (ReplyOutcome.FAILED, "A0008")
    assert first.message == "not possible: 411111******1111"
    assert read(captures, refused("I0005")(failed)).return_message == "I0005:refused"


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
    interface, captures, rule, signature, word
):
    """As shipped every batch reply is; a gateway that signs none is configured so."""
    replies = interface.signature.replies | {"capture": rule}
    rules = interface.signature.model_copy(update={"replies": replies})
    reader = Reader(interface.model_copy(update={"signature": rules}))
    got = reader(captures, success_of(captures) | {"encryption_data": signature})

    assert outcomes(got) == [word, word]
    assert bool(got.findings) is (word == "unknown")


@pytest.mark.parametrize(("template", "word"), [("capture", "done"), ("payment_reply", "unknown")])
def test_a_batch_is_signed_over_its_rows(interface, captures, template, word):
    """The template of a payment covers none: an old signature would do for any rows."""
    replies = interface.signature.replies | {"capture": "signed"}
    rules = interface.signature.model_copy(update={"replies": replies})
    reply = success_of(captures)
    rows = reply["capture_orders"]
    fields = {name: value for name, value in reply.items() if isinstance(value, str)}
    signed = captures.account.sign(template, fields=fields, rows=rows)
    reader = Reader(interface.model_copy(update={"signature": rules}))

    assert outcomes(reader(captures, reply | {"encryption_data": signed})) == [word, word]


@pytest.mark.parametrize("field", ["amount", "refund_amount"])
def test_a_refund_that_echoes_another_amount_is_unknown(read, refunds, field):
    reply = success_of(refunds)
    reply["refund_orders"][1][field] = "9.99"

    assert outcomes(read(refunds, reply)) == ["accepted", "unknown"]


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
def test_a_refund_reference_must_belong_to_its_transaction(read, refunds, reference, word, kept):
    """transaction_id, hyphen, two digits; another transaction's proves nothing."""
    reply = success_of(refunds)
    reply["refund_orders"][0]["refund_reference_id"] = reference

    row = read(refunds, reply).rows[0]

    assert (row.outcome.value, row.refund_reference_id) == (word, kept)


def test_refusals_that_are_configured_as_final_are_believed(read, captures):
    """A 413 before processing: rejected. A 429 with Retry-After: not sent, else unknown."""
    too_large = read.with_refusals(before_processing_http=frozenset({413}))
    final = read.with_refusals(refusal_is_final=True)
    headers = {"retry-after": "5"}

    assert set(outcomes(too_large(captures, b"too large", status=413))) == {"rejected"}
    assert set(outcomes(read(captures, b"", status=429, headers=headers))) == {"unknown"}
    slowed = final(captures, b"", status=429, headers=headers)
    assert (set(outcomes(slowed)), bool(slowed.stop_reason)) == ({"not_sent"}, False)
    assert set(outcomes(final(captures, b"", status=429))) == {"unknown"}


def test_a_refund_reference_of_ours_that_comes_back_changed_is_unknown(refunds):
    rows = tuple(replace(row, refund_reference="ours") for row in refunds.rows)
    reply = success_of(refunds)
    reply["refund_orders"][0]["refund_reference"] = "theirs"

    got = read_batch_reply(replace(refunds, rows=rows), raw_of(reply))

    assert outcomes(got) == ["unknown", "accepted"]


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=6))
def test_a_masked_echo_is_what_was_sent_where_it_shows_anything(shown, sent):
    pattern = ".*".join(re.escape(part) for part in re.split(r"\*+", shown))

    assert _shows_same(shown, sent=sent) is (re.fullmatch(pattern, sent) is not None)


@pytest.mark.parametrize("sent", ["a" * 34, "a" * 33 + "b"])
def test_a_mask_of_many_parts_costs_no_time(sent):
    """A foreign pattern never becomes a search that does not end."""
    assert _shows_same("*a" * 50_000 + "*c", sent=sent) is False
