"""What people see of a night in the UI."""

from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.artifacts import Artifacts, artifact_key, link_of
from flows.serve import PrefectServer
from recon.model.nights import Mode, NightRequest, StepSummary
from recon.model.terms import ControlTotal, End
from tests.flows.flow_in_process import run_nightly

REQUEST = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)


@pytest.mark.flow
def test_a_night_leaves_progress_summary_breaks_totals_and_a_link(
    server: PrefectServer, night: Any
) -> None:
    """Five artifacts per night, keyed by account: history accrues per account."""
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
def test_an_artifact_that_prefect_refuses_never_stops_the_night(
    server: PrefectServer, night: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Money has moved by then: the night goes to its end, the artifact is missing."""

    def refuse(**_given: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("flows.artifacts.create_progress_artifact", refuse)
    monkeypatch.setattr("flows.artifacts.create_table_artifact", refuse)

    assert run_nightly(REQUEST, server=server) is End.RECONCILED
    assert night.done[-1] == "report"


def test_a_key_holds_only_what_prefect_allows() -> None:
    """Keys are lower case letters, digits and dashes, whatever the account is called."""
    odd = NightRequest("M", "Acc_01/B", date(2026, 11, 20), Mode.LIVE)

    assert artifact_key("breaks", request=odd) == "breaks-acc-01-b"


def test_text_of_a_step_stays_in_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar or a line break in a sentence does not tear the summary's table."""
    shown: list[str] = []
    monkeypatch.setattr(
        "flows.artifacts.create_markdown_artifact", lambda markdown, **_: shown.append(markdown)
    )

    Artifacts(REQUEST).summary(verdict="RECONCILED", summaries=[StepSummary("ingest", "a | b\nc")])

    assert shown[0].splitlines()[-1] == r"| ingest | a \| b c |"


def test_foreign_text_is_no_link_image_or_tag_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a file loads nothing from elsewhere and sends nobody there; words stay."""
    shown: list[str] = []
    monkeypatch.setattr(
        "flows.artifacts.create_markdown_artifact", lambda markdown, **_: shown.append(markdown)
    )
    sentence = r"![i](http:evil)[x](http:evil)<b>\[y](z) `recon status`.csv"

    Artifacts(REQUEST).summary(verdict="RECONCILED", summaries=[StepSummary("ingest", sentence)])

    assert shown[0].splitlines()[-1] == (
        r"| ingest | !\[i\](http:evil)\[x\](http:evil)\<b>\\\[y\](z) `recon status`.csv |"
    )


def test_a_page_begins_with_the_account_by_name_and_its_workbook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who opens the page knows whose night it is, and opens its workbook from the share."""
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


def test_a_prefect_that_is_gone_is_tried_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Prefect's client tries for a minute each time; the account is held meanwhile."""
    tried: list[str] = []

    def gone(**given: str) -> None:
        tried.append(given["key"])
        raise httpx.ConnectError("")

    for name in ("create_markdown_artifact", "create_link_artifact"):
        monkeypatch.setattr(f"flows.artifacts.{name}", gone)
    artifacts = Artifacts(REQUEST)
    artifacts.summary(verdict="RECONCILED", summaries=[])
    artifacts.workbook(tmp_path)

    assert tried == ["summary-100042001"]


def test_an_artifact_links_to_the_share_of_the_reports() -> None:
    """The file itself where no share is configured."""
    path, account = Path("/var/reports/reconciliation-2026-11-20.xlsx"), ("100042", "100042001")

    assert link_of(path, account=account, address="") == f"file://{path}"
    assert (
        link_of(path, account=account, address="https://share.example/")
        == f"https://share.example/100042/100042001/{path.name}"
    )
