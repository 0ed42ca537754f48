from dataclasses import replace
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions
from recon.sandbox.control import overview, timeline
from recon.sandbox.server import open_sandbox


def test_a_timeline_shows_truth_beside_what_was_told(gateway: Any) -> None:
    """A capture whose reply was cut stands in the truth with its fault beside it."""
    row = gateway.authorised()[0]
    gateway.faults({"operation": "capture", "kind": "fin"})
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", [row])
    page = gateway.http.get(f"/_sandbox/transactions/{row['transaction_id']}").text
    assert "What is true" in page
    told, true = "<td>no answer (fin)</td>", f"<td>capture {row['amount']} {row['currency']}</td>"
    assert f"{told}{true}<td>≠</td><td>fin-after</td>" in page
    assert "In 1 call the client was told something else" in page


def test_what_a_client_sent_is_text_on_the_page(gateway: Any) -> None:
    """Markup in a search or a row never becomes markup of the page."""
    page = gateway.http.get("/_sandbox/", params={"q": '"><script>x</script>'}).text
    assert "<script>" not in page


def test_what_the_book_holds_is_text_on_the_page() -> None:
    """Even an order number that no door would let in does not become markup."""
    sandbox = open_sandbox(SandboxOptions(orders=1))
    (payment,) = sandbox.book.every_payment()
    sandbox.book.write_payments([replace(payment, order_no="<script>x</script>")])
    story = timeline(sandbox, transaction_id=payment.transaction_id)
    first = overview(sandbox, searched="")
    sandbox.book.close()
    assert story is not None
    assert "<script>" not in story
    assert "<script>" not in first
    assert "&lt;script&gt;" in first


def test_broken_invariants_stand_on_the_page(gateway: Any) -> None:
    """An equal refund twice is named on the first page."""
    row = gateway.captured()[0] | {"refund_amount": "1.00", "refund_reason": "x"}
    row["refund_amount"] = "1.00" if row["currency"] != "KWD" else "0.010"
    gateway.batch("refund", [row, row])
    assert "double_effects 1" in gateway.http.get("/_sandbox/").text
