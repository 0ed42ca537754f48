"""What people see of a night in Prefect's UI: progress, summary, breaks, and where the workbook is.

Keys end in the account, so that each account keeps a history of its own. Artifacts inform and prove
nothing: what fails here is logged and never stops a night whose money has moved.
"""

import os
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
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

from recon.config.settings import load_file_settings
from recon.instructions.approval import sums_text
from recon.model.nights import NightRequest, StepSummary
from recon.model.step_progress import StepProgress, heard_by
from recon.model.terms import ControlTotal
from recon.notify.night_log import PacedLines, since_start
from recon.steps.approvals.people import attention, attention_lines
from recon.steps.compare.shown_breaks import BREAKS_SHOWN_MAX, rows_of_breaks
from recon.steps.runtime.night_folder import StoredResult
from recon.store.money import sending_rows
from recon.store.nights import results, runs
from reports.sheets.labels import QUESTIONS, figure_text, label_of, proof_label
from reports.sheets.totals import GROUPS
from tasks.night_tasks import echo

if TYPE_CHECKING:
    import pandas as pd

    from recon.steps.runtime.environment import Environment

UPDATE_SECONDS = 3.0
"""Each update is a call of Prefect's API."""

Publish = Callable[[float, str], None]
"""Takes the percentage of the whole night, and a sentence."""


class NightBar:
    """How far a night is; lives for one walk over its steps."""

    def __init__(self, steps: Sequence[str], *, publish: Publish) -> None:
        self._steps = steps
        self._publish = publish
        self._done = 0
        self._newest: StepProgress | None = None
        self._turn = threading.Lock()
        self._lines = PacedLines(echo, elapsed=since_start)
        self._lines.begin(steps[0])

    def hear(self, step_progress: StepProgress) -> None:
        """Leave word of how far the step at work is; never waits for Prefect."""
        self._newest = step_progress
        self._lines(step_progress)

    def step_done(self, sentence: str) -> None:
        """Show the end of a step."""
        with self._turn:
            self._newest = None
            self._done += 1
            self._publish(100.0 * self._done / len(self._steps), sentence)
        self._lines.begin(self._steps[min(self._done, len(self._steps) - 1)])

    def show(self) -> None:
        """Take the newest word to Prefect, if there is one."""
        with self._turn:
            step_progress, self._newest = self._newest, None
            if step_progress is None:
                return
            done = self._done + step_progress.done / step_progress.total
            sentence = f"{self._steps[self._done]}: {step_progress}"
            self._publish(100.0 * done / len(self._steps), sentence)


@contextmanager
def night_bar(steps: Sequence[str], *, publish: Publish) -> Iterator[Callable[[str], None]]:
    """Show how far a night is until the end of the block; call what it yields after each step."""
    bar, ended = NightBar(steps, publish=publish), threading.Event()

    def follow() -> None:
        while not ended.wait(UPDATE_SECONDS):
            bar.show()

    follower = threading.Thread(target=copy_context().run, args=(follow,), daemon=True)
    follower.start()
    try:
        with heard_by(bar.hear):
            yield bar.step_done
    finally:
        ended.set()


MARKDOWN_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in r"\[]<|"} | {"\n": " "})
"""What begins a link, an image or a tag, ends a cell, or takes the backslash from one of ours."""


def on_a_page(text: str) -> str:
    """The text on one line that stays in its cell: no link, no image, no tag, no word less.

    Backticks stay: sentences of ours name commands in them, and nothing in them is a link.
    """
    return text.translate(MARKDOWN_ESCAPES)


def table_row(*cells: str) -> str:
    """One row of a table, each text in its cell."""
    return f"| {' | '.join(map(on_a_page, cells))} |"


CURRENCIES_A_ROW = 3
"""Prefect's page wraps no cell: a longer one is cut at the edge of the table."""
ORDER = ("in doubt", "confirmed", "waiting", "rejected", "withdrawn")
"""What the money came to, what needs people first."""


def status_lines(run_id: str, *, environment: "Environment") -> list[str]:
    """Markdown: the money of a run by kind and outcome, and what needs a person."""
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        instructions = sending_rows.sheet_frame(connection, run)
    counts: Counter[tuple[str, str]] = Counter()
    sums: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in instructions.to_dict("records"):
        key = (GROUPS.get(row["state"], ORDER[0]), row["kind"].replace("_", " "))
        counts[key] += 1
        sums[key][row["currency"]] += int(row["amount"])
    lines = ["## Money", ""]
    lines += ["| outcome | what | how many | how much |", "|---|---|---|---|"] if counts else []
    for outcome, kind in sorted(counts, key=lambda key: (ORDER.index(key[0]), key[1])):
        key = (outcome, kind)
        lines += money_rows(outcome, kind, count=counts[key], sums=sums[key])
    if not counts:
        lines.append("No instruction: no money was to move.")
    waiting = attention(run, environment=environment)
    needs = [
        f"{'    ' * is_below}- {on_a_page(line)}"
        for is_below, line in attention_lines(waiting, now=environment.clock())
    ]
    needs = needs or ["No instruction does."]
    return [*lines, "", "## What needs a person", "", *needs, ""]


def money_rows(outcome: str, kind: str, *, count: int, sums: Mapping[str, int]) -> list[str]:
    """What became of one kind of movement; further currencies go on in rows below."""
    ordered = sorted(sums.items())
    pieces = range(0, len(ordered), CURRENCIES_A_ROW)
    first, *more = [sums_text(dict(ordered[at : at + CURRENCIES_A_ROW])) for at in pieces]
    return [
        f"| {outcome} | {kind} | {count} | {first} |",
        *(f"|  |  |  | {money} |" for money in more),
    ]


