"""Pages for people at `/_sandbox/`, and the document that explains them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from recon.sandbox import SandboxOptions, create_app, faults
from recon.sandbox.control import overview, timeline
from recon.sandbox.exchange import OPERATIONS
from recon.sandbox.faults import KINDS, rules_in
from recon.sandbox.server import open_sandbox


def test_a_timeline_shows_truth_beside_what_was_told(gateway):
    row = gateway.authorised()[0]
    gateway.faults({"operation": "capture", "kind": "fin"})
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", [row])
    page = gateway.http.get(f"/_sandbox/transactions/{row['transaction_id']}").text
    assert "What is true" in page
    told, true = "<td>no answer (fin)</td>", f"<td>capture {row['amount']} {row['currency']}</td>"
    assert f"{told}{true}<td>≠</td><td>fin-after</td>" in page
    assert "In 1 call the client was told something else" in page


def test_what_a_client_sent_is_text_on_the_page(gateway):
    page = gateway.http.get("/_sandbox/", params={"q": '"><script>x</script>'}).text
    assert "<script>" not in page


def test_what_the_book_holds_is_text_on_the_page():
    sandbox = open_sandbox(SandboxOptions(orders=1))
    (payment,) = sandbox.database.every_payment()
    sandbox.database.write_payments([replace(payment, order_no="<script>x</script>")])
    story = timeline(sandbox, transaction_id=payment.transaction_id)
    first = overview(sandbox, searched="")
    sandbox.database.close()
    assert story is not None
    assert "<script>" not in story
    assert "<script>" not in first
    assert "&lt;script&gt;" in first


def test_broken_invariants_stand_on_the_page(gateway):
    row = gateway.captured()[0] | {"refund_amount": "1.00", "refund_reason": "x"}
    row["refund_amount"] = "1.00" if row["currency"] != "KWD" else "0.010"
    gateway.batch("refund", [row, row])
    assert "double_effects 1" in gateway.http.get("/_sandbox/").text


DOCUMENT = (Path(__file__).parents[3] / "docs" / "GATEWAY.md").read_text(encoding="utf-8")
TABLE = (Path(faults.__file__).with_name("faults.toml")).read_text(encoding="utf-8")
_KIND = re.compile(r'^# (\{"kind": "([a-z_]+)".*?\}): (.+)$', re.MULTILINE)


def test_every_kind_stands_below_its_example():
    assert [row[1] for row in _KIND.findall(TABLE)] == list(KINDS)


def test_every_example_is_a_rule_of_its_kind():
    for example, kind, _ in _KIND.findall(TABLE):
        (rule,) = rules_in(json.loads(example), source=kind, operations=OPERATIONS)
        assert rule.kind == kind


def test_the_table_says_which_kinds_have_a_choice_of_side():
    for example, kind, words in _KIND.findall(TABLE):
        has_choice = len(KINDS[kind].sides) > 1
        says = "either side" in words or "before" in words + example
        assert says == has_choice or kind in {"lag", "stale_signature", "replayed_reply"}, kind


def test_the_document_names_every_address():
    app = create_app(SandboxOptions(orders=0))
    paths = {getattr(route, "path", "") for route in app.routes}
    app.state.sandbox.database.close()
    named = {path for path in paths if path.startswith("/_sandbox")}
    below = {path: path.removeprefix("/_sandbox").split("{")[0].strip("/") for path in named}
    missing = {path for path, name in below.items() if f"`{name}" not in DOCUMENT}
    assert len(named) > 8
    assert missing == {"/_sandbox/transactions/{transaction_id}"}
