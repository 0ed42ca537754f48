"""The query in shards: what a worker is handed, and that it answers what one process would."""

import json
import random
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from typing import Any

import pandas as pd
import pytest

from recon.config.fee_contract import FeeContract, contract_of
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.cash.result import gateway_holds
from recon.matching.frames.sources import LoadCounts
from recon.model.errors import (
    ConfigurationError,
    NightHeldError,
    OutputError,
    ReconError,
    UsageError,
)
from recon.model.nights import Mode, NightRequest
from recon.model.step_progress import StepProgress, reported_to
from recon.model.terms import SourceKind, Verdict
from recon.proof.ledger_bridge import KNOWN_BEFORE, OTHER_ACCOUNTS, bridge_of, ledger_steps
from recon.proof.night_tables import compared_tables, input_tables
from recon.steps.admin.doctor import checks
from recon.steps.approvals import people
from recon.steps.compare.stored_sources import sources_of_night
from recon.steps.files.incomplete import NO_ANSWER, missing_sources
from recon.steps.night import notices
from recon.steps.night import whole_night as night
from recon.steps.night.monitor import index_after
from recon.steps.night.report import Workbooks, workbook_sources
from recon.store.database import history
from recon.store.nights import runs
from reports.reading.index_workbook import write_index
from tests.recon.listeners import webhook
from tests.recon.matching.conftest import case, make_case, new_case
from tests.recon.steps.large_nights import in_groups_of, sealed

__all__ = ["case", "make_case", "new_case"]


def _capture_three(merchant):
    payments = merchant.payments("authorised")[:3]
    merchant.drop(
        "orders.csv", *(merchant.order(p, status="paid", action="capture") for p in payments)
    )
    return sorted(payment.order_no for payment in payments)


def _workbook(merchant):
    (path,) = (merchant.folder / "reports").glob("*.xlsx")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_each_step_tells_how_far_it_is(merchant):
    _capture_three(merchant)
    heard: dict[str, StepProgress] = {}
    with reported_to(lambda step_progress: heard.update({step_progress.what: step_progress})):
        merchant.night()

    assert [str(step_progress) for step_progress in heard.values()] == [
        "3 of 3 rows of orders.csv stored",
        "3 of 3 orders asked",
        "3 of 3 instructions sent",
        "5 of 5 parts of the comparison done",
        "2 of 2 passes over the rows done",
    ]


def test_page_one_names_urgent_breaks_between_doubts_and_what_waits(merchant):
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


@pytest.mark.parametrize(("lacks", "said"), [("key", "sign key"), ("address", "registered")])
def test_a_gateway_that_refuses_us_ends_the_night_before_money(merchant, lacks, said):
    _capture_three(merchant)
    with merchant.unregistered() if lacks == "address" else nullcontext():
        if lacks == "key":
            merchant.variables["RECON_SIGN_KEY"] = "wrong"
        with pytest.raises(ConfigurationError, match=said):
            merchant.night()
    assert merchant.effects() == []


def test_a_reports_folder_that_cannot_be_written_stops_before_money(merchant):
    _capture_three(merchant)
    (merchant.folder / "reports").rmdir()
    (merchant.folder / "reports").write_text("a file, not a folder")

    with pytest.raises(OutputError, match="nothing was sent"):
        merchant.night()
    assert merchant.effects() == []


def _digests(merchant):
    found = merchant.rows("SELECT result_digest FROM run ORDER BY started_at")
    return [digest for (digest,) in found]


def test_the_same_inputs_give_the_same_digest(merchant, migrated_postgresql_url):
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


def test_a_held_account_names_its_holder(merchant):
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


def test_an_undeclared_account_is_named(merchant):
    request = replace(merchant.request, account_id="999")

    with (
        merchant.environment() as environment,
        pytest.raises(ConfigurationError, match="100042/100042001"),
        night.hold(request, environment=environment),
    ):
        pytest.fail("an undeclared account ran")


def test_sheets_that_differ_from_the_database_are_not_proven(merchant):
    """A workbook that reads back differently makes the night NOT PROVEN (T13)."""
    _capture_three(merchant)
    honest = merchant.workbooks()
    lying = Workbooks(
        write=honest.write,
        totals=lambda path: {**honest.totals(path), "match": (10_000, {})},
    )

    assert merchant.night(workbooks=lying) is Verdict.NOT_PROVEN
    assert _workbook(merchant)["verdict"] == "NOT PROVEN"


