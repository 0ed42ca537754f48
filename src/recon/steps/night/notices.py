"""Notify people that a night has ended, once the account's lock is released.

Each attempt is an event of the run in the history. What did not arrive is not lost: `recon status`
shows it and `recon status --tell` tries again.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recon.config.keys import key_of_file
from recon.config.notice_settings import STOPPED, Notice
from recon.config.settings import Settings
from recon.model.errors import ConfigurationError, ReconError, UsageError
from recon.model.nights import Mode
from recon.model.terms import ALARMS
from recon.notify.messenger import ATTACHMENT_BYTES_MAX, Message, check_address, deliver
from recon.privacy.displayed_text import for_people
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_end import NightEnd, end_of
from recon.store.database import history
from recon.store.nights import results, runs
from recon.store.nights.runs import Run

NOTIFIED = "notified"
NOT_REPORTED = "not notified"
"""Events of a run in the history, one for each attempt at each notice."""


@dataclass(slots=True)
class EndedNight:
    """The run of a night in progress, once it has one."""

    run_id: str = ""


@contextmanager
def notifying(environment: Environment, *, echo: Callable[[str], None]) -> Iterator[EndedNight]:
    """Notify people when the night in this block ends, whether it finished or stopped.

    The block sets `run_id`; without one (another run held the night) nobody is notified. `echo`
    gets a sentence for each notice that did not arrive. A night that was asked to end (SIGTERM,
    Ctrl-C) ends at once; `recon status` shows who was not notified yet.
    """
    night = EndedNight()

    def notify_people() -> None:
        for sentence in notify(night.run_id, environment=environment) if night.run_id else ():
            echo(sentence)

    try:
        yield night
    except Exception:
        notify_people()
        raise
    notify_people()


def notify(run_id: str, *, environment: Environment) -> tuple[str, ...]:
    """Send every due notice of a run; return a sentence for each that did not arrive.

    Never raises an error of ours: a night that moved money does not fail because of a mail server.
    """
    try:
        return _reported(run_id, environment=environment)
    except ReconError as error:
        return (f"nobody could be notified of run {run_id}: {error}",)


def notify_again(run_id: str, *, environment: Environment) -> tuple[str, ...]:
    """Send every due notice of a run again; return the names of those that arrived.

    Raises:
        UsageError: there is no such run, or it is still running.
        ReconError: a notice did not arrive; the message says why.
    """
    with environment.store.reading() as connection:
        known = runs.is_known(connection, run_id)
        run = runs.get(connection, run_id) if known else None
    if run is None or run.status == "active":
        msg = f"run {run_id} {'still works' if run else 'is not known'}; `recon status` lists runs"
        raise UsageError(msg)
    due = unreported(run, environment=environment)
    if failed := notify(run_id, environment=environment):
        raise ReconError("; ".join(failed))
    return tuple(due)


def unreported(run: Run, *, environment: Environment) -> dict[str, str]:
    """Return the names of the run's notices still due, each with its last problem."""
    if run.status == "active" or run.mode is not Mode.LIVE:
        return {}
    account, notices = f"{run.merchant_id}/{run.account_id}", environment.settings.notices
    ends = _ends_of(run, environment=environment) if notices else set[str]()
    due = [name for name, each in sorted(notices.items()) if each.concerns(account, ends=ends)]
    if not due:
        return {}
    with environment.store.reading() as connection:
        events = history.links_of(connection, [run.run_id], entity="run")
    tries: dict[str, str] = {}
    for event in events:
        if event.event == runs.RESUMED:
            tries.clear()  # a notice that the night stopped does not report how it ended later
        if event.event in {NOTIFIED, NOT_REPORTED}:
            details = event.data
            tries[details["notice"]] = details.get("problem", "")
    return {name: problem for name in due if (problem := tries.get(name, "it was not tried"))}


