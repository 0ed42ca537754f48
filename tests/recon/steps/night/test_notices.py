import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from recon.model.errors import ConfigurationError, ReconError, UsageError
from recon.model.nights import Mode, StepSummary
from recon.steps.care.doctor import checks
from recon.steps.night import notices
from recon.steps.night import whole_night as night
from recon.steps.people import people
from recon.store.database import history
from recon.store.nights import runs
from tests.recon.listeners import Webhook, webhook

NOTICE = '[notices.finance]\naddress_env = "FINANCE"\nattach = true\n'


@pytest.fixture
def hook(merchant: Any) -> Iterator[Webhook]:
    """A webhook that hears of every end of a night."""
    with webhook() as heard:
        (merchant.folder / "config" / "notices.toml").write_text(NOTICE)
        merchant.variables["FINANCE"] = heard.address
        yield heard


def _ended(merchant: Any, *, verdict: str = "RECONCILED", **changed: Any) -> list[str]:
    """A night without its steps: it is held, comes to a verdict, ends and is told."""
    complaints: list[str] = []
    with (
        merchant.environment() as environment,
        notices.telling(environment, say=complaints.append) as ended,
        night.hold(replace(merchant.request, **changed), environment=environment) as ended.run_id,
        environment.store.writing() as connection,
    ):
        runs.note_result(connection, ended.run_id, values={"verdict": verdict})
    return complaints


def _untold(merchant: Any) -> dict[str, str]:
    with merchant.environment() as environment:
        ((run, _),) = people.status(environment)
        return notices.untold(run, environment=environment)


def _run_id(merchant: Any) -> str:
    with merchant.environment() as environment:
        ((run, _),) = people.status(environment)
        return run.run_id


def test_only_those_are_told_who_asked_for_that_end(merchant: Any, hook: Webhook) -> None:
    """A notice of NOT PROVEN hears of nothing else."""
    (merchant.folder / "config" / "notices.toml").write_text(NOTICE + 'verdicts = ["NOT PROVEN"]\n')
    _ended(merchant)
    _ended(merchant, verdict="NOT PROVEN")

    assert [told["title"].partition(":")[0] for told in hook.bodies] == ["NOT PROVEN"]


def test_people_are_told_of_a_night_with_its_workbook(merchant: Any, hook: Webhook) -> None:
    """Verdict, account, date, the workbook's name and hash, and the file itself; once."""
    verdict = merchant.night()

    (told,) = hook.bodies
    assert told["title"] == f"{verdict}: 100042/100042001, 2026-11-20"
    assert "Northwind" in told["message"]
    assert "SHA-256" in told["message"]
    assert told["attachments"][0]["filename"].endswith("2026-11-20.xlsx")
    assert _untold(merchant) == {}
    with merchant.environment() as environment:
        assert notices.tell(_run_id(merchant), environment=environment) == ()
    assert len(hook.bodies) == 1


def test_a_webhook_that_fails_fails_no_night_and_is_seen(merchant: Any, hook: Webhook) -> None:
    """The verdict stands, the run is finished, and status says who was not told until they are."""
    hook.status = 500
    complaints = _ended(merchant)
    run_id = _run_id(merchant)

    assert _untold(merchant) == {"finance": "json to 127.0.0.1 answered 500"}
    assert complaints == [
        (
            "notice finance did not arrive: json to 127.0.0.1 answered 500; "
            f"`recon status --tell {run_id}` tries again"
        )
    ]
    with merchant.environment() as environment:
        with pytest.raises(ReconError, match="answered 500"):
            notices.tell_again(run_id, environment=environment)
        hook.status = 200
        assert notices.tell_again(run_id, environment=environment) == ("finance",)
        assert notices.tell_again(run_id, environment=environment) == ()
        with environment.store.reading() as connection:
            events = [event.event for event in history.links_of(connection, [run_id])]
            assert history.verify(connection)[1] == ""
    assert events[-3:] == ["not told", "not told", "told"]


