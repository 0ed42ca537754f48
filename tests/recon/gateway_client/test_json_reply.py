from decimal import Decimal

import pytest

from recon.gateway_client.documents import (
    DEPTH_MAX,
    REPLY_BYTES_MAX,
    UnreadableReplyError,
    json_object,
    rows_of,
    text_of,
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"a":1}{"b":2}',
        b'{"a":1,"a":1}',
        b'{"x":{"a":1,"a":2}}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e' + b"9" * 50 + b"}",
        b'{"a":1e9999999999999999999}',
        b'{"a":' + b"1" * 41 + b"}",
        b'{"a":' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}",
        b'{"a":"' + b"x" * REPLY_BYTES_MAX + b'"}',
        b'{"a":"\xe9"}',
        '{"a":1}'.encode("utf-16"),
    ],
    ids=[f"case-{n}" for n in range(14)],
)
def test_ambiguous_or_oversized_json_is_refused(body: bytes) -> None:
    """What json.loads would take quietly."""
    with pytest.raises(UnreadableReplyError):
        json_object(body)


def test_numbers_stay_exact() -> None:
    """10.10 is not 10.1, and brackets inside of text are text."""
    got = json_object(b'\xef\xbb\xbf{"a":10.10,"b":"' + b"[" * 99 + b'\\""}')

    assert (str(got["a"]), type(got["a"])) == ("10.10", Decimal)
    assert got["b"] == "[" * 99 + '"'


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (" a ", "a"), (7, "7"), (Decimal("1.50"), "1.50"), (True, None), ([], None)],
)
def test_the_text_of_a_field(value: object, text: str | None) -> None:
    """Numbers are their digits; null is empty; other types are no text."""
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "rows", "malformed"),
    [
        (None, [], 0),
        ("", [], 0),
        ({"a": 1}, [{"a": 1}], 0),
        ([{"a": 1}, 2, None], [{"a": 1}], 2),
        ("x", [], 1),
    ],
)
def test_the_rows_of_a_list_field(
    value: object, rows: list[dict[str, int]], malformed: int
) -> None:
    """One object stands for a list of one."""
    assert rows_of({"list": value}, field="list") == (rows, malformed)
