"""The pages of the truth as a person sees them: search, timeline, no script, no surprise."""

from pathlib import Path
from typing import Any

import httpx
import pytest


def lied_to(gateway: Any) -> dict[str, str]:
    """A payment whose client was told less than the truth, twice."""
    row: dict[str, str] = gateway.authorised()[0]
    gateway.faults(
        {"operation": "capture", "kind": "fin"},
        {"operation": "retrievalTrans", "kind": "lag"},
        {"operation": "refund", "kind": "portal", "when": "before", "amount": None},
    )
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", [row])
    gateway.query(trades=row["transaction_id"])
    gateway.row("refund", row | {"refund_amount": row["amount"], "refund_reason": "returned"})
    return row


@pytest.mark.parametrize("scripts", [True, False])
def test_a_person_finds_a_payment_and_reads_its_story(
    gateway: Any, window: Any, tmp_path: Path, *, scripts: bool
) -> None:
    """Search, follow the link, read: the same with JavaScript and without."""
    row = lied_to(gateway)
    page = window(scripts=scripts).page
    page.goto(f"{gateway.base_url}/_sandbox/")
    page.get_by_label("Order, transaction or payout").fill(row["order_no"])
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name=row["transaction_id"]).click()
    story = page.get_by_role("table").nth(1)
    capture = story.get_by_role("row").filter(has_text="fin-after")
    assert "no answer (fin)" in capture.inner_text()
    assert f"capture {row['amount']} {row['currency']}" in capture.inner_text()
    assert "by hand in the portal" in story.inner_text()
    assert "told something else than the truth" in page.inner_text("body")
    page.locator("body").screenshot(path=tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").stat().st_size > 10_000


def test_markup_in_a_search_is_shown_as_text(gateway: Any, window: Any) -> None:
    """A browser finds no element in what a person typed, and gives it back in the field."""
    typed = '"><img src=x onerror="document.title=1">'
    page = window().page
    page.goto(f"{gateway.base_url}/_sandbox/")
    page.get_by_label("Order, transaction or payout").fill(typed)
    page.get_by_role("button", name="Search").click()
    assert page.locator("img").count() == 0
    assert page.get_by_label("Order, transaction or payout").input_value() == typed
    assert page.title() == "Sandbox gateway"


def test_the_pages_fit_a_narrow_screen(gateway: Any, window: Any) -> None:
    """Nothing has to be scrolled sideways on a tablet."""
    row = lied_to(gateway)
    page = window().page
    page.set_viewport_size({"width": 820, "height": 1000})
    for path in ("", f"transactions/{row['transaction_id']}"):
        page.goto(f"{gateway.base_url}/_sandbox/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
