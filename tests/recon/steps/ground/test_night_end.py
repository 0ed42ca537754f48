"""A night that left money undone or in doubt says so everywhere a person or a machine looks."""

from collections.abc import Mapping
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.cli.workbooks import workbooks
from recon.model.nights import Mode
from recon.model.words import End, Verdict
from recon.steps.ground.night_end import NightEnd, end_of
from recon.steps.money.sending import stop_sending
from recon.steps.people import people
from recon.store.nights import runs
from recon.store.nights.runs import Stop
from reports.summary.summary_attention import NOTHING

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


def _stop(merchant: Any) -> Stop:
    """What the night of the first day keeps of its stop."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        night = runs.of_night(connection, merchant.request)
        assert night is not None
        return runs.stop_of(connection, night.run_id)


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


def _stopped_night(merchant: Any, **how: Any) -> Verdict:
    """A night over two captures that nobody was allowed to send."""
    _capture(merchant, count=2)
    with merchant.environment() as environment:
        stop_sending(by="Anna Bell", reason="the portal looks odd", environment=environment)
    return merchant.night(**how)  # type: ignore[no-any-return] - a Verdict


def test_a_night_that_did_not_send_is_incomplete_at_best(merchant: Any) -> None:
    """Nothing else is wrong with it, and still nobody signs it as reconciled."""
    verdict = _stopped_night(merchant)
    end = _end(merchant)

    assert (verdict, end.kind) == (Verdict.INCOMPLETE, End.SENDING_STOPPED)
    assert end.undone.unsent.count == 2
    assert "Missing" not in end.sentence


def test_page_one_instructions_and_status_say_what_stopped_it(merchant: Any) -> None:
    """Why, how many and how much: on both sheets, in `recon status`, for each that was not sent."""
    _stopped_night(merchant, workbooks=workbooks())
    end = _end(merchant)
    book = load_workbook(str(_reported(merchant)["workbook"]), read_only=True)
    cells = {
        sheet.title: [str(cell) for row in sheet.values for cell in row if cell] for sheet in book
    }
    with merchant.environment() as environment:
        ((run, needed),) = people.status(environment)
        standing = people.standing_of(run, environment=environment)
    words = f"Not sent: {end.undone.unsent.in_words}."

    assert "2 captures (" in words
    for text in (cells["Summary"], cells["Instructions"], [standing]):
        (told,) = [one for one in text if "Sending stopped: " in one]
        assert "Anna Bell" in told
        assert "the portal looks odd" in told
        assert words in told
    assert NOTHING not in cells["Summary"]
    assert [entry.what for entry in needed] == ["capture not sent"] * 2


def test_what_was_left_when_sending_stopped_is_fixed_with_the_run(merchant: Any) -> None:
    """A later night that sends the rest changes nothing of what the first one says it left."""
    _capture(merchant, count=BATCH_ROWS + 10)
    merchant.fault({"operation": "capture", "kind": "status", "status": 403, "nth": 1})
    merchant.night()
    then = _stop(merchant)
    merchant.fault()
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21")

    assert then.not_sent.startswith("10 captures (")
    assert _stop(merchant) == then


def test_what_the_gateway_did_not_take_is_not_counted_as_sent(merchant: Any) -> None:
    """Where a 429 with Retry-After is declared final its rows were not sent, and wait."""
    declared = "[user.refusals]\nrefusal_is_final = true\n"
    (merchant.folder / "config" / "status_map.toml").write_text(declared)
    _capture(merchant, count=2)
    merchant.fault(
        {"operation": "capture", "kind": "status", "status": 429, "when": "before"}
        | {"retry_after": "1"}
    )
    merchant.night()
    (settled,) = [one for one in merchant.told if one.step == "settle"]

    assert (settled.figures["sent"], settled.figures["waiting"]) == (0, 2)
    assert "0 sent in 0 batches; 2 approved and not sent" in settled.sentence


@pytest.mark.parametrize("kind", ["foreign_row", ""])
def test_a_row_of_nobody_in_a_money_reply_keeps_a_night_from_reconciled(
    merchant: Any, *, kind: str
) -> None:
    """It is one item that is not verified, named by its ids; the same night again still says so."""
    _capture(merchant, count=2)
    merchant.fault(*([{"operation": "capture", "kind": kind, "row": 1}] if kind else []))
    verdict = merchant.night()
    merchant.fault()
    again = merchant.night()
    with merchant.environment() as environment:
        ((_, needed),) = people.status(environment)

    expected = Verdict.BREAKS_OPEN if kind else Verdict.RECONCILED
    assert (verdict, again) == (expected, expected)
    assert merchant.result().breaks.empty
    named = [entry.next_step for entry in needed if entry.what == "answer not verified"]
    assert len(named) == bool(kind)
    assert all("in the reply to a capture: order " in words for words in named)


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
