"""A night that left money undone or in doubt says so everywhere a person or a machine looks."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.model.errors import ConfigurationError, ReconError
from recon.model.nights import Mode, StepSummary
from recon.model.terms import End, Verdict
from recon.steps.approvals import people
from recon.steps.money.gate import stop_sending
from recon.steps.night import whole_night as night
from recon.steps.runtime.environment import (
    CLOCK_VARIABLE,
    ending_in_order,
    environment_of,
    held_back,
    system_clock,
)
from recon.steps.runtime.night_end import end_of, measured
from recon.store.nights import runs
from reports.workbook_io import workbooks
from tests.recon.sandbox.conftest import Caller

BATCH_ROWS = 50


def _capture(merchant, *, count):
    """An order file that captures so many authorised payments."""
    payments = merchant.payments("authorised")[:count]
    merchant.drop(
        "orders.csv", *(merchant.order(one, status="paid", action="capture") for one in payments)
    )


def _end(merchant, *, mode=Mode.LIVE, date="2026-11-20"):
    """How the newest night of a day ended."""
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            night = runs.of_night(connection, merchant.request)
        assert (night.mode, str(night.business_date)) == (mode, date)
        return end_of(night, environment=environment)


def _stop(merchant):
    """What the night of the first day keeps of its stop."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        night = runs.of_night(connection, merchant.request)
        return runs.stop_of(connection, night.run_id)


def _reported(merchant):
    return merchant.told[-1].figures  # type: ignore[no-any-return] - a StepSummary


def test_one_wrong_signature_is_an_end_of_its_own(merchant):
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


def test_a_closed_gate_is_a_stop_also_where_nothing_is_in_doubt(merchant):
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


def _stopped_night(merchant, **how):
    """A night over two captures that nobody was allowed to send."""
    _capture(merchant, count=2)
    with merchant.environment() as environment:
        stop_sending(by="Anna Bell", reason="the portal looks odd", environment=environment)
    return merchant.night(**how)  # type: ignore[no-any-return] - a Verdict


def test_a_night_that_did_not_send_is_incomplete_at_best(merchant):
    """Nothing else is wrong with it, and still nobody signs it as reconciled."""
    verdict = _stopped_night(merchant)
    end = _end(merchant)

    assert (verdict, end.kind) == (Verdict.INCOMPLETE, End.SENDING_STOPPED)
    assert end.undone.unsent.count == 2
    assert "Missing" not in end.sentence


def test_what_was_left_when_sending_stopped_is_fixed_with_the_run(merchant):
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


def test_what_the_gateway_did_not_take_is_not_counted_as_sent(merchant):
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
def test_a_row_of_nobody_in_a_money_reply_keeps_a_night_from_reconciled(merchant, *, kind):
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


def test_risk_of_a_payment_stands_beside_its_break(merchant):
    """What the gateway answers about risk comes through client, store and workbook."""
    caller = Caller(merchant.sandbox.base_url)
    with caller.http:
        caller.authorise(order_no="web-1").raise_for_status()
    payment = merchant.payments("captured")[0]
    order = merchant.order(payment, order_no="web-1", currency="EUR", amount="1.23")
    merchant.drop("orders.csv", order)
    merchant.night(workbooks=workbooks())
    (path,) = (merchant.folder / "reports").glob("reconciliation*.xlsx")
    rows = load_workbook(path)["Breaks"].values
    (said,) = {str(cell) for cells in rows for cell in cells if "provider" in str(cell)}

    told = "3-D Secure 0; provider sandbox; checks risk_score (accept)"
    assert said.endswith(f"risk, says the gateway: {told}")


def _metrics(merchant):
    (path,) = (merchant.folder / "reports" / "metrics").glob("*.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_stage_that_fails_is_noted_by_its_kind_only(merchant):
    """The kind of the error stands there; its text, which can hold anything, does not."""

    def fails():
        msg = "the text of it"
        raise ReconError(msg)

    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
        pytest.raises(ReconError),
    ):
        measured("ingest", fails, run_id=run_id, environment=environment)

    (stage,) = _metrics(merchant)["stages"]
    assert (stage["failed"], stage["rows"]) == ("ReconError", {})
    assert "the text of it" not in json.dumps(_metrics(merchant))


def test_figures_that_cannot_be_written_stop_nothing(merchant):
    """A night goes on where its metrics folder is a file."""
    folder: Path = merchant.folder / "reports" / "metrics"
    folder.write_text("in the way")
    summary = StepSummary("ingest", "done")
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        got = measured("ingest", lambda: summary, run_id=run_id, environment=environment)

    assert got is summary
    assert folder.read_text() == "in the way"


def test_what_a_step_says_is_masked_once_for_every_sink(merchant):
    """The command line, the log of nights, the figures and Prefect get the sentence from here."""
    quoted = StepSummary("ingest", "order 4929-7801-6452-3877 of caf\udce9.csv")
    with merchant.environment() as environment:
        done = measured("ingest", lambda: quoted, run_id="none", environment=environment)
    assert done.sentence == "order 4929-78**-****-3877 of caf\\xe9.csv"


