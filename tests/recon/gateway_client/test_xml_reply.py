import pytest

from recon.gateway_client.documents import (
    ELEMENTS_MAX,
    REPLY_BYTES_MAX,
    UnreadableReplyError,
    element_texts,
    xml_root,
)


def test_a_reply_with_the_expected_root_is_read() -> None:
    """An XML reply with the expected root gives its elements."""
    reply = b"<respon><order_status>1</order_status></respon>"
    assert xml_root(reply, root="respon").findtext("order_status") == "1"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<!DOCTYPE respon><respon/>", "DOCTYPE"),
        (b'<!DOCTYPE r [<!ENTITY a "4111">]><respon>&a;</respon>', "DOCTYPE"),
        (b"<other/>", "root element"),
        (b"<respon>", "not XML"),
        (b"", "not XML"),
        (b"<respon>" + b"<a/>" * ELEMENTS_MAX + b"</respon>", "elements"),
        (b" " * (REPLY_BYTES_MAX + 1), "larger"),
    ],
)
def test_an_untrustworthy_xml_reply_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    """DOCTYPEs, other roots, broken and oversized replies are refused by reason."""
    with pytest.raises(UnreadableReplyError, match=reason):
        xml_root(body, root="respon")


def test_a_text_in_pieces_is_one_text_and_groups_are_left_out() -> None:
    """Comments cannot cut a status; the repeated group is read on its own."""
    root = xml_root(
        b"<respon><order_status> 1<!-- -->2 </order_status><g><a/></g><g/></respon>",
        root="respon",
    )

    assert element_texts(root, repeated="g") == {"order_status": "12"}


def test_an_element_that_stands_twice_is_refused() -> None:
    """Nobody could say which of two statuses counts."""
    root = xml_root(b"<respon><a>1</a><a>1</a></respon>", root="respon")

    with pytest.raises(UnreadableReplyError, match="twice"):
        element_texts(root)
