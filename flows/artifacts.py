"""Prefect artifacts of a night: progress, summary, breaks, and the location of the workbook.

Keys end in the account, so that each account has its own history. Artifacts inform and prove
nothing: a failure here is logged and never stops a night whose money has moved.
"""

import os
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from recon.model.step_progress import StepProgress, reported_to
from recon.model.terms import ControlTotal
from recon.notify.night_log import PacedLines, since_start
from recon.steps.approvals.people import attention, attention_lines
from recon.steps.compare.listed_breaks import BREAKS_DISPLAYED_MAX, rows_of_breaks
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
    """The progress of a night; used for one pass over its steps."""

    def __init__(self, steps: Sequence[str], *, publish: Publish) -> None:
        self._steps = steps
        self._publish = publish
        self._done = 0
        self._newest: StepProgress | None = None
        self._turn = threading.Lock()
        self._lines = PacedLines(echo, elapsed=since_start)
        self._lines.begin(steps[0])

    def follow(self, step_progress: StepProgress) -> None:
        """Store the progress of the running step; never waits for Prefect."""
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
        """Publish the newest stored progress to Prefect, if there is any."""
        with self._turn:
            step_progress, self._newest = self._newest, None
            if step_progress is None:
                return
            done = self._done + step_progress.done / step_progress.total
            sentence = f"{self._steps[self._done]}: {step_progress}"
            self._publish(100.0 * done / len(self._steps), sentence)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Let the work of the block be followed, and published every UPDATE_SECONDS."""
        ended = threading.Event()

        def publish() -> None:
            while not ended.wait(UPDATE_SECONDS):
                self.show()

        threading.Thread(target=copy_context().run, args=(publish,), daemon=True).start()
        try:
            with reported_to(self.follow):
                yield
        finally:
            ended.set()


MARKDOWN_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in r"\[]<|"} | {"\n": " "})
"""Characters that start a link, image or tag, end a cell, or disable a backslash of ours."""


def on_a_page(text: str) -> str:
    """Escape a text for a table cell on one line: no link, image or tag, and no text lost.

    Backticks stay: our sentences name commands in them, and nothing inside them is a link.
    """
    return text.translate(MARKDOWN_ESCAPES)


def table_row(*cells: str) -> str:
    """Format one table row, with each text escaped in its cell."""
    return f"| {' | '.join(map(on_a_page, cells))} |"


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Format a table: its head, and a row for each; nothing where there is none."""
    lines = [table_row(*row) for row in rows]
    return [table_row(*columns), "|---" * len(columns) + "|", *lines] if lines else []


CURRENCIES_A_ROW = 3
"""Prefect's page does not wrap cells: a longer one is cut at the edge of the table."""
ORDER = ("in doubt", "confirmed", "waiting", "rejected", "withdrawn")
"""Outcomes of money, in the order shown: those that need people first."""


def status_lines(run_id: str, *, environment: "Environment") -> list[str]:
    """Return Markdown lines: the money of a run by kind and outcome, and what needs a person."""
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        instructions = sending_rows.sheet_frame(connection, run)
    counts: Counter[tuple[str, str]] = Counter()
    sums: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in instructions.to_dict("records"):
        key = (GROUPS.get(row["state"], ORDER[0]), row["kind"].replace("_", " "))
        counts[key] += 1
        sums[key][row["currency"]] += int(row["amount"])
    rows = [
        row
        for key in sorted(counts, key=lambda key: (ORDER.index(key[0]), key[1]))
        for row in money_rows(*key, count=counts[key], sums=sums[key])
    ]
    lines = table_lines(("outcome", "what", "how many", "how much"), rows)
    lines = ["## Money", "", *(lines or ["No instruction: no money was to move."])]
    waiting = attention(run, environment=environment)
    needs = [
        f"{'    ' * is_below}- {on_a_page(line)}"
        for is_below, line in attention_lines(waiting, now=environment.clock())
    ]
    needs = needs or ["No instruction does."]
    return [*lines, "", "## What needs a person", "", *needs, ""]


def money_rows(
    outcome: str, kind: str, *, count: int, sums: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Return the rows of one kind of movement; further currencies continue in rows below."""
    ordered = sorted(sums.items())
    pieces = range(0, len(ordered), CURRENCIES_A_ROW)
    first, *more = [sums_text(dict(ordered[at : at + CURRENCIES_A_ROW])) for at in pieces]
    return [(outcome, kind, str(count), first), *(("", "", "", money) for money in more)]


BEYOND_THE_EDGE = ("effect on orders", "effect on ledger", "owed to", "code", "reason", "break")
"""Columns of a break that are visible only by scrolling or searching."""


def breaks_of(run_id: str, *, environment: "Environment") -> tuple[list[dict[str, str]], int]:
    """Return the first hundred open breaks of a run, and the total number of them."""
    with environment.store.reading() as connection:
        breaks = StoredResult(connection, run_id, environment).open_breaks()
    if breaks is None:
        return [], 0
    return rows_on_the_page(breaks), len(breaks)


def rows_on_the_page(breaks: "pd.DataFrame") -> list[dict[str, str]]:
    """Return a row per break, most severe first; what is wrong is in columns never cut off.

    Args:
        breaks: As for `rows_of_breaks`; a hundred of them are shown.
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
        for row in rows_of_breaks(breaks, at_most=BREAKS_DISPLAYED_MAX)
    ]


def totals_of(run_id: str, *, environment: "Environment") -> tuple[ControlTotal, ...]:
    """Return the control totals stored for the run."""
    with environment.store.reading() as connection:
        return results.load_totals(connection, run_id)