SHIFT = timedelta(days=9)


def moved(merchant, *, shift, **more):
    """A merchant's variables with another time."""
    return {**merchant.variables, CLOCK_VARIABLE: shift, **more}


def test_the_time_of_the_sandboxs_nights_is_moved_by_a_variable(merchant):
    """Clock and the clock that nobody can set go together; without the variable nothing moves.

    A caller who brings a clock keeps it.
    """
    seconds = str(int(SHIFT.total_seconds()))
    with environment_of(moved(merchant, shift=seconds), clock=system_clock) as environment:
        ahead = environment.clock() - system_clock()
        before = environment.uptime()
    with environment_of(merchant.variables, clock=system_clock) as environment:
        plain = environment.clock() - system_clock()

    with environment_of(moved(merchant, shift=seconds), clock=merchant.clock) as environment:
        assert environment.clock() - merchant.clock() < timedelta(minutes=1)

    assert abs(ahead - SHIFT) < timedelta(minutes=1)
    assert abs(plain) < timedelta(minutes=1)
    assert before.boot_id == "replayed"
    apart = timedelta(milliseconds=before.milliseconds - system_clock().timestamp() * 1_000)
    assert abs(apart - SHIFT) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("shift", "elsewhere", "says"),
    [
        *((shift, {}, "no whole number of seconds") for shift in ("soon", "1.5", "99999999999")),
        ("60", {"RECON_GATEWAY_BASE_URL": "https://gateway.example/"}, "moves .* sandbox's nights"),
    ],
)
def test_what_is_no_number_of_seconds_of_the_sandbox_is_refused(merchant, shift, elsewhere, says):
    """Never guessed, never left out in silence.

    Who could move the time elsewhere could let approvals and months run out.
    """
    with (
        pytest.raises(ConfigurationError, match=f"{CLOCK_VARIABLE} .*{says}"),
        environment_of(moved(merchant, shift=shift, **elsewhere), clock=system_clock),
    ):
        pass


NIGHT = "from recon.cli import main; raise SystemExit(main())"
ARRIVES_WITHIN_SECONDS = 40
ENDS_WITHIN_SECONDS = 40
"""Ten where nothing else runs; less than the gateway's silence wherever it runs."""


NOTIFIED = [signal.SIGTERM, signal.SIGINT] if os.environ.get("CHAOS") else [signal.SIGTERM]
"""Both in campaign `chaos`; a night of its own process is slow."""


def test_a_signal_that_was_held_back_comes_afterwards():
    """Within the block it is only noted; at its end it does what it would have done."""
    seen = []

    def reported_within():
        with ending_in_order(), held_back() as told:
            signal.raise_signal(signal.SIGTERM)
            seen.append(told())

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        reported_within()
    assert seen == ["SIGTERM"]


def test_listeners_are_as_they_were(monkeypatch):
    """Nothing is changed for good, and a listener that was there keeps its signal."""
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    with ending_in_order(), held_back() as told:
        assert told() == ""
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before

    monkeypatch.setattr(signal, "getsignal", lambda _: print)
    with ending_in_order():
        monkeypatch.undo()
        assert signal.getsignal(signal.SIGTERM) == before[0]


@pytest.mark.process
@pytest.mark.parametrize("told", NOTIFIED)
def test_a_night_that_is_told_to_end_marks_its_batch(merchant, told):
    """A gateway that is silent for a minute: the batch is in doubt, the run stopped long before."""
    (merchant.folder / "config" / "gateway.toml").write_text(
        "calls_per_second = 1000\ndeadline_seconds = 60\n"
    )
    merchant.fault({"operation": "refund", "kind": "silence", "seconds": 60})
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:3]
    merchant.drop(
        "refunds.csv", *(merchant.order(one, status="refunded", action="refund") for one in paid)
    )
    arguments = ["nightly", "--merchant", "100042", "--account", "100042001"]
    with subprocess.Popen(
        [sys.executable, "-c", NIGHT, *arguments, "--business-date", "2026-11-20"],
        env={**os.environ, **merchant.variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as night:
        _wait_until(merchant, "SELECT count(*) FROM batch WHERE state = 'claimed'")
        time.sleep(1)
        night.send_signal(told)
        began = time.monotonic()
        _, words = night.communicate(timeout=60)
        took = time.monotonic() - began

    assert night.returncode == 130, words.decode()
    assert merchant.instruction_states() == {"in_doubt": 3}
    ((status, problem),) = merchant.rows("SELECT status, problem FROM run")
    assert status == "stopped"
    assert told.name in problem
    # The sender waits END_WITHIN; a busy machine needs a while for the rest.
    assert took < ENDS_WITHIN_SECONDS


def _wait_until(merchant, query):
    ends = time.monotonic() + ARRIVES_WITHIN_SECONDS
    while time.monotonic() < ends:
        if merchant.rows(query)[0][0]:
            return
        time.sleep(0.05)
    pytest.fail(f"never: {query}")
