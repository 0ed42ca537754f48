from decimal import Decimal

import pytest
from lxml import etree

from recon.sandbox.ground.wire import parse_body, render_json, render_xml

LAUGHS = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><r><merchant_id>&b;</merchant_id></r>'


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"a": "1"}', {"a": "1"}),
        (b'\xef\xbb\xbf {"a": 1.50}', {"a": Decimal("1.50")}),
        (b"a=1&b=x%20y&c=", {"a": "1", "b": "x y", "c": ""}),
        (b"<r><a>1</a><b/></r>", {"a": "1", "b": ""}),
    ],
)
def test_the_first_byte_tells_the_form(body: bytes, fields: dict[str, object]) -> None:
    """JSON, form and XML give the same kind of fields."""
    assert parse_body(body) == (fields, "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"[1]",
        b'{"a": 1',
        b'{"a": Infinity}',
        b'{"a": "\\ud800"}',
        b"{" + b'"a":{' * 100_000,
        b"a=1&a=2",
        b"a",
        b"\xff\xfe",
        b"<a><b></a>",
        LAUGHS.encode(),
        b'<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>',
    ],
)
def test_what_is_no_message_is_told_apart(body: bytes) -> None:
    """Broken, nested without end, twice the same field, entities: None and the reason."""
    fields, why = parse_body(body)
    assert fields is None
    assert why


def test_replies_are_well_formed_whatever_they_repeat() -> None:
    """Control characters have no place in XML and markup is escaped; Decimals are numbers."""
    root = etree.fromstring(render_xml({"note": "a\x00<b>&\x1f", "risk": {"name": "n"}}))
    assert root.findtext("note") == "a<b>&"
    assert root.findtext("risk/name") == "n"
    assert render_json({"fee": Decimal("5.00")}) == b'{"fee": 5}'
    assert render_json({"fee": Decimal("5.50")}) == b'{"fee": 5.5}'