def test_a_disk_that_is_nearly_full_stops_a_night_before_money(tmp_path):
    """With the figures and what to do; a database on a server is not looked at."""
    with pytest.raises(OutputError, match=r"MiB free, and a night needs .* nothing was sent"):
        night.refuse_full_disk(tmp_path / "recon.sqlite", needed=10**18)
    night.refuse_full_disk(tmp_path / "recon.sqlite", needed=1)
    night.refuse_full_disk(None, needed=10**18)


NOTICE = '[notices.finance]\naddress_env = "FINANCE"\nattach = true\n'


@pytest.fixture
def hook(merchant):
    """A webhook that hears of every end of a night."""
    with webhook() as heard:
        (merchant.folder / "config" / "notices.toml").write_text(NOTICE)
        merchant.variables["FINANCE"] = heard.address
        yield heard


def _ended(merchant, *, verdict="RECONCILED", **changed):
    """A night without its steps: it is held, comes to a verdict, ends and is told."""
    complaints: list[str] = []
    with (
        merchant.environment() as environment,
        night.hold(
            replace(merchant.request, **changed),
            environment=environment,
            echo_error=complaints.append,
        ) as run_id,
        environment.store.writing() as connection,
    ):
        runs.note_result(connection, run_id, values={"verdict": verdict})
    return complaints


def _unreported(merchant):
    with merchant.environment() as environment:
        ((run, _),) = people.status(environment)
        return notices.unreported(run, environment=environment)


def _run_id(merchant):
    with merchant.environment() as environment:
        ((run, _),) = people.status(environment)
        return run.run_id


def test_only_those_are_told_who_asked_for_that_end(merchant, hook):
    _ended(merchant, mode=Mode.DRY_RUN)
    assert (hook.bodies, _unreported(merchant)) == ([], {})
    (merchant.folder / "config" / "notices.toml").write_text(NOTICE + 'verdicts = ["NOT PROVEN"]\n')
    _ended(merchant)
    _ended(merchant, verdict="NOT PROVEN")

    assert [told["title"].partition(":")[0] for told in hook.bodies] == ["NOT PROVEN"]


def test_people_are_told_of_a_night_with_its_workbook(merchant, hook):
    """Verdict, account, date, the workbook's name and hash, and the file itself; once."""
    verdict = merchant.night()

    (told,) = hook.bodies
    assert told["title"] == f"{verdict}: 100042/100042001, 2026-11-20"
    assert "Northwind" in told["message"]
    assert "SHA-256" in told["message"]
    assert told["attachments"][0]["filename"].endswith("2026-11-20.xlsx")
    assert _unreported(merchant) == {}
    with merchant.environment() as environment:
        assert notices.notify(_run_id(merchant), environment=environment) == ()
    assert len(hook.bodies) == 1


def test_a_webhook_that_fails_fails_no_night_and_is_seen(merchant, hook):
    hook.status = 500
    complaints = _ended(merchant)
    run_id = _run_id(merchant)

    assert _unreported(merchant) == {"finance": "json to 127.0.0.1 answered 500"}
    assert complaints == [
        (
            "notice finance did not arrive: json to 127.0.0.1 answered 500; "
            f"`recon status --tell {run_id}` tries again"
        )
    ]
    with merchant.environment() as environment:
        with pytest.raises(ReconError, match="answered 500"):
            notices.notify_again(run_id, environment=environment)
        hook.status = 200
        assert notices.notify_again(run_id, environment=environment) == ("finance",)
        assert notices.notify_again(run_id, environment=environment) == ()
        with pytest.raises(UsageError, match="is not known"):
            notices.notify_again("20261120-nothing", environment=environment)
        with environment.store.reading() as connection:
            events = [event.event for event in history.links_of(connection, [run_id], entity="run")]
            assert history.verify(connection)[1] == ""
    assert events[-3:] == ["not notified", "not notified", "notified"]


