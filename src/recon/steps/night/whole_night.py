"""One night: who may run it, and the order of its steps, defined only here.

ingest -> query -> settle -> query again -> reconcile -> report. `hold` takes the account's lock and
writes the run row; everything in between is steps that read and write tables. A killed night is
simply started again: what was sent is in the journal and is never sent twice.

A part of a night runs some of its steps under the same lock and gate, and is refused once the night
is finished: no part compares or reports. A night that stopped after everything was queried and sent
can be resumed from stored data, unless anything else happened to the account since.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from recon.model.errors import (
    FolderError,
    NightHeldError,
    OutputError,
    ReconError,
    StoreError,
    UsageError,
)
from recon.model.nights import NIGHT, STEPS, Mode, NightPlan, NightRequest, Part, StepSummary
from recon.privacy.own_files import make_folder
from recon.steps.compare.reconcile import reconcile
from recon.steps.compare.sealed_inputs import seal_inputs
from recon.steps.files.ingest import ingest
from recon.steps.files.lost_facts import reading_lost_facts
from recon.steps.money.settle import settle as settle_after
from recon.steps.night.notices import EndedNight, notifying
from recon.steps.night.query import query
from recon.steps.night.report import Workbooks, report
from recon.steps.runtime.environment import DISK_FREE_MIN_BYTES, Environment, ending_in_order
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.night_end import measured
from recon.steps.runtime.predecessor import refuse_closed, stated_of_predecessor
from recon.store import Connection
from recon.store.database.night_lock import account_lock
from recon.store.money import sending_rows
from recon.store.nights import input_rows, runs
from recon.store.nights.answer_parts import AFTER, BASELINE
from recon.store.nights.runs import Run


@reading_lost_facts
def settle(run_id: str, *, environment: Environment) -> StepSummary:
    """Carry out the account's approved instructions, once what the night read is sealed.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
        ConfigurationError: the run is live, and gateway.toml does not allow unverified replies.
    """
    save = partial(seal_inputs, environment=environment)
    return settle_after(run_id, environment=environment, before_money=save)


HOLDER_LOOKS_MAX = 60
HOLDER_LOOKS_APART_SECONDS = 0.05
HOLDER_LOOKS_AGREE = 5
"""After this many consecutive reads of the same run, it is the holder."""


ORDER: Mapping[str, Callable[..., StepSummary]] = dict(
    zip(
        STEPS,
        (
            ingest,
            partial(query, phase=BASELINE),
            settle,
            partial(query, phase=AFTER),
            reconcile,
            report,
        ),
        strict=True,
    )
)
"""The function of each step of a night, by the step's name."""


def run(
    request: NightRequest,
    *,
    environment: Environment,
    workbooks: Workbooks,
    progress: Callable[[StepSummary], None],
    plan: NightPlan = NIGHT,
    echo_error: Callable[[str], None] = lambda _: None,
) -> Run:
    """Run a whole night, or the part in `plan`, without Prefect; return the run as it ended.

    Args:
        request: The night to run.
        environment: Of this process.
        workbooks: How its workbook is written and read back.
        progress: Called after each step.
        plan: The steps of the night to run.
        echo_error: Called for each notice of the night's end that did not arrive.

    Raises:
        ReconError: as raised by `hold` and the steps.
    """
    with hold(request, environment=environment, plan=plan, echo_error=echo_error) as run_id:
        walk(plan.steps, run_id, environment=environment, workbooks=workbooks, progress=progress)
    with environment.store.reading() as connection:
        return runs.get(connection, run_id)


def walk(
    names: Sequence[str],
    run_id: str,
    /,
    *,
    environment: Environment,
    workbooks: Workbooks,
    progress: Callable[[StepSummary], None],
) -> None:
    """Run these steps of `ORDER` for a run that is held; calls `progress` after each one."""
    for name in names:
        drawn = {"workbooks": workbooks} if name == "report" else {}
        do = partial(ORDER[name], run_id, environment=environment, **drawn)
        progress(measured(name, do, run_id=run_id, environment=environment))


