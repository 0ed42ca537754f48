from dataclasses import replace
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions
from recon.sandbox.pages.page import overview
from recon.sandbox.pages.timeline import timeline
from recon.sandbox.server.sandbox_app import open_sandbox


def test_the_page_finds_an_order_by_a_part_of_its_number(gateway: Any) -> None:
    """Search shows the payment with its state and a link to its story."""
    row = gateway.authorised()[0]
    page = gateway.http.get("/_sandbox/", params={"q": row["order_no"]}).text
    assert row["order_no"] in page
    assert f"/_sandbox/transactions/{row['transaction_id']}" in page
    assert "Every invariant holds" in page
    other = gateway.http.get("/_sandbox/", params={"q": "%"}).text
    assert row["order_no"] not in other


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


def test_a_client_that_was_told_the_truth_reads_so(gateway: Any) -> None:
    """Done and done, refused and nothing: both agree, and the page says it in words."""
    row = gateway.authorised()[0]
    gateway.row("capture", row)
    gateway.row("capture", row)
    page = gateway.http.get(f"/_sandbox/transactions/{row['transaction_id']}").text
    assert "The client was told the truth, every time." in page
    assert page.count("<td>=</td>") == 2


def test_a_query_that_lied_stands_in_the_timeline(gateway: Any) -> None:
    """An answer that lags behind is a lie with a place in the story."""
    row = gateway.authorised()[0]
    gateway.row("capture", row)
    gateway.faults({"operation": "retrievalTrans", "kind": "lag"})
    gateway.query(trades=row["transaction_id"])
    page = gateway.http.get(f"/_sandbox/transactions/{row['transaction_id']}").text
    assert "retrievalTrans" in page
    assert "≠" in page


def test_what_happened_at_one_instant_stands_in_the_order_in_which_it_happened(
    gateway: Any,
) -> None:
    """The clock stands still between calls; a refund by hand comes after the capture it needs."""
    row = gateway.authorised()[0]
    gateway.row("capture", row)
    by_hand = {"action": "refund", "key": row["order_no"]}
    gateway.http.post("/_sandbox/portal", json=by_hand).raise_for_status()
    page = gateway.http.get(f"/_sandbox/transactions/{row['transaction_id']}").text
    assert page.index(">authorise ") < page.index(">capture ") < page.index("by hand in the portal")


def test_the_first_page_shows_the_plan_and_the_latest_calls(gateway: Any) -> None:
    """What is about to go wrong, how often it did, and who asked for what."""
    gateway.faults({"operation": "capture", "kind": "status", "status": 502})
    gateway.batch("capture", gateway.authorised()[:1])
    page = gateway.http.get("/_sandbox/").text
    assert "<td>status-after</td><td>capture</td>" in page
    assert page.count("status-after") == 2
    assert "No payment fits." in gateway.http.get("/_sandbox/", params={"q": "no such"}).text


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


def test_an_unknown_transaction_is_not_found(gateway: Any) -> None:
    """404 for a story that does not exist."""
    assert gateway.http.get("/_sandbox/transactions/0").status_code == 404
