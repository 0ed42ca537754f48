"""Books that cannot be read stop no capture, for authorisations lapse; what gives money waits."""

from typing import Any

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


def _moved(merchant: Any) -> list[str]:
    return sorted(row["operation"] for row in merchant.effects())


def _end(merchant: Any) -> NightEnd:
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            night = runs.of_night(connection, merchant.request)
        assert night is not None
        return end_of(night, environment=environment)


def test_books_of_a_database_that_nobody_reaches_stop_no_capture(merchant: Any) -> None:
    """The night sends what lapses, keeps what gives money back, and names the books it lacks."""
    _instruct(merchant)
    declared = merchant.folder / "config" / "merchants.toml"
    lines = [one for one in declared.read_text().splitlines() if not one.startswith("ledger")]
    declared.write_text("\n".join([*lines, f"ledger = {UNREACHABLE}"]))
    verdict = merchant.night()
    end = _end(merchant)

    assert _moved(merchant) == ["cancel", "capture", "capture"]
    assert (verdict, end.kind) == (Verdict.INCOMPLETE, End.INCOMPLETE)
    assert end.sentence.startswith("Missing: ledger ")
    assert merchant.instruction_states() == {"approved": 1, "confirmed": 3}
    settled = next(step.sentence for step in merchant.told if step.step == "settle")
    assert "refunds and payouts wait until it is" in settled
