"""What people see of a night in Prefect's UI: progress, summary, breaks, and where the workbook is.

Keys end in the account, so that each account keeps a history of its own. Artifacts inform and prove
nothing: what fails here is logged and never stops a night whose money has moved.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote
from uuid import UUID

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.events import emit_event
from prefect.exceptions import PrefectHTTPStatusError

from flows.automations import WAITING
from flows.night_bar import night_bar
from flows.page_text import table_row
from recon.model.nights import NightRequest, StepSummary
from tasks.running import say

ROWS_SHOWN_MAX = 100
"""Rows of a table; the workbook has all of them."""

Made = TypeVar("Made")
NOT_OF_A_KEY = re.compile(r"[^a-z0-9]+")


ADDRESS_VARIABLE = "RECON_WORKBOOKS_URL"
"""Where people reach the reports folders of all accounts, by `<merchant>/<account>/<workbook>`."""


class Artifacts:
    """The artifacts of one night; after one call that did not reach Prefect none is tried again.

    Prefect's client tries for more than a minute to reach a server that is gone. Once is enough:
    the account is held meanwhile.
    """

    def __init__(self, request: NightRequest, *, part: str = "") -> None:
        """Of a whole night; a `part` keeps a history of its own beside the nights'."""
        self._request = request
        self._part = part
        self._unreachable = False

    @contextmanager
    def progress(self, steps: Sequence[str], /) -> Iterator[Callable[[str], None]]:
        """A progress bar by rows and parts; call what it yields with a sentence after each step."""
        key = artifact_key(f"progress-{self._part}".strip("-"), request=self._request)
        artifact = self._published(
            lambda: create_progress_artifact(progress=0.0, key=key, description="starting")
        )

        def publish(share: float, sentence: str) -> None:
            if isinstance(artifact, UUID):
                self._published(
                    lambda: update_progress_artifact(artifact, share, description=sentence)
                )

        with night_bar(steps, publish=publish) as step_done:
            yield step_done

    def summary(
        self,
        *,
        verdict: str,
        summaries: Sequence[StepSummary],
        standing: Sequence[str] = (),
    ) -> None:
        """The night in a few lines: what to do and the money (`standing`), a sentence a step."""
        lines = [
            f"# {verdict}",
            "",
            _night_in_words(self._request),
            "",
            *standing,
            "## Steps",
            "",
            "| step | what it did |",
            "|---|---|",
            *(table_row(summary.step, summary.sentence) for summary in summaries),
        ]
        self._published(
            lambda: create_markdown_artifact(
                markdown="\n".join(lines),
                key=artifact_key(self._part or "summary", request=self._request),
                description=f"{self._request.business_date} {verdict}",
            )
        )

    def changes(self, changes: Sequence[Mapping[str, str]], *, total: int) -> None:
        """Orders that the gateway shows otherwise than in the night, the first hundred of them."""
        self._table(
            "changes", changes, of=f"{total} orders that are shown otherwise than in the night"
        )

    def ended_as(self, ending: str) -> None:
        """Put how it ended into the run's name: Prefect shows every Completed run in green."""
        from prefect.client.orchestration import get_client
        from prefect.runtime import flow_run

        def rename() -> None:
            if flow_run.id is None:
                return
            with get_client(sync_client=True) as client:
                client.update_flow_run(UUID(flow_run.id), name=f"{flow_run.name} · {ending}")

        self._published(rename)

    def breaks(self, breaks: Sequence[Mapping[str, str]], *, total: int) -> None:
        """The open breaks as a table, the first hundred of them."""
        self._table("breaks", breaks, of=f"{total} open breaks; the workbook has all")

    def totals(self, totals: Sequence[Mapping[str, str]]) -> None:
        """The control totals as a table, what does not tie first."""
        open_ones = sum(row["ties"] != "yes" for row in totals)
        self._table("totals", totals, of=f"{len(totals)} control totals, {open_ones} do not tie")

    def _table(self, name: str, rows: Sequence[Mapping[str, str]], *, of: str) -> None:
        shown = [dict(row) for row in rows[:ROWS_SHOWN_MAX]]
        self._published(
            lambda: create_table_artifact(
                table=shown,
                key=artifact_key(name, request=self._request),
                description=f"{self._request.business_date}: {len(shown)} of {of}",
            )
        )

    def workbook(self, workbook: Path) -> None:
        """Where it lies, and a link where a share is configured: browsers open no file."""
        account = (self._request.merchant_id, self._request.account_id)
        link = link_of(workbook, account=account, address=os.environ.get(ADDRESS_VARIABLE, ""))
        self._published(
            lambda: create_link_artifact(
                link=link,
                link_text=workbook.name,
                key=artifact_key("workbook", request=self._request),
                description=str(workbook),
            )
        )

    def waiting(self, count: int) -> None:
        """Tell Prefect's automations that instructions of this account wait for people."""
        account = f"{self._request.merchant_id}.{self._request.account_id}"
        self._published(
            lambda: emit_event(
                WAITING,
                resource={"prefect.resource.id": f"recon.account.{account}"},
                payload={"count": count},
            )
        )

    def _published(self, create: Callable[[], Made]) -> Made | None:
        """What `create` made; None, and a line in the log, when Prefect would not take it."""
        if self._unreachable:
            return None
        try:
            return create()
        except Exception as error:  # noqa: BLE001 - whatever Prefect's client raises, the night goes on
            # Who answers with a status can be reached.
            self._unreachable = not isinstance(error, PrefectHTTPStatusError)
            say(f"an artifact could not be published ({type(error).__name__}); the night goes on")
            return None


def artifact_key(kind: str, *, request: NightRequest) -> str:
    """A key as Prefect allows it: `breaks-100042001`, lower case letters, digits and dashes."""
    return NOT_OF_A_KEY.sub("-", f"{kind}-{request.account_id}".lower()).strip("-")


def _night_in_words(request: NightRequest) -> str:
    account = f"Merchant {request.merchant_id}, account {request.account_id}"
    return f"{account}, business date {request.business_date}, {request.mode}."


def link_of(workbook: Path, *, account: tuple[str, str], address: str) -> str:
    """The address of a workbook; that of the file itself where no share is configured."""
    if not address:
        return workbook.absolute().as_uri()
    return "/".join((address.rstrip("/"), *map(quote, (*account, workbook.name))))
