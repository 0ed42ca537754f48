import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from recon.model.errors import (
    ConfigurationError,
    NightHeldError,
    OutputError,
)
from recon.model.headway import Headway, heard_by
from recon.model.nights import Mode
from recon.model.words import Verdict
from recon.steps.night import whole_night as night
from recon.steps.night.report import Workbooks
from recon.store.schema import run


def _capture_three(merchant: Any) -> list[str]:
    """An order file that captures three authorised payments; their order numbers."""
    payments = merchant.payments("authorised")[:3]
    merchant.drop(
        "orders.csv", *(merchant.order(p, status="paid", action="capture") for p in payments)
    )
    return sorted(payment.order_no for payment in payments)


def _workbook(merchant: Any) -> dict[str, Any]:
    (path,) = (merchant.folder / "reports").glob("*.xlsx")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_each_step_tells_how_far_it_is(merchant: Any) -> None:
    """Rows stored, orders asked, instructions sent and parts compared, up to all of them."""
    _capture_three(merchant)
    heard: dict[str, Headway] = {}
    with heard_by(lambda headway: heard.update({headway.what: headway})):
        merchant.night()

    assert [str(headway) for headway in heard.values()] == [
        "3 of 3 rows of orders.csv stored",
        "3 of 3 orders asked",
        "3 of 3 instructions sent",
        "5 of 5 parts of the comparison done",
        "2 of 2 passes over the rows done",
    ]


def test_page_one_names_urgent_breaks_between_doubts_and_what_waits(merchant: Any) -> None:
    """A high break stands after money in doubt and before an instruction that only waits."""
    captures, paid = merchant.payments("authorised"), merchant.payments("captured")
    euro = next(p for p in paid if p.currency == "EUR")
    merchant.drop(
        "orders.csv",
        merchant.order(captures[0], status="paid", action="capture"),
        merchant.order(euro, amount="1000000.00"),
        merchant.order(next(p for p in paid if p != euro), status="cancelled", action="cancel"),
    )
    merchant.fault({"operation": "capture", "kind": "reset", "when": "after", "nth": 1})
    merchant.night()
    what = [one.split(":")[0] for one in _workbook(merchant)["attention"]]

    assert what[0] == "capture in doubt"
    assert what[-1] == "cancel not sent"
    assert "critical break" in what[1:-1]


def test_a_wrong_key_stops_before_money(merchant: Any) -> None:
    """A refused signature ends the night with what to do; nothing is sent."""
    _capture_three(merchant)
    merchant.variables["RECON_SIGN_KEY"] = "wrong"

    with pytest.raises(ConfigurationError, match="sign key"):
        merchant.night()
    assert merchant.effects() == []


def test_an_address_that_is_not_registered_stops_before_money(merchant: Any) -> None:
    """A refused address ends the night with what to do; nothing is sent."""
    _capture_three(merchant)
    with merchant.unregistered(), pytest.raises(ConfigurationError, match="registered"):
        merchant.night()
    assert merchant.effects() == []


def test_a_reports_folder_that_cannot_be_written_stops_before_money(merchant: Any) -> None:
    """A night whose workbook could not be written is refused before anything is sent."""
    _capture_three(merchant)
    (merchant.folder / "reports").rmdir()
    (merchant.folder / "reports").write_text("a file, not a folder")

    with pytest.raises(OutputError, match="nothing was sent"):
        merchant.night()
    assert merchant.effects() == []


def _digests(merchant: Any) -> list[str]:
    with merchant.environment() as environment, environment.store.reading() as connection:
        found = connection.execute(select(run.c.result_digest).order_by(run.c.started_at))
        return list(found.scalars())


def test_the_same_inputs_give_the_same_digest(merchant: Any, migrated_postgresql_url: str) -> None:
    """A night again, and the same night on another database, come to the same result (T14)."""
    assert merchant.sqlite_path.is_file()
    _capture_three(merchant)
    merchant.drop("more.csv", *(merchant.order(p) for p in merchant.payments("captured")[:20]))
    begins = merchant.now
    for _ in range(2):
        merchant.night(mode=Mode.DRY_RUN)
    sqlite = _digests(merchant)
    merchant.variables["RECON_DATABASE_URL"] = migrated_postgresql_url
    merchant.now = begins  # instructions are approved at the same instant: their grace is an input
    merchant.night(mode=Mode.DRY_RUN)

    assert len({*sqlite, _digests(merchant)[-1]}) == 1


def test_a_code_that_nobody_mapped_moves_nothing(merchant: Any) -> None:
    """A payment_status that is not in the rules is a finding, and its capture waits."""
    _capture_three(merchant)
    rules = merchant.folder / "config" / "rules.toml"
    rules.write_text(rules.read_text().replace('2000 = "authorised"\n', ""))
    merchant.move_money()

    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": 3}


def test_a_stale_answer_after_our_capture_sends_nothing(merchant: Any) -> None:
    """When the query lags behind a confirmed capture, the next night moves nothing."""
    payments = merchant.payments("authorised")[:1]
    merchant.drop("a.csv", *(merchant.order(p, status="paid", action="capture") for p in payments))
    merchant.night()
    merchant.drop(
        "b.csv", *(merchant.order(p, status="cancelled", action="cancel") for p in payments)
    )
    merchant.fault({"operation": "retrievalTrans", "kind": "lag", "calls": 10})
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-21")

    assert [effect["operation"] for effect in merchant.effects()] == ["capture"]


def test_a_held_account_names_its_holder(merchant: Any) -> None:
    """A second start while a run holds the account ends with a sentence that names the run."""
    with (
        merchant.environment() as first,
        night.hold(merchant.request, environment=first) as run_id,
        merchant.environment(seed=2) as second,
        pytest.raises(NightHeldError) as held,
        night.hold(merchant.request, environment=second),
    ):
        pytest.fail("two runs held the account")

    assert run_id in str(held.value)
    assert "process" in str(held.value)


def test_an_undeclared_account_is_named(merchant: Any) -> None:
    """A request for an account that is not declared says which are."""
    request = replace(merchant.request, account_id="999")

    with (
        merchant.environment() as environment,
        pytest.raises(ConfigurationError, match="100042/100042001"),
        night.hold(request, environment=environment),
    ):
        pytest.fail("an undeclared account ran")


def test_sheets_that_differ_from_the_database_are_not_proven(merchant: Any) -> None:
    """A workbook that reads back differently makes the night NOT PROVEN (T13)."""
    _capture_three(merchant)
    honest = merchant.workbooks()
    lying = Workbooks(
        write=honest.write,
        totals=lambda path: {**honest.totals(path), "match": (10_000, {})},
    )

    assert merchant.night(workbooks=lying) is Verdict.NOT_PROVEN
    assert _workbook(merchant)["verdict"] == "NOT PROVEN"


def test_a_disk_that_is_nearly_full_stops_a_night_before_money(tmp_path: Path) -> None:
    """With the figures and what to do; a database on a server is not looked at."""
    with pytest.raises(OutputError, match=r"MiB free, and a night needs .* nothing was sent"):
        night.refuse_full_disk(tmp_path / "recon.sqlite", needed=10**18)
    night.refuse_full_disk(tmp_path / "recon.sqlite", needed=1)
    night.refuse_full_disk(None, needed=10**18)
