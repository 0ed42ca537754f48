"""A night that left money undone or in doubt says so everywhere a person or a machine looks."""

from collections.abc import Mapping
from typing import Any

import pytest

from recon.model.nights import Mode
from recon.model.words import End, Verdict
from recon.steps.ground.night_end import NightEnd, end_of
from recon.store.nights import runs

BATCH_ROWS = 50


def _capture(merchant: Any, *, count: int) -> None:
    """An order file that captures so many authorised payments."""
    payments = merchant.payments("authorised")[:count]
    merchant.drop(
        "orders.csv", *(merchant.order(one, status="paid", action="capture") for one in payments)
    )


def _end(merchant: Any, *, mode: Mode = Mode.LIVE, date: str = "2026-11-20") -> NightEnd:
    """How the newest night of a day ended."""
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            night = runs.of_night(connection, merchant.request)
        assert night is not None
        assert (night.mode, str(night.business_date)) == (mode, date)
        return end_of(night, environment=environment)


def _reported(merchant: Any) -> Mapping[str, int | str]:
    return merchant.told[-1].figures  # type: ignore[no-any-return] - a StepSummary


def test_one_wrong_signature_is_an_end_of_its_own(merchant: Any) -> None:
    """Money in doubt comes before the verdict: code 5, counts and sums, and why sending stopped."""
    _capture(merchant, count=BATCH_ROWS + 10)
    merchant.fault({"operation": "capture", "kind": "wrong_signature", "nth": 1})
    verdict = merchant.night()
    end = _end(merchant)

    assert (end.kind, end.kind.exit_code, end.verdict) == (End.MONEY_IN_DOUBT, 5, verdict)
    assert (end.undone.doubtful.count, end.undone.unsent.count) == (BATCH_ROWS, 10)
    assert f"In doubt: {BATCH_ROWS} captures (" in end.sentence
    assert "Not sent: 10 captures (" in end.sentence
    assert "Sending stopped: the reply's signature is wrong" in end.sentence
    assert end.sentence in merchant.told[-1].sentence
    assert _reported(merchant) | {"end": "MONEY IN DOUBT", "in_doubt": 50, "not_sent": 10} == (
        _reported(merchant)
    )


def test_two_resets_in_a_row_are_money_in_doubt(merchant: Any) -> None:
    """A gateway that hangs up twice ends the night with 5, whatever is reconciled beside it."""
    captures, paid = merchant.payments("authorised"), merchant.payments("captured")
    merchant.drop(
        "orders.csv",
        *(merchant.order(one, status="paid", action="capture") for one in captures[:3]),
        *(merchant.order(one, status="cancelled", action="cancel") for one in captures[3:5]),
        *(merchant.order(one, status="refunded", action="refund") for one in paid[:4]),
    )
    reset = {"kind": "reset", "when": "after"}
    merchant.fault(reset | {"operation": "capture"}, reset | {"operation": "cancel"})
    merchant.night()
    end = _end(merchant)

    assert end.kind is End.MONEY_IN_DOUBT
    assert (end.undone.doubtful.count, end.undone.unsent.count) == (5, 4)
    assert "2 batches in a row ended in doubt" in end.sentence


def test_a_closed_gate_is_a_stop_also_where_nothing_is_in_doubt(merchant: Any) -> None:
    """A database older than what was noted beside the reports sends nothing and ends with 5."""
    _capture(merchant, count=2)
    reports = merchant.folder / "reports"
    merchant.night()
    head = reports / "history-head.jsonl"
    head.write_text(head.read_text().replace('"sequence":', '"sequence":9'))
    (reports / "history-verified.json").unlink(missing_ok=True)
    merchant.drop(
        "more.csv",
        *(
            merchant.order(one, status="paid", action="capture")
            for one in merchant.payments("authorised")[2:5]
        ),
    )
    merchant.night()
    end = _end(merchant)

    assert (end.kind, end.kind.exit_code) == (End.SENDING_STOPPED, 5)
    assert end.undone.unsent.count == 3
    assert "a backup that was restored" in end.sentence


def test_an_ordinary_night_ends_as_its_verdict(merchant: Any) -> None:
    """Confirmed captures, breaks and waits are no alarm: the end is the verdict, and 3."""
    one, other = merchant.payments("captured")[:2]
    merchant.drop("orders.csv", merchant.order(one, amount="1.00"), merchant.order(other))
    verdict = merchant.night()
    end = _end(merchant)

    assert verdict is Verdict.BREAKS_OPEN
    assert (end.kind, end.kind.exit_code) == (End.BREAKS_OPEN, 3)
    assert end.sentence == ""


def test_an_incomplete_night_names_what_is_missing(merchant: Any) -> None:
    """Without an order file the end is INCOMPLETE, and says which source it lacks."""
    assert merchant.night() is Verdict.INCOMPLETE
    end = _end(merchant)

    assert (end.kind, end.kind.exit_code) == (End.INCOMPLETE, 4)
    assert "no order file has arrived for this business date" in end.sentence


def test_an_incomplete_night_without_a_ledger_names_the_ledger(merchant: Any) -> None:
    """The account declares no books: page one, the command and status name them."""
    _capture(merchant, count=2)
    declared = merchant.folder / "config" / "merchants.toml"
    lines = declared.read_text().splitlines()
    declared.write_text("\n".join(one for one in lines if not one.startswith("ledger")))
    assert merchant.night() is Verdict.INCOMPLETE

    assert "no ledger was read" in _end(merchant).sentence


def test_too_many_uncertain_rows_are_named_by_group(merchant: Any) -> None:
    """Above the allowance the sentence says how many rows, of which group, and what is allowed."""
    good = merchant.order(merchant.payments("captured")[0])
    bad = [good | {"order_no": f"X{number}", "amount": "12,5"} for number in range(25)]
    merchant.drop("orders.csv", good, *bad)
    assert merchant.night() is Verdict.INCOMPLETE
    told = _end(merchant).sentence

    assert "25 rows of orders.csv were rejected" in told
    assert "more than the 20 rows that may be" in told


def test_a_dry_run_ends_as_its_verdict(merchant: Any) -> None:
    """What nothing was asked to send cannot have stopped."""
    _capture(merchant, count=2)
    merchant.fault({"operation": "capture", "kind": "wrong_signature", "nth": 1})
    merchant.night()
    merchant.night(mode=Mode.DRY_RUN)

    assert _reported(merchant)["end"] == _reported(merchant)["verdict"]


@pytest.mark.parametrize("end", list(End))
def test_every_end_has_a_code_and_what_to_do(end: End) -> None:
    """The codes of the handbook: 0, 3, 4, and 5 for money."""
    codes = {"RECONCILED": 0, "BREAKS OPEN": 3, "INCOMPLETE": 4, "NOT PROVEN": 4}

    assert end.exit_code == codes.get(end.value, 5)