@contextmanager
def hold(
    request: NightRequest,
    *,
    environment: Environment,
    plan: NightPlan = NIGHT,
    echo_error: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """Hold an account while a plan is carried out; yields the run's id, and closes the run.

    A run whose process is gone is taken over at once: its lock died with it. People are notified
    how a night ended once the account is free again; nobody is notified of a part.

    Raises:
        NightHeldError: another run holds the account; the message names it.
        UsageError: the business date or its month does not allow the run: the date has not closed,
            the month is closed, or the night before is missing without a stated reason; or there is
            no stopped night to resume, or its stored data does not suffice.
        FolderError: the reports folder cannot be written.
        OutputError: the disk of the database is nearly full.
        ConfigurationError: the account is not declared.
    """
    if not (plan.sends or plan.resumes):  # a plan that sends nothing is never live
        request = replace(request, mode=Mode.DRY_RUN)
    closes_at = environment.settings.rules.business_calendar.closes_at(request.business_date)
    if plan.part is not Part.INGEST and not plan.resumes:
        refuse_open_day(request, closes_at=closes_at, now=environment.clock())
    notices = nullcontext(EndedNight()) if plan.part else notifying(environment, echo=echo_error)
    with notices as night, _locked(request, environment=environment):
        with environment.store.writing() as connection:
            run_id = (
                _resumed(connection, request, environment=environment)
                if plan.resumes
                else _started(
                    connection,
                    request,
                    part=plan.part,
                    closes_at=closes_at,
                    environment=environment,
                )
            )
        night.run_id = run_id
        try:
            with ending_in_order():
                yield run_id
        except BaseException as error:
            _close(run_id, status="stopped", problem=_reported(error), environment=environment)
            raise
        ended = runs.PART_ENDED if plan.part else "finished"
        _close(run_id, status=ended, problem="", environment=environment)


def _started(
    connection: Connection,
    request: NightRequest,
    *,
    part: Part | None,
    closes_at: datetime,
    environment: Environment,
) -> str:
    """Start a new run, after checking that it may start, and return its id."""
    if request.mode is Mode.LIVE or part is Part.INGEST:
        refuse_closed(connection, request, saved="nothing was done")
    predecessor = ""
    if part is None:
        rules = environment.settings.rules
        predecessor = stated_of_predecessor(connection, request, rules=rules)
    else:
        refuse_part(connection, request, part=part)
    run_id = f"{request.business_date:%Y%m%d}-{environment.new_id()[:8]}"
    runs.start(
        connection,
        request,
        run_id=run_id,
        as_of=closes_at,
        now=environment.clock(),
        part=part,
        predecessor=predecessor,
    )
    return run_id


def _resumed(connection: Connection, request: NightRequest, *, environment: Environment) -> str:
    """Resume the night's own stopped run and return its id."""
    run = _stopped(connection, request)
    refuse_closed(connection, run, saved="the stopped run stays as it is")
    runs.resume(connection, run.run_id, now=environment.clock())
    return run.run_id


def refuse_part(connection: Connection, request: NightRequest, *, part: Part) -> None:
    """Refuse a part whose files and money a finished night's workbook would not show.

    Raises:
        UsageError: a live night of this date, or of a later one, is finished.
    """
    if part is Part.QUERY or (part is not Part.INGEST and request.mode is Mode.DRY_RUN):
        return
    done = [day for day in runs.live_nights(connection, request) if day >= request.business_date]
    if done:
        msg = (
            f"the night of {max(done)} is finished, and its workbook would not show what {part} "
            f"does for {request.business_date}; nothing was done: leave it to the next night, or "
            f"start the whole night of {request.business_date} again"
        )
        raise UsageError(msg)


def refuse_open_day(request: NightRequest, *, closes_at: datetime, now: datetime) -> None:
    """Refuse a business date that has not closed yet: it is settled only after that.

    Raises:
        UsageError: the day is still open, or in the future.
    """
    if closes_at > now:
        msg = (
            f"the business date {request.business_date} closes at {closes_at:%Y-%m-%d %H:%M} UTC, "
            f"and it is {now:%Y-%m-%d %H:%M} UTC now; nothing was sent: name a day that has closed"
        )
        raise UsageError(msg)


def refuse_unwritable(folder: Path) -> None:
    """Check that the reports folder is writable before money moves, not after the night.

    Raises:
        FolderError: nothing can be written there.
    """
    try:
        make_folder(folder)
        with TemporaryFile(dir=folder):
            return
    except OSError as error:
        msg = (
            f"the reports folder {folder} cannot be written ({error.strerror}); nothing was sent: "
            "make it writable, or name another in merchants.toml"
        )
        raise FolderError(msg) from error


def refuse_full_disk(database: Path | None, *, needed: int = DISK_FREE_MIN_BYTES) -> None:
    """Check the free disk space of a database file before money moves; skipped for a server.

    Raises:
        OutputError: fewer bytes are free than a night needs.
    """
    if database is None:
        return
    free = shutil.disk_usage(database.parent).free
    if free < needed:
        msg = (
            f"the disk of the database {database} has {free // 1024**2} MiB free, and a night "
            f"needs {needed // 1024**2}; nothing was sent: free some, then start the night again"
        )
        raise OutputError(msg)


@contextmanager
def _locked(request: NightRequest, *, environment: Environment) -> Iterator[None]:
    """Hold the account's lock for the block, after checking the reports folder and the disk.

    Raises:
        NightHeldError: another run holds it, or a run that lost the lock is still alive.
        FolderError: the reports folder cannot be written.
        OutputError: the disk of the database is nearly full.
        ConfigurationError: the account is not declared.
    """
    of_account = {"merchant_id": request.merchant_id, "account_id": request.account_id}
    account = f"{request.merchant_id}/{request.account_id}"
    refuse_unwritable(environment.settings.account(**of_account).reports)
    refuse_full_disk(environment.store.path)
    with ExitStack() as stack:
        try:
            stack.enter_context(account_lock(environment.store, request))
        except NightHeldError as error:
            holder = _holder(environment, request)
            whose = (
                f"run {holder.run_id} for {holder.business_date}"
                f"{f' ({holder.part} alone)' if holder.part else ''}, {holder.owner}"
                if holder
                else "a run that is just starting"
            )
            msg = (
                f"account {account} is held by {whose}; nothing was done here: wait for it, or "
                "end it"
            )
            raise NightHeldError(msg) from error
        # A live process can lose its lock; its run is taken over only once that process is gone.
        with environment.store.reading() as connection:
            owner = runs.living(connection, request)
        if owner is not None:
            msg = (
                f"the lock of account {account} is free, but run {owner.run_id} for "
                f"{owner.business_date}, {owner.owner}, still lives; nothing was done here: it "
                "stops by itself when it works, or end that process, then start again"
            )
            raise NightHeldError(msg)
        yield


def _holder(environment: Environment, request: NightRequest) -> Run | None:
    """Return the run that holds the account, once several consecutive reads agree.

    A process that just took the lock is about to write its row and close a killed run before it.
    """
    last: Run | None = None
    agreed = 0
    for _ in range(HOLDER_LOOKS_MAX):
        with environment.store.reading() as connection:
            holder = runs.active(connection, request)
        if last and not holder:
            break  # a new holder closes the old run with its first write: the run seen has ended
        agreed = agreed + 1 if holder and last and holder.run_id == last.run_id else 0
        if agreed == HOLDER_LOOKS_AGREE:
            break
        last = holder or last
        time.sleep(HOLDER_LOOKS_APART_SECONDS)
    return last


def _close(run_id: str, *, status: str, problem: str, environment: Environment) -> None:
    try:
        with environment.store.writing() as connection:
            now = environment.clock()
            runs.finish(connection, run_id, status=status, problem=problem, now=now)
            if status == "finished":
                input_rows.take_over(connection, run_id, at=now)
    except (NightHeldError, StoreError):
        # Taken over; or the database itself fails, and the next start closes this run. The error
        # that stopped it is already reported, but a finished run that cannot be stored must raise.
        if status != "stopped":
            raise


def _reported(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return f"it received the signal to end ({str(error) or 'SIGINT'})"
    if not isinstance(error, Exception):  # Prefect's Cancel and Suspend
        return f"it received the signal to end ({type(error).__name__}, by whatever started it)"
    return str(error) if isinstance(error, ReconError) else type(error).__name__


@dataclass(frozen=True, slots=True)
class Moved:
    """One order that the gateway answers differently now than in the night."""

    order_no: str
    then: str
    now: str


def next_night(account: tuple[str, str], *, last_closed: date, environment: Environment) -> date:
    """Return the business date of the next night, to which files that arrive now belong."""
    with environment.store.reading() as connection:
        live = runs.live_nights(connection, account)
    return max([last_closed, *(day + timedelta(days=1) for day in live)])


def moved_since(run_id: str, *, environment: Environment) -> tuple[Moved, ...]:
    """Return the orders that a query part found changed since the newest night of its date.

    Empty without such a night; orders that were not queried then are left out.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.LIVE)
        night = runs.of_night(connection, request)
        if night is None:
            return ()
        then, now = (
            _last_reported(connection, each, environment=environment) for each in (night, run)
        )
    return tuple(
        Moved(key, then[key], state)
        for key, state in sorted(now.items())
        if key in then and then[key] != state
    )


def _last_reported(connection: Connection, run: Run, *, environment: Environment) -> dict[str, str]:
    """Map each order to what the gateway last showed: the states of its payments, or its answer."""
    states: dict[str, list[str]] = {}
    frame = GatewayAnswers(connection, run, environment).gateway_frame()
    rules = environment.settings.rules
    for row in frame.sort_values(["order_no", "transaction_id"]).to_dict("records"):
        status = row["payment_status"]
        state = (
            rules.state_of(status).value if isinstance(status, str) and status else row["answer"]
        )
        states.setdefault(row["order_no"], []).append(str(state))
    return {key: ", ".join(state) for key, state in states.items()}


AFTER_QUERIES = frozenset({"query again", "reconcile", "report"})
"""Last finished steps after which only comparing and reporting remain."""


def is_stopped(request: NightRequest, *, environment: Environment) -> bool:
    """Return whether the night's newest live run ended before its report was stored."""
    with environment.store.reading() as connection:
        run = runs.of_night(connection, request)
    return run is not None and run.status != "finished"


def _stopped(connection: Connection, request: NightRequest) -> Run:
    run = runs.of_night(connection, request)
    if run is None or run.status == "finished":
        is_now = f"is finished (run {run.run_id})" if run else "never ran live"
        msg = f"the night of {request.business_date} {is_now}: start the whole night instead"
        raise UsageError(msg)
    if problem := _problem(connection, run):
        msg = (
            f"run {run.run_id} cannot be brought to its end from what is stored: {problem}; "
            "nothing was changed: start the whole night again, what was sent is not sent twice"
        )
        raise UsageError(msg)
    return run


def _problem(connection: Connection, run: Run) -> str:
    """Return why the run's stored data no longer gives the night's true result; "" if it does."""
    if run.step not in AFTER_QUERIES:
        return f"it stopped after {run.step or 'its start'}, before the gateway was asked again"
    if other := runs.later(connection, run):
        return f"run {other} of this account came after it"
    if other := sending_rows.sent_outside(connection, run):
        return f"batch {other} was sent since, outside of it"
    return ""