@pytest.mark.parametrize("error", [ReconError("the disk is full"), KeyboardInterrupt()])
def test_a_night_that_stops_is_told_with_its_reason(merchant, hook, error):
    """People hear that there is no verdict, and why.

    No mail server is waited for after SIGTERM; status shows who does not know.
    """

    def stops(_):
        raise error

    with merchant.environment() as environment, pytest.raises(type(error)):
        merchant.run(environment, progress=stops)

    if isinstance(error, KeyboardInterrupt):
        assert (hook.bodies, _unreported(merchant)) == ([], {"finance": "it was not tried"})
        return
    (told,) = hook.bodies
    assert told["title"] == "STOPPED: 100042/100042001, 2026-11-20"
    assert "The night stopped: the disk is full" in told["message"]


def test_a_lost_address_is_told_by_night_and_doctor(merchant, hook):
    """A variable that is gone fails the doctor's line and no night.

    Where notices go is shown by kind and host, never by a token; an unsafe address is refused.
    """
    with merchant.environment() as environment:
        settings, variables = environment.settings, dict(merchant.variables)
    reported_now = notices.reported_by_settings(settings, variables=variables)
    assert reported_now == "finance by json to 127.0.0.1"
    variables["FINANCE"] = "json://hooks.example/secret-word"
    with pytest.raises(ConfigurationError, match="finance: json is not encrypted") as refused:
        notices.reported_by_settings(settings, variables=variables)
    assert "secret-word" not in str(refused.value)
    del merchant.variables["FINANCE"]
    _ended(merchant)

    assert hook.bodies == []
    assert _unreported(merchant) == {
        "finance": "the environment variable FINANCE with its address is not set"
    }
    told = checks(merchant.variables, clock=merchant.clock, randomness=random.Random(1))
    (line,) = [check for check in told if check.name == "notices"]
    assert (line.ok, "FINANCE" in line.sentence) == (False, True)


def test_who_hears_of_stopped_nights_hears_of_money_in_doubt(merchant, hook):
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


NO_HELD = pd.DataFrame(columns=["merchant_id", "account_id", "currency"])


