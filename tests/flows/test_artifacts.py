"""What people see of a night in the UI."""

import threading
from datetime import date
from pathlib import Path

import httpx
import pandas as pd
import pytest
from sqlalchemy import select

from flows import artifacts as bars
from flows.artifacts import (
    Artifacts,
    NightBar,
    artifact_key,
    link_of,
    money_rows,
    rows_of_totals,
    rows_on_the_page,
    status_lines,
    table_row,
)
from recon.matching.breaks.result import BREAK_COLUMNS
from recon.model.nights import Mode, NightRequest, StepSummary
from recon.model.step_progress import StepProgress, WorkProgress
from recon.model.terms import ControlTotal, End
from recon.store.schema import run
from tests.conftest import migrated, sqlite_url  # noqa: F401 - fixtures
from tests.flows.flow_in_process import run_nightly
from tests.recon.steps.conftest import database_url, merchant, profile  # noqa: F401 - fixtures

REQUEST = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)


@pytest.mark.flow
def test_a_night_leaves_progress_summary_breaks_totals_and_a_link(server, night):
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.sorting import ArtifactSort

    night.breaks = [{"order": "A-1", "code": "CAPTURE_DUE"}] * 250
    place = (REQUEST.merchant_id, REQUEST.account_id, "", "count")
    night.totals = tuple(ControlTotal("T1", "Rows", *place, 5, n) for n in (5, 4))
    run_nightly(REQUEST, server=server)

    with SyncPrefectClient(server.api_url, auth_string=server.auth) as client:
        reply = client.request(
            "POST", "/artifacts/latest/filter", json={"sort": ArtifactSort.CREATED_DESC.value}
        )
    found = {artifact["key"]: artifact for artifact in reply.json()}
    assert found["progress-100042001"]["data"] == 100.0
    summary = found["summary-100042001"]["data"]
    assert "| settle | settle did its work. |" in summary
    assert "To do: no break is open; sign the workbook." in summary
    assert summary.index(f"Workbook: {night.workbook}") < summary.index("To do:")
    assert summary.index("To do:") < summary.index("## Money") < summary.index("## Steps")
    assert found["breaks-100042001"]["data"].count("CAPTURE_DUE") == 100
    assert "100 of 250 open breaks" in found["breaks-100042001"]["description"]
    assert found["totals-100042001"]["description"].endswith("2 control totals, 1 do not tie")
    assert night.workbook.as_uri() in found["workbook-100042001"]["data"]


@pytest.mark.flow
def test_an_artifact_that_prefect_refuses_never_stops_the_night(server, night, monkeypatch):
    def refuse(**_given):
        raise RuntimeError

    monkeypatch.setattr("flows.artifacts.create_progress_artifact", refuse)
    monkeypatch.setattr("flows.artifacts.create_table_artifact", refuse)

    assert run_nightly(REQUEST, server=server) is End.RECONCILED
    assert night.done[-1] == "report"


def test_a_key_holds_only_what_prefect_allows():
    odd = NightRequest("M", "Acc_01/B", date(2026, 11, 20), Mode.LIVE)

    assert artifact_key("breaks", request=odd) == "breaks-acc-01-b"


