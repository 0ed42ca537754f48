"""Rows of runs: who runs which night, how far it got and its result."""

import json
import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import psutil
from sqlalchemy import ColumnElement, Connection, insert, or_, select, update

from recon.config.rules import Rules, digest_of
from recon.model.errors import Defect, NightHeldError, StoreError
from recon.model.nights import Account, Mode, NightRequest, Part
from recon.model.terms import SourceKind, Verdict
from recon.store.database.history import ChainLink, Event, append, document_of, links_of
from recon.store.database.night_lock import Process
from recon.store.database.record import RUN, event_of, record
from recon.store.people.decision_rows import who_released
from recon.store.schema import order_file, rules_version, run
from recon.store.schema.columns import Owner, in_account, reason_that_fits


def save(connection: Connection, rules: Rules, *, at: datetime) -> None:
    """Store the rules unless they are stored already."""
    known = select(rules_version.c.digest).where(rules_version.c.digest == rules.digest)
    if connection.execute(known).scalar_one_or_none() is None:
        document = json.dumps(rules.document, sort_keys=True)
        connection.execute(
            insert(rules_version).values(digest=rules.digest, document=document, first_used_at=at)
        )


def load(connection: Connection, digest: str) -> Rules | None:
    """Return the rules with this digest; None if they were never stored.

    Raises:
        ConfigurationError: This version of the product no longer understands them.
        StoreError: The stored document does not match its digest.
    """
    document = text_of(connection, digest)
    if not document:
        return None
    if digest_of_text(document) != digest:
        raise StoreError(_changed(digest))
    return Rules.of(json.loads(document), source=f"the rules {digest[:12]}")


def text_of(connection: Connection, digest: str) -> str:
    """Return the document stored under this digest, unverified; "" if there is none."""
    return str(
        connection.execute(
            select(rules_version.c.document).where(rules_version.c.digest == digest)
        ).scalar_one_or_none()
        or ""
    )


def changed_rules(connection: Connection) -> Iterator[str]:
    """Yield a problem for each set of rules that was changed or deleted although runs used it."""
    saved = {each.digest: each.document for each in connection.execute(select(rules_version))}
    for digest, document in sorted(saved.items()):
        if digest_of_text(document) != digest:
            yield _changed(digest)
    evaluated = connection.execute(select(run.c.rules_digest).distinct()).scalars()
    for digest in sorted({*evaluated} - {*saved, ""}):
        yield f"the rules {digest}, by which runs were compared, were removed; {_PAST}"


def _changed(digest: str) -> str:
    return f"the rules {digest} say something else than then; {_PAST}"


_PAST = "they were changed past the code, each night has its own in proof/rules.json of its folder"


def digest_of_text(text: str) -> str:
    """Return the digest of rules as written, for any version; "" if the text is not valid."""
    try:
        return digest_of(json.loads(text))
    except (ValueError, RecursionError):
        return ""


ENTITY = "retention"
PURGES = "purges a night"
PURGED = "purged a night"
"""Event recorded once all expiring files of a night's folder are deleted."""


