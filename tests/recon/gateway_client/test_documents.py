from decimal import Decimal

import pytest

from recon.gateway_client.documents import (
    ELEMENTS_MAX,
    INPUTS_MAX,
    REPLY_BYTES_MAX,
    UnreadableReplyError,
    element_texts,
    html_form,
    json_object,
    xml_root,
)


def test_numbers_stay_exact():
    """10.10 is not 10.1, and brackets inside of text are text."""
    got = json_object(b'\xef\xbb\xbf{"a":10.10,"b":"' + b"[" * 99 + b'\\""}')

    assert (str(got["a"]), type(got["a"])) == ("10.10", Decimal)
    assert got["b"] == "[" * 99 + '"'


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
def test_an_untrustworthy_xml_reply_is_refused_with_its_reason(body, reason):
    with pytest.raises(UnreadableReplyError, match=reason):
        xml_root(body, root="respon")


def test_a_text_in_pieces_is_one_text_and_groups_are_left_out():
    """Comments cannot cut a status; the repeated group is read on its own."""
    root = xml_root(
        b"<respon><order_status> 1<!-- -->2 </order_status><g><a/></g><g/></respon>",
        root="respon",
    )

    assert element_texts(root, repeated="g") == {"order_status": "12"}


HIDDEN = '<input type="hidden" name="{name}" value="{value}">'


def page(*inputs, before=""):
    """A page of one form."""
    hidden = "".join(HIDDEN.format(name=name, value=value) for name, value in inputs)
    return f"{before}<form action=/v1/checkout method=POST>{hidden}</form>".encode()


def test_hidden_inputs_and_all_parameters_are_data():
    form = html_form(
        page(
            ("a", "1 &amp; 2"),
            ("b", "é"),
            ("allParams", "x=1&amp;y=a%20b&amp;x=2"),
            before="<script>x=1</script><input type=hidden name=outside value=1>",
        )
    )

    assert (form.action, form.method) == ("/v1/checkout", "post")
    assert form.inputs == {"a": "1 & 2", "b": "é", "allParams": "x=1&y=a%20b&x=2"}
    assert form.parameters == {"x": "1", "y": "a b"}
    assert "1 & 2" not in repr(form)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "0 forms"),
        (b"<html>", "0 forms"),
        (b"<form><input name=a></form>", "0 forms"),
        (page(("a", "1")) * 2, "2 forms"),
        (b"<form><div>" * 100 + b"<input type=hidden>" * 100_000, "more than 20 forms"),
        (page(("a", "1"), ("a", "2")), "two values"),
        (page(*[(f"n{n}", "1") for n in range(INPUTS_MAX + 1)]), "inputs"),
        (page(("a", "x" * 20_001)), "characters"),
        (page(("allParams", "x=1&amp;" * 501)), "allParams"),
        (b" " * (REPLY_BYTES_MAX + 1), "larger"),
        (page(("a", "&x;"), before='<!DOCTYPE html [<!ENTITY x "4111">]>'), "declarations"),
        (page(("a", "1"), before='<!doctype html SYSTEM "file:///etc/passwd"['), "declarations"),
        (page(("a", "1"), before='<!entity x SYSTEM "file:///etc/passwd">'), "declarations"),
        (page(("a", "&lt;!DOCTYPE x&gt;")), "DOCTYPE"),
        (page(("allParams", "x=%3C!doctype%20x%3E")), "DOCTYPE"),
    ],
)
def test_an_untrustworthy_page_is_refused_with_its_reason(body, reason):
    with pytest.raises(UnreadableReplyError, match=reason):
        html_form(body)


def test_a_name_that_repeats_with_the_same_value_is_one_input():
    assert html_form(page(("a", "1"), ("a", "1"))).inputs == {"a": "1"}


@pytest.mark.parametrize(
    "said",
    [
        "<!DOCTYPE html>",
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://x.example/strict.dtd">',
    ],
)
def test_a_page_may_say_that_it_is_html(said):
    """Nothing is fetched for it, and no entity but those of HTML means anything."""
    assert html_form(page(("a", "&amp;&x;"), before=said)).inputs == {"a": "&&x;"}
