"""Books that cannot be read stop no capture, for authorisations lapse; what gives money waits."""

from datetime import date
from typing import Any

import pytest

from recon.model.nights import Mode, NightRequest
from recon.model.words import End, Verdict
from recon.steps.ground.night_end import NightEnd, end_of
from recon.store.nights import runs

UNREACHABLE = '{ url = "postgresql+psycopg://books@127.0.0.1:9/books", query = "select 1" }'


def _instruct(merchant: Any) -> None:
    """Two captures, a cancel and a refund."""
    open_ones, paid = merchant.payments("authorised"), merchant.payments("captured")
    euro = next(one for one in paid if one.currency == "EUR")
    merchant.drop(
        "orders.csv",
        *(merchant.order(one, status="paid", action="capture") for one in open_ones[:2]),
        merchant.order(open_ones[2], status="cancelled", action="cancel"),
        merchant.order(euro, status="refunded", action="refund"),
    )


def _ledger_is(merchant: Any, told: str) -> None:
    declared = merchant.folder / "config" / "merchants.toml"
    lines = [one for one in declared.read_text().splitlines() if not one.startswith("ledger")]
    declared.write_text("\n".join([*lines, f"ledger = {told}"]))


def _moved(merchant: Any) -> list[str]:
    return sorted(row["operation"] for row in merchant.effects())


def _end(merchant: Any) -> NightEnd:
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            night = runs.of_night(connection, merchant.request)
        assert night is not None
        return end_of(night, environment=environment)


def _breaks(merchant: Any, day: str) -> list[str]:
    """Ids of the open breaks of a night, with the date since when each is open."""
    request = NightRequest("100042", "100042001", date.fromisoformat(day), Mode.LIVE)
    with merchant.environment() as environment, environment.store.reading() as connection:
        night = runs.of_night(connection, request)
    assert night is not None
    stored = merchant.result(night.run_id)
    return sorted(stored.breaks["break_id"] + " " + stored.breaks["first_seen"])


@pytest.mark.parametrize("why", ["gone", "unreachable", "no ledger at all"])
def test_captures_and_cancels_go_and_refunds_wait(merchant: Any, why: str) -> None:
    """The night sends what lapses, keeps what gives money back, and names the books it lacks."""
    _instruct(merchant)
    ledger = merchant.folder / "ledger.csv"
    if why == "gone":
        ledger.unlink()
    if why == "unreachable":
        _ledger_is(merchant, UNREACHABLE)
    if why == "no ledger at all":
        ledger.write_bytes(b"\x00\xff\x00 not a table")
    verdict = merchant.night()
    end = _end(merchant)

    assert _moved(merchant) == ["cancel", "capture", "capture"]
    assert (verdict, end.kind) == (Verdict.INCOMPLETE, End.INCOMPLETE)
    assert end.sentence.startswith("Missing: ledger ")
    assert merchant.instruction_states() == {"approved": 1, "confirmed": 3}
    settled = next(step.sentence for step in merchant.told if step.step == "settle")
    assert "refunds and payouts wait until it is" in settled


def test_books_of_which_every_row_is_refused_are_no_books(merchant: Any) -> None:
    """438 refused rows are told with the first, and make no payment look unbooked."""
    _instruct(merchant)
    entry = "E{0},100042,100042001,A-{0},capture,EURO,10.00,2026-11-20T10:00:00Z\n"
    ledger = merchant.folder / "ledger.csv"
    with ledger.open("a") as books:
        books.writelines(entry.format(number) for number in range(438))
    merchant.night()
    asked = next(step.sentence for step in merchant.told if step.step == "query")

    assert "Of 438 rows of ledger.csv 438 were refused, the first in line 2, currency: " in asked
    assert "every row of ledger.csv was refused (438)" in _end(merchant).sentence
    assert merchant.instruction_states() == {"approved": 1, "confirmed": 3}
    reconciled = next(step for step in merchant.told if step.step == "reconcile")
    assert reconciled.figures["totals_failed"] == 0


def test_the_same_night_again_sends_the_refund_when_the_books_are_back(merchant: Any) -> None:
    """What waited goes out once, with the run that read the ledger."""
    _instruct(merchant)
    ledger = merchant.folder / "ledger.csv"
    content = ledger.read_text()
    ledger.unlink()
    merchant.night()
    ledger.write_text(content)
    verdict = merchant.night()

    assert _moved(merchant) == ["cancel", "capture", "capture", "refund"]
    assert verdict is not Verdict.INCOMPLETE
    assert merchant.invariants()["double_effects"] == 0


def test_a_night_without_books_ends_no_break_of_the_books(merchant: Any) -> None:
    """What the ledger lacked before the outage is still open after it, and each night is proven."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    merchant.drop("orders.csv", *(merchant.order(one) for one in paid))
    merchant.wait(hours=8 * 24)
    first = merchant.night(date="2026-11-27", skip="")
    ledger = merchant.folder / "ledger.csv"
    content = ledger.read_text()
    ledger.unlink()
    merchant.wait(hours=3 * 24)
    second = merchant.night(date="2026-11-30")
    ledger.write_text(content)
    merchant.wait(hours=24)
    third = merchant.night(date="2026-12-01")

    assert (first, second, third) == (
        Verdict.BREAKS_OPEN,
        Verdict.INCOMPLETE,
        Verdict.INCOMPLETE,  # no order file of its day has arrived
    )
    breaks = {day: _breaks(merchant, day) for day in ("2026-11-27", "2026-12-01")}
    assert len(breaks["2026-11-27"]) == 2
    assert breaks["2026-12-01"] == breaks["2026-11-27"]