@dataclass(frozen=True, slots=True)
class PurgedNight:
    """A deletion of files from the folder of one run under retention."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: date
    by: str
    at: datetime
    files: int
    size_bytes: int
    list_sha256: str
    """Hash of the names and sizes of the deleted files."""

    def __str__(self) -> str:
        return (
            f"run {self.run_id} of {self.business_date}: the folder of this night was purged on "
            f"{self.at:%Y-%m-%d} by {self.by} under retention; its totals and manifests are kept: "
            "look at a later night, or the close of its month"
        )


def purged_night_of(connection: Connection, run_id: str) -> PurgedNight | None:
    """Return how the folder of a run was purged; None while it is complete."""
    return next(iter(all_purged(connection, [run_id])), None)


def all_purged(connection: Connection, run_ids: Collection[str] | None = None) -> list[PurgedNight]:
    """Return all purges of folders, or those of some runs, oldest first."""
    links = links_of(connection, run_ids, entity=ENTITY, event=PURGES)
    return [link.value(PurgedNight, run_id=link.entity_id) for link in links]


def purged_run_ids(connection: Connection) -> set[str]:
    """Return runs whose purge was completed; others with a purge were interrupted during it."""
    return {link.entity_id for link in links_of(connection, entity=ENTITY, event=PURGED)}


def note_purged(connection: Connection, going: PurgedNight, *, days: int) -> None:
    """Record that a folder will be purged, before its first file is; `days` is the retention."""
    listed = {**document_of(going, "run_id", "at"), "days": days}
    append(connection, [Event(ENTITY, going.run_id, PURGES, listed)], at=going.at)


def note_folder_purged(connection: Connection, run_id: str, *, at: datetime) -> None:
    """Record that all files of the folder that expire are deleted."""
    append(connection, [Event(ENTITY, run_id, PURGED, {})], at=at)


BY_HAND = "by-hand-"
"""Prefix of the run id of requests that a person sends by hand; no night has it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one night."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: date
    mode: Mode
    status: str
    step: str
    owner: str
    started_at: datetime
    as_of: datetime
    verdict: str
    workbook: str
    problem: str
    part: str = ""
    """A value of `Part`; "" for a whole night."""
    predecessor: str = ""
    """The recorded substitute for the missing run of the night before; "" if that exists."""
    workbook_sha256: str = ""
    replaced: bool = False
    """Set by `finished`: a later run of the same night has replaced this one."""

    @property
    def account(self) -> Account:
        """Merchant and account ids."""
        return self.merchant_id, self.account_id


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run stopped sending; falsy if it did not."""

    why: str = ""
    not_sent: str = ""
    """Counts and sums of what was approved and not sent then; "" for nothing."""

    def __bool__(self) -> bool:
        """Return whether it stopped."""
        return bool(self.why)

    def __str__(self) -> str:
        """Return both as sentences; "" if it did not stop."""
        left = f" Not sent: {self.not_sent}." if self.not_sent else ""
        return f"Sending stopped: {self.why}.{left}" if self else ""


PART_ENDED = "part"
"""Status of a part of a night that ended normally; the night is not finished by it."""

STARTED, TAKEN_OVER = "started", "taken over"
SEALED = "sealed"

RECONCILED = "reconciled"
"""The event of a run that completed its comparison."""

RESUMED = "resumed"
"""The event of a stopped run that is resumed under its own id."""

SENDING_STOPPED = "sending stopped"
"""The event of a live run that did not send everything it should have sent."""

NOT_VERIFIED = "not verified"
"""The event of an unverified answer that belongs to no set."""

OF_DAYS = (SourceKind.SETTLEMENT, SourceKind.BANK)
"""Kinds of files about days, not nights: they count whichever run read them."""

_COLUMNS = tuple(run.c[name] for name in Run.__dataclass_fields__ if name != "replaced")
LIVE_NIGHT = (run.c.mode == Mode.LIVE, run.c.part == "")
_ACTIVE = run.c.status == "active"
_LAST_FIRST = run.c.started_at.desc()


def this_process() -> str:
    """Return host, process id and start time, so that a person can find who holds a night."""
    process = psutil.Process(os.getpid())
    started = datetime.fromtimestamp(process.create_time(), UTC)
    return (
        f"process {process.pid} on {socket.gethostname()}, started {started:%Y-%m-%d %H:%M:%S} UTC"
    )


def start(
    connection: Connection,
    request: NightRequest,
    *,
    run_id: str,
    as_of: datetime,
    now: datetime,
    part: Part | None = None,
    predecessor: str = "",
) -> tuple[str, ...]:
    """Start a run, and close active runs of this account as stopped; return the ids of those.

    The caller holds the account's lock and found no owner alive (`living`). So the process of an
    active run has ended, or lost its lock on another machine; what it left in flight becomes in
    doubt.
    """
    dead = [each.run_id for each in select_runs(connection, *in_account(run, request), _ACTIVE)]
    for run_dead in dead:
        values, of, by = _end("stopped", now), {"run_id": run_dead}, {"by": run_id}
        record(connection, RUN, values, of=of, event=TAKEN_OVER, at=now, details=by)
    began = {
        "run_id": run_id,
        "merchant_id": request.merchant_id,
        "account_id": request.account_id,
        "business_date": request.business_date,
        "mode": request.mode,
        "status": "active",
        "part": part or "",
        "predecessor": predecessor,
        "started_at": now,
        "as_of": as_of,
        **_owner(),
    }
    record(connection, RUN, began, event=STARTED, at=now)
    return tuple(dead)


def resume(connection: Connection, run_id: str, *, now: datetime) -> None:
    """Assign a stopped run to this process again; the caller holds the account's lock."""
    values = {"status": "active", "finished_at": None, "problem": "", **_owner()}
    record(connection, RUN, values, of={"run_id": run_id}, event=RESUMED, at=now)


def _end(status: str, at: datetime) -> dict[str, Any]:
    return {"status": status, "finished_at": at}


def _owner() -> dict[str, str]:
    return {"owner": this_process(), "owner_process": str(Process.this())}


def select_runs(
    connection: Connection,
    *which: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]] = (run.c.started_at,),
    count: int | None = None,
) -> list[Run]:
    """Return the runs that match all conditions, by default in the order of their start."""
    query = select(*_COLUMNS).where(*which).order_by(*order).limit(count)
    rows = connection.execute(query).mappings()
    return [Run(**{**row, "mode": Mode(row["mode"])}) for row in rows]