def rows_of_totals(totals: Sequence[ControlTotal]) -> list[dict[str, str]]:
    """Return one row per equation with both sides as text; those that do not tie come first."""
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


ROWS_DISPLAYED_MAX = 100
"""Maximum rows of a table; the workbook has all of them."""

Made = TypeVar("Made")
NOT_OF_A_KEY = re.compile(r"[^a-z0-9]+")


WAITING = "recon.approval.waiting"
"""The event emitted when instructions wait for people; automations.yaml reacts to it."""
ADDRESS_VARIABLE = "RECON_WORKBOOKS_URL"
"""The base address of all accounts' reports: `<merchant>/<account>/<workbook>` is appended."""


class Artifacts:
    """The artifacts of one night; after one failed connection to Prefect no further call is tried.

    Prefect's client retries for more than a minute if the server is gone. Once is enough, since the
    account is held meanwhile.
    """

    def __init__(self, request: NightRequest, *, part: str = "") -> None:
        """Create them for a whole night; a `part` has a history apart from the nights'."""
        self._request = request
        self._part = part
        self._unreachable = False

    @contextmanager
    def progress(self, steps: Sequence[str], /) -> Iterator[Callable[[str], None]]:
        """Show a progress bar; yields the function to call with a sentence after each step."""
        name = f"progress-{self._part}".strip("-")
        artifact = self._made(create_progress_artifact, name, progress=0.0, description="starting")

        def publish(share: float, sentence: str) -> None:
            if isinstance(artifact, UUID):
                self._published(
                    lambda: update_progress_artifact(artifact, share, description=sentence)
                )

        bar = NightBar(steps, publish=publish)
        with bar.shown():
            yield bar.step_done

    def summary(
        self,
        *,
        verdict: str,
        summaries: Sequence[StepSummary],
        status: Sequence[str] = (),
        workbook: Path | None = None,
    ) -> None:
        """Publish the night's summary: account, workbook, what to do, and the money (`status`)."""
        lines = [
            f"# {verdict}",
            "",
            on_a_page(_night_text(self._request)),
            "",
            *([f"Workbook: {self._link(workbook)}", ""] if workbook else []),
            *status,
            "## Steps",
            "",
            *table_lines(
                ("step", "what it did"), ((each.step, each.sentence) for each in summaries)
            ),
        ]
        self._made(
            create_markdown_artifact,
            self._part or "summary",
            markdown="\n".join(lines),
            description=f"{self._request.business_date} {verdict}",
        )

    def ended_as(self, ending: str) -> None:
        """Append how the run ended to its name: Prefect shows every Completed run in green."""
        from prefect.client.orchestration import get_client
        from prefect.runtime import flow_run

        def rename() -> None:
            if flow_run.id is None:
                return
            with get_client(sync_client=True) as client:
                client.update_flow_run(UUID(flow_run.id), name=f"{flow_run.name} · {ending}")

        self._published(rename)

    def table(self, name: str, rows: Sequence[Mapping[str, str]], *, of: str) -> None:
        """Publish rows as a table, the first hundred; `of` says of how many, and of what."""
        shown = [dict(row) for row in rows[:ROWS_DISPLAYED_MAX]]
        description = f"{self._request.business_date}: {len(shown)} of {of}"
        self._made(create_table_artifact, name, table=shown, description=description)

    def workbook(self, workbook: Path) -> None:
        """Publish the workbook's path, or a link if there is a share: browsers open no files."""
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
        """Return the workbook for a page: a link if a share is configured, otherwise its path."""
        if address := os.environ.get(ADDRESS_VARIABLE, ""):
            link = link_of(workbook, account=self._request.account, address=address)
            return f"[{on_a_page(workbook.name)}]({link})"
        return on_a_page(f"{workbook}")

    def waiting(self, count: int) -> None:
        """Emit the event that instructions wait for people, for Prefect's automations."""
        account = f"{self._request.merchant_id}.{self._request.account_id}"
        self._published(
            lambda: emit_event(
                WAITING,
                resource={"prefect.resource.id": f"recon.account.{account}"},
                payload={"count": count},
            )
        )

    def _made(self, create: Callable[..., Made], name: str, **content: Any) -> Made | None:
        """Publish an artifact of this name for the night's account."""
        key = artifact_key(name, request=self._request)
        return self._published(lambda: create(key=key, **content))

    def _published(self, create: Callable[[], Made]) -> Made | None:
        """Return what `create` returns; None, with a line in the log, if Prefect refuses it."""
        if self._unreachable:
            return None
        try:
            return create()
        except Exception as error:  # noqa: BLE001 - whatever Prefect's client raises, the night goes on
            # An error with an HTTP status proves that the server can be reached.
            self._unreachable = not isinstance(error, PrefectHTTPStatusError)
            echo(f"an artifact could not be published ({type(error).__name__}); the night goes on")
            return None


def artifact_key(kind: str, *, request: NightRequest) -> str:
    """Return a key valid in Prefect, as `breaks-100042001`: lower case letters, digits, dashes."""
    return NOT_OF_A_KEY.sub("-", f"{kind}-{request.account_id}".lower()).strip("-")


def _night_text(request: NightRequest) -> str:
    account = f"{request.merchant_id}/{request.account_id}"
    declared = load_file_settings(os.environ).accounts.get(account)
    name = f"{declared.name} ({account})" if declared and declared.name else f"Account {account}"
    return f"{name}, business date {request.business_date}, {request.mode}."


def link_of(workbook: Path, *, account: tuple[str, str], address: str) -> str:
    """Return the address of a workbook; the file's own address if no share is configured."""
    if not address:
        return workbook.absolute().as_uri()
    return "/".join((address.rstrip("/"), *map(quote, (*account, workbook.name))))
