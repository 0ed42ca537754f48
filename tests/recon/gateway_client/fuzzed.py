"""Bytes that nobody meant: good replies bent out of shape, and bytes from nowhere."""

import json
from typing import Any

from hypothesis import strategies as st

TOKENS = (
    *(b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"{", b"}", b"[", b'"', b"\\", b"\\ud800"),
    *(b"<", b">", b"&", b"&x;", b"]]>", b"<![CDATA[", b"<!--", b"<?x", b"<!DOCTYPE respon>"),
    *(b"<respon>", b"</respon>", b"<form>", b"<input type=hidden name=a value=b>", b"<script>"),
    *(b"NaN", b"1e999", b"-0", b"9" * 60, b"null", b"true", b"4111111111111111", b"[" * 40),
    *(b"1", b"0", b",", b":", b"\r\n\r\n", "\u202e\u2028é".encode(), b"%", b"#;#"),
)

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(max_size=20),
    st.sampled_from(["1", "0", "-1", "COMPLETED", "FAILED", "I0013:x", "10.00", "*" * 9]),
)
VALUES = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.text(max_size=8), below, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def bent_bytes(draw: st.DrawFn, document: bytes) -> bytes:
    """A document with up to four pieces of it cut out or replaced."""
    body = document
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        length = draw(st.sampled_from([0, 1, 2, 8, 40, 4_000]))
        body = body[:start] + draw(st.sampled_from(TOKENS)) + body[start + length :]
    return body


@st.composite
def bent_fields(draw: st.DrawFn, document: dict[str, Any]) -> bytes:
    """A JSON document with some of its fields, at any depth, lost or replaced."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = copy
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.booleans()):
                place = place[key]
                continue
            place[key] = draw(VALUES)
            break
    return json.dumps(copy).encode()


CELLS = st.one_of(
    st.sampled_from(["\ud800", "\x00", "\u00a01", "\u202e", "\u2028"]),
    st.sampled_from(
        ["", " ", "x", "2", "42", "JPY", "KWD", "XYZ", "eur", "20261332010203", " SO1 "]
    ),
    st.sampled_from(["0", "3", "10", "10.0", "10.000", "12.50000", "10.005", "1e3", "-10.00"]),
    st.sampled_from([None, True, 0, 7, 1.5, 12.25, 10**20, [], ["1"], {"a": "b"}]),
)
"""Unsafe text, other text, amounts, and what is no text: as likely as each other."""
BESIDE = {"antifraud_provider": "P", "is3ds": "1", "risk_score": "7"}
"""What the API document shows once a reply, beside its rows."""


@st.composite
def bent_rows(draw: st.DrawFn, reply: dict[str, Any], *, listed: str) -> bytes:
    """A reply with one row in which rows are lost, doubled, somebody else's or odd in a cell."""
    (row,) = reply[listed]
    rows: list[Any] = []
    for key in draw(st.lists(st.sampled_from([row["order_no"], "SO2", "SO9"]), max_size=4)):
        made = row | {"order_no": key}
        for name in draw(st.lists(st.sampled_from([*row, "risk_score"]), max_size=2)):
            made[name] = draw(CELLS)
        rows.append(made)
    if draw(st.booleans()):
        rows.extend(draw(st.sampled_from([[], rows[:1], ["no row"], [{}]])))
    beside = draw(st.sampled_from([{}, BESIDE]))
    return json.dumps(reply | beside | {listed: rows}).encode()


def replies(*documents: bytes | dict[str, Any]) -> st.SearchStrategy[bytes]:
    """Anything that may come instead of one of these."""
    kinds: list[st.SearchStrategy[bytes]] = [st.binary(max_size=200)]
    for document in documents:
        if isinstance(document, dict):
            kinds.append(bent_fields(document))
            kinds.append(bent_bytes(json.dumps(document).encode()))
        else:
            kinds.append(bent_bytes(document))
    return st.one_of(kinds)
