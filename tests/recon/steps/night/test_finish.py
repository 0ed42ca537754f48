from typing import Any

import pytest

from recon.model.errors import OutputError, UsageError
from recon.model.nights import Part
from recon.model.words import Verdict
from recon.steps.night import whole_night
from recon.steps.night.report import Workbooks
from recon.store.nights import runs


def finished(merchant: Any) -> str:
    """The stopped night brought to its end; its run."""
    merchant.told = []
    with merchant.environment() as environment:
        return whole_night.finish(
            merchant.request,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=merchant.told.append,
        )


def stopped_at_its_report(merchant: Any) -> None:
    """A night that captured one payment and could not write its workbook."""

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    payment = merchant.payments("authorised")[0]
    merchant.drop("o.csv", merchant.order(payment, status="paid", action="capture"))
    with pytest.raises(OutputError, match=r"No space left.*make room on its disk"):
        merchant.night(workbooks=Workbooks(write=full, totals=full))


def test_a_stopped_night_ends_without_asking_or_sending(merchant: Any) -> None:
    """The gateway is away: the same run compares what it had read, reports, and counts; once."""
    with pytest.raises(UsageError, match="never ran live"):
        finished(merchant)
    stopped_at_its_report(merchant)
    merchant.variables["RECON_GATEWAY_BASE_URL"] = "http://127.0.0.1:9"
    run_id = finished(merchant)
    steps = [one.step for one in merchant.told]
    with merchant.environment() as environment:
        again = whole_night.is_stopped(merchant.request, environment=environment)
        with environment.store.reading() as connection:
            (end,) = runs.finished(connection)
            verdict = runs.get(connection, run_id).verdict

    with pytest.raises(UsageError, match="is finished"):
        finished(merchant)
    assert (end.run_id, again) == (run_id, False)
    assert steps == ["reconcile", "report"]
    assert verdict == Verdict.RECONCILED
    assert len(list((merchant.folder / "reports").glob("*.xlsx"))) == 1
    assert len(merchant.effects()) == 1


def test_a_night_that_has_to_ask_is_started_again(merchant: Any) -> None:
    """One that stopped at its first query has no answers to compare."""
    merchant.drop("o.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.variables["RECON_SIGN_KEY"] = "wrong"
    with pytest.raises(Exception, match="sign key"):
        merchant.night()

    with pytest.raises(UsageError, match="before the gateway was asked again"):
        finished(merchant)


def test_answers_from_before_something_else_are_too_old(merchant: Any) -> None:
    """Another run of the account since: the whole night is started again."""
    stopped_at_its_report(merchant)
    with merchant.environment() as environment:
        whole_night.run_part(
            merchant.request,
            part=Part.SETTLE,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=merchant.told.append,
        )

    with pytest.raises(UsageError, match="came after it"):
        finished(merchant)
