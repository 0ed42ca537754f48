"""A night that left money undone or in doubt says so everywhere a person or a machine looks."""

from collections.abc import Mapping
from typing import Any

import pytest

from recon.model.nights import Mode
from recon.model.words import End, Verdict
from recon.steps.ground.night_end import NightEnd, end_of
from recon.steps.money.gate import stop_sending
from recon.steps.people import people
from recon.store.nights import runs
from recon.store.nights.runs import Stop

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
