"""XML replies, hardened: any DOCTYPE is refused, no entity is resolved, nothing is fetched."""

from typing import Any

from lxml import etree

from recon.gateway_client.wire.json_reply import PADDING, REPLY_BYTES_MAX, UnreadableReplyError

ELEMENTS_MAX = 2_000


def xml_root(body: bytes, *, root: str) -> etree._Element:
    """The root element of an XML reply, which must have the name `root`.

    Raises:
        UnreadableReplyError: anything else, with the reason; the reply's text is never part of it.
    """
    if len(body) > REPLY_BYTES_MAX:
        msg = f"larger than {REPLY_BYTES_MAX} bytes"
        raise UnreadableReplyError(msg)
    element = _parsed(body)
    docinfo: Any = element.getroottree().docinfo  # its stubs know no doctype
    if docinfo.doctype:
        msg = "XML with a DOCTYPE"
        raise UnreadableReplyError(msg)
    if element.tag != root:
        msg = f"XML without the root element {root}"
        raise UnreadableReplyError(msg)
    if sum(1 for _ in element.iter()) > ELEMENTS_MAX:
        msg = f"more than {ELEMENTS_MAX} elements"
        raise UnreadableReplyError(msg)
    return element


def element_texts(element: etree._Element, *, repeated: str = "") -> dict[str, str]:
    """The text of every element below that has no elements itself, by name.

    Args:
        element: The root of a reply.
        repeated: The one name that may stand more than once; it is left out.

    Raises:
        UnreadableReplyError: another name stands twice: nobody could say which one counts.
    """
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for child in element:
        name = str(child.tag)
        if name == repeated:
            continue
        if name in seen:
            msg = "XML with the same element twice"
            raise UnreadableReplyError(msg)
        seen.add(name)
        if len(child) == 0:
            texts[name] = (child.text or "").strip(PADDING)
    return texts


def _parsed(body: bytes) -> etree._Element:
    # Without comments a text in pieces is one text; each parser serves one document.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        element = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        msg = f"not XML ({type(error).__name__})"
        raise UnreadableReplyError(msg) from None
    return element
