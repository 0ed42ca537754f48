"""Two nights of one account: journals are handed out once, booked, and `diff` says what changed."""

from pathlib import Path
from typing import Any

import pytest

from recon.errors import UsageError
from recon.steps.difference import difference
from recon.steps.journals import export_journals
from recon.store import journal_rows, results, runs

RULES = """
[grace]
gateway_to_ledger = "1h"
[journal.accounts]
clearing = "1360"
sales = "8400"
refunds = "8700"
chargebacks = "6930"
payouts = "1200"
"""
NEXT_DATE = "2026-11-21"


def newest(merchant: Any) -> str:
    """The newest finished run."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        return runs.finished(connection)[-1].run_id


def handed_out(merchant: Any, run_id: str, *, out: Path) -> Any:
    """`recon journals export`."""
    with merchant.environment() as environment:
        return export_journals(run_id, out=out, environment=environment)


def proposed(merchant: Any, run_id: str) -> tuple[Any, dict[str, str], list[Any]]:
    """The journals of a run, the state of those handed out, and its totals T14."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        result = results.load(connection, run_id)
        assert result is not None
        states = journal_rows.states(connection, result.journals["journal_id"])
        return result, states, [one for one in result.control_totals if one.id == "T14"]


def book(merchant: Any, payment: Any) -> None:
    """The ledger learns of the capture."""
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        cells = ["L1", "100042", "100042001", payment.order_no, "capture", payment.currency]
        ledger.write(",".join([*cells, payment.amount, payment.ordered_at]) + "\n")


@pytest.fixture
def unbooked(merchant: Any) -> tuple[Any, Any]:
    """A merchant with one captured payment that the ledger lacks, after its first night."""
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + RULES)
    payment = merchant.payments("captured")[0]
    merchant.drop("orders.csv", merchant.order(payment))
    merchant.night()
    return merchant, payment


def test_a_journal_is_handed_out_once_and_booked_when_the_ledger_shows_it(
    unbooked: tuple[Any, Any], tmp_path: Path
) -> None:
    """Proposed, exported, never proposed again, booked; and the two nights differ by the ledger."""
    merchant, payment = unbooked
    first = newest(merchant)

    handed = handed_out(merchant, first, out=tmp_path / "out")
    again = handed_out(merchant, first, out=tmp_path / "out")

    assert (handed.journals, again.journals, again.handed_before) == (1, 0, 1)
    lines = handed.path.read_text().splitlines()
    assert [line.split(",")[2] for line in lines[1:]] == ["1360", "8400"]
    result, states, fourteen = proposed(merchant, first)
    assert result.breaks["code"].tolist() == ["MISSING_IN_LEDGER"]
    assert list(states.values()) == ["exported"]
    assert [total.passed for total in fourteen] == [True]

    book(merchant, payment)
    merchant.wait(hours=24)
    merchant.night(date=NEXT_DATE)
    second = newest(merchant)
    with merchant.environment() as environment:
        found = difference(first, NEXT_DATE, environment=environment)
        with environment.store.reading() as connection:
            booked = journal_rows.states(connection, states)
    after, _, _ = proposed(merchant, second)

    assert list(booked.values()) == ["booked"]
    assert after.movements["movement"].tolist() == ["matched late"]
    (change,) = found.changes
    assert (change.before, change.after) == ("MISSING_IN_LEDGER", "matched")
    assert change.why.startswith("ledger: nothing -> ")
    assert found.same_rules


def test_only_the_newest_night_hands_journals_out(
    unbooked: tuple[Any, Any], tmp_path: Path
) -> None:
    """Yesterday's proposals may be booked by now."""
    merchant, _ = unbooked
    first = newest(merchant)
    merchant.wait(hours=24)
    merchant.night(date=NEXT_DATE)

    with pytest.raises(UsageError, match="is not the newest"):
        handed_out(merchant, first, out=tmp_path / "out")
    with (
        merchant.environment() as environment,
        pytest.raises(UsageError, match="no finished night"),
    ):
        difference(first, "2020-01-01", environment=environment)
