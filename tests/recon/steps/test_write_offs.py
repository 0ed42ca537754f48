"""Write-offs in the books over nights: what nobody agreed to makes the night NOT PROVEN."""

from datetime import timedelta
from typing import Any

from recon.model.words import Verdict
from recon.steps.compare.inputs import frozen_inputs
from recon.store.nights import results, runs

HEADER = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"


def book(merchant: Any, *rows: tuple[str, str, str]) -> None:
    """Put the books in place: entry id, order and amount of each write-off."""
    lines = [
        f"{entry},100042,100042001,{order},write_off,EUR,{amount},2026-11-19T10:00:00Z\n"
        for entry, order, amount in rows
    ]
    (merchant.folder / "ledger.csv").write_text(HEADER + "".join(lines))


def not_tied(merchant: Any) -> list[str]:
    """The T10 of the last night that do not tie, by name."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        last = runs.finished(connection)[-1].run_id
        totals = results.load_totals(connection, last)
    return sorted({one.name for one in totals if one.id == "T10" and not one.passed})


def test_a_write_off_before_its_break_makes_the_night_not_proven(merchant: Any) -> None:
    """Booked on a day on which nothing was broken there, and agreed to by nobody."""
    merchant.night()
    book(merchant, ("W1", "ORD-1", "5.00"))
    merchant.now += timedelta(days=1)
    verdict = merchant.night(date="2026-11-21")

    assert verdict is Verdict.NOT_PROVEN
    assert not_tied(merchant) == [
        "write-off of ORD-1 = agreed",
        "write-offs in the books = those that two people agreed to",
    ]


def test_what_the_first_night_found_in_the_books_is_taken_over_for_good(merchant: Any) -> None:
    """Nobody could agree to it here; a later one of the same order is not covered by it."""
    book(merchant, ("W1", "ORD-1", "5.00"))
    first = merchant.night()
    merchant.now += timedelta(days=1)
    second = merchant.night(date="2026-11-21")
    same = not_tied(merchant)
    book(merchant, ("W1", "ORD-1", "5.00"), ("W2", "ORD-1", "5.00"))
    merchant.now += timedelta(days=1)
    third = merchant.night(date="2026-11-22")
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run = runs.get(connection, runs.finished(connection)[-1].run_id)
        agreed = frozen_inputs(run, environment=environment).agreed_write_offs

    assert Verdict.NOT_PROVEN not in {first, second}
    assert same == []
    assert third is Verdict.NOT_PROVEN
    assert agreed is not None
    assert agreed.entries == {"W1": ("EUR", 500)}