def _last(connection: Connection, *which: ColumnElement[bool]) -> Run | None:
    return next(iter(select_runs(connection, *which, order=[_LAST_FIRST], count=1)), None)


def active(connection: Connection, owner: Owner) -> Run | None:
    """Return the account's active run, for messages that name its owner; None if there is none."""
    return _last(connection, *in_account(run, owner), _ACTIVE)


def living(connection: Connection, owner: Owner) -> Run | None:
    """Return an active run of the account whose process is alive here and is not this one."""
    query = select(run.c.run_id, run.c.owner_process).where(*in_account(run, owner), _ACTIVE)
    for run_id, process in connection.execute(query).tuples():
        held_by = Process.parsed(process)
        if held_by is not None and held_by.is_alive_here():
            return get(connection, run_id)
    return None


def get(connection: Connection, run_id: str) -> Run:
    """Return one run by its id; raises Defect if it does not exist."""
    found = select_runs(connection, run.c.run_id == run_id)
    if not found:
        msg = f"there is no run {run_id}"
        raise Defect(msg)
    return found[0]


def is_known(connection: Connection, run_id: str) -> bool:
    """Return whether a run with this id exists."""
    own = run.c.run_id == run_id
    return connection.execute(select(run.c.run_id).where(own)).first() is not None


def is_closed(connection: Connection, run_id: str) -> bool:
    """Return whether a run has ended or was taken over; False for ids of requests by hand."""
    status = connection.execute(select(run.c.status).where(run.c.run_id == run_id)).scalar()
    return status not in {None, "active"}


def note_step(connection: Connection, run_id: str, *, step: str) -> None:
    """Store the last finished step."""
    connection.execute(update(run).where(run.c.run_id == run_id).values(step=step))


def note_result(connection: Connection, run_id: str, *, values: Mapping[str, str]) -> None:
    """Store verdict, digests, workbook and the like on the run; `result_event` attests them."""
    connection.execute(update(run).where(run.c.run_id == run_id).values(**values))


def result_event(
    run_id: str,
    *,
    values: Mapping[str, str],
    event: str,
    details: Mapping[str, Any] | None = None,
) -> Event:
    """Return the event that attests the values stored by `note_result`."""
    return event_of(RUN, {"run_id": run_id, **values}, event=event, details=details)


def run_links(connection: Connection, run_id: str, *, event: str) -> list[ChainLink]:
    """Return a run's links of one event in the history, oldest first."""
    return links_of(connection, [run_id], entity="run", event=event)


def result_data(connection: Connection, run_id: str) -> Mapping[str, Any]:
    """Return the data of the newest event of a run's result; empty if there is none."""
    results = run_links(connection, run_id, event=RECONCILED)
    return results[-1].data if results else {}


def note_stop(connection: Connection, run_id: str, *, stop: Stop, now: datetime) -> None:
    """Record in the history that a live run stopped sending, why, and what was not sent."""
    append(connection, [Event("run", run_id, SENDING_STOPPED, asdict(stop))], at=now)


def stop_of(connection: Connection, run_id: str) -> Stop:
    """Return why a run stopped sending and what was not sent, as recorded at that time."""
    stops = run_links(connection, run_id, event=SENDING_STOPPED)
    return Stop(**stops[-1].data) if stops else Stop()


def note_unverified(
    connection: Connection, run_id: str, *, sentences: Iterable[str], now: datetime
) -> None:
    """Record each answer that a run could not verify as one unverified item."""
    events = [Event("run", run_id, NOT_VERIFIED, {"what": sentence}) for sentence in sentences]
    append(connection, events, at=now)


def unverified(connection: Connection, run_id: str) -> list[str]:
    """Return the answers that a run could not verify."""
    return [str(each.data["what"]) for each in run_links(connection, run_id, event=NOT_VERIFIED)]


def digests_of(connection: Connection, run_id: str) -> dict[str, str]:
    """Return the digests of a run's rules and result."""
    names = ("rules_digest", "result_digest")
    row = connection.execute(select(*(run.c[name] for name in names)).where(run.c.run_id == run_id))
    return {name: str(value) for name, value in row.mappings().one().items()}


def finish(
    connection: Connection, run_id: str, *, status: str, problem: str, now: datetime
) -> None:
    """Close a run as finished (a part: PART_ENDED), or as stopped with a problem text.

    Raises:
        NightHeldError: Another run took the account over and closed it; its status stays.
    """
    values = _end(status, now) | ({"problem": reason_that_fits(problem)} if problem else {})
    of, details = {"run_id": run_id, "status": "active"}, {"problem": problem}
    if not record(connection, RUN, values, of=of, event=status, at=now, details=details):
        msg = f"run {run_id} was closed: another run took the account over, and states what became"
        raise NightHeldError(f"{msg} of it")