def test_a_night_that_stops_is_told_with_its_reason(merchant: Any, hook: Webhook) -> None:
    """People hear that there is no verdict, and why."""

    def stops(_: StepSummary) -> None:
        msg = "the disk is full"
        raise ReconError(msg)

    with merchant.environment() as environment, pytest.raises(ReconError):
        night.run(
            merchant.request,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=stops,
        )

    (told,) = hook.bodies
    assert told["title"] == "STOPPED: 100042/100042001, 2026-11-20"
    assert "The night stopped: the disk is full" in told["message"]


def test_a_night_that_was_told_to_end_ends_at_once(merchant: Any, hook: Webhook) -> None:
    """No mail server is waited for after SIGTERM; status shows who does not know."""

    def ends(_: StepSummary) -> None:
        raise KeyboardInterrupt

    with merchant.environment() as environment, pytest.raises(KeyboardInterrupt):
        night.run(
            merchant.request, environment=environment, workbooks=merchant.workbooks(), progress=ends
        )

    assert hook.bodies == []
    assert _untold(merchant) == {"finance": "it was not tried"}


def test_a_dry_run_tells_nobody(merchant: Any, hook: Webhook) -> None:
    """People hear of nights that count."""
    _ended(merchant, mode=Mode.DRY_RUN)

    assert (hook.bodies, _untold(merchant)) == ([], {})


def test_a_lost_address_is_told_by_night_and_doctor(merchant: Any, hook: Webhook) -> None:
    """A variable that is gone fails the doctor's line and no night."""
    del merchant.variables["FINANCE"]
    _ended(merchant)

    assert hook.bodies == []
    assert _untold(merchant) == {
        "finance": "the environment variable FINANCE with its address is not set"
    }
    told = checks(merchant.variables, clock=merchant.clock, randomness=random.Random(1))
    (line,) = [check for check in told if check.name == "notices"]
    assert (line.ok, "FINANCE" in line.sentence) == (False, True)


def test_the_doctor_shows_where_notices_go_and_no_secret(merchant: Any, hook: Webhook) -> None:
    """Kind and host stand in the line, the token does not; an unsafe address is refused."""
    with merchant.environment() as environment:
        settings, variables = environment.settings, dict(merchant.variables)

    assert notices.told_by_settings(settings, variables=variables) == (
        "finance by json to 127.0.0.1"
    )
    variables["FINANCE"] = "json://hooks.example/secret-word"
    with pytest.raises(ConfigurationError, match="finance: json is not encrypted") as refused:
        notices.told_by_settings(settings, variables=variables)
    assert "secret-word" not in str(refused.value)
    assert hook.bodies == []


def test_a_run_that_nobody_knows_is_refused(merchant: Any) -> None:
    """A mistyped run is named."""
    with merchant.environment() as environment, pytest.raises(UsageError, match="is not known"):
        notices.tell_again("20261120-nothing", environment=environment)


def test_who_hears_of_stopped_nights_hears_of_money_in_doubt(merchant: Any, hook: Webhook) -> None:
    """A list of verdicts that was written before rings for money, with counts and no order."""
    (merchant.folder / "config" / "notices.toml").write_text(NOTICE + 'verdicts = ["STOPPED"]\n')
    payments = merchant.payments("authorised")[:3]
    rows = [merchant.order(one, status="paid", action="capture") for one in payments]
    merchant.drop("orders.csv", *rows)
    merchant.fault({"operation": "capture", "kind": "wrong_signature", "nth": 1})
    merchant.night()

    (told,) = hook.bodies
    assert told["title"] == "MONEY IN DOUBT: 100042/100042001, 2026-11-20"
    assert "In doubt: 3 captures (" in told["message"]
    assert "Sending stopped: the reply's signature is wrong." in told["message"]
    assert payments[0].order_no not in told["message"]