def reported_by_settings(settings: Settings, *, variables: Mapping[str, str]) -> str:
    """Return the declared notices and where they go, as text for the doctor.

    Raises:
        ConfigurationError: an address is missing or not valid.
    """
    if not settings.notices:
        return "nobody is notified when a night has ended (notices.toml)"
    lines = []
    for name, notice in sorted(settings.notices.items()):
        try:
            lines.append(f"{name} by {check_address(_address(notice, variables=variables))}")
        except ConfigurationError as error:
            msg = f"{name}: {error}"
            raise ConfigurationError(msg) from None
    return ", ".join(lines)


def _reported(run_id: str, *, environment: Environment) -> tuple[str, ...]:
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    names = unreported(run, environment=environment)
    if not names:
        return ()
    problems: dict[str, str] = {}
    messages: dict[str, tuple[str, Message]] = {}
    for name in names:
        notice = environment.settings.notices[name]
        try:
            address = _address(notice, variables=environment.variables)
        except ConfigurationError as error:
            problems[name] = str(error)
        else:
            messages[name] = (address, _message(run, notice=notice, environment=environment))
    problems |= deliver(messages)
    events = [
        history.Event(
            "run",
            run.run_id,
            NOT_REPORTED if problem else NOTIFIED,
            {"notice": name} | ({"problem": problem} if problem else {}),
        )
        for name, problem in sorted(problems.items())
    ]
    with environment.store.writing() as connection:
        history.append(connection, events, at=environment.clock())
    return tuple(
        f"notice {name} did not arrive: {problem}; `recon status --tell {run_id}` tries again"
        for name, problem in sorted(problems.items())
        if problem
    )


def _end_of(run: Run, *, environment: Environment) -> NightEnd | None:
    """Return how the night ended; None if it did not finish."""
    if run.status != "finished" or not run.verdict:
        return None
    return end_of(run, environment=environment)


def _ends_of(run: Run, *, environment: Environment) -> set[str]:
    """Return the outcomes of the run; a notice that lists one of them is sent.

    A night that left money undone also counts as stopped, so it reaches everybody notified of
    stopped nights as well as those notified of its verdict.
    """
    end = _end_of(run, environment=environment)
    if end is None:
        return {STOPPED}
    return {end.kind.value, end.verdict.value} | ({STOPPED} if end.kind in ALARMS else set())


def _message(run: Run, *, notice: Notice, environment: Environment) -> Message:
    """Build the notice: no order and no shopper in it; of money, only the sums left undone."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    account_name = f"{run.merchant_id}/{run.account_id}"
    end = _end_of(run, environment=environment)
    lines = [
        f"{account.name or 'Merchant'}, account {account_name}, business date {run.business_date}."
    ]
    if end is None:
        lines.append(f"The night stopped: {run.problem}")
    else:
        # The workbook's verdict if it differs, and what is undone.
        is_other = end.kind.value != end.verdict.value
        verdict_note = f" (the workbook says {end.verdict})" if is_other else ""
        lines.append(f"The night ended: {end.kind}{verdict_note}.")
        lines += [end.sentence] if end.sentence else []
    workbook = Path(run.workbook) if end and run.workbook else None
    if workbook:
        with environment.store.reading() as connection:
            breaks = results.open_breaks(connection, run.run_id)
        lines += [f"Open breaks: {breaks}.", _workbook_text(workbook, attach=notice.attach)]
    lines += ["", f"Run {run.run_id}. What needs a person: `recon status`."]
    title = f"{end.kind if end else STOPPED}: {account_name}, {run.business_date}"
    return Message(
        title, for_people("\n".join(lines)), attachment=workbook if notice.attach else None
    )


def _workbook_text(path: Path, *, attach: bool) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        return f"Workbook: {path}, which cannot be read ({error.strerror})."
    sentence = f"Workbook: {path}, SHA-256 {hashlib.sha256(content).hexdigest()}."
    if attach and len(content) > ATTACHMENT_BYTES_MAX:
        sentence += f" It is larger than {ATTACHMENT_BYTES_MAX // 1024**2} MB and is not attached."
    return sentence


def _address(notice: Notice, *, variables: Mapping[str, str]) -> str:
    if notice.address_file:
        return key_of_file(notice.address_file)
    if address := variables.get(notice.address_env, "").strip():
        return address
    msg = f"the environment variable {notice.address_env} with its address is not set"
    raise ConfigurationError(msg)