BEYOND_THE_EDGE = ("effect on orders", "effect on ledger", "owed to", "code", "reason", "break")
"""Columns of a break that a page shows to whoever scrolls, or searches."""


def breaks_of(run_id: str, *, environment: "Environment") -> tuple[list[dict[str, str]], int]:
    """The first hundred open breaks of a run, and how many there are in all."""
    with environment.store.reading() as connection:
        breaks = StoredResult(connection, run_id, environment).open_breaks()
    if breaks is None:
        return [], 0
    return rows_on_the_page(breaks), len(breaks)


def rows_on_the_page(breaks: "pd.DataFrame") -> list[dict[str, str]]:
    """A row a break, the gravest first: the columns that no page cuts say what is wrong.

    Args:
        breaks: as `rows_of_breaks` takes it; a hundred of them are shown.
    """
    return [
        {
            "order": row["order"],
            "what is wrong": label_of(row["code"]).title,
            "severity": row["severity"],
            "money at risk": f"{row['money at risk']} {row['currency']}".strip(),
            "age in days": row["age in days"],
            **{name: row[name] for name in BEYOND_THE_EDGE},
        }
        for row in rows_of_breaks(breaks, at_most=BREAKS_SHOWN_MAX)
    ]


def totals_of(run_id: str, *, environment: "Environment") -> tuple[ControlTotal, ...]:
    """The control totals that the run has stored."""
    with environment.store.reading() as connection:
        return results.load_totals(connection, run_id)


def rows_of_totals(totals: Sequence[ControlTotal]) -> list[dict[str, str]]:
    """One row per equation, both sides written out; those that do not tie come first."""
    return [
        {
            "ties": "yes" if total.passed else "NO",
            "what must be equal": proof_label(total.name),
            "currency": total.currency,
            "first figure": figure_text(total.left, of=total),
            "second figure": figure_text(total.right, of=total),
            "difference": figure_text(total.difference, of=total),
            "ref.": total.id,
            "what was proven": QUESTIONS.get(total.id, ""),
        }
        for total in sorted(totals, key=lambda total: total.passed)
    ]


ROWS_SHOWN_MAX = 100
"""Rows of a table; the workbook has all of them."""

Made = TypeVar("Made")
NOT_OF_A_KEY = re.compile(r"[^a-z0-9]+")


WAITING = "recon.approval.waiting"
"""What a night tells Prefect when instructions wait for people; automations.yaml hears it."""
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
        name = f"progress-{self._part}".strip("-")
        artifact = self._made(create_progress_artifact, name, progress=0.0, description="starting")

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
        status: Sequence[str] = (),
        workbook: Path | None = None,
    ) -> None:
        """The night in a few lines: whose, its workbook, what to do and the money (`status`)."""
        lines = [
            f"# {verdict}",
            "",
            on_a_page(_night_text(self._request)),
            "",
            *([f"Workbook: {self._link(workbook)}", ""] if workbook else []),
            *status,
            "## Steps",
            "",
            "| step | what it did |",
            "|---|---|",
            *(table_row(summary.step, summary.sentence) for summary in summaries),
        ]
        self._made(
            create_markdown_artifact,
            self._part or "summary",
            markdown="\n".join(lines),
            description=f"{self._request.business_date} {verdict}",
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
        description = f"{self._request.business_date}: {len(shown)} of {of}"
        self._made(create_table_artifact, name, table=shown, description=description)

    def workbook(self, workbook: Path) -> None:
        """Where it lies, and a link where a share is configured: browsers open no file."""
        account = self._request.account
        link = link_of(workbook, account=account, address=os.environ.get(ADDRESS_VARIABLE, ""))
        self._made(
            create_link_artifact,
            "workbook",
            link=link,
            link_text=workbook.name,
            description=str(workbook),
        )

    def _link(self, workbook: Path) -> str:
        """On a page: a link where a share is configured, else where it lies."""
        if address := os.environ.get(ADDRESS_VARIABLE, ""):
            link = link_of(workbook, account=self._request.account, address=address)
            return f"[{on_a_page(workbook.name)}]({link})"
        return on_a_page(f"{workbook}")

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

    def _made(self, create: Callable[..., Made], name: str, **content: Any) -> Made | None:
        """Publish an artifact of this name for the account of the night."""
        key = artifact_key(name, request=self._request)
        return self._published(lambda: create(key=key, **content))

    def _published(self, create: Callable[[], Made]) -> Made | None:
        """What `create` made; None, and a line in the log, when Prefect would not take it."""
        if self._unreachable:
            return None
        try:
            return create()
        except Exception as error:  # noqa: BLE001 - whatever Prefect's client raises, the night goes on
            # Who answers with a status can be reached.
            self._unreachable = not isinstance(error, PrefectHTTPStatusError)
            echo(f"an artifact could not be published ({type(error).__name__}); the night goes on")
            return None


def artifact_key(kind: str, *, request: NightRequest) -> str:
    """A key as Prefect allows it: `breaks-100042001`, lower case letters, digits and dashes."""
    return NOT_OF_A_KEY.sub("-", f"{kind}-{request.account_id}".lower()).strip("-")


def _night_text(request: NightRequest) -> str:
    account = f"{request.merchant_id}/{request.account_id}"
    declared = load_file_settings(os.environ).accounts.get(account)
    name = f"{declared.name} ({account})" if declared and declared.name else f"Account {account}"
    return f"{name}, business date {request.business_date}, {request.mode}."


def link_of(workbook: Path, *, account: tuple[str, str], address: str) -> str:
    """The address of a workbook; that of the file itself where no share is configured."""
    if not address:
        return workbook.absolute().as_uri()
    return "/".join((address.rstrip("/"), *map(quote, (*account, workbook.name))))