def last_finished(connection: Connection, owner: Owner) -> dict[date, Run]:
    """Return an account's newest finished run by business date, live preferred over dry."""
    evaluated = (*in_account(run, owner), run.c.status == "finished", run.c.verdict != "")
    # A dry run after a live night never replaces it: it would lift, or impose, a hold on money.
    order = (run.c.mode == Mode.LIVE, run.c.started_at)
    return {each.business_date: each for each in select_runs(connection, *evaluated, order=order)}


def live_nights(connection: Connection, owner: Owner) -> dict[date, Run]:
    """Return an account's newest finished live run by business date, earliest date first."""
    finished = sorted(last_finished(connection, owner).items())
    return {day: night for day, night in finished if night.mode is Mode.LIVE}


def of_night(connection: Connection, request: NightRequest) -> Run | None:
    """Return the newest live run of a whole night; None if it never ran."""
    night = run.c.business_date == request.business_date
    return _last(connection, *in_account(run, request), night, *LIVE_NIGHT)


def newest_live(connection: Connection, owner: Owner) -> Run | None:
    """Return the live run of a whole night that started last; None before the first."""
    return _last(connection, *in_account(run, owner), *LIVE_NIGHT)


def stated_of_predecessor(connection: Connection, request: NightRequest) -> str:
    """Return the last recorded substitute for a live night's missing predecessor; "" if none."""
    night = run.c.business_date == request.business_date, run.c.mode == Mode.LIVE
    last = _last(connection, *in_account(run, request), *night, run.c.predecessor != "")
    return last.predecessor if last else ""


def later(connection: Connection, earlier: Run) -> str:
    """Return the newest run of the account that started after another, of any night; "" if none."""
    found = _last(connection, *in_account(run, earlier), run.c.started_at > earlier.started_at)
    return found.run_id if found else ""


def any_finished_since(connection: Connection, owner: Owner, *, since: datetime) -> bool:
    """Return whether a whole live night that started after an instant has finished."""
    return any(night.started_at > since for night in live_nights(connection, owner).values())


def unfinished(connection: Connection) -> list[Run]:
    """Return runs that stopped or are still active, newest first."""
    open_ones = run.c.status.not_in(("finished", PART_ENDED))
    return select_runs(connection, open_ones, order=[_LAST_FIRST])


def counting(night: Run) -> tuple[ColumnElement[bool], ...]:
    """Return conditions on files: live nights ignore what a whole dry run read, except OF_DAYS."""
    if night.mode is not Mode.LIVE:
        return ()
    dry = select(run.c.run_id).where(run.c.mode == Mode.DRY_RUN, run.c.part == "")
    return (or_(order_file.c.kind.in_(OF_DAYS), order_file.c.run_id.not_in(dry)),)


def finished(connection: Connection) -> list[Run]:
    """Return all finished runs, oldest first, with `replaced` set."""
    every = select_runs(connection, run.c.status == "finished")
    # A dry run does not replace a live one, even if it is later.
    last = sorted(every, key=lambda one: (one.mode is Mode.LIVE, one.started_at))
    newest = {(*one.account, one.business_date): one.run_id for one in last}
    saved = {*newest.values()}
    return [replace(one, replaced=one.run_id not in saved) for one in every]


def newest_of_accounts(connection: Connection) -> list[Run]:
    """Return each account's newest run of its last business date; a part if no night has run."""
    nights_last = (run.c.part == "", run.c.business_date, run.c.started_at)
    newest = {each.account: each for each in select_runs(connection, order=nights_last)}
    return [each for _, each in sorted(newest.items())]


def newest(connection: Connection, *, count: int) -> list[Run]:
    """Return the runs that started last, newest first."""
    return select_runs(connection, order=[_LAST_FIRST], count=count)


def not_proven(
    connection: Connection, owner: Owner, *, problem_of: Callable[[str], str] | None = None
) -> dict[date, str]:
    """Return business dates whose newest finished run is NOT PROVEN, not released: refunds wait.

    Each has the reason why its release does not count, "" if it was not released. `problem_of`
    checks the release of a run; without it all releases are accepted.
    """
    nights = last_finished(connection, owner)
    held: dict[date, str] = {}
    for day, night in sorted(nights.items()):
        if night.verdict != Verdict.NOT_PROVEN:
            continue
        is_free = who_released(connection, night.run_id) is not None
        why = problem_of(night.run_id) if is_free and problem_of is not None else ""
        if why or not is_free:
            held[day] = why
    return held