def test_text_of_a_step_stays_in_its_cell(monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(
        "flows.artifacts.create_markdown_artifact", lambda markdown, **_: shown.append(markdown)
    )

    Artifacts(REQUEST).summary(verdict="RECONCILED", summaries=[StepSummary("ingest", "a | b\nc")])

    assert shown[0].splitlines()[-1] == r"| ingest | a \| b c |"


def test_foreign_text_is_no_link_image_or_tag_on_a_page(monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(
        "flows.artifacts.create_markdown_artifact", lambda markdown, **_: shown.append(markdown)
    )
    sentence = r"![i](http:evil)[x](http:evil)<b>\[y](z) `recon status`.csv"

    Artifacts(REQUEST).summary(verdict="RECONCILED", summaries=[StepSummary("ingest", sentence)])

    assert shown[0].splitlines()[-1] == (
        r"| ingest | !\[i\](http:evil)\[x\](http:evil)\<b>\\\[y\](z) `recon status`.csv |"
    )


def test_a_page_begins_with_the_account_by_name_and_its_workbook(monkeypatch, tmp_path):
    shown: list[str] = []
    monkeypatch.setattr(
        "flows.artifacts.create_markdown_artifact", lambda markdown, **_: shown.append(markdown)
    )
    (tmp_path / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\nname = "Northwind"\ninbox = "i"\nreports = "r"\n'
    )
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("RECON_WORKBOOKS_URL", "https://share.example")

    workbook = Path("/r/night.xlsx")
    Artifacts(REQUEST).summary(verdict="RECONCILED", summaries=[], workbook=workbook)

    assert shown[0].splitlines()[2:5] == [
        "Northwind (100042/100042001), business date 2026-11-20, live.",
        "",
        "Workbook: [night.xlsx](https://share.example/100042/100042001/night.xlsx)",
    ]


def test_a_prefect_that_is_gone_is_tried_once(monkeypatch, tmp_path):
    """Prefect's client tries for a minute each time; the account is held meanwhile."""
    tried: list[str] = []

    def gone(**given):
        tried.append(given["key"])
        raise httpx.ConnectError("")

    for name in ("create_markdown_artifact", "create_link_artifact"):
        monkeypatch.setattr(f"flows.artifacts.{name}", gone)
    artifacts = Artifacts(REQUEST)
    artifacts.summary(verdict="RECONCILED", summaries=[])
    artifacts.workbook(tmp_path)

    assert tried == ["summary-100042001"]


def test_an_artifact_links_to_the_share_of_the_reports():
    path, account = Path("/var/reports/reconciliation-2026-11-20.xlsx"), ("100042", "100042001")

    assert link_of(path, account=account, address="") == f"file://{path}"
    assert (
        link_of(path, account=account, address="https://share.example/")
        == f"https://share.example/100042/100042001/{path.name}"
    )


PLACE = ("100042", "100042001")
ROWS = ControlTotal("T6", "orders: places = items", *PLACE, "", "count", 12, 12)
MONEY = ControlTotal("T5A", "gateway - orders = effects", *PLACE, "KWD", "amount", 1_500, 1_000)


def test_what_does_not_tie_comes_first_with_both_sides_written_out():
    first, second = rows_of_totals([ROWS, MONEY])

    assert (first["ref."], first["ties"], second["ties"]) == ("T5A", "NO", "yes")
    figures = [first[name] for name in ("first figure", "second figure", "difference")]
    assert figures == ["1.500", "1.000", "0.500"]
    assert (second["first figure"], second["difference"]) == ("12", "0")


def test_a_control_total_is_said_in_the_words_of_the_workbook():
    (row,) = rows_of_totals([MONEY])

    assert row["what was proven"].startswith("Gateway less orders is what the sheets explain")
    assert row["what must be equal"] == "gateway less order files = explained by the sheets"


def test_what_a_page_never_cuts_says_what_is_wrong_and_with_what_money():
    cells = {"order_no": "A1", "code": "REFUND_DUE", "severity": "HIGH", "currency": "KWD"}
    row = dict.fromkeys(BREAK_COLUMNS, "") | cells | {"exposure": 9_000, "age_days": 3}
    sides = {"effect_orders": -1_234, "effect_ledger": None, "effect_bank": None}

    (shown,) = rows_on_the_page(pd.DataFrame([row | sides]))

    assert list(shown.items())[:5] == [
        ("order", "A1"),
        ("what is wrong", "Refund still to do"),
        ("severity", "HIGH"),
        ("money at risk", "1.234 KWD"),
        ("age in days", "3"),
    ]
    assert shown["code"] == "REFUND_DUE"


def shown(night):
    """The lines of the newest run."""
    with night.environment() as environment:
        with environment.store.reading() as connection:
            newest = select(run.c.run_id).order_by(run.c.started_at.desc()).limit(1)
            run_id = str(connection.execute(newest).scalar_one())
        return status_lines(run_id, environment=environment)


def shown_in_doubt(night):
    """The lines once replies to captures were lost, and the gateway answered no question of it."""
    silent = {"operation": "retrievalTrans", "kind": "status", "status": 500, "when": "before"}
    night.fault({"operation": "capture", "kind": "fin", "when": "after"}, {**silent, "nth": 2})
    night.move_money()
    return shown(night)


def test_a_night_without_instructions_says_so(merchant):  # noqa: F811 - the fixture  # noqa: F811 - the fixture
    merchant.night()

    assert [line for line in shown(merchant) if line] == [
        "## Money",
        "No instruction: no money was to move.",
        "## What needs a person",
        "No instruction does.",
    ]


def test_money_in_doubt_stands_first_with_what_to_do(merchant):  # noqa: F811 - the fixture
    doubtful = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    merchant.drop("a.csv", merchant.order(doubtful, status="paid", action="capture"))
    lines = shown_in_doubt(merchant)

    (money,) = [line for line in lines if line.startswith("| in doubt")]
    assert money == f"| in doubt | capture | 1 | {doubtful.amount} EUR |"
    (needs,) = [line for line in lines if line.startswith("- ")]
    assert f"capture in doubt: order {doubtful.order_no}, {doubtful.amount} EUR, since " in needs


def test_what_several_need_is_said_once_above_them(merchant):  # noqa: F811 - the fixture
    lost = [one for one in merchant.payments("authorised") if one.currency == "EUR"][:3]
    merchant.drop("a.csv", *(merchant.order(one, status="paid", action="capture") for one in lost))
    lines = shown_in_doubt(merchant)
    said = lines[lines.index("## What needs a person") + 2 : -1]

    assert said[0].startswith("- Each of these 3: The connection failed")
    assert sorted(line.partition(", since ")[0] for line in said[1:]) == sorted(
        f"    - capture in doubt: order {one.order_no}, {one.amount} EUR" for one in lost
    )


def test_no_sum_of_a_line_is_cut_where_the_page_does_not_wrap_it():
    sums = dict.fromkeys(("EUR", "GBP", "JPY", "KWD", "USD", "CHF", "SEK"), 12_345_678_901)
    rows = money_rows("confirmed", "capture", count=395, sums=sums)

    assert [table_row(*row) for row in rows] == [
        "| confirmed | capture | 395 | 123456789.01 CHF, 123456789.01 EUR, 123456789.01 GBP |",
        "|  |  |  | 12345678901 JPY, 12345678.901 KWD, 123456789.01 SEK |",
        "|  |  |  | 123456789.01 USD |",
    ]


def sent(done):
    """So many instructions of a thousand."""
    return StepProgress(done, 1_000, "instructions sent")


def test_rows_of_a_step_are_a_part_of_the_whole_night():
    shown: list[tuple[float, str]] = []
    bar = NightBar(
        ["ingest", "settle", "reconcile", "report"], publish=lambda *word: shown.append(word)
    )
    bar.step_done("3 order files.")
    bar.follow(sent(400))
    bar.follow(sent(500))
    bar.show()
    bar.show()
    bar.follow(sent(1_000))
    bar.step_done("1000 sent in 20 batches.")
    bar.show()

    assert shown == [
        (25.0, "3 order files."),
        (37.5, "settle: 500 of 1,000 instructions sent"),
        (50.0, "1000 sent in 20 batches."),
    ]


def test_what_a_step_tells_reaches_prefect_while_it_works(monkeypatch):
    monkeypatch.setattr(bars, "UPDATE_SECONDS", 0.01)
    came, shown = threading.Event(), []

    def publish(_share, sentence):
        shown.append(sentence)
        if "200 of 200" in sentence:
            came.set()

    with NightBar(["query"], publish=publish).shown():
        WorkProgress("orders asked", of=200).advance(200)
        assert came.wait(10)

    assert shown[-1] == "query: 200 of 200 orders asked"


def test_a_step_never_waits_for_prefect():
    """While Prefect does not answer, word is left and the work goes on."""
    asked, answered = threading.Event(), threading.Event()

    def hang(_share, _sentence):
        asked.set()
        assert answered.wait(60)

    bar = NightBar(["settle"], publish=hang)
    bar.follow(sent(1))
    follower = threading.Thread(target=bar.show)
    follower.start()
    assert asked.wait(10)
    for done in range(2, 1_000):
        bar.follow(sent(done))
    still_asking = follower.is_alive()
    answered.set()
    follower.join()

    assert still_asking