def night_of(case, *, folder):
    """The sealed night of a case, with what it read of files of which it compares a part."""
    sources = replace(
        case.sources(),
        merged_rows={"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=1)},
        arrived={SourceKind.ORDERS: {KNOWN_BEFORE: 2}, SourceKind.LEDGER: {OTHER_ACCOUNTS: -1}},
    )
    ledger_sums = ledger_steps(sources, rules=case.rules)
    small = compared_tables(sources, rules=case.rules, previous=None, ledger_sums=ledger_sums)
    return sealed(folder, tables={**dict(input_tables(sources)), **small})


def crowded(case):
    """Orders and entries that stand twice, in the same words and in others; fees, one reversed."""
    for order_no in ("A1", "B", "C"):
        case.order(order_no=order_no).payment(order_no=order_no, transaction_id=f"T{order_no}")
        case.entry(order_no=order_no, entry_id=f"E{order_no}")
    case.order(order_no="B").order(order_no="C", amount=7, updated_at="2026-11-19T10:00:00Z")
    case.order(order_no="").order(order_no="")
    case.entry(entry_id="EB", order_no="B").entry(entry_id="EC", order_no="C", amount=8)
    case.entry("fee", entry_id="F1", amount=30).entry("fee", entry_id="F1", amount=30)
    case.entry("fee", entry_id="F2", amount=9).entry("capture", entry_id="F2", amount=9)
    case.entry("fee_reversal", entry_id="F3", amount=4).entry(
        "refund", entry_id="R", currency="USD"
    )
    return case


@pytest.mark.parametrize("is_settled", [True, False])
def test_what_is_shown_is_what_the_whole_sources_say(case, tmp_path, *, is_settled):
    """Rows behind others, steps of the ledger, fees, and what is missing."""
    crowded(case)
    if is_settled:
        case.line(fee=30).line("fee", gross=0, fee=9, order_no="", transaction_id="")
        case.line(order_no="B", fee=40).line("payout", order_no="", gross=0, net=9900)
    night = night_of(case, folder=tmp_path)
    whole, _ = sources_of_night(night)
    shown = workbook_sources(night)

    assert bridge_of(shown.sources) == bridge_of(whole)
    assert bridge_of(whole)[SourceKind.ORDERS]["equal to or older than another row"] < 0
    assert bridge_of(whole)[SourceKind.LEDGER]["equal to or older than another row"] < 0
    assert shown.ledger_sums == ledger_steps(whole, rules=case.rules)
    assert {*shown.ledger_sums} == {"EUR", "USD"}
    holds = [gateway_holds(NO_HELD, sources=one) for one in (shown.sources, whole)]
    assert holds[0] == holds[1]
    assert (holds[0] is not None) == is_settled
    assert missing_sources(shown.sources) == missing_sources(whole)
    small = {"orders", "gateway", "ledger", "instructions", "universe"}
    small |= {"settlement", "volumes"}
    for name in {*whole.__dataclass_fields__} - small:
        assert getattr(shown.sources, name) == getattr(whole, name), name


@pytest.mark.parametrize("brand", ["", "visa"])
def test_fees_of_a_night_are_those_of_all_its_lines(case, tmp_path, brand, monkeypatch):
    """By the contract, outside of it, given back: some lines at a time come to the same."""
    in_groups_of(2, patch=monkeypatch)
    crowded(case)
    for number, (order_no, fee) in enumerate([("A1", 30), ("B", 20), ("C", 20)]):
        named = {"order_no": order_no, "transaction_id": f"T{order_no}"}
        case.line(**named, fee=fee, brand=brand, line=number + 2)
    case.line("fee", gross=0, fee=-4, transaction_id="TA1", line=5)
    case.line("adjustment", gross=5, fee=1, line=6)
    night = night_of(case, folder=tmp_path)
    whole, _ = sources_of_night(night)
    line = {"name": "all", "type": "capture", "currency": "EUR", "from": date(2026, 1, 1)}
    contract = contract_of(
        {"rounding": "half_up", "lines": [{**line, "fixed_minor_units": 20}]}, source="a contract"
    )
    assert isinstance(contract, FeeContract)

    ours, theirs = workbook_sources(night).fees(contract), charged_fees(whole, contract=contract)

    assert ours is not None
    assert theirs is not None
    for name in ("by_line", "outside", "differing", "months"):
        pd.testing.assert_frame_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.totals == theirs.totals
    assert ours.claims["claimed"].tolist() == [6]
    assert workbook_sources(night).fees(None) is None


@pytest.mark.parametrize(("answers", "is_missing"), [((), False), (("failed",), True)])
def test_a_night_without_a_usable_answer_says_so(case, answers, tmp_path, *, is_missing):
    """Only where some were asked about; and without books there are none."""
    for answer in answers:
        case.answer(answer)
    shown = workbook_sources(night_of(case.order(), folder=tmp_path))

    assert (NO_ANSWER in missing_sources(shown.sources)) == is_missing
    assert shown.sources.ledger is None
    assert shown.ledger_sums == {}


def after(environment, *, write=write_index, **changes):
    """What a night that has ended says of its index."""
    account = next(iter(environment.settings.accounts)).split("/")
    request = replace(NightRequest(*account, date(2026, 11, 20), Mode.LIVE), **changes)
    said: list[str] = []
    index_after(request, environment=environment, write=write, echo=said.append)
    return said


def with_accounts(environment, *, count):
    """The same environment with this many declared accounts, each with the folder of the first."""
    key, first = next(iter(environment.settings.accounts.items()))
    named = [key, *(f"{key}{number}" for number in range(1, count))]
    settings = environment.settings.model_copy(update={"accounts": dict.fromkeys(named, first)})
    return replace(environment, settings=settings)


@pytest.mark.parametrize(
    ("error", "told"),
    [(OutputError("the disk is full"), "the disk is full"), (KeyError("4111"), "KeyError")],
)
def test_an_index_that_fails_never_fails_the_night(merchant, error, told):
    """People read why and what to do; the text of a foreign error is not shown."""

    def failing(*_, day, folder):
        del day, folder
        raise error

    with merchant.environment() as environment:
        (said,) = after(with_accounts(environment, count=2), write=failing)

    assert said == (
        f"The index over all accounts was not written ({told}). The night and its workbook "
        "are kept: write it with `recon workbook 2026-11-20 --index FOLDER`."
    )
